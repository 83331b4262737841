// A process that a death test started, as the test sees it: its pid, its socket, its state. Only
// processes made here are ever killed or stopped, by their pid. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "message.h"

namespace vrb::death {

struct SpawnOptions {
  std::string name;
  std::string role = "node";
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
  std::string filter;
  long uid = -1;
};

class Process {
 public:
  enum class State { Running, Stopped, Dead };

  explicit Process(const SpawnOptions& options);
  // A process that one of ours forked, at the other end of `socket`; 0: its pid is not known.
  Process(std::string name, int socket, pid_t pid);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }
  State state() const { return state_; }
  bool alive() const { return state_ != State::Dead; }
  int status() const { return status_; }  // of waitid: exit status or signal
  bool killed() const { return state_ == State::Dead && killed_; }

  void send(const Message& message);
  void signal(int number);
  // The parent's end for a child that the process forks; taken once.
  int take_spare();

 private:
  friend class Stage;
  // Looks, without waiting, whether the state has changed.
  bool look();

  std::string name_;
  pid_t pid_ = 0;
  int socket_ = -1, spare_ = -1;
  bool child_ = true;
  State state_ = State::Running;
  int status_ = 0;
  bool killed_ = false;
};

}  // namespace vrb::death
