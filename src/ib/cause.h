// A cause: why a call was refused or a completion is in error, as a small value that can be printed
// in plain words (VERBENA_EXPLAIN=1) and whose code is the vendor_err of the completion. Numbers
// never change their meaning; docs/errors.md is generated from the table below. Plain values; any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "ib/types.h"

namespace vrb::ib {

// code, name, sentence ({0}..{3}: arguments in decimal, {x0}..{x3}: in hexadecimal).
#define VRB_CAUSES(X)                                                                              \
  X(0, None, "no cause was recorded")                                                              \
  X(1, NotBuilt, "this part of the API is not built yet")                                          \
  X(2, NullArgument, "a pointer that must be set is NULL")                                         \
  X(3, OutOfMemory, "there is no memory left for the object")                                      \
  X(4, ObjectBusy, "the object is still used by {0} others: destroy those first")                  \
  X(5, LimitExceeded, "{0} was asked for, the device's limit is {1}")                              \
  X(6, BadAttribute, "attribute bit {x0} has the value {1}, which is not allowed here")            \
  X(7, BadTransition, "a QP cannot go from state {0} to state {1}")                                \
  X(8, MissingAttributes,                                                                          \
    "the transition from state {0} to {1} needs attribute mask {x2}, got {x3}")                    \
  X(9, ForbiddenAttributes, "the transition from state {0} to {1} does not take attributes {x2}")  \
  X(10, WrongCurrentState, "the QP is in state {0}, the caller says {1}")                          \
  X(11, WrongQpState, "the QP is in state {0}, in which this cannot be posted")                    \
  X(12, QueueFull,                                                                                 \
    "the queue holds {0} work requests, its capacity is {1}: poll signalled completions")          \
  X(13, TooManySges, "{0} SGEs were given, the queue takes {1}")                                   \
  X(14, InlineTooLong, "{0} inline bytes were given, the QP takes {1}")                            \
  X(15, BadOpcode, "opcode {0} does not exist for QP type {1}")                                    \
  X(16, MessageTooLong, "the message has {0} bytes, at most {1} can be sent")                      \
  X(17, BadAddressHandle, "a UD send needs an address handle of the QP's own protection domain")   \
  X(18, BadAccessFlags, "access flags {x0}: remote write and atomic access need local write")      \
  X(19, MemoryNotMapped,                                                                           \
    "address {x0}, {1} bytes: not all of it is mapped with the access asked for")                  \
  X(20, KeyUnknown, "key {x0} names no memory region (never given, or deregistered)")              \
  X(21, KeyOtherPd, "key {x0} belongs to PD {1}, the QP to PD {2}")                                \
  X(22, KeyAccess, "key {x0} grants access {x1}, the operation needs {x2}")                        \
  X(23, KeyRange, "address {x1} with {2} bytes is outside the region of key {x0}")                 \
  X(24, QpAccess, "the remote QP {x0} grants access {x1}, the operation needs {x2}")               \
  X(25, AtomicMisaligned, "the remote address {x0} of an atomic is not a multiple of 8")           \
  X(26, RecvTooSmall, "the message has {0} bytes, the receive buffer {1}")                         \
  X(27, RnrRetriesExceeded, "QP {x0}: no receive was posted after {1} retries of the RNR timer")   \
  X(28, PeerAbsent, "no process holds the slot of QP {x0}")                                        \
  X(29, PeerDied, "the process that owned QP {x0} has gone")                                       \
  X(30, PeerSilent, "the process of QP {x0} did not answer within the retries ({1} ms)")           \
  X(31, PeerQpAbsent, "QP {x0} does not exist at the peer")                                        \
  X(32, PeerQpState, "the remote QP {x0} is in state {1} and does not receive")                    \
  X(33, PeerQpOther, "the remote QP {x0} is connected to QP {x1}, not to us ({x2})")               \
  X(34, NotLocal, "GID {x0}:{x1} is not of this host and the wire carrier is not built yet")       \
  X(35, WireForced, "VERBENA_CARRIER=wire, and the wire carrier is not built yet")                 \
  X(36, PeerWantsWire, "the peer of QP {x0} takes only the wire, which is not built yet")          \
  X(37, OtherUser,                                                                                 \
    "the peer of QP {x0} runs as uid {1}, we as {2}: no local carrier between users")              \
  X(38, OtherNamespace, "the peer of QP {x0} lives in another user or pid namespace")              \
  X(39, NotDumpable, "a process that is not dumpable takes no part in the local carrier")          \
  X(40, OtherLayout, "the peer of QP {x0} has NIC memory layout {1}, we {2}: mixed versions")      \
  X(41, CmaRefused, "the kernel refused to copy to or from the peer of QP {x0} (errno {1})")       \
  X(42, MemoryGone, "registered memory at {x0} of the peer is no longer mapped")                   \
  X(43, LocalMemoryGone, "our registered memory at {x0} is no longer mapped")                      \
  X(44, Flushed, "the QP went to the error state before this work request was done")               \
  X(45, CqOverrun, "the CQ holds {0} completions and its capacity is {1}")                         \
  X(46, QkeyMismatch, "Q_Key {x0} was sent, QP {x1} has {x2}")                                     \
  X(47, RemoteFoundError, "the remote side refused the message: cause {0} of its own")             \
  X(48, NoSlot, "all {0} slots of this host are taken")                                            \
  X(49, NoQpnLeft, "the process has used all of its {0} QP numbers")                               \
  X(50, SystemRefused, "the system call {0} failed with errno {1}")                                \
  X(51, Forked, "this object belongs to the parent process; a forked child opens the device anew") \
  X(52, UdTooLong, "a UD message has {0} bytes, the port's MTU is {1}")                            \
  X(53, NotMulticast, "{x0}:{x1} is not a multicast GID")                                          \
  X(54, NotAttached, "the QP is not attached to that multicast group")                             \
  X(55, SrqHasOwn, "a QP with an SRQ has no receive queue of its own")                             \
  X(56, AssistTimedOut, "the peer of QP {x0} did not serve an assist request within {1} ms")       \
  X(57, BadRecvKey,                                                                                \
    "the receive buffer of QP {x0} has a key that the peer may not write (cause {1})")             \
  X(58, BadGidIndex, "GID index {0} is not in the table of {1}")                                   \
  X(59, BadPort, "port {0} does not exist: the device has port 1")                                 \
  X(60, BadPkeyIndex, "P_Key index {0} does not exist: the table has one entry")

enum class CauseCode : std::uint16_t {
#define VRB_X(code, name, text) name = code,
  VRB_CAUSES(VRB_X)
#undef VRB_X
};

struct Cause {
  CauseCode code = CauseCode::None;
  std::uint64_t args[4] = {};
};

template <class... A>
constexpr Cause cause(CauseCode code, A... args) {
  return Cause{code, {static_cast<std::uint64_t>(args)...}};
}

const char* cause_name(CauseCode code);
const char* cause_text(CauseCode code);
// Writes the sentence with its arguments into out (always ends with NUL); returns its length.
std::size_t format_cause(const Cause& cause, char* out, std::size_t size);

// A refused call.
struct Refusal {
  Errc errc = Errc::Invalid;
  Cause cause;
};
template <class T>
using Result = base::Result<T, Refusal>;

template <class... A>
base::Unexpected<Refusal> refuse(Errc errc, CauseCode code, A... args) {
  return base::Unexpected<Refusal>{Refusal{errc, cause(code, args...)}};
}

}  // namespace vrb::ib
