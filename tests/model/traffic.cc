// The end of each work request's way through the model: its order, what it owes, and the end of the
// round, when what is still owed becomes known.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "model.h"

namespace vrb::model {
namespace {

constexpr const char* kNames[] = {"WRITE", "WRITE_WITH_IMM", "SEND",         "SEND_WITH_IMM",
                                  "READ",  "CMP_AND_SWP",    "FETCH_AND_ADD"};

}  // namespace

void Model::owe(Endpoint& e, std::uint32_t cq, bool solicited) {
  Node& node = nodes_[e.node];
  ++node.awaited;
  node.cqs[cq].any = true;
  node.cqs[cq].solicited |= solicited;
}

void Model::post(Endpoint& e, Draft& d) {
  Node& node = nodes_[e.node];
  SendOrder& o = d.order;
  o.id = node.next_id++;
  o.qp = e.id;
  o.imm = static_cast<std::uint32_t>(random_.bits());
  if (random_.chance(50)) o.flags |= ib::kSendSignaled;
  if (random_.chance(30)) o.flags |= ib::kSendSolicited;
  if (d.fence || random_.chance(5)) o.flags |= ib::kSendFence;
  const bool failed = d.status != ib::WcStatus::Success;
  Sent sent{o.id,
            d.status,
            ib::wc_opcode(o.opcode),
            static_cast<std::uint32_t>(d.length),
            d.cause,
            kNames[static_cast<int>(o.opcode)]};
  sent.what += " number " + std::to_string(e.posted) + " of " + describe(e);
  const std::size_t at = node.go.message.bytes().size();
  node.go.add(Verb::PostSend, o).what = sent.what;
  node.go.message.put_list(d.sges);
  ++e.posted;
  ++operations_;
  ++tally_[kNames[static_cast<int>(o.opcode)]];
  if (failed) {
    ++tally_["status " + std::to_string(static_cast<int>(d.status)) + " " + cause_name(d.cause)];
  }
  if (e.sig_all || failed || (o.flags & ib::kSendSignaled) != 0) {
    e.sent.push_back(std::move(sent));
    e.unsignalled.reset();
    owe(e, e.send_cq, failed);
  } else {
    e.unsignalled = {std::move(sent), at + sizeof(Verb) + offsetof(SendOrder, flags), o.flags};
  }
  if (d.scribbles) scribble(node, d.locals);
}

// The program writes over its inline source as soon as it was posted.
void Model::scribble(Node& node, std::span<const Range> ranges) {
  for (const Range& r : ranges) {
    const FillOrder order{r.offset, r.length, random_.bits()};
    fill(node.shadow.bytes().subspan(r.offset, r.length), order.seed);
    node.go.add(Verb::Fill, order);
    deeds_.push_back({node.index, r, "the program, behind an inline request"});
  }
}

bool Model::deliver(Endpoint& e, Endpoint& t, Draft& d, std::uint64_t length) {
  Node& node = nodes_[e.node];
  Node& target = nodes_[t.node];
  const bool write = d.order.opcode == ib::Opcode::WriteWithImm;
  if (length <= e.cap.max_inline && random_.chance(40)) {
    if (!fill_inline(e, d, length)) return false;
  } else if (!fill_list(e, d, length, Shadow::Use::Gather)) {
    return false;
  }
  Inbound message;
  message.payload = gather(node.shadow.bytes(), d.locals);
  if (write && length != 0) {
    const auto remote =
        place(target, t.pd, ib::kRemoteWrite, length, e.queue(), Shadow::Use::Write);
    if (!remote) return false;
    d.order.remote_addr = remote->addr;
    d.order.rkey = target.regions[remote->region].rkey;
    d.fence |= remote->fence;
    scatter(target.shadow.bytes(), {&remote->range, 1}, message.payload);
    deeds_.push_back({target.index, remote->range, "WRITE_WITH_IMM by " + describe(e)});
  }
  if (write) message.payload.clear();
  post(e, d);
  expect_message(e, t, d, std::move(message));
  return true;
}

void Model::expect_message(Endpoint& e, Endpoint& t, const Draft& d, Inbound message) {
  const bool write = d.order.opcode == ib::Opcode::WriteWithImm;
  message.opcode = write ? ib::WcOpcode::RecvRdmaWithImm : ib::WcOpcode::Recv;
  message.byte_len = static_cast<std::uint32_t>(d.length);
  if (e.type == ib::QpType::Ud) message.byte_len += ib::kGrhBytes;
  message.has_imm = ib::has_imm(d.order.opcode);
  message.imm = d.order.imm;
  message.what = std::string(kNames[static_cast<int>(d.order.opcode)]) + " by " + describe(e);
  const bool failed = message.status != ib::WcStatus::Success;
  t.inbox[e.qpn].push_back(std::move(message));
  if (t.srq) ++nodes_[t.node].srq_promised;
  owe(t, t.recv_cq, failed || (d.order.flags & ib::kSendSolicited) != 0);
}

void Model::finish_round() {
  for (Endpoint& e : endpoints_) {
    Node& node = nodes_[e.node];
    if (e.unsignalled) {  // the last of its queue is always signalled, so that its end is known
      node.go.message.patch(e.unsignalled->flags_at, e.unsignalled->flags | ib::kSendSignaled);
      e.sent.push_back(std::move(e.unsignalled->sent));
      e.unsignalled.reset();
      owe(e, e.send_cq, false);
    }
    if (e.flushes) {
      for (std::size_t i = e.owed(); i < e.rq.size(); ++i) owe(e, e.recv_cq, true);
    }
    if (e.flushes || e.send_error) {
      const ib::QpState state = e.send_error ? ib::QpState::Sqe : ib::QpState::Err;
      node.go.add(Verb::AwaitState, StateOrder{e.id, state});
    }
  }
  for (Node& node : nodes_) finish_node(node);
}

void Model::finish_node(Node& node) {
  const auto posted = static_cast<std::uint32_t>(node.srq.size());
  if (node.srq_limit == 0 && posted != 0 && random_.chance(20)) {
    node.srq_limit = static_cast<std::uint32_t>(random_.between(1, posted));
    node.prepare.add(Verb::LimitSrq, SrqOrder{0, 0, 0, node.srq_limit});
  }
  if (node.srq_promised != 0 && posted - node.srq_promised < node.srq_limit) {
    node.events.push_back({ib::EventType::SrqLimitReached, 0});
    node.srq_limit = 0;
  }
  CollectOrder collect{node.awaited, 0, static_cast<std::uint32_t>(node.events.size()),
                       node.sleeps};
  node.expected_events.clear();
  for (std::uint32_t cq = 0; cq < node.cqs.size(); ++cq) {
    Queue& queue = node.cqs[cq];
    const bool due = (queue.armed == Queue::Armed::Any && queue.any) ||
                     (queue.armed == Queue::Armed::Solicited && queue.solicited);
    if (node.sleeps || !due) continue;
    queue.armed = Queue::Armed::No;
    node.expected_events.push_back(cq);
  }
  collect.cq_events = static_cast<std::uint32_t>(node.expected_events.size());
  node.go.add(Verb::Collect, collect);
}

}  // namespace vrb::model
