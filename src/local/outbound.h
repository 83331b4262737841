// The asking side of the handshake: the peers that our QPs want to reach, by slot. find(): any
// thread; it never waits, the service thread connects. Everything else: service thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/lock.h"
#include "local/party.h"
#include "local/peer.h"

namespace vrb::local {

class Outbound {
 public:
  // `wake`: an eventfd in the epoll, written when find() has something for run().
  Outbound(const Party& party, int wake);

  std::shared_ptr<Peer> find(std::uint32_t slot);
  // Starts what find() asked for and what is to be tried again; forgets what nobody wants any more.
  // True when the state of a peer changed.
  bool run(std::uint64_t now_ns);
  bool on_event(Token token, std::uint64_t now_ns);
  std::uint64_t deadline_ns() const;
  base::SpinLock& lock() { return lock_; }

 private:
  // A peer that is not Ready yet and how far its connection is.
  struct Attempt {
    std::shared_ptr<Peer> peer;
    std::uint64_t retry_at = 0;
    std::uint64_t delay = 0;
    bool asked = false;  // the Hello is out
  };

  bool drop_unwanted(Attempt& attempt);
  bool start(Attempt& attempt, std::uint64_t now_ns);
  bool refuse(Peer& peer, const ib::Cause& cause);
  void retry(Attempt& attempt, const ib::Cause& waiting_for, std::uint64_t now_ns);
  void close(Peer& peer);
  bool on_answer(Attempt& attempt, std::uint64_t now_ns);
  bool accept(Peer& peer, Incoming& welcome);
  bool probe(const Peer& peer, std::uint64_t header_at) const;
  void forget(const Peer& peer);

  const Party& party_;
  const int wake_;
  base::SpinLock lock_;
  std::vector<std::shared_ptr<Peer>> peers_ VRB_GUARDED_BY(lock_);  // by slot
  std::vector<std::shared_ptr<Peer>> fresh_ VRB_GUARDED_BY(lock_);  // found, not yet seen by run()
  std::vector<Attempt> attempts_;
  std::vector<std::uint32_t> lives_;  // by slot, of its present connection
};

}  // namespace vrb::local
