// Shared receive queues (ibv_create_srq(3), ibv_modify_srq(3), ibv_post_srq_recv(3); IBTA 10.2.9).
// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"
#include "engine/events.h"
#include "engine/recv_queue.h"
#include "engine/refusals.h"

namespace vrb::engine {
namespace {
constexpr int kSrqMaxWr = 1, kSrqLimit = 2;
}

ib::Result<Srq*> create_srq(Pd* pd, SrqAttr& attr, void* handle) {
  Engine& engine = pd->context.engine;
  if (engine.forked()) return refused_forked("ibv_create_srq");
  if (attr.max_wr == 0 || attr.max_wr > ib::kMaxSrqWr) {
    return refused("ibv_create_srq", ib::Errc::Invalid, ib::CauseCode::LimitExceeded, attr.max_wr,
                   ib::kMaxSrqWr);
  }
  if (attr.max_sge > ib::kMaxSge) {
    return refused("ibv_create_srq", ib::Errc::Invalid, ib::CauseCode::LimitExceeded, attr.max_sge,
                   ib::kMaxSge);
  }
  if (attr.max_sge == 0) attr.max_sge = 1;
  auto srq = std::make_unique<Srq>(*pd, handle);
  if (const auto made =
          make_recv_queue(engine, srq->rq, attr.max_wr, attr.max_sge, pd->number, true);
      !made) {
    return refused("ibv_create_srq", made.error());
  }
  if (!engine.srq_numbers.take(srq->index)) {
    free_recv_queue(engine, srq->rq);
    return refused("ibv_create_srq", ib::Errc::NoMemory, ib::CauseCode::LimitExceeded,
                   ib::kMaxSrq + 1, ib::kMaxSrq);
  }
  attr.limit = 0;
  srq->attr = attr;
  ++pd->uses;
  const std::lock_guard guard(engine.registry_lock);
  engine.srqs[srq->index] = srq.get();
  return srq.release();
}

ib::Result<void> modify_srq(Srq* srq, const SrqAttr& attr, int mask) {
  if (srq->pd.context.engine.forked()) return refused_forked("ibv_modify_srq");
  if ((mask & ~(kSrqMaxWr | kSrqLimit)) != 0) {
    return refused("ibv_modify_srq", ib::Errc::Invalid, ib::CauseCode::BadAttribute, mask, mask);
  }
  if ((mask & kSrqMaxWr) != 0)
    return refused("ibv_modify_srq", ib::Errc::NotSupported, ib::CauseCode::NotBuilt);
  if ((mask & kSrqLimit) != 0) {
    if (attr.limit > srq->attr.max_wr) {
      return refused("ibv_modify_srq", ib::Errc::Invalid, ib::CauseCode::LimitExceeded, attr.limit,
                     srq->attr.max_wr);
    }
    const base::SpinGuard guard(srq->rq.lock);
    srq->limit.store(attr.limit);
    srq->rq.poster.set_limit(attr.limit);
  }
  return {};
}

ib::Result<SrqAttr> query_srq(Srq* srq) {
  if (srq->pd.context.engine.forked()) return refused_forked("ibv_query_srq");
  SrqAttr attr = srq->attr;
  attr.limit = srq->limit.load();
  return attr;
}

ib::Result<void> destroy_srq(Srq* srq) {
  Engine& engine = srq->pd.context.engine;
  if (engine.forked()) return refused_forked("ibv_destroy_srq");
  if (const std::uint32_t uses = srq->uses.load(); uses != 0) {
    return refused("ibv_destroy_srq", ib::Errc::Busy, ib::CauseCode::ObjectBusy, uses);
  }
  {
    const std::lock_guard guard(engine.registry_lock);
    engine.srqs.erase(srq->index);
  }
  srq->pd.context.events.purge(
      [srq](const AsyncEvent& e) { return e.token == &srq->async_events; });
  srq->async_events.wait_for_none();
  {
    const base::SpinGuard guard(srq->rq.lock);
    srq->rq.poster.retire();
  }
  engine.memory_if_made()->grace();
  free_recv_queue(engine, srq->rq);
  engine.srq_numbers.release(srq->index);
  --srq->pd.uses;
  delete srq;
  return {};
}

ib::Result<void> post_srq_recv(Srq* srq, const RecvRequest& request) {
  Engine& engine = srq->pd.context.engine;
  if (engine.forked()) return refused_forked("ibv_post_srq_recv");
  const auto posted = post_to(engine, "ibv_post_srq_recv", srq->rq, request);
  return posted ? ib::Result<void>{} : base::Unexpected{posted.error()};
}

}  // namespace vrb::engine
