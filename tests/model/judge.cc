// What came back, against what the model says.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "model.h"

namespace vrb::model {
namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string say(const nic::Completion& c) {
  return "completion of wr_id " + number(c.wr_id & ~kReceive) +
         ((c.wr_id & kReceive) != 0 ? " (receive)" : "") + " with status " +
         number(static_cast<unsigned>(c.status)) + ", vendor_err " + number(c.vendor_err) +
         ", opcode " + number(static_cast<unsigned>(c.opcode)) + ", byte_len " +
         number(c.byte_len) + ", imm " + number(c.imm) + ", flags " + number(c.wc_flags) +
         ", src_qp " + number(c.src_qp);
}

[[noreturn]] void differ(const Endpoint& e, const nic::Completion& c, const std::string& expected) {
  throw Mismatch(describe(e) + ": " + say(c) + "; expected: " + expected);
}

std::string hex(std::span<const std::byte> memory, std::uint64_t from, std::uint64_t to) {
  std::string text;
  for (std::uint64_t i = from; i < std::min(to, from + 16); ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, " %02x", static_cast<unsigned>(memory[i]));
    text += byte;
  }
  return text;
}

auto key(const AsyncHarvested& a) { return std::tuple(a.type, a.element); }

std::string say(const std::vector<AsyncHarvested>& events) {
  std::string text;
  for (const AsyncHarvested& e : events) {
    text += " (" + number(static_cast<unsigned>(e.type)) + ", " + number(e.element) + ")";
  }
  return text;
}

}  // namespace

Endpoint* Model::by_qpn(std::uint32_t qpn) {
  for (Endpoint& e : endpoints_) {
    if (e.exists && e.qpn == qpn) return &e;
  }
  return nullptr;
}

void Model::judge(Node& node, Message& harvest, std::span<const std::byte> memory) {
  const auto completions = harvest.take_list<Harvested>();
  const auto events = harvest.take_list<std::uint32_t>();
  auto async = harvest.take_list<AsyncHarvested>();
  for (const Harvested& h : completions) {
    Endpoint* const e = by_qpn(h.completion.qpn);
    if (e == nullptr || e->node != node.index) {
      throw Mismatch("rank " + number(node.index) + ": " + say(h.completion) +
                     " of a QP that is not its own: " + number(h.completion.qpn));
    }
    const bool receive = (h.completion.wr_id & kReceive) != 0;
    if (h.cq != (receive ? e->recv_cq : e->send_cq)) {
      differ(*e, h.completion, "another CQ than " + number(h.cq));
    }
    if (receive) {
      judge_receive(*e, h.completion, memory);
    } else {
      judge_send(*e, h.completion);
    }
  }
  judge_rest(node);
  judge_events(node, events, std::move(async));
}

void Model::judge_send(Endpoint& e, const nic::Completion& c) {
  if (e.sent.empty()) differ(e, c, "none, all signalled work requests have completed");
  const Sent sent = std::move(e.sent.front());
  e.sent.pop_front();
  const std::string expected = sent.what + ", wr_id " + number(sent.id) + ", status " +
                               number(static_cast<unsigned>(sent.status)) + ", cause " +
                               number(static_cast<unsigned>(sent.cause));
  if (c.wr_id != sent.id || c.status != sent.status) differ(e, c, expected);
  if (c.status != ib::WcStatus::Success) {
    const auto cause = static_cast<std::uint32_t>(sent.cause);
    if (cause != 0 && c.vendor_err != cause) differ(e, c, expected);
    return;
  }
  const bool fetches = sent.opcode == ib::WcOpcode::RdmaRead ||
                       sent.opcode == ib::WcOpcode::CompSwap ||
                       sent.opcode == ib::WcOpcode::FetchAdd;
  if (c.opcode != sent.opcode || c.vendor_err != 0) differ(e, c, expected);
  if (fetches && c.byte_len != sent.byte_len) differ(e, c, expected);
}

// Takes the receive out of its queue: an own one in posting order, a shared one once.
Recv Model::take_receive(Endpoint& e, std::uint64_t id) {
  Node& node = nodes_[e.node];
  std::deque<Recv>& queue = e.srq ? node.srq : e.rq;
  auto found = queue.begin();
  if (e.srq) found = std::ranges::find(queue, id, &Recv::id);
  if (found == queue.end() || found->id != id) {
    throw Mismatch(describe(e) + ": receive " + number(id & ~kReceive) + " completed" +
                   (found == queue.end() ? ", which is not posted"
                                         : " before " + number(found->id & ~kReceive)));
  }
  Recv recv = std::move(*found);
  queue.erase(found);
  unpin(node, recv);
  if (e.srq) node.srq_newest_taken = std::max(node.srq_newest_taken, recv.id);
  return recv;
}

