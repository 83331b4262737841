// The model's objects: what the ranks begin with, and how it comes, goes and changes between and
// during the traffic.
// SPDX-License-Identifier: Apache-2.0
#include "model.h"

namespace vrb::model {
namespace {

constexpr std::uint32_t kCqs = 4;
constexpr std::uint32_t kFewestCqe = 1024;  // more than a round brings
constexpr std::uint32_t kMostCqe = 4096;
constexpr std::uint32_t kRegions = 16;
constexpr std::uint32_t kBaseRegions = 4;   // PD i: 2i with all rights, 2i + 1 for local use
constexpr std::uint64_t kGuard = 64 << 10;  // never registered, at both ends of the arena
constexpr std::uint32_t kSharedReceives = 64;
constexpr std::uint32_t kAll = ib::kLocalWrite | ib::kRemoteAccess;
constexpr std::uint8_t kPatient = 18;    // a second, and seven retries
constexpr std::uint8_t kImpatient = 10;  // four milliseconds
constexpr int kRetranslate = 1, kRepd = 2, kReaccess = 4;

}  // namespace

Model::Model(std::uint64_t seed, const std::vector<Greeting>& greetings) : random_(seed) {
  for (const Greeting& greeting : greetings) {
    Node& node = nodes_.emplace_back();
    node.index = static_cast<std::uint32_t>(nodes_.size() - 1);
    node.greeting = greeting;
    node.sleeps = node.index % 2 == 1;
  }
  make_endpoints();
}

Endpoint& Model::add_endpoint(Node& node, ib::QpType type) {
  Endpoint& e = endpoints_.emplace_back();
  e.id = static_cast<std::uint32_t>(endpoints_.size() - 1);
  e.node = node.index;
  e.type = type;
  return e;
}

void Model::make_endpoints() {
  constexpr ib::QpType kPairs[] = {ib::QpType::Rc, ib::QpType::Rc, ib::QpType::Uc};
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (std::size_t j = i; j < nodes_.size(); ++j) {
      for (const ib::QpType type : kPairs) {
        Endpoint& a = add_endpoint(nodes_[i], type);
        Endpoint& b = add_endpoint(nodes_[j], type);
        a.peer = &b;
        b.peer = &a;
      }
    }
    Endpoint& alone = add_endpoint(nodes_[i], ib::QpType::Rc);
    alone.peer = &alone;
    for (int k = 0; k < 2; ++k) datagrams_.push_back(&add_endpoint(nodes_[i], ib::QpType::Ud));
  }
}

void Model::set_up() {
  for (Node& node : nodes_) {
    const std::uint64_t seed = random_.bits();
    fill(node.shadow.bytes(), seed);
    node.prepare.add(Verb::Fill, FillOrder{0, kArenaBytes, seed});
    for (std::uint32_t cq = 0; cq < kCqs; ++cq) {
      const auto cqe = static_cast<std::uint32_t>(random_.between(kFewestCqe, kMostCqe));
      node.cqs.push_back({cqe});
      node.prepare.add(Verb::CreateCq, CqOrder{cq, cqe});
    }
    node.srq_pd = static_cast<std::uint32_t>(random_.below(kPds));
    node.srq_sges = static_cast<std::uint32_t>(random_.between(1, 8));
    node.prepare.add(Verb::CreateSrq, SrqOrder{node.srq_pd, kSharedReceives, node.srq_sges, 0});
    node.regions.resize(kRegions);
    for (std::uint32_t i = 0; i < kRegions; ++i) change_region(node, i, node.prepare);
  }
}

Region Model::random_region(Node& node) {
  static constexpr std::uint32_t kRights[] = {0, 1, 1, 3, 4, 5, 7, 9, 15, 15};
  Region r;
  r.live = true;
  r.pd = static_cast<std::uint32_t>(random_.below(kPds));
  r.access = kRights[random_.below(std::size(kRights))];
  const std::uint64_t longest[] = {256, 64 << 10, 2 << 20};
  r.length = random_.between(1, longest[random_.below(3)]);
  r.offset = kGuard + random_.below(kArenaBytes - 2 * kGuard - r.length + 1);
  // Anywhere, but eight bytes of it are aligned where those of the memory are.
  r.iova = address(node, r.offset);
  if (random_.chance(50)) r.iova = (random_.bits() >> 16 & ~7ULL) + r.iova % 8 + 8;
  return r;
}

// Registers, registers anew or deregisters what nobody uses now.
void Model::change_region(Node& node, std::uint32_t index, Orders& orders) {
  Region& r = node.regions[index];
  const Region old = r;
  if (old.live) node.retired_keys.push_back(old.rkey);
  Region next = random_region(node);
  next.frozen = old.frozen;
  next.base = index < kBaseRegions;
  if (next.base) {
    next.pd = index / 2;
    next.access = index % 2 == 0 ? kAll : ib::kLocalWrite;
    next.offset = (index / 2) << 20 | 512 << 10;
    next.length = 2 << 20;
    next.iova = address(node, next.offset);
  }
  MrOrder order{index, next.pd, next.access, 0, next.offset, next.length, next.iova};
  Verb verb = Verb::RegMr;
  if (old.live && (next.base || random_.chance(50))) {
    verb = Verb::ReregMr;
    order.flags = next.base ? kReaccess : static_cast<int>(random_.between(1, 7));
    next.iova = address(node, next.offset);
    if ((order.flags & kRetranslate) == 0) {
      next.offset = old.offset;
      next.length = old.length;
      next.iova = old.iova;
    }
    if ((order.flags & kRepd) == 0) next.pd = old.pd;
    if ((order.flags & kReaccess) == 0) next.access = old.access;
  } else if (old.live) {
    orders.add(Verb::DeregMr, order);
    if (random_.chance(50)) {
      r = Region{};
      return;
    }
  }
  r = next;
  auto& expected = orders.add(verb, order);
  expected.values[0] = &r.lkey;
  expected.values[1] = &r.rkey;
}

