// The requester: executes the oldest WQE of a send queue against the peer's NIC memory, by the
// posting core itself. Each step is a small function that ends in a Verdict; run_send_queue()
// (requester.cc) is the one place that turns a verdict into completions, waits and state changes.
// All need the QP's sq_lock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/engine.h"

namespace vrb::engine {

struct Verdict {
  enum class Kind : std::uint8_t {
    Go,    // carry on with the next step
    Done,  // the WQE completed successfully (for UC and UD also when the message was dropped)
    Fail,  // completes with `status`
    Wait,  // carry on later: `wait` says for what
  };
  Kind kind = Kind::Go;
  ib::WcStatus status = ib::WcStatus::Success;
  InFlight::Wait wait = InFlight::Wait::None;
  ib::Cause cause;

  static Verdict go() { return {}; }
  static Verdict done() { return {Kind::Done, ib::WcStatus::Success, {}, {}}; }
  static Verdict fail(ib::WcStatus status, const ib::Cause& cause) {
    return {Kind::Fail, status, {}, cause};
  }
  static Verdict wait_for(InFlight::Wait what, const ib::Cause& cause = {}) {
    return {Kind::Wait, ib::WcStatus::Success, what, cause};
  }
};

// The remote QP as found while inside a lane of its process.
struct Target {
  local::Peer* peer = nullptr;
  std::uint32_t index = 0;
  const local::QpEntry* entry = nullptr;
  local::QpTag tag;
};

// Bytes moved before a posting thread gives the rest to a later call: about 50 us of copying.
constexpr std::uint64_t kSliceBytes = 512 * 1024;

// prepare.cc: checks the WQE against our own keys and limits and fills flight.local.
Verdict prepare(Qp& qp, const queue::SendWqe& wqe) VRB_REQUIRES(qp.sq_lock);
// target.cc: the process of the destination, then its QP. find_target() needs a lane of that peer.
Verdict find_peer(Qp& qp, const queue::SendWqe& wqe, std::shared_ptr<local::Peer>& peer)
    VRB_REQUIRES(qp.sq_lock);
Verdict find_target(Qp& qp, local::Peer& peer, Target& target) VRB_REQUIRES(qp.sq_lock);  // RC, UC
// A message broke a rule of the responder: tells its owner (A30).
void report(const Target& target, std::uint64_t bits, ib::CauseCode code);
// one_sided.cc: WRITE (also the data of WRITE_WITH_IMM), READ, atomics.
Verdict one_sided(Qp& qp, const queue::SendWqe& wqe, const Target& target) VRB_REQUIRES(qp.sq_lock);
// two_sided.cc: SEND and the completion of WRITE_WITH_IMM. give_claim_back() ends a claim that came
// to nothing, so that somebody else can take the receive WQE; needs a lane of that peer.
void give_claim_back(Qp& qp, local::Peer& peer) VRB_REQUIRES(qp.sq_lock);
Verdict two_sided(Qp& qp, const queue::SendWqe& wqe, const Target& target) VRB_REQUIRES(qp.sq_lock);
// move.cc: moves flight.length bytes from or to the peer's ranges, slice by slice, by the tier that
// reaches them. RemAccessErr: the peer's range is not there; what that means to the peer is the
// caller's to say.
struct RemotePart {
  std::uint32_t key = 0;
  std::uint64_t addr = 0;  // as the key names it
  local::Segment segment;  // where it lies at the owner
  const memory::KeyEntry* entry = nullptr;
};
Verdict move_bytes(Qp& qp, const Target& target, std::span<const RemotePart> parts,
                   std::uint32_t need, bool fetch, bool last_last) VRB_REQUIRES(qp.sq_lock);
// requester.cc: gives back what the oldest WQE holds at its peer, and notes (UD) whose that is.
void let_go_of_peer(Qp& qp) VRB_REQUIRES(qp.sq_lock);
void keep_peer(Qp& qp, const std::shared_ptr<local::Peer>& peer) VRB_REQUIRES(qp.sq_lock);
// multicast.cc: a UD send to a group.
Verdict multicast(Qp& qp, const queue::SendWqe& wqe) VRB_REQUIRES(qp.sq_lock);
// A UD send to the QP at `qp_index` of a process (also each member of a group). Needs a lane of
// that peer.
Verdict send_datagram(Qp& qp, const queue::SendWqe& wqe, local::Peer& peer, std::uint32_t qp_index)
    VRB_REQUIRES(qp.sq_lock);

}  // namespace vrb::engine
