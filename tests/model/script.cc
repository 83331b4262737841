// A round of traffic: who sends how much, what else happens meanwhile, and each valid work request
// with its effect on the shadows.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "model.h"

namespace vrb::model {
namespace {

constexpr std::uint32_t kMostAwaited = 400;  // completions a node and round
constexpr std::uint32_t kMostPosts = 200;
constexpr std::uint64_t kCounters = 2 << 20;  // in regions of all rights of both PDs
constexpr std::uint64_t kCounterBytes = 32;

}  // namespace

std::string describe(const Endpoint& e) {
  const char* type = e.type == ib::QpType::Rc ? "RC" : e.type == ib::QpType::Uc ? "UC" : "UD";
  return std::string(type) + " endpoint " + std::to_string(e.id) + " of rank " +
         std::to_string(e.node);
}

void Model::plan() {
  begin_round();
  share_out_budgets();
  std::vector<Endpoint*> active;
  for (Endpoint& e : endpoints_) {
    if (e.budget != 0) active.push_back(&e);
  }
  while (!active.empty()) {
    if (random_.chance(2)) side_action();
    Endpoint*& chosen = random_.one_of(active);
    act(*chosen);
    if (chosen->budget != 0) continue;
    chosen = active.back();
    active.pop_back();
  }
  finish_round();
}

void Model::begin_round() {
  deeds_.clear();
  contended_.clear();
  for (Node& node : nodes_) prepare_node(node);
  for (Endpoint& e : endpoints_) {
    e.budget = e.posted = 0;
    e.fault_at = ~0U;
    e.failed = e.flushes = e.late = false;
    const bool single_side = e.peer != nullptr && e.peer->orphan;
    if (e.exists && !e.connected && !single_side) connect(e, e.orphan);
    for (const Recv& recv : e.rq) {
      for (const Range& r : recv.ranges) {
        nodes_[e.node].shadow.mark(r, Shadow::kProgram, Shadow::Use::Own);
      }
    }
  }
}

void Model::prepare_node(Node& node) {
  Shadow& shadow = node.shadow;
  shadow.new_round();
  shadow.mark({kCounters, kCounterBytes}, Shadow::kProgram, Shadow::Use::Own);
  for (const Recv& recv : node.srq) {
    for (const Range& r : recv.ranges) shadow.mark(r, Shadow::kProgram, Shadow::Use::Own);
  }
  node.awaited = node.srq_promised = 0;
  for (const std::uint32_t key : std::exchange(node.retired_keys, {})) {
    node.old_keys.push_back(key);
  }
  node.events.clear();
  for (Queue& cq : node.cqs) cq.any = cq.solicited = false;
  for (Region& r : node.regions) r.frozen = r.users == 0 && !r.base && random_.chance(15);
  for (std::uint64_t i = random_.below(4); i != 0; --i) {
    FillOrder order{0, random_.between(1, 100'000), random_.bits()};
    order.offset = random_.below(kArenaBytes - order.length);
    const Range range{order.offset, order.length};
    if (!shadow.look(range, Shadow::kProgram, Shadow::Use::Own).allowed) continue;
    fill(shadow.bytes().subspan(order.offset, order.length), order.seed);
    node.prepare.add(Verb::Fill, order);
    deeds_.push_back({node.index, range, "the program"});
  }
  if (node.sleeps) return;
  for (std::uint32_t cq = 0; cq < node.cqs.size(); ++cq) {
    if (random_.chance(50)) continue;
    const bool solicited = random_.chance(50);
    Queue::Armed& armed = node.cqs[cq].armed;
    armed = std::max(armed, solicited ? Queue::Armed::Solicited : Queue::Armed::Any);
    node.prepare.add(Verb::ArmCq, CqOrder{cq, solicited});
  }
}

void Model::share_out_budgets() {
  for (Endpoint& e : endpoints_) {
    if (!e.connected || e.send_error || random_.chance(30)) continue;
    e.budget = static_cast<std::uint32_t>(random_.between(1, e.cap.max_send_wr));
  }
  for (Endpoint& e : endpoints_) {
    const bool paired = e.peer != nullptr && e.peer != &e;
    if (e.budget == 0 || (e.peer == &e)) continue;
    const unsigned percent = e.type == ib::QpType::Ud ? 10 : 6;
    if (!e.orphan && !random_.chance(percent)) continue;
    if (paired && e.peer->fault_at != ~0U) continue;  // one side at a time
    e.fault_at = e.orphan ? 0 : static_cast<std::uint32_t>(random_.below(e.budget));
    if (e.type == ib::QpType::Rc) e.peer->budget = 0;
  }
}

// Something that the traffic must not feel.
void Model::side_action() {
  Node& node = nodes_[random_.below(nodes_.size())];
  if (random_.chance(20)) return resize(node, node.go);
  if (random_.chance(20)) {
    Endpoint& idle = endpoints_[random_.below(endpoints_.size())];
    const bool quiet = idle.peer != nullptr && idle.connected && !idle.broken && !idle.send_error &&
                       idle.posted + idle.budget == 0 && idle.peer->posted + idle.peer->budget == 0;
    if (quiet) disconnect(idle, nodes_[idle.node].go, false);
    if (quiet && idle.peer->connected) disconnect(*idle.peer, nodes_[idle.peer->node].go, false);
    return;
  }
  for (std::uint32_t i = 0; i < node.regions.size(); ++i) {
    if (!node.regions[i].frozen || !random_.chance(30)) continue;
    return change_region(node, i, node.go);
  }
}

void Model::act(Endpoint& e) {
  Node& node = nodes_[e.node];
  const bool crowded = node.awaited > kMostAwaited || node.go.expected.size() > kMostPosts;
  if (e.posted == e.fault_at && post_fault(e)) {
    if (!e.failed) ++tally_["dropped"];
    e.fault_at = ~0U;
    if (e.failed) e.budget = static_cast<std::uint32_t>(random_.below(std::min(e.budget, 4U)));
    return;
  }
  if (crowded && e.fault_at == ~0U) {
    e.budget = 0;
    return;
  }
  --e.budget;
  if (e.failed) {
    post_flushed(e);
  } else if (random_.chance(2)) {
    post_refused(e);
  } else {
    post_valid(e);
  }
}

std::optional<ib::Opcode> Model::choose_opcode(const Endpoint& e) {
  using ib::Opcode;
  std::vector<Opcode> may = {Opcode::Send, Opcode::SendWithImm};
  if (e.type != ib::QpType::Ud) {
    const std::uint32_t access = e.peer->access;
    if ((access & ib::kRemoteWrite) != 0) {
      may.insert(may.end(), {Opcode::Write, Opcode::Write, Opcode::WriteWithImm});
    }
    if (e.type == ib::QpType::Rc) {
      if ((access & ib::kRemoteRead) != 0) may.insert(may.end(), {Opcode::Read, Opcode::Read});
      if ((access & ib::kRemoteAtomic) != 0) {
        may.insert(may.end(), {Opcode::CompareSwap, Opcode::FetchAdd});
      }
    }
  }
  return random_.one_of(may);
}

std::uint64_t Model::choose_length() {
  const std::uint64_t dice = random_.below(1000);
  if (dice < 80) return 0;
  if (dice < 550) return random_.between(1, 64);
  if (dice < 820) return random_.between(65, 1024);
  if (dice < 965) return random_.between(1025, 16 << 10);
  if (dice < 996) return random_.between(16 << 10, 128 << 10);
  return random_.between(128 << 10, 1 << 20);
}

bool Model::post_valid(Endpoint& e) {
  if (e.posted == e.cap.max_send_wr) return false;
  Draft d;
  d.order.opcode = *choose_opcode(e);
  if (ib::is_atomic(d.order.opcode)) {
    return random_.chance(25) ? post_contended(e, d) : post_atomic(e, d);
  }
  return ib::needs_recv(d.order.opcode) ? post_message(e, d) : post_one_sided(e, d);
}

bool Model::post_one_sided(Endpoint& e, Draft& d) {
  Endpoint& t = *e.peer;
  Node& target = nodes_[t.node];
  const bool read = d.order.opcode == ib::Opcode::Read;
  std::uint64_t length = choose_length();
  if (!read && length <= e.cap.max_inline && random_.chance(40)) {
    if (!fill_inline(e, d, length)) return false;
  } else if (!fill_list(e, d, length, read ? Shadow::Use::Fetch : Shadow::Use::Gather)) {
    return false;
  }
  d.order.remote_addr = random_.bits();  // with no bytes to move, neither counts
  d.order.rkey = static_cast<std::uint32_t>(random_.bits());
  Range range;
  if (length != 0) {
    const auto remote = place(target, t.pd, read ? ib::kRemoteRead : ib::kRemoteWrite, length,
                              e.queue(), read ? Shadow::Use::Read : Shadow::Use::Write);
    if (!remote) return false;
    range = remote->range;
    d.order.remote_addr = remote->addr;
    d.order.rkey = target.regions[remote->region].rkey;
    d.fence |= remote->fence;
  }
  auto ours = nodes_[e.node].shadow.bytes();
  auto theirs = target.shadow.bytes();
  if (read) {
    scatter(ours, d.locals, gather(theirs, {&range, 1}));
    for (const Range& r : d.locals) deeds_.push_back({e.node, r, "READ by " + describe(e)});
  } else {
    scatter(theirs, {&range, 1}, gather(ours, d.locals));
    deeds_.push_back({target.index, range, "WRITE by " + describe(e)});
  }
  post(e, d);
  return true;
}

bool Model::post_atomic(Endpoint& e, Draft& d) {
  Endpoint& t = *e.peer;
  Node& target = nodes_[t.node];
  if (!fill_list(e, d, 8, Shadow::Use::Fetch)) return false;
  const auto remote = place(target, t.pd, ib::kRemoteAtomic, 8, e.queue(), Shadow::Use::Atomic);
  if (!remote) return false;
  d.fence |= remote->fence;
  d.order.remote_addr = remote->addr;
  d.order.rkey = target.regions[remote->region].rkey;
  auto theirs = target.shadow.bytes();
  const auto before = gather(theirs, {&remote->range, 1});
  std::uint64_t value = 0;
  std::memcpy(&value, before.data(), 8);
  d.order.compare_add = random_.chance(50) ? value : random_.bits();
  d.order.swap = random_.bits();
  scatter(nodes_[e.node].shadow.bytes(), d.locals, before);
  if (d.order.opcode == ib::Opcode::FetchAdd) {
    value += d.order.compare_add;
  } else if (d.order.compare_add == value) {
    value = d.order.swap;
  }
  std::memcpy(&theirs[remote->range.offset], &value, 8);
  deeds_.push_back({target.index, remote->range, "atomic by " + describe(e)});
  for (const Range& r : d.locals)
    deeds_.push_back({e.node, r, "atomic's result of " + describe(e)});
  post(e, d);
  return true;
}

bool Model::post_contended(Endpoint& e, Draft& d) {
  Endpoint& t = *e.peer;
  Node& target = nodes_[t.node];
  Node& node = nodes_[e.node];
  // Nobody knows what will lie there, so nobody else uses it.
  const auto into = place(node, e.pd, ib::kLocalWrite, 8, Shadow::kProgram, Shadow::Use::Own);
  if (!into) return false;
  const Region& all = target.regions[2 * t.pd];
  Contended c{target.index, node.index, 0, random_.between(1, 1 << 20), into->range.offset};
  c.counter = kCounters + 8 * random_.below(kCounterBytes / 8);
  contended_.push_back(c);
  d.length = 8;
  d.fence = into->fence;
  d.sges = {{into->addr, 8, node.regions[into->region].lkey}};
  d.order.opcode = ib::Opcode::FetchAdd;
  d.order.remote_addr = all.iova + (c.counter - all.offset);
  d.order.rkey = all.rkey;
  d.order.compare_add = c.add;
  post(e, d);
  return true;
}

bool Model::post_message(Endpoint& e, Draft& d) {
  Endpoint* t = e.peer;
  if (e.type == ib::QpType::Ud) {
    t = random_.one_of(datagrams_);
    if (!t->connected || t->send_error) return false;
    d.order.remote_qpn = t->qpn;
    d.order.remote_qkey = t->qkey;
    d.order.ah = static_cast<std::uint32_t>(2 * e.pd + random_.below(2));
  }
  if (nodes_[t->node].awaited > kMostAwaited) return false;
  const bool write = d.order.opcode == ib::Opcode::WriteWithImm;
  std::uint64_t length = choose_length();
  const Recv* recv = next_receive(*t, length);
  if (recv == nullptr) return false;
  if (t->srq || e.type == ib::QpType::Ud) length = std::min(length, shared_capacity());
  if (e.type == ib::QpType::Ud) {
    length = std::min<std::uint64_t>(length, nodes_[0].greeting.mtu);
  } else if (!write) {
    length = std::min(length, t->srq ? shared_capacity() : recv->capacity);
  }
  return deliver(e, *t, d, length);
}

}  // namespace vrb::model
