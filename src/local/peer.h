// A peer: the NIC memory of another process (or our own: index 0, `self`) as the posting core uses
// it. Made by the Switchboard, shared by the QPs that are bound to it; its memory stays mapped
// until the last of them lets go. Everything in it may be written by a hostile process of the same
// user: bounds are checked at each use. Any thread; the view's fields are set before the state
// becomes Ready.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "ib/cause.h"
#include "local/kernel.h"
#include "local/layout.h"

namespace vrb::local {

enum class PeerState : std::uint32_t {
  Connecting,  // no answer yet; `cause` says why when the time runs out (PeerAbsent, PeerSilent)
  Ready,
  Refused,  // for good: other user, namespace, layout, wants the wire (`cause`)
  Dead,     // the incarnation is gone
};

class Peer {
 public:
  Peer() = default;
  ~Peer();  // unmaps, closes (not for self, and not in a forked child)
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  PeerState state() const { return state_.load(std::memory_order_acquire); }

  std::uint32_t slot = 0;
  bool self = false;
  // Valid from Ready on, and still mapped when Dead.
  std::uint64_t incarnation = 0;
  std::uint32_t index = 0;  // our peer index at the owner
  pid_t pid = 0;            // serves only CMA; 0: not visible
  int doorbell = -1;        // the owner's eventfd (non-blocking)
  const Tables* tables = nullptr;
  Shared* shared = nullptr;
  std::atomic<bool> cma{false};  // process_vm_* works towards this peer; cleared on EPERM/ENOSYS
  ib::Cause cause;               // stable once Refused; else use why()
  // Why it is not Ready, at any time: the refusal, PeerDied, PeerAbsent, PeerSilent, SystemRefused.
  // args[0] is left for the caller's QPN.
  ib::Cause why() const;
  // Connecting, and nobody was there when it was last tried. It is tried again.
  bool absent() const {
    return (waiting_for_.load(std::memory_order_relaxed) & 0xffff) ==
           std::uint64_t(ib::CauseCode::PeerAbsent);
  }

  // The index in tables->qps of a QPN, kQps when the process does not hold that slot.
  std::uint32_t qp_index(ib::Qpn qpn) const;
  // Bounds-checked pointers into the two files; nullptr when [offset, offset + bytes) is outside or
  // misaligned to 64.
  const std::byte* table_at(std::uint64_t offset, std::uint64_t bytes) const;
  std::byte* shared_at(std::uint64_t offset, std::uint64_t bytes) const;
  memory::KeyView keys() const { return {tables->keys, kKeys}; }
  // The receive ring whose header lies at `offset` in the tables; false when its numbers do not
  // fit.
  bool recv_ring(std::uint64_t offset, queue::RecvRing& ring) const;
  bool recv_cq(const QpEntry& qp, queue::SharedCq& cq) const;
  // Wakes the owner's service thread (never blocks).
  void ring() const;
  // Is the process still there, as far as can be told without asking it (pidfd, socket)? CMA looks
  // first.
  bool alive() const;

 private:
  friend class Inbound;
  friend class Outbound;
  friend class Switchboard;
  friend class InsideLane;
  friend class AssistEntries;
  // Ready: where the lanes start. An odd epoch was left by nobody who still counts.
  void adopt_lanes();

  std::atomic<PeerState> state_{PeerState::Connecting};
  std::atomic<std::uint64_t> waiting_for_{
      0};  // CauseCode | args[0] << 16 | args[1] << 32, while Connecting
  std::atomic<std::uint32_t> lanes_busy_{0};  // bit k: one of our threads holds lane k
  std::uint64_t lane_epoch_[kLanesPerPeer] =
      {};                                      // even; kept here, for the peer's word is unchecked
  std::atomic<std::uint32_t> assist_busy_{0};  // entries that are ours
  std::atomic<std::uint32_t> assist_dropped_{0};  // of these, given up and not yet done
  Fd socket_, pidfd_, doorbell_fd_;
  Mapping tables_map_, shared_map_;
};

// While it lives, this thread is inside a lane of the peer: what it reads there is not taken away.
// Never held across a wait; state changes of our own QPs (which wait for lanes) come after it.
// Spins when all lanes are taken.
class InsideLane {
 public:
  explicit InsideLane(Peer& peer);
  ~InsideLane();
  InsideLane(const InsideLane&) = delete;
  InsideLane& operator=(const InsideLane&) = delete;

 private:
  Peer& peer_;
  std::uint32_t lane_;
};

}  // namespace vrb::local
