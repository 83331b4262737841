// From a destination to the remote QP: the ladder of checks of the responder that need no data
// (IBTA 9.6.1, 9.7.4, 9.8.2).
// SPDX-License-Identifier: Apache-2.0
#include "engine/requester.h"

namespace vrb::engine {
namespace {

// RC ends in retry-exceeded, UC and UD lose the message: the sender of a datagram never learns.
Verdict unreachable(const Qp& qp, const ib::Cause& cause) {
  if (qp.type == ib::QpType::Rc) return Verdict::fail(ib::WcStatus::RetryExcErr, cause);
  return {Verdict::Kind::Done, ib::WcStatus::Success, {}, cause};
}

// RC waits for the peer within its retries; a datagram waits only for the process to answer the
// handshake.
Verdict not_now(const Qp& qp, const ib::Cause& cause) {
  if (qp.type == ib::QpType::Rc) return Verdict::wait_for(InFlight::Wait::Peer, cause);
  return {Verdict::Kind::Done, ib::WcStatus::Success, {}, cause};
}

// As unreachable(). A datagram's queue pair wants nothing more of that process: as long as it held
// the peer, the slot would be tried again, and whoever takes it next be met for nothing.
Verdict lost(Qp& qp, const ib::Cause& cause) VRB_REQUIRES(qp.sq_lock) {
  qp.last_ud_peer.reset();
  return unreachable(qp, cause);
}

}  // namespace

Verdict find_peer(Qp& qp, const queue::SendWqe& wqe, std::shared_ptr<local::Peer>& peer) {
  const std::uint32_t remote =
      qp.type == ib::QpType::Ud ? wqe.request.remote_qpn : qp.attr.dest_qpn.value;
  if (qp.type == ib::QpType::Ud) {
    const auto& ah = *static_cast<const Ah*>(wqe.request.ah);
    if (!ah.local) return unreachable(qp, ib::cause(ib::CauseCode::NotLocal, 0, 0));
    const std::uint32_t slot = (remote & 0xffffff) >> 14;
    if (qp.flight.peer) {
      qp.last_ud_peer = qp.flight.peer;
    } else if (!qp.last_ud_peer || qp.last_ud_peer->slot != slot ||
               qp.last_ud_peer->state() == local::PeerState::Dead) {
      const auto board = qp.engine().switchboard();
      if (!board) return unreachable(qp, board.error().cause);
      qp.last_ud_peer = (*board)->find(slot);
    }
    peer = qp.last_ud_peer;
  } else {
    peer = qp.peer;
  }
  switch (peer->state()) {
    case local::PeerState::Ready:
      return Verdict::go();
    case local::PeerState::Connecting:
      if (qp.type == ib::QpType::Ud && peer->absent())
        return lost(qp, ib::cause(ib::CauseCode::PeerAbsent, remote));
      return Verdict::wait_for(InFlight::Wait::Peer,
                               ib::cause(ib::CauseCode::PeerSilent, remote, 0));
    case local::PeerState::Refused:
      return lost(qp, peer->cause);
    case local::PeerState::Dead:
      return lost(qp, ib::cause(ib::CauseCode::PeerDied, remote));
  }
  return Verdict::go();
}

Verdict find_target(Qp& qp, local::Peer& peer, Target& target) {
  const ib::Qpn remote = qp.attr.dest_qpn;
  target.peer = &peer;
  target.index = peer.qp_index(remote);
  if (target.index >= local::kQps)
    return not_now(qp, ib::cause(ib::CauseCode::PeerQpAbsent, remote.value));
  target.entry = &peer.tables->qps[target.index];
  target.tag = local::QpTag::unpack(target.entry->tag.load(std::memory_order_acquire));
  const local::QpTag& tag = target.tag;
  const ib::Cause state_cause = ib::cause(ib::CauseCode::PeerQpState, remote.value, tag.state);
  if (tag.paused) return Verdict::wait_for(InFlight::Wait::Slice, state_cause);
  if (!tag.valid || tag.type != qp.type)
    return not_now(qp, ib::cause(ib::CauseCode::PeerQpAbsent, remote.value));
  if (tag.state < ib::QpState::Rtr || tag.state == ib::QpState::Err)
    return not_now(qp, state_cause);
  if (!tag.local) return unreachable(qp, ib::cause(ib::CauseCode::PeerWantsWire, remote.value));
  if (target.entry->dest_qpn != qp.qpn.value) {
    return not_now(qp, ib::cause(ib::CauseCode::PeerQpOther, remote.value, target.entry->dest_qpn,
                                 qp.qpn.value));
  }
  if (qp.bound_generation != 0 && qp.bound_generation != tag.generation) {
    return unreachable(qp, ib::cause(ib::CauseCode::PeerQpAbsent,
                                     remote.value));  // a later life of the index (A38)
  }
  qp.bound_generation = tag.generation;
  if (tag.state == ib::QpState::Rtr && !qp.comm_est_told) {
    qp.comm_est_told = true;
    report(target, local::kReportCommEst, ib::CauseCode::None);
  }
  return Verdict::go();
}

void report(const Target& target, std::uint64_t bits, ib::CauseCode code) {
  local::Shared& shared = *target.peer->shared;
  shared.qp_report[target.index].fetch_or(bits | std::uint64_t{static_cast<std::uint16_t>(code)}
                                                     << 16);
  local::set_due(shared.due[static_cast<std::size_t>(local::DueKind::Qp)], target.index);
  target.peer->ring();
}

}  // namespace vrb::engine
