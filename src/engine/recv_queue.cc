// SPDX-License-Identifier: Apache-2.0
#include "engine/recv_queue.h"

#include <bit>

#include "engine/refusals.h"

namespace vrb::engine {

ib::Result<void> make_recv_queue(Engine& engine, RecvQueue& rq, std::uint32_t capacity,
                                 std::uint32_t max_sge, ib::Pdn pd, bool spare) {
  const auto memory = engine.memory();
  if (!memory) return base::Unexpected{memory.error()};
  const std::uint32_t entries = std::bit_ceil(capacity == 0 ? 1 : capacity) * (spare ? 2 : 1);
  const auto table = (*memory)->alloc_table(queue::RecvRing::table_bytes(entries, max_sge));
  if (!table) return base::Unexpected{table.error()};
  const auto claims = (*memory)->alloc_shared(queue::RecvRing::claim_bytes(entries));
  if (!claims) {
    (*memory)->free_table(*table);
    return base::Unexpected{claims.error()};
  }
  const base::SpinGuard guard(rq.lock);
  rq.table = *table;
  rq.claims = *claims;
  rq.closed = false;
  rq.poster = queue::RecvPoster(
      reinterpret_cast<queue::RecvRingHeader*>((*memory)->tables_at(table->offset)),
      reinterpret_cast<queue::RecvClaims*>((*memory)->shared_at(claims->offset)), entries, max_sge,
      capacity, pd, claims->offset, engine.next_queue_id());
  return {};
}

void retire_own_queue(Qp& qp) {
  if (qp.init.srq != nullptr) return;
  const base::SpinGuard guard(qp.own_rq.lock);
  qp.own_rq.poster.retire();
}

void free_recv_queue(Engine& engine, RecvQueue& rq) {
  local::NicMemory& memory = *engine.memory_if_made();
  if (rq.table.bytes != 0) memory.free_table(rq.table);
  if (rq.claims.bytes != 0) memory.free_shared(rq.claims);
  rq.table = rq.claims = {};
}

ib::Result<bool> post_to(Engine& engine, const char* verb, RecvQueue& rq,
                         const RecvRequest& request) {
  std::uint64_t waiting = 0;
  {
    const base::SpinGuard guard(rq.lock);
    if (request.sges.size() > rq.poster.max_sge()) {
      return refused(verb, ib::Errc::Invalid, ib::CauseCode::TooManySges, request.sges.size(),
                     rq.poster.max_sge());
    }
    if (rq.closed) return false;
    if (!rq.poster.post(request.wr_id, request.sges)) {
      return refused(verb, ib::Errc::NoMemory, ib::CauseCode::QueueFull, rq.poster.outstanding(),
                     rq.poster.capacity());
    }
    waiting = rq.poster.take_waiting();
  }
  if (waiting != 0) {
    if (const auto board = engine.switchboard()) (*board)->ring_inbound(waiting);
    if ((waiting & 1) != 0) engine.wake_service();
  }
  return true;
}

}  // namespace vrb::engine
