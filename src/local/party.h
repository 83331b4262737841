// What both directions of the handshake share: who we are, and the epoll that watches their
// descriptors. Owned by the Switchboard, constant after its creation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "local/control.h"
#include "local/nic_memory.h"
#include "local/trust.h"

namespace vrb::local {

// What a descriptor in the epoll stands for. `life` tells the uses of one index apart, so that an
// event that was fetched before its object went does not hit the next one.
enum class Watch : std::uint8_t { Wake, Listener, Pending, Member, MemberPid, Owner, OwnerPid };
struct Token {
  Watch what = Watch::Wake;
  std::uint32_t index = 0;  // 24 bits
  std::uint32_t life = 0;
  static Token unpack(std::uint64_t word) {
    return {static_cast<Watch>(word >> 56), static_cast<std::uint32_t>(word >> 32) & 0xffffff,
            static_cast<std::uint32_t>(word)};
  }
  std::uint64_t pack() const {
    return std::uint64_t(what) << 56 | std::uint64_t(index & 0xffffff) << 32 | life;
  }
};

struct Party {
  NicMemory& memory;
  TrustPolicy policy;
  Ourselves identity;  // at creation
  int doorbell;        // the engine's
  int epoll;

  Ourselves us() const;
  bool watch(int fd, Token token) const;
  void rewatch(int fd, Token token, bool readable) const;
  void unwatch(int fd) const;
  // A message of ours with everything filled in that we say of ourselves.
  ControlMessage message(MessageType type, const Ourselves& us) const;
};

// User and pid at the other end, as the kernel noted them at connect or listen.
Identity credentials(int socket);
// Adds what the other end says of itself.
Identity told(Identity credentials, const ControlMessage& message);

}  // namespace vrb::local
