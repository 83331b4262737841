// The scenario of the points: an initiator, a target and a third peer. Initiator and third write,
// send, read, count and send datagrams to the target, the initiator to the third as well, and one
// of the three is killed or stopped at a point on its way. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "leaks.h"
#include "session.h"
#include "stage.h"

namespace vrb::death {

enum class Part : std::size_t { Initiator = 0, Target = 1, Third = 2 };
constexpr std::array<const char*, 3> kPartNames = {"initiator", "target", "third"};

struct Fault {
  Part part = Part::Initiator;
  std::string point;
  int signal = 0;  // SIGKILL or SIGSTOP
  std::uint32_t pass = 1;
  bool forget = false;  // SIGSTOP: the others drop its sessions before it goes on
  std::string describe() const;
};

struct TriangleSize {
  std::uint32_t rounds = 112;  // about 10^3 operations a session
  std::uint32_t fresh_peers = 50;
};

using PassCounts = std::array<std::map<std::string, std::uint32_t>, 3>;  // by part

class Triangle {
 public:
  Triangle(const TriangleSize& size, std::optional<Fault> fault);

  // Plays it to the end and checks everything; true when the fault came about.
  bool play();
  // Plays it without a fault, counting passes.
  PassCounts count();

 private:
  Process& node(Part part) { return *nodes_[static_cast<std::size_t>(part)]; }
  Process* victim() { return fault_ ? &node(fault_->part) : nullptr; }
  bool is_victim(const Process& process) { return &process == victim(); }
  void start(bool counting);
  void open();
  void play_sessions();
  void while_stopped();
  void go_on();
  void judge_sessions();
  void aftermath();
  void visit(Process& fresh, Process& node);
  void quit_victim();
  void leave();
  std::vector<Process*> survivors();

  TriangleSize size_;
  std::optional<Fault> fault_;
  Stage stage_;
  Sessions sessions_{stage_};
  std::array<Process*, 3> nodes_{};
  std::array<Held, 3> bases_{};
  std::vector<Session*> edges_;
  std::optional<SlotWatch> slot_;
  bool stopped_ = false;
  bool late_ = false;     // the sessions are over: who stops now goes on at once
  bool reached_ = false;  // the fault came about
};

}  // namespace vrb::death
