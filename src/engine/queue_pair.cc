// Queue pairs: create, query, destroy (ibv_create_qp(3), ibv_query_qp(3), ibv_destroy_qp(3);
// IBTA 11.2.4).
// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"
#include "engine/events.h"
#include "engine/recv_queue.h"
#include "engine/refusals.h"

namespace vrb::engine {
namespace {

constexpr const char* kCreate = "ibv_create_qp";

ib::Result<void> check_init(const QpInit& init) {
  if (init.send_cq == nullptr || init.recv_cq == nullptr) {
    return refused(kCreate, ib::Errc::Invalid, ib::CauseCode::NullArgument);
  }
  const struct {
    std::uint32_t asked, limit;
  } bounds[] = {{init.cap.max_send_wr, ib::kMaxQpWr},
                {init.srq != nullptr ? 0 : init.cap.max_recv_wr, ib::kMaxQpWr},
                {init.cap.max_send_sge, ib::kMaxSge},
                {init.srq != nullptr ? 0 : init.cap.max_recv_sge, ib::kMaxSge},
                {init.cap.max_inline, ib::kMaxInline}};
  for (const auto& b : bounds) {
    if (b.asked > b.limit) {
      return refused(kCreate, ib::Errc::Invalid, ib::CauseCode::LimitExceeded, b.asked, b.limit);
    }
  }
  return {};
}

void grant(QpInit& init) {
  nic::QpCap& cap = init.cap;
  if (init.srq != nullptr) cap.max_recv_wr = cap.max_recv_sge = 0;
  cap.max_send_wr = std::max(cap.max_send_wr, 1U);
  cap.max_send_sge = std::max(cap.max_send_sge, 1U);
  if (init.srq == nullptr) cap.max_recv_sge = std::max(cap.max_recv_sge, 1U);
}

void take_references(Qp& qp) {
  ++qp.pd.uses;
  ++qp.init.send_cq->uses;
  ++qp.init.recv_cq->uses;
  if (qp.init.srq != nullptr) ++qp.init.srq->uses;
}

void drop_references(Qp& qp) {
  --qp.pd.uses;
  --qp.init.send_cq->uses;
  --qp.init.recv_cq->uses;
  if (qp.init.srq != nullptr) --qp.init.srq->uses;
}

}  // namespace

ib::Result<Qp*> create_qp(Pd* pd, QpInit& init) {
  Engine& engine = pd->context.engine;
  if (engine.forked()) return refused_forked(kCreate);
  if (const auto ok = check_init(init); !ok) return base::Unexpected{ok.error()};
  grant(init);
  const auto number = engine.take_qp_number();
  if (!number) return refused(kCreate, number.error());
  auto qp = std::make_shared<Qp>(*pd, init);
  qp->index = number->index;
  qp->qpn = number->qpn;
  qp->generation = number->generation;
  if (init.srq == nullptr) {
    const auto made = make_recv_queue(engine, qp->own_rq, init.cap.max_recv_wr,
                                      init.cap.max_recv_sge, pd->number, false);
    if (!made) {
      engine.release_qp_number(number->index);
      return refused(kCreate, made.error());
    }
  }
  {
    const base::SpinGuard guard(qp->sq_lock);
    qp->sq = queue::SendRing(init.cap.max_send_wr, init.cap.max_send_sge, init.cap.max_inline);
    qp->attr.cap = init.cap;
  }
  take_references(*qp);
  engine.set_qp_at(qp->index, qp.get());
  const std::lock_guard guard(engine.registry_lock);
  engine.qps[qp->index] = qp;
  return qp.get();
}

ib::Qpn qpn(const Qp* qp) { return qp->qpn; }
ib::QpState qp_state(const Qp* qp) { return qp->state.load(std::memory_order_acquire); }

void query_qp(Qp* qp, nic::QpAttr& attr, QpInit& init) {
  const base::SpinGuard guard(qp->sq_lock);
  attr = qp->attr;
  attr.state = attr.cur_state = qp->state.load();
  attr.sq_draining = attr.state == ib::QpState::Sqd && !qp->sqd_notified ? 1 : 0;
  init = qp->init;
}

ib::Result<void> destroy_qp(Qp* raw) {
  Engine& engine = raw->engine();
  if (engine.forked()) return refused_forked("ibv_destroy_qp");
  if (const std::uint32_t groups = raw->groups.load(); groups != 0) {
    return refused("ibv_destroy_qp", ib::Errc::Busy, ib::CauseCode::ObjectBusy, groups);
  }
  const std::shared_ptr<Qp> qp = raw->shared_from_this();
  local::NicMemory& memory = *engine.memory_if_made();
  bool quiet = true;
  {
    const std::lock_guard control(qp->control);
    const base::SpinGuard guard(qp->sq_lock);
    qp->destroyed = true;
    qp->state.store(ib::QpState::Reset);
    publish_tag(*qp);
    retire_own_queue(*qp);
    abort_flight(*qp);
    while (!qp->sq.idle()) retire_front(*qp);
    quiet = memory.grace();
  }
  purge_completions(*qp);
  engine.set_qp_at(qp->index, nullptr);
  {
    const std::lock_guard guard(engine.registry_lock);
    engine.qps.erase(qp->index);
  }
  qp->pd.context.events.purge([&](const AsyncEvent& e) { return e.token == &qp->async_events; });
  qp->async_events.wait_for_none();
  if (qp->init.srq == nullptr) free_recv_queue(engine, qp->own_rq);
  memory.shared().qp_report[qp->index].store(0);
  if (quiet) engine.release_qp_number(qp->index);
  drop_references(*qp);
  return {};
}

}  // namespace vrb::engine
