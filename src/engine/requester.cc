// The loop over a send queue: what a verdict means for the WQE, its QP and the clock
// (IBTA 9.7.5, 10.8.2, 11.6.2).
// SPDX-License-Identifier: Apache-2.0
#include "engine/requester.h"

#include <algorithm>

#include "nic/qp_state.h"

namespace vrb::engine {
namespace {

constexpr std::uint64_t kForever = ~0ULL;
// A program that polls carries its own slices on; one that does not gets the service thread after
// this.
constexpr std::uint64_t kPollerFirst = 50'000;
constexpr std::uint64_t kMillisecond = 1'000'000;
// A datagram waits so long for the process of its destination to answer the handshake, then it is
// lost.
constexpr std::uint64_t kReceiverPatience = 500 * kMillisecond;
constexpr std::uint64_t kDatagramPatience = 2000 * kMillisecond;

Verdict connected_step(Qp& qp, const queue::SendWqe& wqe, local::Peer& peer)
    VRB_REQUIRES(qp.sq_lock) {
  InFlight& flight = qp.flight;
  const local::InsideLane inside(peer);
  Target target;
  if (const Verdict v = find_target(qp, peer, target); v.kind != Verdict::Kind::Go) {
    if (v.wait != InFlight::Wait::Slice) give_claim_back(qp, peer);
    return v;
  }
  if (!ib::is_send(wqe.request.opcode) && !flight.data_done) {
    const Verdict moved = one_sided(qp, wqe, target);
    if (moved.kind != Verdict::Kind::Done || wqe.request.opcode != ib::Opcode::WriteWithImm)
      return moved;
    if (moved.cause.code != ib::CauseCode::None)
      return moved;  // UC: refused, so the immediate is lost too
    flight.data_done = true;
  }
  return two_sided(qp, wqe, target);
}

Verdict step(Qp& qp, const queue::SendWqe& wqe) VRB_REQUIRES(qp.sq_lock) {
  if (!qp.flight.started) {
    if (const Verdict v = prepare(qp, wqe); v.kind != Verdict::Kind::Go) return v;
  }
  if (qp.type == ib::QpType::Ud && static_cast<const Ah*>(wqe.request.ah)->multicast)
    return multicast(qp, wqe);
  std::shared_ptr<local::Peer> found;
  if (const Verdict v = find_peer(qp, wqe, found); v.kind != Verdict::Kind::Go) return v;
  if (qp.type != ib::QpType::Ud) return connected_step(qp, wqe, *found);
  const local::InsideLane inside(*found);
  const std::uint32_t index = found->qp_index(ib::Qpn{wqe.request.remote_qpn & 0xffffff});
  const Verdict v = send_datagram(qp, wqe, *found, index);
  keep_peer(qp, found);
  return v;
}

// A completion in error finds the QP in its error state already (IBTA 10.3.1.6, 10.3.1.7).
void complete(Qp& qp, ib::WcStatus status, const ib::Cause& cause) VRB_REQUIRES(qp.sq_lock) {
  const queue::SendWqe& wqe = qp.sq.front();
  queue::OwnCqe cqe;
  cqe.wr_id = wqe.request.wr_id;
  cqe.qp = static_cast<std::uint16_t>(qp.index);
  cqe.is_send = true;
  cqe.sq_release = qp.sq.done() + 1;
  cqe.body.status = status;
  cqe.body.opcode = ib::wc_opcode(wqe.request.opcode);
  cqe.body.byte_len = ib::is_atomic(wqe.request.opcode) ? 8 : wqe.length;
  cqe.body.vendor_err = static_cast<std::uint32_t>(
      status == ib::WcStatus::Success ? ib::CauseCode::None : cause.code);
  const bool signaled = qp.init.sq_sig_all || (wqe.request.flags & ib::kSendSignaled) != 0;
  explain_completion(qp, cqe.wr_id, status, cause);
  retire_front(qp);
  abort_flight(qp);
  if (status != ib::WcStatus::Success) stop_sending(qp);
  if (signaled || status != ib::WcStatus::Success) {
    push_completion(*qp.init.send_cq, cqe, status != ib::WcStatus::Success);
  }
}

// How long RC goes on trying: retry_cnt + 1 times the local ACK timeout, which may last up to four
// times its nominal value (IBTA 9.7.6.1.3).
std::uint64_t patience(const Qp& qp) VRB_REQUIRES(qp.sq_lock) {
  if (qp.type != ib::QpType::Rc) return kDatagramPatience;
  const std::uint64_t timeout = nic::ack_timeout_ns(qp.attr.timeout);
  return timeout == 0 ? kForever : 4 * timeout * (qp.attr.retry_cnt + 1ULL);
}

Verdict give_up(const Qp& qp, const ib::Cause& cause) VRB_REQUIRES(qp.sq_lock) {
  if (qp.type != ib::QpType::Rc) return Verdict::done();
  ib::Cause why = cause;
  if (why.code == ib::CauseCode::PeerSilent && qp.peer) why = qp.peer->why();
  if (why.code == ib::CauseCode::PeerAbsent)
    why = ib::cause(ib::CauseCode::PeerAbsent, qp.attr.dest_qpn.value);
  if (why.code == ib::CauseCode::None || why.code == ib::CauseCode::PeerSilent) {
    why = ib::cause(ib::CauseCode::PeerSilent, qp.attr.dest_qpn.value, patience(qp) / kMillisecond);
  }
  return Verdict::fail(ib::WcStatus::RetryExcErr, why);
}

// The RNR timer ran out: one retry less (7 means for ever). True when none is left.
bool rnr_exhausted(Qp& qp) VRB_REQUIRES(qp.sq_lock) {
  InFlight& flight = qp.flight;
  if (qp.attr.rnr_retry == 7) return false;
  if (flight.rnr_left == 0) return true;
  --flight.rnr_left;
  return false;
}

std::uint64_t rnr_delay(const Qp& qp) VRB_REQUIRES(qp.sq_lock) {
  const std::uint32_t index = qp.peer->qp_index(qp.attr.dest_qpn);
  if (index >= local::kQps) return kMillisecond;
  const auto tag =
      local::QpTag::unpack(qp.peer->tables->qps[index].tag.load(std::memory_order_relaxed));
  return nic::rnr_timer_ns(tag.min_rnr_timer);
}

// A datagram's receiver has no WQE: lost when the time is over.
Verdict settle_datagram(Qp& qp, const Verdict& v, bool first, std::uint64_t now)
    VRB_REQUIRES(qp.sq_lock) {
  InFlight& flight = qp.flight;
  if (first) flight.give_up_at = now + kReceiverPatience;
  if (now >= flight.give_up_at) {
    qp.receiver_behind = true;
    return {Verdict::Kind::Done, ib::WcStatus::Success, {}, v.cause};
  }
  flight.wait = v.wait;
  flight.wake_at = std::min(now + kMillisecond, flight.give_up_at);
  return v;
}

// Keeps the WQE waiting, or turns the wait into an end when its time is over.
Verdict settle_wait(Qp& qp, const Verdict& v, std::uint64_t now) VRB_REQUIRES(qp.sq_lock) {
  InFlight& flight = qp.flight;
  using Wait = InFlight::Wait;
  const bool first = flight.wait != v.wait;
  switch (v.wait) {
    case Wait::Rnr:
      if (qp.type != ib::QpType::Rc) return settle_datagram(qp, v, first, now);
      if (first) {
        flight.wake_at = now + rnr_delay(qp);
      } else if (now >= flight.wake_at) {
        if (rnr_exhausted(qp)) return Verdict::fail(ib::WcStatus::RnrRetryExcErr, v.cause);
        flight.wake_at = now + rnr_delay(qp);
      }
      break;
    case Wait::Peer: {
      if (first) {
        const std::uint64_t limit = patience(qp);
        flight.give_up_at = limit == kForever ? kForever : now + limit;
      }
      if (now >= flight.give_up_at) return give_up(qp, v.cause);
      flight.wake_at = std::min(now + kMillisecond, flight.give_up_at);
      break;
    }
    case Wait::Room:
      flight.wake_at = now + kMillisecond;
      break;
    case Wait::Assist:
      flight.wake_at = now + 100 * kMillisecond;
      break;  // the doorbell comes first
    case Wait::Slice:
    case Wait::None:
      flight.wake_at = now + kPollerFirst;
      break;
  }
  flight.wait = v.wait;
  flight.wait_cause = v.cause;
  return v;
}

void tell_drained(Qp& qp) VRB_REQUIRES(qp.sq_lock) {
  if (qp.state.load() != ib::QpState::Sqd || qp.sqd_notified || qp.flight.started) return;
  qp.sqd_notified = true;
  if (qp.attr.sqd_notify != 0) raise_qp_event(qp, ib::EventType::SqDrained);
}

}  // namespace

void retire_front(Qp& qp) {
  if (qp.type == ib::QpType::Ud) static_cast<const Ah*>(qp.sq.front().request.ah)->drop();
  qp.sq.advance();
}

// What the WQE holds at its peer, it holds there even when another process takes over the slot.
void keep_peer(Qp& qp, const std::shared_ptr<local::Peer>& peer) {
  if (qp.flight.claimed || qp.flight.assist >= 0) qp.flight.peer = peer;
}

void let_go_of_peer(Qp& qp) {
  InFlight& flight = qp.flight;
  const auto& peer = qp.type == ib::QpType::Ud ? flight.peer : qp.peer;
  if (peer && flight.assist >= 0) local::drop_assist(*peer, flight.assist);
  if (peer && flight.claimed && peer->state() == local::PeerState::Ready) {
    const local::InsideLane inside(*peer);
    give_claim_back(qp, *peer);
  }
  flight.claimed = false;
  flight.assist = -1;
  flight.peer.reset();
}

void abort_flight(Qp& qp) {
  InFlight& flight = qp.flight;
  let_go_of_peer(qp);
  flight.started = flight.data_done = flight.claimed = false;
  flight.wait = InFlight::Wait::None;
  flight.offset = flight.in_turn_at = 0;
  flight.mcast_slots.clear();
  flight.mcast_slot = flight.mcast_entry = 0;
}

void run_send_queue(Qp& qp) {
  for (;;) {
    const ib::QpState state = qp.state.load(std::memory_order_relaxed);
    const bool runs = state == ib::QpState::Rts || (state == ib::QpState::Sqd && qp.flight.started);
    if (!runs || qp.sq.idle()) break;
    Verdict v = step(qp, qp.sq.front());
    if (v.kind == Verdict::Kind::Wait) v = settle_wait(qp, v, now_ns());
    if (v.kind == Verdict::Kind::Wait) {
      qp.engine().add_pending(qp);
      return;
    }
    complete(qp, v.kind == Verdict::Kind::Fail ? v.status : ib::WcStatus::Success, v.cause);
    if (v.kind == Verdict::Kind::Fail) enter_send_error(qp);
  }
  tell_drained(qp);
}

}  // namespace vrb::engine
