// SPDX-License-Identifier: Apache-2.0
#include "node.h"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <array>

namespace vrb::death {

int Node::run() {
  while (!done_) {
    bool busy = serve_control();
    if (done_ || !nic_) {
      if (!done_ && !busy) rest();
      continue;
    }
    busy |= serve_completions();
    pump_sessions();
    if (!busy) rest();
  }
  return status_;
}

bool Node::serve_control() {
  Message order;
  switch (receive(control_, order)) {
    case Got::Message:
      obey(order);
      return true;
    case Got::Nothing:
      return false;
    case Got::Closed:
      break;
  }
  _exit(0);  // the test has gone
}

bool Node::serve_completions() {
  std::array<nic::Completion, 16> completions;
  const int n = engine::poll_cq(nic_->cq(), completions);
  if (n < 0) fail("poll_cq failed");
  for (int i = 0; i < n; ++i) completed(completions[static_cast<std::size_t>(i)]);
  return n > 0;
}

void Node::completed(const nic::Completion& completion) {
  for (auto& [id, end] : sessions_) {
    if (!end->owns(completion.qpn)) continue;
    end->completed(completion);
    if (telling_ && (completion.wr_id & kSendWrId) == 0) tell_arrivals(*end);
    const bool from_srq = completion.qpn == end->endpoint().srq_qpn;
    if (from_srq && (completion.wr_id & kSendWrId) == 0) {
      nic_->release_srq_buffer(completion.wr_id);
      if (!holding_) nic_->fill_srq();
    }
    return;
  }
  fail("a completion for a QP that is not there");
}

void Node::tell_arrivals(const SessionEnd& end) {
  Message arrived;
  arrived.tag = Tag::Arrived;
  arrived.session = end.id();
  for (const std::uint64_t count : end.outcome().received) {
    arrived.number += static_cast<std::uint32_t>(count);
  }
  answer(arrived);
}

// Tells of the rounds that are done before it posts the next one.
void Node::pump_sessions() {
  for (auto& [id, end] : sessions_) {
    const std::uint32_t every = works_[id].progress_every;
    Message news;
    news.session = id;
    if (end->running() && every != 0 && end->take_progress(every)) {
      news.tag = Tag::Progress;
      answer(news);
    }
    if (!end->pump()) continue;
    news.tag = Tag::Ran;
    news.outcome = end->outcome();
    answer(news);
  }
}

// Arms, looks once more, then sleeps until an event or an order comes.
void Node::rest() {
  if (nic_ && polling_) {
    sched_yield();
    return;
  }
  if (nic_ && !armed_) {
    nic_->arm();
    armed_ = true;
    return;
  }
  pollfd fds[2] = {{control_, POLLIN, 0}, {nic_ ? nic_->channel_fd() : -1, POLLIN, 0}};
  poll(fds, 2, -1);
  if (fds[1].revents != 0) {
    nic_->take_events();
    armed_ = false;
  }
}

SessionEnd& Node::session(std::uint32_t id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) fail("an order for a session that is not there");
  return *found->second;
}

void Node::answer(Tag tag, const Message& order) {
  Message message;
  message.tag = tag;
  message.session = order.session;
  answer(message);
}

void Node::answer(Message message) {
  if (!send(control_, message)) _exit(0);
}

}  // namespace vrb::death
