// The switchboard: slots, the control sockets and the handshake. It takes slots for us, answers
// peers that want our NIC memory, and connects to the processes that our QPs want to reach. One per
// process, owned by the engine. dispatch() and take_dead(): the service thread only. find(),
// take_slot(): any thread; they never wait for a peer (A40).
//
// A connection serves one direction: who connects gets the owner's memory. Messages are fixed-size
// on SOCK_SEQPACKET `@verbena/<slot>` (docs/local.md): Hello (who I am; my doorbell eventfd) ->
// Welcome (your peer index; tables, shared and doorbell descriptors) or Refuse (cause). Hang-up or
// pidfd = death (A37).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/lock.h"
#include "ib/cause.h"
#include "local/nic_memory.h"
#include "local/peer.h"
#include "local/trust.h"

namespace vrb::local {

class Switchboard {
 public:
  // `doorbell`: our eventfd, given to peers. The memory outlives the switchboard.
  static ib::Result<std::unique_ptr<Switchboard>> create(NicMemory& memory, TrustPolicy policy,
                                                         int doorbell);
  ~Switchboard();

  // Takes one more slot (UDP port, listener), writes it into the tables' header and returns its
  // ordinal; the search starts at a slot derived from `random`, so that processes do not all try
  // the same one. NoSlot when all are taken.
  ib::Result<std::uint32_t> take_slot(std::uint64_t random);
  std::uint32_t slot(std::uint32_t ordinal) const;

  // The peer that holds `slot`, connecting on first use or when the former one is dead. Our own
  // slots give `self`. Never null.
  std::shared_ptr<Peer> find(std::uint32_t slot);
  std::shared_ptr<Peer> self() const { return self_; }

  // Readable when dispatch() has something to do. Give it to epoll.
  int poll_fd() const { return epoll_.get(); }
  // Accepts, answers, finishes handshakes, notices deaths; retries connects that were refused or
  // full every few ms (EAGAIN: full backlog of a stopped process). Returns true when the state of
  // some peer of ours changed. `now_ns`: monotonic clock.
  bool dispatch(std::uint64_t now_ns);
  // When dispatch() wants to be called even if nothing becomes readable; ~0 = never.
  std::uint64_t deadline_ns() const;

  // Inbound side: indices of peers that died since the last call; the engine cleans their claims
  // and then calls release_index(). A26.
  std::vector<std::uint32_t> take_dead();
  void release_index(std::uint32_t index);
  // Rings the doorbells of all inbound peers whose index & 63 is set in `bits` (RNR hint, A31). Any
  // thread.
  void ring_inbound(std::uint64_t bits);
  // Serves assist requests of peer `index` (its due bit was set). Service thread.
  void serve_assist(std::uint32_t index);
  // Slots that are held by any process of this network namespace, from /proc/net/unix (multicast,
  // `verbena devices`).
  static std::vector<std::uint32_t> running_slots();

  // The prepare handler of a fork holds the switchboard, so that no descriptor is made or closed
  // meanwhile; the parent's handler lets go, the child's calls abandon().
  void hold() VRB_NO_THREAD_SAFETY;
  void let_go() VRB_NO_THREAD_SAFETY;
  // Child of fork: closes every descriptor of the local carrier; afterwards only destruction is
  // allowed.
  void abandon() VRB_NO_THREAD_SAFETY;

 private:
  Switchboard();
  struct State;
  Fd epoll_;
  std::shared_ptr<Peer> self_;
  std::unique_ptr<State> state_;
};

}  // namespace vrb::local
