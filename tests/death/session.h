// A session as the test sees it: two nodes that are paired, linked, run and dropped. step() gives
// each end the next order that is due, whatever has become of the other, so that a session comes to
// its end at every survivor. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "stage.h"

namespace vrb::death {

struct SessionPlan {
  Work work;
  Clocks clocks;
  bool keep = false;  // it stays when the work is done or the initiator has gone, until halt()
};

class Session {
 public:
  Session(std::uint32_t id, Process& from, Process& to, const SessionPlan& plan);

  void on_event(const Event& event);
  void step();
  // Once more, after ran(), with `keep`.
  void again(const Work& work);
  // Ends the work after the present round.
  void halt();
  // This end is no node any more although its process lives (exec).
  void abandon(const Process& process);
  // The survivors drop it now, whatever is not done.
  void give_up() { given_up_ = true; }

  bool paired_at(const Process& process) const;
  bool linked() const;
  bool ran() const { return ran_; }
  bool finished() const;  // dropped at every end that lives
  bool dropped_at(const Process& process) const;
  bool has(const Process& process) const;
  std::uint32_t id() const { return id_; }
  Process& from() const { return *ends_[0].process; }
  Process& to() const { return *ends_[1].process; }
  std::uint32_t progress() const { return progress_; }        // Progress messages so far
  const Outcome& sender() const { return ends_[0].outcome; }  // after ran(): what the initiator saw
  const Outcome& receiver() const { return ends_[1].outcome; }  // after finished()
  const Endpoint& endpoint(const Process& process) const;

  // Nothing ended in error, and all that was sent arrived.
  void expect_clean() const;
  // The same, and all rounds were done.
  void expect_complete() const;
  // The initiator's WRs ended in error with retry exceeded, or all were done before the fault.
  void expect_error_or_complete() const;
  // What was moved was right, whatever became of the rest.
  void expect_nothing_wrong() const;

 private:
  struct End {
    Process* process = nullptr;
    bool asked_pair = false, paired = false;
    bool asked_link = false, linked = false;
    bool asked_drop = false, dropped = false;
    Endpoint endpoint;
    Outcome outcome;
    bool abandoned = false;
    bool gone() const { return abandoned || !process->alive(); }
  };
  void order(End& end, Tag tag);
  End& end_of(const Process& process) { return ends_[ends_[0].process == &process ? 0 : 1]; }
  const End& end_of(const Process& process) const {
    return ends_[ends_[0].process == &process ? 0 : 1];
  }
  bool over() const;

  const std::uint32_t id_;
  SessionPlan plan_;
  std::array<End, 2> ends_;
  std::uint32_t progress_ = 0;
  bool asked_run_ = false, ran_ = false, given_up_ = false;
};

// The sessions of a stage.
class Sessions {
 public:
  explicit Sessions(Stage& stage) : stage_(stage) {
    stage_.on_event = [this](const Event& event) { on_event(event); };
  }
  ~Sessions() { stage_.on_event = {}; }
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  Session& add(Process& from, Process& to, const SessionPlan& plan);
  // Goes on until `done`.
  void run_until(const std::function<bool()>& done, const std::string& what);
  void finish(Session& session);  // until it is finished
  // One whole session, with its expectations.
  void complete(Process& from, Process& to, const SessionPlan& plan);

 private:
  void on_event(const Event& event);
  void step_all();

  Stage& stage_;
  std::uint32_t next_id_ = 1;
  std::vector<std::unique_ptr<Session>> all_;
};

}  // namespace vrb::death
