// ibv_modify_qp(3): checks by the table of nic/qp_state.h, then what each state means for our peers
// (IBTA 10.3.1).
// SPDX-License-Identifier: Apache-2.0
#include "engine/address.h"
#include "engine/engine.h"
#include "engine/recv_queue.h"
#include "engine/refusals.h"
#include "nic/qp_state.h"

namespace vrb::engine {
namespace {

constexpr const char* kVerb = "ibv_modify_qp";

local::QpEntry& entry_of(Qp& qp) { return qp.engine().memory_if_made()->tables().qps[qp.index]; }

// RC and UC learn their destination: it must be on this host, and the connection
// to its process begins, without waiting (A40).
ib::Result<void> choose_carrier(Qp& qp, const nic::QpAttr& attr) VRB_REQUIRES(qp.sq_lock) {
  if (config().carrier == Carrier::Wire) {
    return refused(kVerb, ib::Errc::HostUnreachable, ib::CauseCode::WireForced);
  }
  if (destination(attr.av) != Destination::ThisHost) {
    std::uint64_t high = 0, low = 0;
    for (int i = 0; i < 8; ++i) {
      high = high << 8 | attr.av.dgid[static_cast<std::size_t>(i)];
      low = low << 8 | attr.av.dgid[static_cast<std::size_t>(i) + 8];
    }
    return refused(kVerb, ib::Errc::HostUnreachable, ib::CauseCode::NotLocal, high, low);
  }
  const auto board = qp.engine().switchboard();
  if (!board) return refused(kVerb, board.error());
  qp.peer = (*board)->find(attr.dest_qpn.value >> 14);
  qp.bound_generation = 0;
  qp.comm_est_told = false;
  return {};
}

// Writes what senders must know, before the tag that makes it valid.
void write_entry(Qp& qp) VRB_REQUIRES(qp.sq_lock) {
  Engine& engine = qp.engine();
  local::QpEntry& entry = entry_of(qp);
  entry.dest_qpn = qp.attr.dest_qpn.value;
  entry.pd = qp.pd.number.value;
  entry.qkey = qp.attr.qkey;
  const RecvQueue& rq = *qp.rq();
  entry.rq = rq.table.offset;
  entry.rq_kind = qp.init.srq != nullptr ? 1 : 0;
  entry.srq_index = qp.init.srq != nullptr ? qp.init.srq->index : 0;
  Cq& cq = *qp.init.recv_cq;
  const base::SpinGuard guard(cq.lock);
  entry.recv_cq = cq.piece.offset;
  entry.recv_cq_entries = cq.shared.ring().entries();
  entry.recv_cq_index = cq.index;
  engine.memory_if_made()->shared().qp_report[qp.index].store(0);
}

// RESET: nobody can reach the QP, all its WQEs and completions are gone (IBTA 10.3.1.1).
ib::Result<void> reset(Qp& qp) VRB_REQUIRES(qp.sq_lock) {
  Engine& engine = qp.engine();
  qp.state.store(ib::QpState::Reset);
  publish_tag(qp);
  retire_own_queue(qp);
  abort_flight(qp);
  engine.memory_if_made()->grace();
  purge_completions(qp);
  while (!qp.sq.idle()) retire_front(qp);
  qp.sq.reset();
  qp.peer.reset();
  qp.last_wqe_told.store(false);
  qp.attr = {};
  qp.attr.cap = qp.init.cap;
  if (qp.init.srq != nullptr) return {};
  free_recv_queue(engine, qp.own_rq);
  const nic::QpCap& cap = qp.init.cap;
  const auto made =
      make_recv_queue(engine, qp.own_rq, cap.max_recv_wr, cap.max_recv_sge, qp.pd.number, false);
  return made ? ib::Result<void>{} : refused(kVerb, made.error());
}

void begin_drain(Qp& qp) VRB_REQUIRES(qp.sq_lock) {
  qp.sqd_notified = false;
  if (qp.flight.started) return;  // the requester tells when the WQE in flight is done
  qp.sqd_notified = true;
  if (qp.attr.sqd_notify != 0) raise_qp_event(qp, ib::EventType::SqDrained);
}

ib::Result<void> enter(Qp& qp, ib::QpState to, const nic::QpAttr& attr, std::uint32_t mask)
    VRB_REQUIRES(qp.sq_lock) {
  if (to == ib::QpState::Reset) return reset(qp);
  if (to == ib::QpState::Err) {
    enter_error(qp);
    return {};
  }
  const ib::QpState from = qp.state.load();
  if (to == ib::QpState::Rtr && from == ib::QpState::Init && qp.type != ib::QpType::Ud) {
    if (const auto chosen = choose_carrier(qp, attr); !chosen) return chosen;
  }
  if ((mask & nic::kMaskAv) != 0 && attr.av.has_grh && !holds_gid(attr.av.sgid_index)) {
    return refused(kVerb, ib::Errc::Invalid, ib::CauseCode::BadGidIndex, attr.av.sgid_index,
                   ib::kGidTableLength);
  }
  nic::assign(qp.attr, attr, mask);
  if ((mask & nic::kMaskSqdNotify) != 0) qp.attr.sqd_notify = attr.sqd_notify;
  if (to == ib::QpState::Rtr && from == ib::QpState::Init) write_entry(qp);
  std::atomic_ref(entry_of(qp).qkey).store(qp.attr.qkey, std::memory_order_relaxed);
  qp.state.store(to);
  publish_tag(qp);
  if (to == ib::QpState::Sqd && from != ib::QpState::Sqd) begin_drain(qp);
  if (to == ib::QpState::Rts) run_send_queue(qp);
  return {};
}

}  // namespace

void publish_tag(Qp& qp) {
  const ib::QpState state = qp.state.load();
  local::QpTag tag;
  tag.valid = state >= ib::QpState::Rtr;
  tag.local = config().carrier != Carrier::Wire;
  tag.type = qp.type;
  tag.state = state;
  tag.access = static_cast<std::uint8_t>(qp.attr.access & 15);
  tag.min_rnr_timer = qp.attr.min_rnr_timer;
  tag.generation = qp.generation;
  entry_of(qp).tag.store(tag.pack(), std::memory_order_release);
}

void pause_tag(Qp& qp, bool paused) {
  local::QpTag tag = local::QpTag::unpack(entry_of(qp).tag.load());
  tag.paused = paused;
  entry_of(qp).tag.store(tag.pack(), std::memory_order_release);
}

ib::Result<void> modify_qp(Qp* qp, const nic::QpAttr& attr, std::uint32_t mask) {
  if (qp->engine().forked()) return refused_forked(kVerb);
  const std::lock_guard control(qp->control);
  const base::SpinGuard guard(qp->sq_lock);
  const ib::QpState from = qp->state.load();
  const ib::QpState to = (mask & nic::kMaskState) != 0 ? attr.state : from;
  if ((mask & nic::kMaskCurState) != 0 && attr.cur_state != from) {
    return refused(kVerb, ib::Errc::Invalid, ib::CauseCode::WrongCurrentState, from,
                   attr.cur_state);
  }
  if (const auto ok = nic::check_transition(qp->type, from, to, mask); !ok)
    return refused(kVerb, ok.error());
  if (const auto ok = nic::check_values(attr, mask); !ok) return refused(kVerb, ok.error());
  return enter(*qp, to, attr, mask);
}

}  // namespace vrb::engine
