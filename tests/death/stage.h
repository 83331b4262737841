// The stage of a death test: the processes that play, and the one place where the test waits, for
// what they say and for their ends. ctest's TIMEOUT is the only limit; every half minute of silence
// the stage says what it waits for. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

#include "process.h"

namespace vrb::death {

struct Event {
  enum class Kind {
    Said,
    Stopped,
    Continued,
    Died,
    Hushed
  };  // Hushed: a grandchild's socket closed
  Kind kind = Kind::Said;
  Process* who = nullptr;
  Message message;
};

// A process failed or ended although nobody asked for it: there is nothing left to wait for.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Stage {
 public:
  Stage();
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  Process& start(const SpawnOptions& options);
  Process& start(const std::string& name);  // a node like any other
  // A child that `parent` has forked, at its spare socket.
  Process& adopt(Process& parent, const std::string& name, pid_t pid);
  void forget(Process& process);  // and kills it

  // The next event. Throws a Failure.
  Event next(const std::string& waiting_for);
  // Sends an order and waits for its answer; what others say meanwhile goes to `on_event`. Empty:
  // the process died, or stopped first.
  std::optional<Message> ask(Process& process, const Message& order, Tag answer);
  std::function<void(const Event&)> on_event;
  // Looks at each stop first: true when it let the process go on, and nobody else is to know.
  std::function<bool(Process&)> on_stop;
  // Waits for a message of a process, as ask() does.
  std::optional<Message> hear(Process& process, Tag what);
  // Waits until it is dead or stopped.
  void wait_for_death(Process& process);
  void wait_for_stop(Process& process);
  // Orders Quit and expects status 0.
  void quit(Process& process);
  // An end of this process is wanted from now on.
  void expect_death(Process& process) { doomed_.push_back(&process); }

  const std::string& title() const { return title_; }
  void set_title(const std::string& title) { title_ = title; }

 private:
  void wait_for(Process& process, Process::State state, const char* what);
  void gather(const std::string& waiting_for);
  void read_socket(Process& process);
  void note_state(Process& process);
  void judge(const Event& event);
  void say_waiting(const std::string& waiting_for) const;

  int signals_ = -1;
  std::string title_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<const Process*> doomed_;
  std::deque<Event> events_;
};

}  // namespace vrb::death
