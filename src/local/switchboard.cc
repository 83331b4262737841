// SPDX-License-Identifier: Apache-2.0
#include "local/switchboard.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/points.h"
#include "local/inbound.h"
#include "local/outbound.h"
#include "local/serve.h"
#include "local/slot.h"

namespace vrb::local {
namespace {

constexpr int kEvents = 64;
constexpr int kRounds = 4;
constexpr std::uint64_t kListenerRestNs = 100'000'000;

}  // namespace

struct Switchboard::State {
  State(NicMemory& memory, TrustPolicy policy, const Ourselves& us, int doorbell, int epoll,
        Fd wake_fd)
      : party{memory, std::move(policy), us, doorbell, epoll},
        wake(std::move(wake_fd)),
        inbound(party),
        outbound(party, wake.get()) {}

  void drain_wake() const {
    std::uint64_t count = 0;
    if (read(wake.get(), &count, sizeof count) < 0) return;
  }
  // While descriptors are short, listeners rest: a level-triggered event would spin.
  void set_listening(bool listening);
  bool on_event(Token token, std::uint64_t now_ns);

  Party party;
  Fd wake;
  base::SpinLock running;  // held by dispatch() and take_slot(): descriptors are made and closed
  Inbound inbound;
  Outbound outbound;
  SlotSockets slots[kSlotsPerProcess];
  std::atomic<std::uint32_t> slot_count{0};
  std::uint64_t listen_again_at = ~0ULL;
};

void Switchboard::State::set_listening(bool listening) {
  for (std::uint32_t i = 0; i < slot_count.load(std::memory_order_acquire); ++i) {
    party.rewatch(slots[i].listener.get(), {Watch::Listener, i, 0}, listening);
  }
}

bool Switchboard::State::on_event(Token token, std::uint64_t now_ns) {
  switch (token.what) {
    case Watch::Wake:
      drain_wake();
      return false;
    case Watch::Listener:
      if (token.index < slot_count.load(std::memory_order_acquire) &&
          !inbound.accept_from(slots[token.index].listener.get(), now_ns)) {
        set_listening(false);
        listen_again_at = now_ns + kListenerRestNs;
      }
      return false;
    case Watch::Pending:
    case Watch::Member:
    case Watch::MemberPid:
      inbound.on_event(token);
      return false;
    case Watch::Owner:
    case Watch::OwnerPid:
      return outbound.on_event(token, now_ns);
  }
  return false;
}

Switchboard::Switchboard() = default;
Switchboard::~Switchboard() = default;

ib::Result<std::unique_ptr<Switchboard>> Switchboard::create(NicMemory& memory, TrustPolicy policy,
                                                             int doorbell) {
  std::unique_ptr<Switchboard> board(new Switchboard);
  board->epoll_ = Fd::adopt(epoll_create1(EPOLL_CLOEXEC));
  if (!board->epoll_) {
    return ib::refuse(ib::Errc::TooManyFiles, ib::CauseCode::SystemRefused, SYS_epoll_create1,
                      errno);
  }
  Fd wake = Fd::adopt(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) {
    return ib::refuse(ib::Errc::TooManyFiles, ib::CauseCode::SystemRefused, SYS_eventfd2, errno);
  }
  const Ourselves us = ourselves(policy);
  board->state_ = std::make_unique<State>(memory, std::move(policy), us, doorbell,
                                          board->epoll_.get(), std::move(wake));
  if (!board->state_->party.watch(board->state_->wake.get(), {Watch::Wake})) {
    return ib::refuse(ib::Errc::NoMemory, ib::CauseCode::SystemRefused, SYS_epoll_ctl, errno);
  }
  auto self = std::make_shared<Peer>();
  self->slot = kNoSlot;
  self->self = true;
  self->incarnation = memory.incarnation();
  self->pid = getpid();
  self->doorbell = doorbell;
  self->tables = &memory.tables();
  self->shared = &memory.shared();
  self->adopt_lanes();
  self->state_.store(PeerState::Ready, std::memory_order_release);
  board->self_ = std::move(self);
  return board;
}

ib::Result<std::uint32_t> Switchboard::take_slot(std::uint64_t random) {
  const base::SpinGuard guard(state_->running);
  const std::uint32_t ordinal = state_->slot_count.load(std::memory_order_relaxed);
  if (ordinal == kSlotsPerProcess) {
    return ib::refuse(ib::Errc::NoMemory, ib::CauseCode::LimitExceeded, ordinal + 1, ordinal);
  }
  SlotSockets& sockets = state_->slots[ordinal];
  int error = EADDRINUSE;
  for (std::uint32_t turn = 0; turn < ib::kSlots; ++turn) {
    const auto slot = static_cast<std::uint32_t>((random + turn) % ib::kSlots);
    error = bind_slot(slot, sockets);
    if (error == EADDRINUSE) continue;
    if (error != 0) break;
    if (!state_->party.watch(sockets.listener.get(), {Watch::Listener, ordinal, 0})) {
      error = errno;
      sockets = {};
      break;
    }
    VRB_POINT("slot.bound");
    auto& header = state_->party.memory.tables().header;
    header.slot[ordinal].store(slot, std::memory_order_release);
    if (ordinal == 0) self_->slot = slot;
    state_->slot_count.store(ordinal + 1, std::memory_order_release);
    return ordinal;
  }
  if (error == EADDRINUSE) {
    return ib::refuse(ib::Errc::NoMemory, ib::CauseCode::NoSlot, ib::kSlots);
  }
  return ib::refuse(ib::Errc::NoMemory, ib::CauseCode::SystemRefused, SYS_bind, error);
}

std::uint32_t Switchboard::slot(std::uint32_t ordinal) const {
  if (ordinal >= kSlotsPerProcess) return kNoSlot;
  return state_->party.memory.tables().header.slot[ordinal].load(std::memory_order_acquire);
}

std::shared_ptr<Peer> Switchboard::find(std::uint32_t slot) {
  for (std::uint32_t i = 0; i < state_->slot_count.load(std::memory_order_acquire); ++i) {
    if (this->slot(i) == slot) return self_;
  }
  return state_->outbound.find(slot);
}

bool Switchboard::dispatch(std::uint64_t now_ns) {
  const base::SpinGuard guard(state_->running);
  if (state_->listen_again_at <= now_ns) {
    state_->listen_again_at = ~0ULL;
    state_->set_listening(true);
  }
  bool changed = false;
  epoll_event events[kEvents];
  for (int round = 0; round < kRounds; ++round) {
    const int n = epoll_wait(epoll_.get(), events, kEvents, 0);
    for (int i = 0; i < n; ++i) {
      changed |= state_->on_event(Token::unpack(events[i].data.u64), now_ns);
    }
    if (n < kEvents) break;
  }
  state_->inbound.expire(now_ns);
  changed |= state_->outbound.run(now_ns);
  return changed;
}

std::uint64_t Switchboard::deadline_ns() const {
  return std::min(
      {state_->inbound.deadline_ns(), state_->outbound.deadline_ns(), state_->listen_again_at});
}

std::vector<std::uint32_t> Switchboard::take_dead() { return state_->inbound.take_dead(); }
void Switchboard::release_index(std::uint32_t index) { state_->inbound.release_index(index); }
void Switchboard::ring_inbound(std::uint64_t bits) { state_->inbound.ring(bits); }

void Switchboard::serve_assist(std::uint32_t index) {
  if (index >= kPeers) return;
  serve_requests(state_->party.memory, *self_, index, state_->inbound.doorbell_of(index));
}

std::vector<std::uint32_t> Switchboard::running_slots() {
  std::string text;
  const Fd file = Fd::adopt(open("/proc/thread-self/net/unix", O_RDONLY | O_CLOEXEC));
  char part[16384];
  for (ssize_t n; file && (n = read(file.get(), part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(n));
  }
  return listed_slots(text);
}

void Switchboard::hold() {
  state_->running.lock();
  state_->outbound.lock().lock();
  state_->inbound.lock().lock();
}

void Switchboard::let_go() {
  state_->inbound.lock().unlock();
  state_->outbound.lock().unlock();
  state_->running.unlock();
}

void Switchboard::abandon() {
  abandon_fds();
  let_go();
}

}  // namespace vrb::local
