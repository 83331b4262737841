// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <gtest/gtest.h>

#include "ib/types.h"

namespace vrb::death {

Session::Session(std::uint32_t id, Process& from, Process& to, const SessionPlan& plan)
    : id_(id), plan_(plan) {
  ends_[0].process = &from;
  ends_[1].process = &to;
}

void Session::on_event(const Event& event) {
  if (event.kind != Event::Kind::Said || event.message.session != id_) return;
  for (End& end : ends_) {
    if (end.process != event.who) continue;
    switch (event.message.tag) {
      case Tag::Paired:
        end.paired = true;
        end.endpoint = event.message.end;
        break;
      case Tag::Linked:
        end.linked = true;
        break;
      case Tag::Ran:
        ran_ = true;
        end.outcome = event.message.outcome;
        break;
      case Tag::Progress:
        ++progress_;
        break;
      case Tag::Dropped:
        end.dropped = true;
        if (&end == &ends_[1]) end.outcome = event.message.outcome;
        break;
      default:
        break;
    }
  }
}

void Session::order(End& end, Tag tag) {
  Message message;
  message.tag = tag;
  message.session = id_;
  message.work = plan_.work;
  message.clocks = plan_.clocks;
  message.end = ends_[&end == &ends_[0] ? 1 : 0].endpoint;
  end.process->send(message);
}

// Nothing more will come of it.
bool Session::over() const {
  const auto& [from, to] = ends_;
  const bool ended = ran_ || from.gone() || (to.gone() && !to.paired);
  return given_up_ || (ended && !plan_.keep);
}

void Session::step() {
  auto& [from, to] = ends_;
  for (End& end : ends_) {
    if (end.gone() || end.asked_pair) continue;
    end.asked_pair = true;
    order(end, Tag::Pair);
  }
  for (End& end : ends_) {
    if (end.gone() || end.asked_link || !from.paired || !to.paired || over()) continue;
    end.asked_link = true;
    order(end, Tag::Link);
  }
  const bool may_run = from.linked && (to.linked || to.gone());
  if (may_run && !from.gone() && !asked_run_ && !over()) {
    asked_run_ = true;
    order(from, Tag::Run);
  }
  if (!over()) return;
  for (End& end : ends_) {
    const bool idle = end.paired && (end.linked || !end.asked_link);
    if (end.gone() || end.asked_drop || !idle) continue;
    end.asked_drop = true;
    order(end, Tag::Drop);
  }
}

void Session::again(const Work& work) {
  plan_.work = work;
  ran_ = false;
  order(ends_[0], Tag::Run);
}

void Session::halt() {
  plan_.keep = false;
  if (!ends_[0].gone()) order(ends_[0], Tag::Halt);
}

void Session::abandon(const Process& process) { end_of(process).abandoned = true; }

bool Session::paired_at(const Process& process) const { return end_of(process).paired; }

bool Session::linked() const { return ends_[0].linked && ends_[1].linked; }

bool Session::finished() const {
  for (const End& end : ends_) {
    if (!end.gone() && !end.dropped) return false;
  }
  return true;
}

bool Session::dropped_at(const Process& process) const { return end_of(process).dropped; }

bool Session::has(const Process& process) const {
  return ends_[0].process == &process || ends_[1].process == &process;
}

const Endpoint& Session::endpoint(const Process& process) const { return end_of(process).endpoint; }

void Session::expect_complete() const {
  EXPECT_EQ(sender().rounds, plan_.work.rounds);
  expect_clean();
}

void Session::expect_clean() const {
  const Outcome& sent = sender();
  EXPECT_TRUE(ran_);
  EXPECT_EQ(sent.failed, 0u) << "status " << sent.status << ", cause " << sent.cause;
  EXPECT_EQ(sent.flushed, 0u);
  if (ends_[1].gone()) return;
  EXPECT_EQ(receiver().received[0], sent.sent[0]);
  EXPECT_EQ(receiver().received[1], sent.sent[1]);
  EXPECT_LE(receiver().received[2], sent.sent[2]);
  expect_nothing_wrong();
}

void Session::expect_error_or_complete() const {
  if (!ran_ || sender().rounds == plan_.work.rounds) return;
  EXPECT_GT(sender().failed + sender().flushed, 0u);
  EXPECT_EQ(sender().status, static_cast<std::uint32_t>(ib::WcStatus::RetryExcErr))
      << "cause " << sender().cause;
}

void Session::expect_nothing_wrong() const {
  EXPECT_EQ(sender().wrong, 0u);
  EXPECT_EQ(receiver().wrong, 0u);
}

Session& Sessions::add(Process& from, Process& to, const SessionPlan& plan) {
  all_.push_back(std::make_unique<Session>(next_id_++, from, to, plan));
  all_.back()->step();
  return *all_.back();
}

void Sessions::step_all() {
  for (const auto& session : all_) session->step();
}

void Sessions::on_event(const Event& event) {
  for (const auto& session : all_) session->on_event(event);
  step_all();
}

void Sessions::run_until(const std::function<bool()>& done, const std::string& what) {
  step_all();
  while (!done()) on_event(stage_.next(what));
}

void Sessions::finish(Session& session) {
  run_until([&] { return session.finished(); }, "session " + std::to_string(session.id()) + " (" +
                                                    session.from().name() + " to " +
                                                    session.to().name() + ")");
}

void Sessions::complete(Process& from, Process& to, const SessionPlan& plan) {
  Session& session = add(from, to, plan);
  finish(session);
  session.expect_complete();
}

}  // namespace vrb::death
