// The service thread: handshakes, deaths, events on behalf of peers, assist requests, and work
// requests that wait while the program sleeps. Started with the first slot. It blocks all signals,
// has a small stack, and makes only system calls that a sandboxed service may make (A45, W28).
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/check.h"
#include "engine/engine.h"

namespace vrb::engine {
namespace {

constexpr std::uint64_t kLookAgain = 50'000;  // ns
constexpr std::size_t kStackBytes = 256 * 1024;

// False: it is not in a state in which it could fail.
bool put_in_error(Qp& qp) VRB_REQUIRES(qp.sq_lock) {
  if (qp.destroyed || qp.state.load() < ib::QpState::Rtr) return false;
  enter_error(qp);
  return true;
}

void mark_overrun(Engine& engine, Cq& cq) {
  bool first = false;
  {
    const base::SpinGuard guard(cq.lock);
    first = !cq.overrun;
    cq.overrun = true;
  }
  if (first) engine.note_overrun(cq);
}

}  // namespace

// Taken and acted upon under sq_lock, or a report could hit the QP's next life: RESET needs the
// lock too, and nobody reports once its grace period is over.
void settle_report(Qp& qp) {
  std::uint64_t bits = 0;
  {
    const base::SpinGuard guard(qp.sq_lock);
    if (qp.destroyed) return;
    bits = qp.engine().memory_if_made()->shared().qp_report[qp.index].exchange(0);
    if ((bits & local::kReportError) != 0 && !put_in_error(qp)) return;
  }
  if ((bits & local::kReportCommEst) != 0) raise_qp_event(qp, ib::EventType::CommEst);
  if ((bits & local::kReportError) == 0) return;
  if ((bits & local::kReportCqOverrun) != 0) mark_overrun(qp.engine(), *qp.init.recv_cq);
  if ((bits & local::kReportAccessErr) != 0) raise_qp_event(qp, ib::EventType::QpAccessErr);
  if ((bits & local::kReportReqErr) != 0) raise_qp_event(qp, ib::EventType::QpReqErr);
  if ((bits & (local::kReportFatal | local::kReportCqOverrun)) != 0)
    raise_qp_event(qp, ib::EventType::QpFatal);
}

void* service_main(void* engine) {
  static_cast<Engine*>(engine)->service_loop();
  return nullptr;
}

void Engine::start_service() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::max<std::size_t>(kStackBytes, PTHREAD_STACK_MIN));
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int error = pthread_create(&thread, &attributes, service_main, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  VRB_CHECK(error == 0);
}

