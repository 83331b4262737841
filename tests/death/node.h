// The role "node": a process that makes sessions with other nodes as its parent orders, in either
// part, and sleeps for events (or polls) when nothing is to be done. One thread, besides the
// engine's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <vector>

#include "message.h"
#include "nic.h"
#include "session_end.h"

namespace vrb::death {

constexpr int kControlFd = 3;  // to the parent
constexpr int kSpareFd = 4;    // to the parent, for a child that the node forks

class Node {
 public:
  explicit Node(int control) : control_(control) { set_failure_socket(control); }
  // Until Quit, or until the parent has gone; the exit status.
  int run();

 private:
  bool serve_control();
  void obey(const Message& order);
  void open(const Message& order);
  void pair(const Message& order);
  void drop(const Message& order);
  void dereg(const Message& order);
  void look(const Message& order);
  void count();
  void hold();
  void refill();
  void tell_passes();
  void fork_child(const Message& order);
  [[noreturn]] void be_child(ForkKind kind);
  void check_forked_objects();
  [[noreturn]] void exec_idle();
  int children_status();
  void quit();

  bool serve_completions();
  void completed(const nic::Completion& completion);
  void tell_arrivals(const SessionEnd& end);
  void pump_sessions();
  void rest();
  SessionEnd& session(std::uint32_t id);
  void answer(Tag tag, const Message& order);
  void answer(Message message);

  const int control_;
  std::unique_ptr<Nic> nic_;
  std::map<std::uint32_t, std::unique_ptr<SessionEnd>> sessions_;
  std::map<std::uint32_t, Work> works_;
  std::vector<pid_t> children_;
  bool polling_ = false;
  bool telling_ = false;  // of each message that arrives
  bool armed_ = false;
  bool holding_ = false;  // no receives are posted to the SRQ
  bool done_ = false;
  int status_ = 0;
};

// The role "idle": keeps a socket to the parent and does nothing until Quit.
int run_idle(int control);

}  // namespace vrb::death
