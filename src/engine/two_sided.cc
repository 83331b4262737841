// Two-sided delivery by the sender: claim a receive WQE, scatter the message, publish its
// completion (A25 to A31; IBTA 9.7.4.1, 9.7.5.2.8, 10.2.9). The published CQE is the commit point.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/points.h"
#include "engine/requester.h"
#include "nic/qp_state.h"

namespace vrb::engine {
namespace {

// Longer than a sender that is not stopped can be away from its core.
constexpr std::uint64_t kTurnPatience = 1'000'000'000;  // ns

struct Delivery {
  const Target& target;
  queue::RecvRing ring;
  queue::SharedCq cq;
  std::uint16_t peer_index;
  std::uint16_t qp_index;
};

// Where the parts of a receive WQE lie. `capacity` is all of it; `parts` covers the message only.
struct Scatter {
  std::array<RemotePart, ib::kMaxSge> parts;
  std::size_t count = 0;
  std::uint64_t capacity = 0;
  ib::Cause bad_key;  // code None: all keys are right
};

Scatter scatter(const Delivery& d, const queue::RecvEntry& entry, std::uint64_t length) {
  Scatter s;
  const memory::KeyView keys = d.target.peer->keys();
  const std::uint32_t sges = std::min({entry.num_sge, d.ring.max_sge, ib::kMaxSge});
  std::uint64_t left = length;
  for (std::uint32_t i = 0; i < sges; ++i) {
    const ib::Sge sge = entry.sges()[i];
    s.capacity += sge.length;
    const std::uint64_t take = std::min<std::uint64_t>(left, sge.length);
    if (take == 0) continue;
    const auto check =
        keys.check(sge.lkey, ib::Pdn{d.ring.header->pd}, ib::kLocalWrite, sge.addr, take);
    if (!check.ok) {
      if (s.bad_key.code == ib::CauseCode::None) s.bad_key = check.cause;
      continue;
    }
    s.parts[s.count++] = {sge.lkey, sge.addr, {check.resolved.va, take}, check.resolved.entry};
    left -= take;
  }
  return s;
}

Verdict dropped(const ib::Cause& cause) {
  return {Verdict::Kind::Done, ib::WcStatus::Success, {}, cause};
}

// RC waits by its RNR timer. A datagram that finds no receive may be lost (IBTA 9.8.3, 9.8.2); it
// waits a moment all the same, once for each time that the receiver falls behind, since no wire
// paces its sender here.
Verdict not_ready(Qp& qp, const Delivery& d) VRB_REQUIRES(qp.sq_lock) {
  const ib::Cause cause =
      ib::cause(ib::CauseCode::RnrRetriesExceeded, d.target.index, qp.attr.rnr_retry);
  const bool never_posted = d.ring.header->posted.load(std::memory_order_relaxed) == 0;
  if (qp.type != ib::QpType::Rc && (qp.receiver_behind || never_posted)) return dropped(cause);
  d.ring.claims->waiting.fetch_or(1ULL << (d.peer_index & 63));
  if (d.ring.find())
    return Verdict::wait_for(InFlight::Wait::Slice);  // posted between the two looks
  return Verdict::wait_for(InFlight::Wait::Rnr, cause);
}

// Claims the next receive WQE; a datagram that does not fit is dropped before that.
Verdict claim(Qp& qp, const queue::SendWqe& wqe, const Delivery& d) VRB_REQUIRES(qp.sq_lock) {
  InFlight& flight = qp.flight;
  for (int tries = 0; tries < 64; ++tries) {
    const auto position = d.ring.find();
    if (!position) return not_ready(qp, d);
    if (qp.type != ib::QpType::Rc && ib::is_send(wqe.request.opcode)) {
      const Scatter s = scatter(d, d.ring.entry(*position), flight.length);
      if (s.capacity < flight.length)
        return dropped(ib::cause(ib::CauseCode::RecvTooSmall, flight.length, s.capacity));
    }
    VRB_POINT("recv.found");
    if (!d.ring.try_claim(*position, d.peer_index)) continue;
    VRB_POINT("recv.claimed");
    flight.position = *position;
    flight.ring_at = d.target.entry->rq;
    flight.ring_id = d.ring.header->id.load(std::memory_order_relaxed);
    flight.claimed = true;
    qp.receiver_behind = false;
    return Verdict::go();
  }
  return Verdict::wait_for(InFlight::Wait::Slice);
}

queue::CqeBody body_of(const Qp& qp, const queue::SendWqe& wqe, const Delivery& d)
    VRB_REQUIRES(qp.sq_lock) {
  queue::CqeBody body;
  const bool write = wqe.request.opcode == ib::Opcode::WriteWithImm;
  body.wqe = static_cast<std::uint32_t>(qp.flight.position & (d.ring.count - 1));
  body.byte_len = static_cast<std::uint32_t>(qp.flight.length);
  body.rq_id = qp.flight.ring_id;
  body.src_qp = qp.qpn.value;
  body.opcode = write ? ib::WcOpcode::RecvRdmaWithImm : ib::WcOpcode::Recv;
  if (ib::has_imm(wqe.request.opcode)) {
    body.imm = wqe.request.imm;
    body.wc_flags |= ib::kWcWithImm;
  }
  if (qp.type == ib::QpType::Ud) {
    const bool ipv6 = std::to_integer<unsigned>(qp.flight.grh[0]) >> 4 == 6;
    body.wc_flags |= ipv6 ? ib::kWcGrh : ib::kWcGrh | ib::kWcIpv4;
  }
  body.solicited = (wqe.request.flags & ib::kSendSolicited) != 0 ? 1 : 0;
  return body;
}

// Tells the owner that an event is due for the CQ, or that the SRQ runs low.
void notify(const Delivery& d, bool solicited) {
  local::Shared& shared = *d.target.peer->shared;
  bool wake = false;
  if (d.cq.calls_for_event(solicited)) {
    VRB_POINT("arm.seen");
    local::set_due(shared.due[static_cast<std::size_t>(local::DueKind::Cq)],
                   d.target.entry->recv_cq_index);
    wake = true;
  }
  const std::uint32_t limit = d.ring.header->limit.load(std::memory_order_relaxed);
  if (limit != 0 && d.ring.unclaimed() < limit) {
    local::set_due(shared.due[static_cast<std::size_t>(local::DueKind::Srq)],
                   d.target.entry->srq_index);
    wake = true;
  }
  VRB_POINT("event.due");
  if (wake) d.target.peer->ring();
}

// A receive queue completes in posting order, also between several senders of datagrams
// (IBTA 10.8.3): is the WQE in front of ours claimed by one that has not published yet? Whoever
// stops there holds nobody up for long.
bool behind_another(Qp& qp, const Delivery& d) VRB_REQUIRES(qp.sq_lock) {
  InFlight& flight = qp.flight;
  if (qp.type != ib::QpType::Ud || d.target.entry->rq_kind != 0 || flight.position == 0)
    return false;
  const std::uint64_t before = flight.position - 1;
  const auto& word = d.ring.claims->words()[before & (d.ring.count - 1)];
  const auto claim = queue::ClaimWord::unpack(word.load(std::memory_order_acquire));
  if (claim.state != queue::ClaimWord::State::Claimed || claim.round != flight.position)
    return false;
  const std::uint64_t now = now_ns();
  if (flight.in_turn_at == 0) flight.in_turn_at = now + kTurnPatience;
  return now < flight.in_turn_at;
}

Verdict publish(Qp& qp, const Delivery& d, const queue::CqeBody& body) VRB_REQUIRES(qp.sq_lock) {
  if (behind_another(qp, d)) return Verdict::wait_for(InFlight::Wait::Slice);
  queue::SharedCq cq = d.cq;
  const auto seq = cq.claim(d.peer_index, d.qp_index);
  if (!seq) {
    if (!cq.full_of_completions())
      return Verdict::wait_for(InFlight::Wait::Room,
                               ib::cause(ib::CauseCode::CqOverrun, cq.entries(), cq.entries()));
    report(d.target, local::kReportError | local::kReportCqOverrun, ib::CauseCode::CqOverrun);
    return Verdict::fail(ib::WcStatus::RemOpErr,
                         ib::cause(ib::CauseCode::CqOverrun, cq.entries(), cq.entries()));
  }
  VRB_POINT("cqe.claimed");
  // Before the completion is there to be seen: who polls it finds the QP in the error state.
  if (body.status != ib::WcStatus::Success) {
    report(d.target, local::kReportError, static_cast<ib::CauseCode>(body.vendor_err));
  }
  if (!cq.publish(*seq, d.peer_index, d.qp_index, body)) {
    return Verdict::fail(ib::WcStatus::RetryExcErr,
                         ib::cause(ib::CauseCode::PeerDied, qp.attr.dest_qpn.value));
  }
  VRB_POINT("cqe.published");
  qp.flight.claimed = false;
  d.ring.finish(qp.flight.position, d.peer_index);
  VRB_POINT("recv.finished");
  notify(d, body.solicited != 0 || body.status != ib::WcStatus::Success);
  return Verdict::done();
}

// The receive WQE cannot take the message: its owner gets a completion in error, RC's sender one of
// its own.
Verdict reject(Qp& qp, const queue::SendWqe& wqe, const Delivery& d, ib::WcStatus theirs,
               ib::WcStatus ours, const ib::Cause& cause) VRB_REQUIRES(qp.sq_lock) {
  queue::CqeBody body = body_of(qp, wqe, d);
  body.status = theirs;
  body.byte_len = 0;
  body.vendor_err = static_cast<std::uint32_t>(cause.code);
  body.cause_args[0] = cause.args[0];
  body.cause_args[1] = cause.args[1];
  const Verdict published = publish(qp, d, body);
  if (published.kind != Verdict::Kind::Done) return published;
  return qp.type == ib::QpType::Rc ? Verdict::fail(ours, cause) : dropped(cause);
}

Verdict deliver(Qp& qp, const queue::SendWqe& wqe, const Delivery& d) VRB_REQUIRES(qp.sq_lock) {
  InFlight& flight = qp.flight;
  if (flight.claimed && d.ring.header->id.load() != flight.ring_id) {
    flight.claimed = false;  // the queue is another one by now: the message starts anew
    flight.offset = 0;
  }
  if (!flight.claimed) {
    if (const Verdict v = claim(qp, wqe, d); v.kind != Verdict::Kind::Go) return v;
  }
  if (wqe.request.opcode != ib::Opcode::WriteWithImm) {
    const Scatter s = scatter(d, d.ring.entry(flight.position), flight.length);
    if (s.capacity < flight.length) {
      return reject(qp, wqe, d, ib::WcStatus::LocLenErr, ib::WcStatus::RemInvReqErr,
                    ib::cause(ib::CauseCode::RecvTooSmall, flight.length, s.capacity));
    }
    if (s.bad_key.code != ib::CauseCode::None) {
      return reject(qp, wqe, d, ib::WcStatus::LocProtErr, ib::WcStatus::RemOpErr, s.bad_key);
    }
    const Verdict moved =
        move_bytes(qp, d.target, {s.parts.data(), s.count}, ib::kLocalWrite, false, false);
    if (moved.kind == Verdict::Kind::Fail && moved.status == ib::WcStatus::RemAccessErr) {
      return reject(qp, wqe, d, ib::WcStatus::LocProtErr, ib::WcStatus::RemOpErr, moved.cause);
    }
    if (moved.kind != Verdict::Kind::Go) return moved;
    VRB_POINT("data.moved");
  }
  return publish(qp, d, body_of(qp, wqe, d));
}

}  // namespace

void give_claim_back(Qp& qp, local::Peer& peer) {
  InFlight& flight = qp.flight;
  if (!std::exchange(flight.claimed, false)) return;
  flight.offset = 0;
  queue::RecvRing ring;
  // Its owner forbids this before it frees the queue, and waits for our lane.
  if (!peer.recv_ring(flight.ring_at, ring) || ring.header->id.load() != flight.ring_id) return;
  ring.give_back(flight.position, static_cast<std::uint16_t>(peer.index));
}

Verdict two_sided(Qp& qp, const queue::SendWqe& wqe, const Target& target) {
  Delivery d{target,
             {},
             {},
             static_cast<std::uint16_t>(target.peer->index),
             static_cast<std::uint16_t>(target.index)};
  if (!target.peer->recv_ring(target.entry->rq, d.ring) ||
      !target.peer->recv_cq(*target.entry, d.cq)) {
    return Verdict::fail(ib::WcStatus::RemOpErr,
                         ib::cause(ib::CauseCode::PeerQpAbsent, qp.attr.dest_qpn.value));
  }
  return deliver(qp, wqe, d);
}

Verdict send_datagram(Qp& qp, const queue::SendWqe& wqe, local::Peer& peer,
                      std::uint32_t qp_index) {
  const std::uint32_t remote = wqe.request.remote_qpn;
  if (qp_index >= local::kQps) return dropped(ib::cause(ib::CauseCode::PeerQpAbsent, remote));
  Target target{&peer, qp_index, &peer.tables->qps[qp_index], {}};
  target.tag = local::QpTag::unpack(target.entry->tag.load(std::memory_order_acquire));
  const local::QpTag& tag = target.tag;
  if (tag.paused) return Verdict::wait_for(InFlight::Wait::Slice);
  if (!tag.valid || !tag.local || tag.type != ib::QpType::Ud || tag.state < ib::QpState::Rtr ||
      tag.state == ib::QpState::Err) {
    return dropped(ib::cause(ib::CauseCode::PeerQpState, remote, tag.state));
  }
  // A Q_Key with the top bit set means the sender's own (IBTA 10.2.5).
  const std::uint32_t sent =
      (wqe.request.remote_qkey & 0x80000000U) != 0 ? qp.attr.qkey : wqe.request.remote_qkey;
  const std::uint32_t theirs = std::atomic_ref(const_cast<std::uint32_t&>(target.entry->qkey))
                                   .load(std::memory_order_relaxed);
  if (sent != theirs) return dropped(ib::cause(ib::CauseCode::QkeyMismatch, sent, remote, theirs));
  return two_sided(qp, wqe, target);
}

}  // namespace vrb::engine
