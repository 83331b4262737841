// What the coordinator and a rank say to each other: orders (one verb each, with its arguments) and
// the outcome of each, in messages of a SOCK_SEQPACKET socket pair. Both ends are the same program,
// so plain structs cross as they are. A message belongs to one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "ib/types.h"
#include "nic/completion.h"
#include "nic/qp_attr.h"

namespace vrb::model {

constexpr std::uint64_t kArenaBytes = 4 << 20;  // the memory of a rank that operations work on
constexpr std::uint32_t kPds = 2;

enum class Verb : std::uint8_t {
  CreateCq,    // CqOrder
  ResizeCq,    // CqOrder
  ArmCq,       // CqOrder, cqe: 1 = solicited only
  CreateSrq,   // SrqOrder
  LimitSrq,    // SrqOrder
  CreateQp,    // QpOrder; gives the QPN and the send queue it got
  DestroyQp,   // StateOrder
  ResetQp,     // StateOrder
  RecoverQp,   // StateOrder: SQE to RTS
  AwaitState,  // StateOrder: waits until the QP is there
  ConnectQp,   // ConnectOrder: RESET, INIT, RTR, RTS
  RegMr,       // MrOrder; gives L_Key and R_Key
  ReregMr,     // MrOrder; gives L_Key and R_Key
  DeregMr,     // MrOrder
  Fill,        // FillOrder: the program itself writes its memory
  PostSend,    // SendOrder, SGEs
  PostRecv,    // RecvOrder, SGEs
  Collect,     // CollectOrder; gives a Harvest behind its outcome
  Show,        // nothing: copies private memory to where the coordinator sees it
  Leave,       // nothing: destroys all and ends; gives the completions that were left
};

struct CqOrder {
  std::uint32_t cq = 0, cqe = 0;
};
struct SrqOrder {
  std::uint32_t pd = 0, max_wr = 0, max_sge = 0, limit = 0;
};
struct QpOrder {
  std::uint32_t qp = 0, pd = 0, send_cq = 0, recv_cq = 0;
  ib::QpType type = ib::QpType::Rc;
  bool srq = false, sig_all = false;
  nic::QpCap cap;
};
struct StateOrder {
  std::uint32_t qp = 0;
  ib::QpState state = ib::QpState::Reset;
};
struct ConnectOrder {
  std::uint32_t qp = 0, dest_qpn = 0, access = 0, qkey = 0;
  ib::QpType type = ib::QpType::Rc;
  std::uint8_t rnr_retry = 7, timeout = 0, retry_cnt = 0;
};
struct MrOrder {
  std::uint32_t mr = 0, pd = 0, access = 0;
  int flags = 0;  // of rereg
  std::uint64_t offset = 0, length = 0, iova = 0;
};
struct FillOrder {
  std::uint64_t offset = 0, length = 0, seed = 0;
};
struct SendOrder {
  std::uint64_t id = 0, remote_addr = 0, compare_add = 0, swap = 0;
  std::uint32_t qp = 0, rkey = 0, imm = 0, remote_qpn = 0, remote_qkey = 0, ah = 0;
  ib::Opcode opcode = ib::Opcode::Send;
  std::uint8_t flags = 0;
};
struct RecvOrder {
  std::uint64_t id = 0;
  std::uint32_t qp = 0;
  bool srq = false;
};
struct CollectOrder {
  std::uint32_t completions = 0, cq_events = 0, async_events = 0;
  bool sleeps = false;  // on the descriptors, instead of polling
};

struct Outcome {
  int error = 0;  // an errno value
  std::uint32_t values[2] = {};
};
struct Harvested {
  std::uint32_t cq = 0;
  nic::Completion completion;
};
struct AsyncHarvested {
  ib::EventType type = ib::EventType::DeviceFatal;
  std::uint32_t element = 0;  // index of the QP
};
// What a rank says first.
struct Greeting {
  std::uint64_t arena = 0;  // its address there
  std::uint32_t mtu = 0;
};

class Message {
 public:
  Message() = default;
  explicit Message(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  template <class T>
  void put(const T& value) {
    put_all(std::span<const T>(&value, 1));
  }
  template <class T>
  void put_all(std::span<const T> values) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + values.size_bytes());
    if (!values.empty()) std::memcpy(bytes_.data() + at, values.data(), values.size_bytes());
  }
  template <class T>
  void put_list(const std::vector<T>& values) {
    put(static_cast<std::uint32_t>(values.size()));
    put_all(std::span<const T>(values));
  }
  template <class T>
  T take() {
    T value;
    if (bytes_.size() - read_ < sizeof value) throw std::runtime_error("a message is too short");
    std::memcpy(static_cast<void*>(&value), bytes_.data() + read_, sizeof value);
    read_ += sizeof value;
    return value;
  }
  template <class T>
  std::vector<T> take_list() {
    std::vector<T> values(take<std::uint32_t>());
    for (T& value : values) value = take<T>();
    return values;
  }
  bool at_end() const { return read_ == bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  void patch(std::size_t at, std::uint8_t value) { bytes_[at] = std::byte{value}; }

 private:
  std::vector<std::byte> bytes_;
  std::size_t read_ = 0;
};

// Both throw std::runtime_error when the other end is gone.
void send_message(int socket, const Message& message);
Message receive_message(int socket);

// The program's accesses to an arena are left out of ThreadSanitizer's sight (CMakeLists.txt): what
// orders them and the NIC's are messages through another process.
//
// The bytes that a seed stands for, the same at both ends.
void fill(std::span<std::byte> memory, std::uint64_t seed);
// A multiple of 8 bytes, aligned.
void copy_words(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace vrb::model