void Model::judge_receive(Endpoint& e, const nic::Completion& c,
                          std::span<const std::byte> memory) {
  const Recv recv = take_receive(e, c.wr_id);
  const bool datagram = e.type == ib::QpType::Ud;
  if (e.flushes && e.owed() == 0) {
    if (c.status != ib::WcStatus::WrFlushErr) differ(e, c, "a flushed receive");
    return;
  }
  auto& messages = e.inbox[datagram ? c.src_qp : e.peer->qpn];
  if (messages.empty()) differ(e, c, "no message from there");
  Inbound m = std::move(messages.front());
  messages.pop_front();
  const std::string expected = m.what + ", status " + number(static_cast<unsigned>(m.status)) +
                               ", byte_len " + number(m.byte_len) + ", imm " +
                               (m.has_imm ? number(m.imm) : "none");
  if (c.status != m.status) differ(e, c, expected);
  if (c.status != ib::WcStatus::Success) return;
  const unsigned flags = (m.has_imm ? ib::kWcWithImm : 0U) | (datagram ? ib::kWcGrh : 0U);
  const bool same = c.opcode == m.opcode && c.byte_len == m.byte_len && c.wc_flags == flags &&
                    (!m.has_imm || c.imm == m.imm) && c.vendor_err == 0;
  if (!same) differ(e, c, expected);
  if (datagram) {  // the header is the NIC's: an IPv4 header behind 20 zero bytes, or IPv6
    auto header = gather(memory, recv.ranges);
    header.resize(ib::kGrhBytes);
    const bool v4 = header[20] == std::byte{0x45} && header[0] == std::byte{0};
    if (!v4 && (header[0] >> 4) != std::byte{6}) differ(e, c, "an IP header in front of " + m.what);
    m.payload.insert(m.payload.begin(), header.begin(), header.end());
  }
  scatter(nodes_[e.node].shadow.bytes(), recv.ranges, m.payload);
  for (const Range& r : recv.ranges) deeds_.push_back({e.node, r, m.what});
}

void Model::judge_rest(Node& node) {
  for (const Endpoint& e : endpoints_) {
    if (e.node != node.index) continue;
    if (!e.sent.empty()) throw Mismatch(e.sent.front().what + " did not complete");
    if (e.owed() != 0) throw Mismatch(describe(e) + " did not receive all messages");
    if (e.flushes && !e.rq.empty()) throw Mismatch(describe(e) + " did not flush all receives");
  }
  if (!node.srq.empty() && node.srq.front().id < node.srq_newest_taken) {
    throw Mismatch("rank " + number(node.index) + ": the shared receive queue passed over " +
                   number(node.srq.front().id & ~kReceive));
  }
}

void Model::judge_events(Node& node, const std::vector<std::uint32_t>& events,
                         std::vector<AsyncHarvested> async) {
  std::ranges::sort(async, {}, key);
  std::ranges::sort(node.events, {}, key);
  if (!std::ranges::equal(async, node.events, {}, key, key)) {
    throw Mismatch("rank " + number(node.index) + ": asynchronous events (type, QP)" + say(async) +
                   "; expected" + say(node.events));
  }
  if (node.sleeps) return;
  auto sorted = events;
  std::ranges::sort(sorted);
  if (sorted != node.expected_events) {
    throw Mismatch("rank " + number(node.index) + ": " + number(events.size()) +
                   " completion events; expected " + number(node.expected_events.size()) +
                   " or those of other CQs");
  }
}

// The values that the adders of one counter saw form a chain from its old value to its new one.
void Model::judge_contended(const std::vector<std::span<const std::byte>>& memories) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::map<std::uint64_t, std::uint64_t>> seen;
  for (const Contended& c : contended_) {
    const Range into{c.into, 8};
    const auto bytes = gather(memories[c.node], {&into, 1});
    std::uint64_t before = 0;
    std::memcpy(&before, bytes.data(), 8);
    if (!seen[{c.owner, c.counter}].emplace(before, c.add).second) {
      throw Mismatch("two adders saw the same value " + number(before));
    }
    scatter(nodes_[c.node].shadow.bytes(), {&into, 1}, bytes);
  }
  for (const auto& [where, adders] : seen) {
    std::byte* const counter = nodes_[where.first].shadow.bytes().data() + where.second;
    std::uint64_t value = 0;
    std::memcpy(&value, counter, 8);
    // From the old value on, round the end of the numbers if need be.
    for (std::size_t i = 0; i < adders.size(); ++i) {
      const auto next = adders.find(value);
      if (next == adders.end()) {
        throw Mismatch("no adder of the counter saw its value " + number(value));
      }
      value += next->second;
    }
    std::memcpy(counter, &value, 8);
  }
}

void Model::compare(Node& node, std::span<const std::byte> memory) {
  const auto shadow = node.shadow.bytes();
  if (std::memcmp(shadow.data(), memory.data(), kArenaBytes) == 0) return;
  const auto differs = [&](std::uint64_t i) { return shadow[i] != memory[i]; };
  std::uint64_t from = 0;
  while (!differs(from)) ++from;
  std::uint64_t to = from;
  while (to < kArenaBytes && differs(to)) ++to;
  std::string text = "memory of rank " + number(node.index) + " differs from offset " +
                     number(from) + " to " + number(to) + ": is" + hex(memory, from, to) +
                     ", must be" + hex(shadow, from, to) + "; this round:";
  for (const Deed& deed : deeds_) {
    const bool meets = deed.range.offset < to && from < deed.range.offset + deed.range.length;
    if (deed.node != node.index || !meets) continue;
    text +=
        "\n  " + deed.what + ": " + number(deed.range.offset) + " + " + number(deed.range.length);
  }
  throw Mismatch(text);
}

void Model::settle(const std::vector<std::span<const std::byte>>& memories) {
  judge_contended(memories);
  for (Node& node : nodes_) compare(node, memories[node.index]);
}

}  // namespace vrb::model
