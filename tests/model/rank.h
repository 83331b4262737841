// A rank: one user of the device, with its own context, objects and memory, that does what the
// coordinator orders and tells what came of it. It judges nothing. A process serves one rank or
// several, each in a thread of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "engine/api.h"
#include "protocol.h"

namespace vrb::model {

class Rank {
 public:
  // `memfd`: kArenaBytes that the coordinator can see: the rank's memory itself (`shares`), or the
  // place for snapshots of private memory.
  Rank(int socket, int memfd, bool shares);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void serve();  // until it is told to leave

 private:
  Outcome execute(Verb verb, Message& in, Message& out);
  Outcome on_queue(Verb verb, Message& in);
  Outcome on_state(Verb verb, const StateOrder& order);
  Outcome on_region(Verb verb, Message& in);
  Outcome create_qp(const QpOrder& order);
  Outcome connect(const ConnectOrder& order);
  Outcome post_send(Message& in);
  Outcome post_recv(Message& in);
  void collect(const CollectOrder& order, Message& out);
  bool poll_queues();
  bool take_async();
  bool take_event();
  void sleep();
  void leave(Message& out);

  int socket_;
  std::byte* arena_ = nullptr;
  std::byte* visible_ = nullptr;  // the memfd
  engine::Context* context_ = nullptr;
  engine::Channel* channel_ = nullptr;
  std::array<engine::Pd*, kPds> pds_{};
  std::array<engine::Ah*, 2 * kPds> ahs_{};  // of PD i: 2i to the first GID, 2i + 1 to the last
  std::vector<engine::Cq*> cqs_;
  std::vector<engine::Mr*> mrs_;
  std::vector<engine::Qp*> qps_;
  engine::Srq* srq_ = nullptr;

  std::vector<Harvested> completions_;
  std::vector<std::uint32_t> events_;  // index of the CQ
  std::vector<AsyncHarvested> async_;
};

// The main function of a rank process. `arguments`: the coordinator's pid, whether the kernel is to
// refuse process_vm_readv and _writev (1), then "socket memfd shares" of each rank that it serves.
int serve_ranks(std::span<char*> arguments);

}  // namespace vrb::model
