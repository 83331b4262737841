// The answering side of the handshake: peers that have, or want, our NIC memory. A connection is
// pending until its Hello has come, at most a second; then a member with a peer index, until it
// dies and the engine has cleaned up behind it. Everything: service thread, but ring().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/lock.h"
#include "local/party.h"

namespace vrb::local {

class Inbound {
 public:
  explicit Inbound(const Party& party);

  // Takes the connections that wait at a listener. False: out of descriptors, let the listener rest
  // for a while.
  bool accept_from(int listener, std::uint64_t now_ns);
  void on_event(Token token);
  // Drops pending connections whose time is up.
  void expire(std::uint64_t now_ns);
  std::uint64_t deadline_ns() const;

  std::vector<std::uint32_t> take_dead();
  void release_index(std::uint32_t index);
  void ring(std::uint64_t bits);
  // The doorbell of a member, -1 when there is none.
  int doorbell_of(std::uint32_t index) const;
  base::SpinLock& lock() { return lock_; }

 private:
  struct Pending {
    Fd socket;
    Identity credentials;
    std::uint64_t expires = 0;
    std::uint32_t life = 0;
  };
  struct Member {
    Fd socket, pidfd, doorbell;
    std::uint32_t life = 0;
    enum class State : std::uint8_t { Free, Alive, Dead } state = State::Free;
  };

  std::uint32_t free_place();
  void read_hello(std::uint32_t place);
  void drop(Pending& pending);
  void refuse(int socket, const Ourselves& us, ib::CauseCode cause);
  void admit(Pending& pending, Incoming& incoming, const Ourselves& us);
  std::uint32_t take_index();
  void bury(std::uint32_t index);

  const Party& party_;
  std::vector<Pending> pending_;
  std::uint32_t lives_ = 0;
  base::SpinLock lock_;  // the doorbells of members_
  std::unique_ptr<Member[]> members_;
  std::atomic<std::uint32_t> next_index_{1};
  std::deque<std::uint32_t> free_;  // oldest first
  std::vector<std::uint32_t> dead_;
};

}  // namespace vrb::local
