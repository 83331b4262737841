// Making and freeing the receive queue of a QP or SRQ in NIC memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/engine.h"

namespace vrb::engine {

// An empty queue of `capacity` WQEs with `max_sge` SGEs each. `spare` doubles the ring (SRQ:
// entries are freed out of order).
ib::Result<void> make_recv_queue(Engine& engine, RecvQueue& rq, std::uint32_t capacity,
                                 std::uint32_t max_sge, ib::Pdn pd, bool spare);
// Before the grace period after which a QP's own queue is freed: senders keep their hands off it.
void retire_own_queue(Qp& qp);
// After that grace period.
void free_recv_queue(Engine& engine, RecvQueue& rq);
// Posts one WQE and rings senders that wait for it. The verb's name is for refusals. False: the
// queue is closed (its QP is in the error state), nothing was posted.
ib::Result<bool> post_to(Engine& engine, const char* verb, RecvQueue& rq,
                         const RecvRequest& request);

}  // namespace vrb::engine
