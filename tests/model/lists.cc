// Where the bytes of a work request lie: ranges that its queue may use, scatter and gather lists,
// and receives.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "model.h"

namespace vrb::model {
namespace {

constexpr int kTries = 12;
constexpr std::uint32_t kSharedReceives = 64;

}  // namespace

std::optional<Model::Placed> Model::place(Node& node, std::uint32_t pd, std::uint32_t access,
                                          std::uint64_t length, std::uint16_t queue,
                                          Shadow::Use use) {
  for (int i = 0; i < kTries; ++i) {
    const auto index = static_cast<std::uint32_t>(random_.below(node.regions.size()));
    const Region& r = node.regions[index];
    if (!r.live || r.frozen || r.pd != pd || (access & ~r.access) != 0 || r.length < length) {
      continue;
    }
    std::uint64_t offset = r.offset + random_.below(r.length - length + 1);
    if (use == Shadow::Use::Atomic) {
      offset = (offset + 7) & ~7ULL;
      if (offset + length > r.offset + r.length) continue;
    }
    const Range range{offset, length};
    const auto look = node.shadow.look(range, queue, use);
    if (!look.allowed) continue;
    node.shadow.mark(range, queue, use);
    return Placed{index, range, r.iova + (offset - r.offset), look.fence};
  }
  return std::nullopt;
}

// Cuts a length into at most `most` parts, some of them empty.
std::vector<std::uint64_t> Model::split(std::uint64_t length, std::uint32_t most) {
  std::uint64_t parts = 1;
  if (random_.chance(30)) parts = random_.between(1, std::min(most, 4U));
  if (random_.chance(10)) parts = random_.between(1, most);
  if (length == 0 && random_.chance(50)) parts = 0;
  std::vector<std::uint64_t> cuts(parts);
  for (std::uint64_t& cut : cuts) cut = random_.between(0, length);
  if (parts != 0) cuts[0] = length;
  std::ranges::sort(cuts);
  std::adjacent_difference(cuts.begin(), cuts.end(), cuts.begin());
  return cuts;
}

bool Model::fill_list(Endpoint& e, Draft& d, std::uint64_t length, Shadow::Use use) {
  Node& node = nodes_[e.node];
  const std::uint32_t access = use == Shadow::Use::Fetch ? ib::kLocalWrite : 0;
  d.length = length;
  for (const std::uint64_t part : split(length, e.cap.max_send_sge)) {
    const auto placed = place(node, e.pd, access, part, e.queue(), use);
    if (!placed) return false;
    d.sges.push_back(
        {placed->addr, static_cast<std::uint32_t>(part), node.regions[placed->region].lkey});
    d.locals.push_back(placed->range);
    d.fence |= placed->fence;
  }
  return true;
}

// Inline data may lie anywhere, its key does not count, and its memory is the program's again at
// once: sometimes that writes over it at once.
bool Model::fill_inline(Endpoint& e, Draft& d, std::uint64_t length) {
  Node& node = nodes_[e.node];
  const bool scribbles = random_.chance(50);
  const Shadow::Use use = scribbles ? Shadow::Use::Own : Shadow::Use::Inline;
  d.length = length;
  for (const std::uint64_t part : split(length, e.cap.max_send_sge)) {
    const Range range{random_.below(kArenaBytes - part), part};
    if (!node.shadow.look(range, e.queue(), use).allowed) return false;
    node.shadow.mark(range, e.queue(), use);
    d.sges.push_back({address(node, range.offset), static_cast<std::uint32_t>(part),
                      static_cast<std::uint32_t>(random_.bits())});
    d.locals.push_back(range);
  }
  d.order.flags |= ib::kSendInline;
  d.scribbles = scribbles;
  return true;
}

bool Model::fill_receive(Node& node, std::uint32_t pd, std::uint32_t most, std::uint64_t capacity,
                         Recv& recv, std::vector<ib::Sge>& sges) {
  for (const std::uint64_t part : split(capacity, most)) {
    const auto placed = place(node, pd, ib::kLocalWrite, part, Shadow::kProgram, Shadow::Use::Own);
    if (!placed) return false;
    recv.capacity += part;
    recv.ranges.push_back(placed->range);
    recv.regions.push_back(placed->region);
    sges.push_back(
        {placed->addr, static_cast<std::uint32_t>(part), node.regions[placed->region].lkey});
  }
  return true;
}

Recv* Model::post_receive(Endpoint& t, std::uint64_t capacity) {
  if (t.rq.size() >= t.cap.max_recv_wr) return nullptr;
  Node& node = nodes_[t.node];
  Recv recv;
  std::vector<ib::Sge> sges;
  if (!fill_receive(node, t.pd, t.cap.max_recv_sge, capacity, recv, sges)) return nullptr;
  recv.id = node.next_id++ | kReceive;
  for (const std::uint32_t region : recv.regions) ++node.regions[region].users;
  Orders& orders = t.late ? node.go : node.prepare;
  orders.add(Verb::PostRecv, RecvOrder{recv.id, t.id, false});
  orders.message.put_list(sges);
  return &t.rq.emplace_back(std::move(recv));
}

Recv* Model::post_shared_receive(Node& node) {
  if (node.srq.size() >= kSharedReceives) return nullptr;
  Recv recv;
  std::vector<ib::Sge> sges;
  const std::uint64_t capacity = shared_capacity() + random_.below(64);
  if (!fill_receive(node, node.srq_pd, node.srq_sges, capacity, recv, sges)) return nullptr;
  recv.id = node.next_id++ | kReceive;
  for (const std::uint32_t region : recv.regions) ++node.regions[region].users;
  node.prepare.add(Verb::PostRecv, RecvOrder{recv.id, 0, true});
  node.prepare.message.put_list(sges);
  return &node.srq.emplace_back(std::move(recv));
}

const Recv* Model::next_receive(Endpoint& t, std::uint64_t length) {
  Node& node = nodes_[t.node];
  if (t.srq) {
    if (node.srq_promised < node.srq.size()) return &node.srq[node.srq_promised];
    return post_shared_receive(node);
  }
  if (const std::size_t owed = t.owed(); owed < t.rq.size()) return &t.rq[owed];
  if (t.type == ib::QpType::Ud) return post_receive(t, shared_capacity());
  // A sender with retries for ever may also come first.
  if (t.type == ib::QpType::Rc && t.peer->rnr_retry == 7 && random_.chance(20)) t.late = true;
  return post_receive(t, length + (random_.chance(50) ? 0 : random_.below(200)));
}

void Model::unpin(Node& node, const Recv& recv) {
  for (const std::uint32_t region : recv.regions) --node.regions[region].users;
}

}  // namespace vrb::model
