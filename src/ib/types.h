// The words of the IBTA specification as types: numbers that are easily swapped are distinct, and
// the enumerations carry the values of verbs.h, so that the ABI skin converts them by a cast (it
// asserts that). Plain values; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/strong_int.h"

namespace vrb::ib {

using Qpn = base::StrongInt<struct QpnTag, std::uint32_t>;  // 24 bits
using Lkey = base::StrongInt<struct LkeyTag, std::uint32_t>;
using Rkey = base::StrongInt<struct RkeyTag, std::uint32_t>;
using Psn = base::StrongInt<struct PsnTag, std::uint32_t>;  // 24 bits
using Iova = base::StrongInt<struct IovaTag, std::uint64_t>;
using Pdn = base::StrongInt<struct PdnTag, std::uint32_t>;  // protection domain of one process

using Gid = std::array<std::uint8_t, 16>;  // network order

// One element of a scatter or gather list, as ibv_sge.
struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

enum class QpType : std::uint8_t { Rc = 2, Uc = 3, Ud = 4 };
enum class QpState : std::uint8_t { Reset = 0, Init, Rtr, Rts, Sqd, Sqe, Err };

// Work request opcodes (ibv_wr_opcode).
enum class Opcode : std::uint8_t {
  Write = 0,
  WriteWithImm = 1,
  Send = 2,
  SendWithImm = 3,
  Read = 4,
  CompareSwap = 5,
  FetchAdd = 6,
};
constexpr bool is_atomic(Opcode o) { return o == Opcode::CompareSwap || o == Opcode::FetchAdd; }
constexpr bool is_send(Opcode o) { return o == Opcode::Send || o == Opcode::SendWithImm; }
constexpr bool has_imm(Opcode o) { return o == Opcode::WriteWithImm || o == Opcode::SendWithImm; }
// Consumes a receive WQE at the responder.
constexpr bool needs_recv(Opcode o) { return is_send(o) || o == Opcode::WriteWithImm; }
// Brings data back to the requester.
constexpr bool fetches(Opcode o) { return o == Opcode::Read || is_atomic(o); }

// Completion statuses (ibv_wc_status; IBTA 11.6.2).
enum class WcStatus : std::uint8_t {
  Success = 0,
  LocLenErr = 1,
  LocQpOpErr = 2,
  LocEecOpErr = 3,
  LocProtErr = 4,
  WrFlushErr = 5,
  MwBindErr = 6,
  BadRespErr = 7,
  LocAccessErr = 8,
  RemInvReqErr = 9,
  RemAccessErr = 10,
  RemOpErr = 11,
  RetryExcErr = 12,
  RnrRetryExcErr = 13,
  LocRddViolErr = 14,
  RemInvRdReqErr = 15,
  RemAbortErr = 16,
  InvEecnErr = 17,
  InvEecStateErr = 18,
  FatalErr = 19,
  RespTimeoutErr = 20,
  GeneralErr = 21,
};

// Completion opcodes (ibv_wc_opcode).
enum class WcOpcode : std::uint8_t {
  Send = 0,
  RdmaWrite = 1,
  RdmaRead = 2,
  CompSwap = 3,
  FetchAdd = 4,
  Recv = 128,
  RecvRdmaWithImm = 129,
};
constexpr WcOpcode wc_opcode(Opcode o) {
  switch (o) {
    case Opcode::Write:
    case Opcode::WriteWithImm:
      return WcOpcode::RdmaWrite;
    case Opcode::Read:
      return WcOpcode::RdmaRead;
    case Opcode::CompareSwap:
      return WcOpcode::CompSwap;
    case Opcode::FetchAdd:
      return WcOpcode::FetchAdd;
    case Opcode::Send:
    case Opcode::SendWithImm:
      break;
  }
  return WcOpcode::Send;
}

// Completion flags (ibv_wc_flags).
constexpr std::uint8_t kWcGrh = 1;
constexpr std::uint8_t kWcWithImm = 2;
constexpr std::uint8_t kWcIpv4 = 0x80;  // ours: the 40 bytes hold an IPv4 header, not a GRH or IPv6

// Access flags (ibv_access_flags).
constexpr std::uint32_t kLocalWrite = 1;
constexpr std::uint32_t kRemoteWrite = 2;
constexpr std::uint32_t kRemoteRead = 4;
constexpr std::uint32_t kRemoteAtomic = 8;
constexpr std::uint32_t kMwBind = 16;
constexpr std::uint32_t kZeroBased = 32;
constexpr std::uint32_t kOnDemand = 64;
constexpr std::uint32_t kHugetlb = 128;
constexpr std::uint32_t kRemoteAccess = kRemoteWrite | kRemoteRead | kRemoteAtomic;
constexpr std::uint32_t kOptionalAccess =
    0x3ff00000;  // accepted and without effect (bits 20 to 29)

// Flags of a send work request (ibv_send_flags).
constexpr std::uint8_t kSendFence = 1;
constexpr std::uint8_t kSendSignaled = 2;
constexpr std::uint8_t kSendSolicited = 4;
constexpr std::uint8_t kSendInline = 8;

// Asynchronous events (ibv_event_type; IBTA 11.6.3).
enum class EventType : std::uint8_t {
  CqErr = 0,
  QpFatal = 1,
  QpReqErr = 2,
  QpAccessErr = 3,
  CommEst = 4,
  SqDrained = 5,
  PathMig = 6,
  PathMigErr = 7,
  DeviceFatal = 8,
  PortActive = 9,
  PortErr = 10,
  LidChange = 11,
  PkeyChange = 12,
  SmChange = 13,
  SrqErr = 14,
  SrqLimitReached = 15,
  QpLastWqeReached = 16,
  ClientReregister = 17,
  GidChange = 18,
};

// The error of a refused call: an errno value, never a completion status.
enum class Errc : int {
  Perm = 1,
  NoEntry = 2,
  Again = 11,
  NoMemory = 12,
  Fault = 14,
  Busy = 16,
  NoDevice = 19,
  Invalid = 22,
  TooManyFiles = 24,
  NoSpace = 28,
  Range = 34,
  NoData = 61,
  NotSupported = 95,
  NetworkUnreachable = 101,
  HostUnreachable = 113,
};

}  // namespace vrb::ib
