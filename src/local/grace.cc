// The grace period: waiting until no lane is inside any more (A20 to A22).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ctime>

#include "base/points.h"
#include "local/nic_memory.h"

namespace vrb::local {
namespace {

constexpr std::uint64_t kSpinNs = 10'000;
constexpr std::uint64_t kFirstSleepNs = 20'000;
constexpr std::uint64_t kLongestSleepNs = 1'000'000;

std::uint64_t clock_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

void sleep_ns(std::uint64_t ns) {
  const timespec t{0, static_cast<long>(ns)};
  nanosleep(&t, nullptr);
}

}  // namespace

bool NicMemory::still_inside(const Stuck& lane) const {
  return shared_->lanes[lane.peer][lane.lane].epoch.load(std::memory_order_acquire) == lane.epoch;
}

std::vector<NicMemory::Stuck> NicMemory::lanes_inside(bool& stuck) {
  std::vector<Stuck> inside;
  stuck = false;
  const std::uint32_t peers = std::min(peers_in_use_.load(std::memory_order_acquire), kPeers);
  for (std::uint32_t peer = 0; peer < peers; ++peer) {
    for (std::uint32_t lane = 0; lane < kLanesPerPeer; ++lane) {
      const std::uint64_t epoch = shared_->lanes[peer][lane].epoch.load(std::memory_order_acquire);
      if ((epoch & 1) != 0) inside.push_back({peer, lane, epoch});
    }
  }
  if (inside.empty()) return inside;
  // A lane that outlasted an earlier call is not waited for again.
  const base::SpinGuard guard(lock_);
  std::vector<Stuck> fresh;
  for (const Stuck& lane : inside) {
    if (is_known(lane)) {
      stuck = true;
    } else {
      fresh.push_back(lane);
    }
  }
  return fresh;
}

bool NicMemory::is_known(const Stuck& lane) const {
  for (const Stuck& s : stuck_) {
    if (s.peer == lane.peer && s.lane == lane.lane && s.epoch == lane.epoch) return true;
  }
  return false;
}

void NicMemory::remember_stuck(const std::vector<Stuck>& lanes) {
  const base::SpinGuard guard(lock_);
  stuck_.insert(stuck_.end(), lanes.begin(), lanes.end());
}

bool NicMemory::grace(std::uint32_t limit_ms) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  bool stuck = false;
  std::vector<Stuck> inside = lanes_inside(stuck);
  if (inside.empty()) return !stuck;
  VRB_POINT("grace.waiting");
  const auto left = [&](const Stuck& lane) { return !still_inside(lane); };
  const std::uint64_t start = clock_ns();
  for (std::uint64_t sleep = kFirstSleepNs;;) {
    std::erase_if(inside, left);
    if (inside.empty()) return !stuck;
    const std::uint64_t waited = clock_ns() - start;
    if (waited >= std::uint64_t{limit_ms} * 1'000'000) break;
    if (waited < kSpinNs) {
      base::cpu_relax();
    } else {
      sleep_ns(sleep);
      sleep = std::min(2 * sleep, kLongestSleepNs);
    }
  }
  remember_stuck(inside);
  return false;
}

bool NicMemory::quarantine_over() {
  const base::SpinGuard guard(lock_);
  std::erase_if(stuck_, [&](const Stuck& lane) { return !still_inside(lane); });
  if (!stuck_.empty()) return false;
  for (const Held& held : held_) give_back(held);
  held_.clear();
  return true;
}

void NicMemory::forget_lanes(std::uint32_t peer_index) {
  if (peer_index >= kPeers) return;
  for (Lane& lane : shared_->lanes[peer_index]) {
    const std::uint64_t epoch = lane.epoch.load(std::memory_order_acquire);
    if ((epoch & 1) != 0) lane.epoch.store(epoch + 1, std::memory_order_release);
  }
}

}  // namespace vrb::local
