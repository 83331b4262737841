// SPDX-License-Identifier: Apache-2.0
#include "triangle.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "passes.h"

namespace vrb::death {
namespace {

constexpr std::uint32_t kFewRounds = 5;
// Larger than all receives of a run: a claim of a stopped process uses the ring up (A27).
constexpr std::uint32_t kLargeCq = 8192;

const char* word_of(int signal) { return signal == SIGKILL ? "kill" : "stop"; }

}  // namespace

std::string Fault::describe() const {
  return std::string(kPartNames[static_cast<std::size_t>(part)]) + "/" + point + ":" +
         word_of(signal) + ":" + std::to_string(pass) + (forget ? ":forget" : "");
}

Triangle::Triangle(const TriangleSize& size, std::optional<Fault> fault)
    : size_(size), fault_(std::move(fault)) {
  stage_.set_title(fault_ ? fault_->describe() : "no fault");
  stage_.on_stop = [this](Process& process) {
    if (late_) process.signal(SIGCONT);
    return late_;
  };
}

void Triangle::start(bool counting) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    SpawnOptions options;
    options.name = kPartNames[i];
    if (counting) options.environment.emplace_back(kCountPasses, "1");
    if (fault_ && static_cast<std::size_t>(fault_->part) == i) {
      options.environment.emplace_back(
          "VERBENA_POINT",
          fault_->point + ":" + word_of(fault_->signal) + ":" + std::to_string(fault_->pass));
    }
    nodes_[i] = &stage_.start(options);
  }
  if (fault_ && fault_->signal == SIGKILL) stage_.expect_death(*victim());
}

// The initiator polls; the others sleep for events.
void Triangle::open() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (const auto held = open_node(stage_, *nodes_[i], i == 0, kLargeCq)) bases_[i] = *held;
  }
  if (fault_ && victim()->alive()) slot_.emplace(*victim());
}

void Triangle::play_sessions() {
  const SessionPlan plan{{size_.rounds, kAllOps, 0}, {}};
  Process& initiator = node(Part::Initiator);
  Process& target = node(Part::Target);
  Process& third = node(Part::Third);
  edges_ = {&sessions_.add(initiator, target, plan), &sessions_.add(third, target, plan),
            &sessions_.add(initiator, third, plan)};
  const auto done = [this] {
    const bool waits = fault_ && victim()->state() == Process::State::Stopped;
    for (Session* edge : edges_) {
      if (waits && edge->has(*victim())) continue;
      if (!edge->finished()) return false;
    }
    return true;
  };
  sessions_.run_until(done, "the sessions");
  stopped_ = fault_ && victim()->state() == Process::State::Stopped;
}

std::vector<Process*> Triangle::survivors() {
  std::vector<Process*> all;
  for (Process* process : {nodes_[1], nodes_[0], nodes_[2]}) {
    if (process->alive() && !is_victim(*process)) all.push_back(process);
  }
  return all;
}

// Somebody new comes while one is stopped.
void Triangle::while_stopped() {
  Process& fresh = stage_.start("newcomer");
  if (!open_node(stage_, fresh)) return;
  for (Process* survivor : survivors()) {
    sessions_.complete(fresh, *survivor, {{kFewRounds, kAllOps, 0}, {}});
  }
  stage_.quit(fresh);
  if (!fault_->forget) return;
  for (Session* edge : edges_) {
    if (edge->has(*victim())) edge->give_up();
  }
  const auto forgotten = [this] {
    for (Session* edge : edges_) {
      for (Process* survivor : survivors()) {
        if (edge->has(*survivor) && edge->has(*victim()) && !edge->dropped_at(*survivor))
          return false;
      }
    }
    return true;
  };
  sessions_.run_until(forgotten, "the survivors to drop the stopped one's sessions");
}

void Triangle::go_on() {
  victim()->signal(SIGCONT);
  for (Session* edge : edges_) sessions_.finish(*edge);
}

void Triangle::judge_sessions() {
  for (Session* edge : edges_) {
    SCOPED_TRACE(stage_.title() + ", " + edge->from().name() + " to " + edge->to().name());
    edge->expect_nothing_wrong();
    if (!fault_ || !edge->has(*victim())) {
      edge->expect_complete();
    } else if (!is_victim(edge->from()) && !fault_->forget) {
      edge->expect_error_or_complete();
    }
  }
}

// A fault that comes only now ends or delays what is done with the victim, and nothing else.
void Triangle::visit(Process& fresh, Process& node) {
  Session& session = sessions_.add(fresh, node, {{kFewRounds, kAllOps, 0}, {}});
  sessions_.finish(session);
  if (!node.alive()) return;
  session.expect_complete();
  if (!is_victim(node) || reached_) expect_all_receives(stage_, sessions_, fresh, node);
}

void Triangle::aftermath() {
  if (fault_ && !victim()->alive() && slot_) slot_->expect_free(stage_.title());
  Process& fresh = stage_.start("afterwards");
  if (!open_node(stage_, fresh)) return;
  for (Process* node : nodes_) {
    if (node->alive()) visit(fresh, *node);
  }
  stage_.quit(fresh);
  expect_fresh_peers(stage_, sessions_, *survivors().front(), size_.fresh_peers);
}

void Triangle::quit_victim() {
  if (fault_->signal == SIGSTOP || reached_) return stage_.quit(*victim());
  Message order;
  order.tag = Tag::Quit;
  victim()->send(order);
  stage_.wait_for_death(*victim());  // by itself, or at the point after all
}

void Triangle::leave() {
  if (fault_) quit_victim();
  std::vector<Process*> rest = survivors();
  const auto base = [this](Process* process) -> const Held& {
    return bases_[static_cast<std::size_t>(std::find(nodes_.begin(), nodes_.end(), process) -
                                           nodes_.begin())];
  };
  while (!rest.empty()) {
    const auto living = static_cast<std::uint32_t>(rest.size()) - 1;
    for (Process* process : rest) expect_held(stage_, *process, base(process), living);
    stage_.quit(*rest.back());
    rest.pop_back();
  }
}

bool Triangle::play() {
  start(false);
  open();
  play_sessions();
  if (stopped_) {
    while_stopped();
    go_on();
  }
  reached_ = fault_ && (stopped_ || !victim()->alive());
  late_ = true;
  judge_sessions();
  aftermath();
  leave();
  return reached_;
}

PassCounts Triangle::count() {
  start(true);
  open();
  play_sessions();
  judge_sessions();
  PassCounts counts;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Message order;
    order.tag = Tag::Passes;
    auto passed = stage_.ask(*nodes_[i], order, Tag::Passed);
    while (passed && passed->text[0] != '\0') {
      counts[i][passed->text.data()] = passed->number;
      passed = stage_.next("points").message;
    }
  }
  leave();
  return counts;
}

}  // namespace vrb::death
