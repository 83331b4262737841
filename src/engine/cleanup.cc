// What remains to be done when a peer has died inside our NIC memory: its lanes, its claims on
// receive WQEs and CQEs, and events that it took upon itself and never delivered (A26, A28, A29).
// Service thread.
// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

namespace vrb::engine {

void Engine::clean_dead() {
  for (const std::uint32_t index : switchboard_->take_dead()) clean_dead_peer(index);
}

void Engine::clean_dead_peer(std::uint32_t index) {
  memory_->forget_lanes(index);
  std::vector<std::shared_ptr<Qp>> all;
  {
    const std::lock_guard guard(registry_lock);
    for (auto& [number, cq] : cqs) {
      bool event_lost = false;
      {
        const base::SpinGuard cq_guard(cq->lock);
        cq->shared.void_claims_of(static_cast<std::uint16_t>(index));
        drain_shared(
            *this, *cq);  // published completions stand; only then are the other claims taken back
        event_lost = cq->wants_event.load() && cq->shared.ring().header()->armed.load() == 0;
      }
      if (event_lost) raise_cq_event(*cq);
    }
    for (auto& [number, srq] : srqs) {
      const base::SpinGuard rq_guard(srq->rq.lock);
      srq->rq.poster.recover(static_cast<std::uint16_t>(index), {});
    }
    for (auto& [number, qp] : qps) all.push_back(qp);
  }
  for (auto& qp : all) {
    if (qp->init.srq != nullptr) continue;
    const base::SpinGuard rq_guard(qp->own_rq.lock);
    if (!qp->own_rq.closed) qp->own_rq.poster.recover(static_cast<std::uint16_t>(index), {});
  }
  switchboard_->release_index(index);
}

}  // namespace vrb::engine
