// The error states of a QP and the flush of its queues (IBTA 10.3.1.5 to 10.3.1.7, 10.8.2.1).
// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

namespace vrb::engine {
namespace {

queue::OwnCqe flushed(const Qp& qp, std::uint64_t wr_id) {
  queue::OwnCqe cqe;
  cqe.wr_id = wr_id;
  cqe.qp = static_cast<std::uint16_t>(qp.index);
  cqe.body.status = ib::WcStatus::WrFlushErr;
  cqe.body.vendor_err = static_cast<std::uint32_t>(ib::CauseCode::Flushed);
  return cqe;
}

// Completed receives first, in their order, then the flushed ones; nobody can claim any more.
void flush_receive_queue(Qp& qp) {
  Engine& engine = qp.engine();
  {
    const base::SpinGuard guard(qp.own_rq.lock);
    qp.own_rq.closed = true;
  }
  Cq& cq = *qp.init.recv_cq;
  std::vector<queue::RecvPoster::Flushed> rest;
  {
    const base::SpinGuard guard(cq.lock);
    drain_shared(engine, cq);
    const base::SpinGuard rq_guard(qp.own_rq.lock);
    rest = qp.own_rq.poster.take_all({});
  }
  for (const auto& wqe : rest) {
    queue::OwnCqe cqe = flushed(qp, wqe.wr_id);
    cqe.body.opcode = ib::WcOpcode::Recv;
    push_completion(cq, cqe, true);
  }
}

}  // namespace

void flush_receive(Qp& qp, std::uint64_t wr_id) {
  const base::SpinGuard guard(qp.sq_lock);  // behind a flush that is under way
  queue::OwnCqe cqe = flushed(qp, wr_id);
  cqe.body.opcode = ib::WcOpcode::Recv;
  push_completion(*qp.init.recv_cq, cqe, true);
}

void flush_send_queue(Qp& qp) {
  abort_flight(qp);
  while (!qp.sq.idle()) {
    const queue::SendWqe& wqe = qp.sq.front();
    queue::OwnCqe cqe = flushed(qp, wqe.request.wr_id);
    cqe.body.opcode = ib::wc_opcode(wqe.request.opcode);
    cqe.is_send = true;
    cqe.sq_release = qp.sq.done() + 1;
    retire_front(qp);
    push_completion(*qp.init.send_cq, cqe, true);
  }
}

namespace {

void finish_error(Qp& qp) VRB_REQUIRES(qp.sq_lock) {
  qp.engine().memory_if_made()->grace();
  flush_send_queue(qp);
  if (qp.init.srq == nullptr) {
    flush_receive_queue(qp);
  } else if (!qp.last_wqe_told.exchange(true)) {
    raise_qp_event(qp, ib::EventType::QpLastWqeReached);
  }
}

}  // namespace

void enter_error(Qp& qp) {
  if (qp.state.exchange(ib::QpState::Err) == ib::QpState::Err) return;
  publish_tag(qp);
  finish_error(qp);
}

void stop_sending(Qp& qp) {
  qp.state.store(qp.type == ib::QpType::Rc ? ib::QpState::Err : ib::QpState::Sqe);
  publish_tag(qp);
}

void enter_send_error(Qp& qp) {
  if (qp.type == ib::QpType::Rc) {
    finish_error(qp);
  } else {
    flush_send_queue(qp);
  }
}

}  // namespace vrb::engine
