// What remains to be done when a peer has died inside our NIC memory: its lanes, its claims on
// receive WQEs and CQEs, and events that it took upon itself and never delivered (A26, A28, A29).
// Service thread.
// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

namespace vrb::engine {
namespace {

// Receives that the dead peer completed and whose completions wait behind a claim of somebody who
// lives.
struct Completed {
  const RecvQueue* rq;
  std::uint32_t wqe;
};
using Standing = std::vector<Completed>;

// True when an event is due: it may have died before it told us of its last completion.
bool clean_cq(Engine& engine, Cq& cq, std::uint16_t peer, Standing& standing) {
  const base::SpinGuard guard(cq.lock);
  cq.shared.void_claims_of(peer);
  drain_shared(engine, cq);
  for (const auto& published : cq.shared.published_by(peer)) {
    if (Qp* qp = engine.qp_at(published.qp)) standing.push_back({qp->rq(), published.wqe});
  }
  queue::SharedCq ring = cq.shared.ring();
  return cq.own.size() != 0 && ring.take_armed(true);
}

// Published completions stand; the other claims are taken back.
void clean_queue(RecvQueue& rq, std::uint16_t peer, const Standing& standing) {
  std::vector<std::uint32_t> published;
  for (const Completed& completed : standing) {
    if (completed.rq == &rq) published.push_back(completed.wqe);
  }
  const base::SpinGuard guard(rq.lock);
  if (!rq.closed) rq.poster.recover(peer, published);
}

}  // namespace

void Engine::clean_dead() {
  for (const std::uint32_t index : switchboard_->take_dead()) clean_dead_peer(index);
}

void Engine::clean_dead_peer(std::uint32_t index) {
  memory_->forget_lanes(index);
  const auto peer = static_cast<std::uint16_t>(index);
  Standing standing;
  std::vector<std::shared_ptr<Qp>> all;
  {
    const std::lock_guard guard(registry_lock);
    for (auto& [number, cq] : cqs) {
      if (clean_cq(*this, *cq, peer, standing)) raise_cq_event(*cq);
    }
    for (auto& [number, srq] : srqs) clean_queue(srq->rq, peer, standing);
    for (auto& [number, qp] : qps) all.push_back(qp);
  }
  for (auto& qp : all) {
    if (qp->init.srq == nullptr) clean_queue(qp->own_rq, peer, standing);
  }
  switchboard_->release_index(index);
}

}  // namespace vrb::engine
