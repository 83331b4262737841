// SPDX-License-Identifier: Apache-2.0
#include "local/peer.h"

#include <poll.h>
#include <unistd.h>

#include <bit>
#include <cerrno>

#include "base/lock.h"
#include "base/points.h"

namespace vrb::local {
namespace {

constexpr std::uint32_t kMostRecvEntries = 1U << 22;
constexpr std::uint32_t kMostCqEntries = 1U << 24;
constexpr std::uint32_t kAllLanes = (1U << kLanesPerPeer) - 1;

bool inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  return offset % 64 == 0 && offset <= size && bytes <= size - offset;
}

// One look at a field that the other side may change meanwhile.
template <class T>
T once(const T& field) {
  return __atomic_load_n(&field, __ATOMIC_RELAXED);
}

}  // namespace

Peer::~Peer() = default;

ib::Cause Peer::why() const {
  switch (state()) {
    case PeerState::Refused:
      return cause;
    case PeerState::Dead:
      return ib::cause(ib::CauseCode::PeerDied);
    case PeerState::Ready:
      return {};
    case PeerState::Connecting:
      break;
  }
  const std::uint64_t waiting = waiting_for_.load(std::memory_order_relaxed);
  if (waiting == 0) return ib::cause(ib::CauseCode::PeerAbsent);
  return ib::cause(static_cast<ib::CauseCode>(waiting & 0xffff), (waiting >> 16) & 0xffff,
                   waiting >> 32);
}

std::uint32_t Peer::qp_index(ib::Qpn qpn) const {
  const std::uint32_t wanted = qpn.value / ib::kQpsPerSlot;
  for (std::uint32_t ordinal = 0; ordinal < kQps / ib::kQpsPerSlot; ++ordinal) {
    if (tables->header.slot[ordinal].load(std::memory_order_acquire) != wanted) continue;
    return ordinal * ib::kQpsPerSlot + qpn.value % ib::kQpsPerSlot;
  }
  return kQps;
}

const std::byte* Peer::table_at(std::uint64_t offset, std::uint64_t bytes) const {
  if (!inside(offset, bytes, kTablesBytes)) return nullptr;
  return reinterpret_cast<const std::byte*>(tables) + offset;
}

std::byte* Peer::shared_at(std::uint64_t offset, std::uint64_t bytes) const {
  if (!inside(offset, bytes, kSharedBytes)) return nullptr;
  return reinterpret_cast<std::byte*>(shared) + offset;
}

bool Peer::recv_ring(std::uint64_t offset, queue::RecvRing& ring) const {
  const std::byte* at = table_at(offset, sizeof(queue::RecvRingHeader));
  if (at == nullptr) return false;
  const auto* header = reinterpret_cast<const queue::RecvRingHeader*>(at);
  const std::uint32_t entries = once(header->entries);
  const std::uint32_t max_sge = once(header->max_sge);
  if (!std::has_single_bit(entries) || entries > kMostRecvEntries || max_sge > ib::kMaxSge) {
    return false;
  }
  if (table_at(offset, queue::RecvRing::table_bytes(entries, max_sge)) == nullptr) return false;
  std::byte* claims = shared_at(once(header->claims), queue::RecvRing::claim_bytes(entries));
  if (claims == nullptr) return false;
  ring.header = header;
  ring.entries = at + sizeof(queue::RecvRingHeader);
  ring.claims = reinterpret_cast<queue::RecvClaims*>(claims);
  ring.count = entries;
  ring.max_sge = max_sge;
  return true;
}

bool Peer::recv_cq(const QpEntry& qp, queue::SharedCq& cq) const {
  const std::uint32_t entries = once(qp.recv_cq_entries);
  if (!std::has_single_bit(entries) || entries > kMostCqEntries) return false;
  std::byte* at = shared_at(once(qp.recv_cq), queue::SharedCq::bytes(entries));
  if (at == nullptr) return false;
  auto* header = reinterpret_cast<queue::SharedCqHeader*>(at);
  cq = queue::SharedCq(header, reinterpret_cast<queue::SharedCqe*>(header + 1), entries);
  return true;
}

void Peer::ring() const {
  const std::uint64_t one = 1;
  // Full means that it has been rung and not heard yet.
  if (doorbell >= 0 && write(doorbell, &one, sizeof one) < 0) return;
}

bool Peer::alive() const {
  if (self) return true;
  if (state() != PeerState::Ready) return false;
  pollfd p[2] = {{pidfd_.get(), POLLIN, 0}, {socket_.get(), POLLRDHUP, 0}};
  return poll(p, 2, 0) == 0;
}

void Peer::adopt_lanes() {
  for (std::uint32_t lane = 0; lane < kLanesPerPeer; ++lane) {
    const std::uint64_t epoch = shared->lanes[index][lane].epoch.load(std::memory_order_acquire);
    lane_epoch_[lane] = (epoch + 1) & ~1ULL;
  }
}

InsideLane::InsideLane(Peer& peer) : peer_(peer), lane_(0) {
  std::uint32_t busy = peer.lanes_busy_.load(std::memory_order_relaxed);
  for (unsigned turns = 1;; ++turns) {
    if (busy != kAllLanes) {
      lane_ = static_cast<std::uint32_t>(std::countr_one(busy));
      if (peer.lanes_busy_.compare_exchange_weak(busy, busy | 1U << lane_,
                                                 std::memory_order_acquire)) {
        break;
      }
      continue;
    }
    base::cpu_relax();
    if (turns % 64 == 0) base::yield();
    busy = peer.lanes_busy_.load(std::memory_order_relaxed);
  }
  // No look at a key or QP may come before it (A20).
  peer.shared->lanes[peer.index][lane_].epoch.exchange(peer.lane_epoch_[lane_] + 1);
#if !defined(__x86_64__)
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  VRB_POINT("lane.entered");
}

InsideLane::~InsideLane() {
  VRB_POINT("lane.leaving");
  peer_.lane_epoch_[lane_] += 2;
  peer_.shared->lanes[peer_.index][lane_].epoch.store(peer_.lane_epoch_[lane_],
                                                      std::memory_order_release);
  VRB_POINT("lane.left");
  peer_.lanes_busy_.fetch_and(~(1U << lane_), std::memory_order_release);
}

}  // namespace vrb::local
