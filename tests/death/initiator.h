// The initiator's half of a session: rounds of operations towards the other end, each checked when
// all of its completions are there. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "message.h"
#include "nic.h"
#include "workload.h"

namespace vrb::death {

// The QPs of one end. `srq` receives from the node's SRQ, `own` from a queue of its own.
struct Qps {
  engine::Qp* srq = nullptr;
  engine::Qp* own = nullptr;
  engine::Qp* ud = nullptr;
};

constexpr std::uint32_t kQkey = 0x1234;
constexpr std::uint64_t kSendWrId = 1ULL << 63;  // tells sends from receives

class Initiator {
 public:
  Initiator(std::uint32_t session, Nic& nic, Region& region, const Qps& qps)
      : session_(session), nic_(nic), region_(region), qps_(qps) {}

  void start(const Work& work, const Endpoint& remote);
  void halt() { work_.rounds = static_cast<std::uint32_t>(outcome_.rounds); }  // after this round
  bool running() const { return running_; }
  // Posts the next round when the former one is complete; true when the work came to its end.
  bool pump();
  void completed(const nic::Completion& completion);
  const Outcome& outcome() const { return outcome_; }

 private:
  enum Kind : std::uint64_t { Write, Send, WriteImm, Read, Own1, Own2, FetchAdd, CompareSwap, Ud };
  struct Target {
    std::uint64_t addr, compare_add, swap;
  };

  void post_round();
  void post_one_sided();
  void post_messages();
  void post_atomics();
  void post(engine::Qp* qp, Kind kind, ib::Opcode opcode, ib::Sge sge, Target target);
  void post_message(engine::Qp* qp, Kind kind, Stream stream, std::size_t place);
  void check_round();
  std::uint64_t seed() const { return std::uint64_t{session_} << 32 | total_rounds_; }
  std::uint64_t result(std::size_t place) const;

  const std::uint32_t session_;
  Nic& nic_;
  Region& region_;
  const Qps qps_;
  Endpoint remote_;
  Work work_;
  bool running_ = false;
  std::uint32_t outstanding_ = 0;
  std::uint32_t total_rounds_ = 0;  // of all work so far
  std::uint64_t next_number_[3] = {};
  std::uint64_t atomics_ = 0;
  Outcome outcome_;
};

}  // namespace vrb::death
