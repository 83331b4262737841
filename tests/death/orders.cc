// What a node does for each order of its parent.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "holdings.h"
#include "node.h"
#include "passes.h"

namespace vrb::death {

void Node::obey(const Message& order) {
  switch (order.tag) {
    case Tag::Open:
      return open(order);
    case Tag::Pair:
      return pair(order);
    case Tag::Link:
      session(order.session).link(order.end, order.clocks);
      return answer(Tag::Linked, order);
    case Tag::Run:
      works_[order.session] = order.work;
      return session(order.session).run(order.work);
    case Tag::Halt:
      return session(order.session).halt();
    case Tag::Drop:
      return drop(order);
    case Tag::Dereg:
      return dereg(order);
    case Tag::Look:
      return look(order);
    case Tag::Count:
      return count();
    case Tag::Hold:
      return hold();
    case Tag::Refill:
      return refill();
    case Tag::Fork:
      return fork_child(order);
    case Tag::Exec:
      exec_idle();
    case Tag::Passes:
      return tell_passes();
    case Tag::Quit:
      return quit();
    default:
      fail("an order that is none");
  }
}

void Node::open(const Message& order) {
  polling_ = order.polling;
  telling_ = order.tell_arrivals;
  nic_ = std::make_unique<Nic>(order.cq_entries == 0 ? kCqEntries : order.cq_entries);
  nic_->fill_srq();
  Message opened;
  opened.tag = Tag::Opened;
  opened.held = count_held();
  answer(opened);
}

void Node::pair(const Message& order) {
  sessions_[order.session] = std::make_unique<SessionEnd>(order.session, *nic_);
  Message paired;
  paired.tag = Tag::Paired;
  paired.session = order.session;
  paired.end = session(order.session).endpoint();
  answer(paired);
}

void Node::drop(const Message& order) {
  SessionEnd& end = session(order.session);
  end.close();
  while (serve_completions()) {
  }
  Message dropped;
  dropped.tag = Tag::Dropped;
  dropped.session = order.session;
  dropped.outcome = end.outcome();
  sessions_.erase(order.session);
  answer(dropped);
}

void Node::count() {
  Message counted;
  counted.tag = Tag::Counted;
  counted.held = count_held();
  counted.held.receives = nic_->srq_posted();
  answer(counted);
}

void Node::dereg(const Message& order) {
  const auto start = std::chrono::steady_clock::now();
  session(order.session).withdraw_memory();
  Message done;
  done.tag = Tag::Deregistered;
  done.session = order.session;
  done.view.took_us =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                     std::chrono::steady_clock::now() - start)
                                     .count());
  answer(done);
}

void Node::look(const Message& order) {
  Message looked;
  looked.tag = Tag::Looked;
  looked.session = order.session;
  looked.view = session(order.session).look(order.number);
  answer(looked);
}

void Node::hold() {
  holding_ = true;
  Message held;
  held.tag = Tag::Held;
  held.number = nic_->srq_posted();
  answer(held);
}

void Node::refill() {
  holding_ = false;
  Message refilled;
  refilled.tag = Tag::Refilled;
  refilled.number = nic_->fill_srq();
  answer(refilled);
}

void Node::tell_passes() {
  Message passed;
  passed.tag = Tag::Passed;
  for (const auto& [name, count] : passes()) {
    passed.text = {};
    name.copy(passed.text.data(), passed.text.size() - 1);
    passed.number = count;
    answer(passed);
  }
  passed.text = {};
  answer(passed);
}

void Node::quit() {
  sessions_.clear();
  nic_.reset();
  done_ = true;
  status_ = children_status();
}

}  // namespace vrb::death