void Model::resize(Node& node, Orders& orders) {
  const auto cq = static_cast<std::uint32_t>(random_.below(node.cqs.size()));
  node.cqs[cq].cqe = static_cast<std::uint32_t>(random_.between(kFewestCqe, kMostCqe));
  orders.add(Verb::ResizeCq, CqOrder{cq, node.cqs[cq].cqe});
}

void Model::create(Endpoint& e) {
  Node& node = nodes_[e.node];
  e.exists = true;
  e.pd = static_cast<std::uint32_t>(random_.below(kPds));
  e.send_cq = static_cast<std::uint32_t>(random_.below(kCqs));
  e.recv_cq = random_.chance(50) ? e.send_cq : static_cast<std::uint32_t>(random_.below(kCqs));
  e.srq = random_.chance(25);
  e.sig_all = random_.chance(15);
  const auto sges = [this] {
    return static_cast<std::uint32_t>(random_.chance(50) ? random_.between(1, 4)
                                                         : random_.between(5, ib::kMaxSge));
  };
  constexpr std::uint32_t kInline[] = {0, 64, 300, ib::kMaxInline};
  e.cap = {static_cast<std::uint32_t>(random_.between(4, 24)),
           static_cast<std::uint32_t>(random_.between(8, 48)), sges(), sges(),
           kInline[random_.below(std::size(kInline))]};
  const QpOrder order{e.id, e.pd, e.send_cq, e.recv_cq, e.type, e.srq, e.sig_all, e.cap};
  auto& expected = node.prepare.add(Verb::CreateQp, order);
  expected.values[0] = &e.qpn;
  expected.values[1] = &e.cap.max_send_wr;
}

void Model::connect(Endpoint& e, bool orphan) {
  e.connected = true;
  e.access = kAll;
  if (random_.chance(20)) e.access = static_cast<std::uint32_t>(random_.below(16));
  e.qkey = static_cast<std::uint32_t>(random_.bits()) & 0x7fffffff;
  e.rnr_retry = random_.chance(65) ? 7 : 1;
  ConnectOrder order{e.id, e.peer != nullptr ? e.peer->qpn : 0, e.access, e.qkey, e.type};
  order.rnr_retry = e.rnr_retry;
  order.timeout = orphan ? kImpatient : kPatient;
  order.retry_cnt = orphan ? 1 : 7;
  nodes_[e.node].prepare.add(Verb::ConnectQp, order);
}

// What a QP forgets when it goes to RESET.
void Model::clear(Endpoint& e) {
  for (const Recv& recv : e.rq) unpin(nodes_[e.node], recv);
  e.rq.clear();
  e.sent.clear();
  e.inbox.clear();
  e.connected = e.broken = e.send_error = e.orphan = false;
}

void Model::disconnect(Endpoint& e, Orders& orders, bool destroys) {
  if (!e.exists) return;
  orders.add(destroys ? Verb::DestroyQp : Verb::ResetQp, StateOrder{e.id});
  if (destroys) e.exists = false;
  clear(e);
}

// Both sides change together; the lower number decides.
void Model::change_pair(Endpoint& e) {
  const bool paired = e.peer != nullptr && e.peer != &e;
  if (paired && e.peer->id < e.id) return;
  const bool broken = e.broken || (paired && e.peer->broken);
  const bool orphan = paired && e.type == ib::QpType::Rc && round_ > 4 && random_.chance(1);
  if (broken || orphan || random_.chance(3)) {
    const bool destroys = random_.chance(40);
    disconnect(e, nodes_[e.node].prepare, destroys);
    if (paired) disconnect(*e.peer, nodes_[e.peer->node].prepare, destroys);
  }
  e.orphan = orphan;
  for (Endpoint* side : {&e, paired ? e.peer : nullptr}) {
    if (side == nullptr) continue;
    if (!side->exists) create(*side);
    if (!side->send_error) continue;
    nodes_[side->node].prepare.add(Verb::RecoverQp, StateOrder{side->id, ib::QpState::Rts});
    side->send_error = false;
  }
}

void Model::change() {
  ++round_;
  for (Endpoint& e : endpoints_) change_pair(e);
  for (Node& node : nodes_) {
    if (random_.chance(30)) resize(node, node.prepare);
    const auto index = static_cast<std::uint32_t>(random_.below(kRegions));
    if (node.regions[index].users == 0) change_region(node, index, node.prepare);
  }
}

}  // namespace vrb::model