void Engine::wake_service() {
  const std::uint64_t one = 1;
  while (write(doorbell_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void Engine::service_loop() {
  pollfd fds[2] = {{doorbell_, POLLIN, 0}, {switchboard_->poll_fd(), POLLIN, 0}};
  for (;;) {
    const std::uint64_t now = now_ns();
    const std::uint64_t deadline = std::min(next_wake(), switchboard_->deadline_ns());
    timespec wait{};
    if (deadline > now) {
      wait.tv_sec = static_cast<time_t>((deadline - now) / 1'000'000'000);
      wait.tv_nsec = static_cast<long>((deadline - now) % 1'000'000'000);
    }
    ppoll(fds, 2, deadline == ~0ULL ? nullptr : &wait, nullptr);
    std::uint64_t rings = 0;
    if (read(doorbell_, &rings, sizeof rings) < 0 && errno == EBADF) return;
    switchboard_->dispatch(now_ns());
    serve_due();
    clean_dead();
    put_orphans_back();
    fail_users_of_overrun_cqs();
    progress();
  }
}

void Engine::serve_due() {
  local::Shared& shared = memory_->shared();
  const auto due = [&](local::DueKind kind) -> local::DueSet& {
    return shared.due[static_cast<std::size_t>(kind)];
  };
  local::take_due(due(local::DueKind::Cq), [this](std::uint32_t index) {
    const std::lock_guard guard(registry_lock);
    const auto found = cqs.find(index);
    if (found == cqs.end()) return;
    Cq& cq = *found->second;
    bool armed = false;
    {
      const base::SpinGuard cq_guard(cq.lock);
      queue::SharedCq ring = cq.shared.ring();
      armed = ring.take_armed(true);  // satisfied: the sender has looked
    }
    if (armed) raise_cq_event(cq);
  });
  local::take_due(due(local::DueKind::Srq), [this](std::uint32_t index) {
    const std::lock_guard guard(registry_lock);
    const auto found = srqs.find(index);
    if (found == srqs.end()) return;
    Srq& srq = *found->second;
    const base::SpinGuard rq_guard(srq.rq.lock);
    if (srq.limit.exchange(0) == 0) return;  // disarmed after one event (ibv_modify_srq(3))
    srq.rq.poster.set_limit(0);
    raise_async(srq.pd.context, ib::EventType::SrqLimitReached, srq.handle, srq.async_events);
  });
  local::take_due(due(local::DueKind::Qp), [&](std::uint32_t index) {
    if (index >= local::kQps) return;
    if (const auto qp = find_qp(index)) settle_report(*qp);
  });
  local::take_due(due(local::DueKind::Peer), [this](std::uint32_t index) {
    if (index < local::kPeers) switchboard_->serve_assist(index);
  });
}

void Engine::note_orphan(std::uint64_t rq_id, std::uint32_t wqe) {
  {
    const std::lock_guard guard(orphan_lock_);
    orphans_.push_back({rq_id, wqe});
  }
  wake_service();
}

void Engine::put_orphans_back() {
  std::vector<Orphan> found;
  {
    const std::lock_guard guard(orphan_lock_);
    found.swap(orphans_);
  }
  if (found.empty()) return;
  const std::lock_guard guard(registry_lock);
  for (const Orphan& orphan : found) {
    for (auto& [number, srq] : srqs) {
      const base::SpinGuard rq_guard(srq->rq.lock);
      if (srq->rq.poster.id() == orphan.rq_id) srq->rq.poster.put_back(orphan.wqe);
    }
  }
}

void Engine::note_overrun(Cq& cq) {
  raise_async(cq.context, ib::EventType::CqErr, cq.handle, cq.async_events);
  {
    const std::lock_guard guard(overrun_lock_);
    overrun_cqs_.push_back(cq.index);
  }
  wake_service();
}

void Engine::fail_users_of_overrun_cqs() {
  std::vector<std::uint32_t> found;
  {
    const std::lock_guard guard(overrun_lock_);
    found.swap(overrun_cqs_);
  }
  if (found.empty()) return;
  std::vector<std::shared_ptr<Qp>> users;
  {
    const std::lock_guard guard(registry_lock);
    const auto hit = [&](Cq* cq) {  // the index may be a later CQ's by now
      if (std::ranges::find(found, cq->index) == found.end()) return false;
      const base::SpinGuard cq_guard(cq->lock);
      return cq->overrun;
    };
    for (const auto& [number, qp] : qps) {
      if (hit(qp->init.send_cq) || hit(qp->init.recv_cq)) users.push_back(qp);
    }
  }
  for (const auto& qp : users) {
    if (qp->state.load() == ib::QpState::Err) continue;
    bool failed = false;
    {
      const base::SpinGuard guard(qp->sq_lock);
      failed = put_in_error(*qp);
    }
    if (failed) raise_qp_event(*qp, ib::EventType::QpFatal);
  }
}

void Engine::add_pending(Qp& qp) {
  if (!qp.pending.exchange(true)) note_pending(qp.shared_from_this(), qp.flight.wake_at);
}

void Engine::note_pending(std::shared_ptr<Qp> qp, std::uint64_t wake_at) {
  bool wake = false;
  {
    const std::lock_guard guard(pending_lock_);
    pending_.push_back({std::move(qp), wake_at});
    pending_count_.store(static_cast<std::uint32_t>(pending_.size()), std::memory_order_relaxed);
    wake = wake_at < service_wake_;
  }
  if (wake) wake_service();
}

std::uint64_t Engine::next_wake() {
  const std::lock_guard guard(pending_lock_);
  service_wake_ = ~0ULL;
  for (const Pending& p : pending_) service_wake_ = std::min(service_wake_, p.wake_at);
  return service_wake_;
}

void Engine::progress() {
  std::vector<Pending> waiting;
  {
    const std::lock_guard guard(pending_lock_);
    waiting.swap(pending_);
    pending_count_.store(0, std::memory_order_relaxed);
  }
  for (Pending& p : waiting) {
    p.qp->pending.store(false);
    if (p.qp->sq_lock.try_lock()) {
      if (!p.qp->destroyed) run_send_queue(*p.qp);
      p.qp->sq_lock.unlock();
    } else if (!p.qp->pending.exchange(true)) {
      note_pending(p.qp,
                   now_ns() + kLookAgain);  // whoever holds the lock may be at the end of its run
    }
  }
}

}  // namespace vrb::engine
