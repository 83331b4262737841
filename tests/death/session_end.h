// One end of a session in a node: its QPs, its memory, what it sends (Initiator) and what arrives.
// One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "initiator.h"
#include "message.h"
#include "nic.h"
#include "workload.h"

namespace vrb::death {

class SessionEnd {
 public:
  SessionEnd(std::uint32_t id, Nic& nic);
  ~SessionEnd();
  SessionEnd(const SessionEnd&) = delete;
  SessionEnd& operator=(const SessionEnd&) = delete;

  Endpoint endpoint() const;
  void link(const Endpoint& remote, const Clocks& clocks);
  void run(const Work& work) {
    told_ = 0;
    initiator_->start(work, remote_);
  }
  // Before destruction: nothing arrives any more; the completions that are there can be polled.
  void close();
  void halt() { initiator_->halt(); }
  // Deregisters the region and marks all of it.
  void withdraw_memory();
  View look(std::uint32_t round) const;
  // True when the work has just come to its end.
  bool pump() { return initiator_->pump(); }
  bool running() const { return initiator_->running(); }
  // True once for each `every` rounds.
  bool take_progress(std::uint32_t every);
  bool owns(std::uint32_t qpn) const;
  void completed(const nic::Completion& completion);
  Outcome outcome() const;
  std::uint32_t id() const { return id_; }
  engine::Qp* any_qp() const { return qps_.srq; }

 private:
  engine::Qp* make_qp(ib::QpType type, bool with_srq, std::uint32_t receives);
  void to_init(engine::Qp* qp, bool datagram);
  void to_rts(engine::Qp* qp, ib::Qpn remote, const Clocks& clocks);
  void datagram_to_rts();
  void post_own(std::uint32_t place);
  void post_ud(std::uint32_t place);
  void arrived(const nic::Completion& completion);
  void arrived_imm(std::uint32_t number);
  void count(Stream stream, std::uint64_t number, bool whole);

  const std::uint32_t id_;
  Nic& nic_;
  std::unique_ptr<Region> region_, inbox_;
  Qps qps_;
  std::unique_ptr<Initiator> initiator_;
  Endpoint remote_;
  std::uint64_t expected_[3] = {};  // number of the next message
  std::array<std::uint64_t, 3> received_{};
  std::uint32_t wrong_ = 0;
  bool marked_ = false;
  std::uint64_t told_ = 0;  // rounds of the present work that were told
};

}  // namespace vrb::death
