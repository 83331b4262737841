// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>

#include "base/check.h"
#include "engine/fork.h"
#include "engine/points.h"
#include "local/kernel.h"

namespace vrb::engine {
namespace {

void check_hook(const char* file, int line, const char* what) {
  char text[256];
  const int n = std::snprintf(text, sizeof text, "verbena: broken invariant at %s:%d: %s\n", file,
                              line, what);
  if (n > 0 && write(STDERR_FILENO, text, static_cast<std::size_t>(n)) < 0) return;
}

void yield_hook() { sched_yield(); }

}  // namespace

std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

std::uint64_t random_number() {
  std::uint64_t value = 0;
  if (getrandom(&value, sizeof value, GRND_NONBLOCK) != sizeof value) {
    value = (now_ns() * 0x9e3779b97f4a7c15ULL) ^ static_cast<std::uint64_t>(getpid()) << 32;
  }
  return value;
}

void install_hooks() {
  base::set_check_hook(check_hook);
  base::set_yield_hook(yield_hook);
}

Engine& Engine::get() { return current_engine(); }

Engine::Engine() : qp_table_(new std::atomic<Qp*>[local::kQps]()) {
  install_point_hook();
  qp_taken_.resize(local::kQps);
  qp_generation_.resize(local::kQps);
}

ib::Result<local::NicMemory*> Engine::memory() {
  if (memory_made_.load(std::memory_order_acquire)) return memory_.get();
  const std::lock_guard guard(start_lock_);
  if (!memory_) {
    local::KernelMask& kernel = local::kernel_mask();
    kernel.peer_pidfd = config().kernel_allows(6, 5);
    kernel.noexec_seal = config().kernel_allows(6, 3);
    kernel.procmap_query = config().kernel_allows(6, 11);
    std::uint64_t incarnation = 0;
    while (incarnation == 0) incarnation = random_number();
    auto made = local::NicMemory::create(incarnation);
    if (!made) return base::Unexpected{made.error()};
    memory_ = std::move(*made);
    keys = std::make_unique<memory::KeyTable>(std::span(memory_->tables().keys));
    memory_made_.store(true, std::memory_order_release);
  }
  return memory_.get();
}

ib::Result<local::Switchboard*> Engine::switchboard() {
  if (switchboard_made_.load(std::memory_order_acquire)) return switchboard_.get();
  const auto nic_memory = memory();
  if (!nic_memory) return base::Unexpected{nic_memory.error()};
  const std::lock_guard guard(start_lock_);
  if (!switchboard_) {
    local::TrustPolicy policy;
    for (const uid_t uid : config().trusted_uids) policy.trusted_uids.push_back(uid);
    policy.no_cma = !config().cma;
    policy.wire_only = config().carrier == Carrier::Wire;
    if (doorbell_ < 0) doorbell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (doorbell_ < 0)
      return ib::refuse(ib::Errc::TooManyFiles, ib::CauseCode::SystemRefused, 290, errno);
    auto made = local::Switchboard::create(**nic_memory, std::move(policy), doorbell_);
    if (!made) return base::Unexpected{made.error()};
    switchboard_ = std::move(*made);
    start_service();
    switchboard_made_.store(true, std::memory_order_release);
  }
  return switchboard_.get();
}

void Engine::hold() {
  start_lock_.lock();
  held_ = switchboard_ != nullptr;
  if (held_) switchboard_->hold();
}

void Engine::let_go() {
  if (held_) switchboard_->let_go();
  start_lock_.unlock();
}

void Engine::abandon() {
  forked_.store(true);
  if (switchboard_) switchboard_->abandon();
  if (memory_) memory_->abandon();
  if (doorbell_ >= 0) close(doorbell_);
}

bool Engine::Numbers::take(std::uint32_t& number) {
  const std::lock_guard guard(mutex_);
  if (!free_.empty()) {
    number = free_.back();
    free_.pop_back();
    return true;
  }
  if (next_ == limit_) return false;
  number = next_++;
  return true;
}

void Engine::Numbers::release(std::uint32_t number) {
  const std::lock_guard guard(mutex_);
  free_.push_back(number);
}

namespace {

// QPNs that no QP has (W15): in the first slot and in the last.
bool reserved(std::uint32_t qpn) { return qpn < 2 || qpn == 0xffffff; }
std::uint32_t reserved_in(std::uint32_t first) {
  if (first == 0) return 2;
  return (first | (ib::kQpsPerSlot - 1)) == 0xffffff ? 1 : 0;
}

}  // namespace

ib::Result<Engine::QpNumber> Engine::take_qp_number() {
  const auto board = switchboard();
  if (!board) return base::Unexpected{board.error()};
  const std::lock_guard guard(qpn_lock_);
  for (std::size_t s = 0;; ++s) {
    if (s == slots_.size()) {
      if (s == local::kQps / ib::kQpsPerSlot)
        return ib::refuse(ib::Errc::NoMemory, ib::CauseCode::NoQpnLeft, ib::kMaxQp);
      const std::uint64_t random = random_number();
      const auto ordinal = (*board)->take_slot(random);
      if (!ordinal) return base::Unexpected{ordinal.error()};
      slots_.push_back({*ordinal, static_cast<std::uint32_t>(random >> 32) % ib::kQpsPerSlot, 0});
    }
    Slot& slot = slots_[s];
    const std::uint32_t first = (*board)->slot(slot.ordinal) << 14;
    if (slot.in_use >= ib::kQpsPerSlot - reserved_in(first)) continue;
    for (;;) {
      const std::uint32_t low = slot.next;
      slot.next = (slot.next + 1) % ib::kQpsPerSlot;
      const std::uint32_t index = slot.ordinal * ib::kQpsPerSlot + low;
      if (reserved(first | low) || qp_taken_[index]) continue;
      qp_taken_[index] = true;
      ++slot.in_use;
      return QpNumber{index, ib::Qpn{first | low}, ++qp_generation_[index]};
    }
  }
}

void Engine::release_qp_number(std::uint32_t index) {
  const std::lock_guard guard(qpn_lock_);
  qp_taken_[index] = false;
  for (Slot& slot : slots_) {
    if (slot.ordinal == index / ib::kQpsPerSlot) --slot.in_use;
  }
}

std::shared_ptr<Qp> Engine::find_qp(std::uint32_t index) {
  const std::lock_guard guard(registry_lock);
  const auto found = qps.find(index);
  return found == qps.end() ? nullptr : found->second;
}

}  // namespace vrb::engine
