// Completions on their way from a queue to the program: pushing our own, polling both rings, moving
// and purging (IBTA 11.4.2).
// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"
#include "engine/refusals.h"

namespace vrb::engine {
namespace {

// Which header a datagram came with, as mlx5 says it and UCX reads it: bit 3 there is one, below it
// 1 IPv6, 2 IPv4. RoCE has no other use for it.
std::uint8_t service_level(std::uint8_t flags) {
  if ((flags & ib::kWcGrh) == 0) return 0;
  return (flags & ib::kWcIpv4) != 0 ? 10 : 9;
}

// Fills `out` from a completion in the private ring and frees the send slots behind it.
void hand_out(Engine& engine, const queue::OwnCqe& cqe, nic::Completion& out)
    VRB_NO_THREAD_SAFETY {  // SendRing::release() is the one call that needs no sq_lock
  Qp* qp = engine.qp_at(cqe.qp);
  out.wr_id = cqe.wr_id;
  out.status = cqe.body.status;
  out.opcode = cqe.body.opcode;
  out.vendor_err = cqe.body.vendor_err;
  out.byte_len = cqe.body.byte_len;
  out.imm = cqe.body.imm;
  out.src_qp = cqe.body.src_qp;
  out.wc_flags = cqe.body.wc_flags & (ib::kWcGrh | ib::kWcWithImm);
  out.sl = service_level(cqe.body.wc_flags);
  out.qpn = qp != nullptr ? qp->qpn.value : 0;
  if (cqe.is_send && qp != nullptr) qp->sq.release(cqe.sq_release);
}

// The wr_id of a receive that a peer completed; false when the peer's word for it is not true.
bool resolve_receive(Engine& engine, const queue::SharedCqConsumer::Taken& taken,
                     queue::OwnCqe& cqe) {
  Qp* qp = engine.qp_at(taken.qp);
  std::optional<std::uint64_t> wr_id;
  bool orphan = true;  // of a QP that is gone, whose index another may hold by now
  if (qp != nullptr) {
    RecvQueue& rq = *qp->rq();
    const base::SpinGuard guard(rq.lock);
    orphan = rq.poster.id() != taken.body.rq_id;
    if (!orphan) wr_id = rq.poster.complete(taken.body.wqe);
  }
  if (orphan) engine.note_orphan(taken.body.rq_id, taken.body.wqe);
  if (!wr_id) return false;
  cqe.wr_id = *wr_id;
  cqe.qp = taken.qp;
  cqe.body = taken.body;
  if (taken.body.status != ib::WcStatus::Success) {
    ib::Cause cause{static_cast<ib::CauseCode>(taken.body.vendor_err),
                    {taken.body.cause_args[0], taken.body.cause_args[1]}};
    explain_completion(*qp, cqe.wr_id, taken.body.status, cause);
  }
  return true;
}

// Who sees a completion in error finds the QP in the error state: what its peer reported is acted
// upon here, when the service thread was not faster.
void settle_failures(Engine& engine, std::span<const nic::Completion> polled) {
  for (const nic::Completion& c : polled) {
    if (c.status == ib::WcStatus::Success || c.status == ib::WcStatus::WrFlushErr) continue;
    const auto board = engine.switchboard();
    if (!board) return;
    const auto qp = engine.find_qp((*board)->self()->qp_index(ib::Qpn{c.qpn}));
    if (qp) settle_report(*qp);
  }
}

std::size_t poll_rings(Engine& engine, Cq* cq, std::span<nic::Completion> out) {
  std::size_t n = 0;
  const base::SpinGuard guard(cq->lock);
  while (n < out.size()) {
    const auto cqe = cq->own.pop();
    if (!cqe) break;
    hand_out(engine, *cqe, out[n++]);
  }
  while (n < out.size()) {
    const auto taken = cq->shared.poll();
    if (!taken) break;
    queue::OwnCqe cqe;
    if (resolve_receive(engine, *taken, cqe)) hand_out(engine, cqe, out[n++]);
  }
  return n;
}

}  // namespace

int poll_cq(Cq* cq, std::span<nic::Completion> out) {
  Engine& engine = cq->context.engine;
  if (engine.forked()) {
    refused_forked("ibv_poll_cq");
    return -1;
  }
  if (engine.has_pending()) engine.progress();
  const std::size_t n = poll_rings(engine, cq, out);
  settle_failures(engine, out.first(n));
  return static_cast<int>(n);
}

void drain_shared(Engine& engine, Cq& cq) {
  while (const auto taken = cq.shared.poll()) {
    queue::OwnCqe cqe;
    if (resolve_receive(engine, *taken, cqe)) cq.own.push(cqe);
  }
}

void push_completion(Cq& cq, const queue::OwnCqe& cqe, bool solicited) {
  bool event = false;
  bool overrun = false;
  {
    const base::SpinGuard guard(cq.lock);
    if (cq.own.size() >= cq.capacity || cq.own.size() + cq.shared.backlog_hint() >= cq.capacity) {
      overrun = !cq.overrun;
      cq.overrun = true;
    } else {
      cq.own.push(cqe);
      queue::SharedCq ring = cq.shared.ring();
      event = ring.take_armed(solicited);
    }
  }
  if (event) raise_cq_event(cq);
  if (overrun) cq.context.engine.note_overrun(cq);
}

void purge_completions(Qp& qp) {
  Engine& engine = qp.engine();
  for (Cq* cq : {qp.init.send_cq, qp.init.recv_cq}) {
    const base::SpinGuard guard(cq->lock);
    drain_shared(engine, *cq);
    cq->own.purge(static_cast<std::uint16_t>(qp.index));
  }
}

// Holds the sq_lock of every QP that receives here, which the analysis cannot follow.
ib::Result<void> replace_ring(Engine& engine, Cq& cq, std::uint32_t cqe) VRB_NO_THREAD_SAFETY {
  queue::SharedCq ring;
  auto piece = make_ring(engine, cqe, ring);
  if (!piece) return refused("ibv_resize_cq", piece.error());
  local::NicMemory& memory = *engine.memory_if_made();
  std::vector<std::shared_ptr<Qp>> receivers;
  {
    const std::lock_guard guard(engine.registry_lock);
    for (auto& [index, qp] : engine.qps) {
      if (qp->init.recv_cq == &cq) receivers.push_back(qp);
    }
  }
  for (auto& qp : receivers) {
    qp->sq_lock.lock();
    pause_tag(*qp, true);
  }
  const bool quiet = memory.grace();
  if (quiet) {
    const base::SpinGuard guard(cq.lock);
    drain_shared(engine, cq);
    ring.header()->armed.store(cq.shared.ring().header()->armed.load());
    cq.shared = queue::SharedCqConsumer(ring);
    std::swap(cq.piece, *piece);
    cq.capacity = cqe;
  }
  for (auto& qp : receivers) {
    local::QpEntry& entry = memory.tables().qps[qp->index];
    entry.recv_cq = cq.piece.offset;
    entry.recv_cq_entries = cq.shared.ring().entries();
    pause_tag(*qp, false);
    qp->sq_lock.unlock();
  }
  memory.free_shared(*piece);  // the old ring, or the new one when a peer was stuck inside
  if (!quiet) return refused("ibv_resize_cq", ib::Errc::Busy, ib::CauseCode::ObjectBusy, 1);
  return {};
}

}  // namespace vrb::engine
