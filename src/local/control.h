// The messages of the handshake: fixed-size, on SOCK_SEQPACKET, with descriptors (docs/local.md).
// Whatever arrives is unchecked: receive() vouches only for the size, the magic number and for not
// leaking a descriptor. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "local/fds.h"

namespace vrb::local {

enum class MessageType : std::uint32_t { Hello = 1, Welcome = 2, Refuse = 3 };

// All 128 bytes and the first three fields stay as they are in every layout version.
struct ControlMessage {
  std::uint64_t magic;
  std::uint32_t layout_version;
  std::uint32_t type;  // MessageType
  std::uint64_t incarnation;
  std::uint64_t user_ns, pid_ns, net_ns;
  std::uint32_t flags;  // kFlag*
  std::uint32_t index;  // Welcome: the peer index of who asked
  std::uint64_t tables_bytes, shared_bytes;
  std::uint64_t header_at;  // Welcome: where the owner sees its TablesHeader, for the CMA probe
  std::uint32_t cause;      // Refuse: an ib::CauseCode
  std::uint32_t reserved[11];
};
static_assert(sizeof(ControlMessage) == 128);
constexpr std::uint32_t kFlagDumpable = 1;
constexpr std::uint32_t kFlagWireOnly = 2;

// Hello carries the doorbell; Welcome the tables, the shared file and the doorbell; Refuse nothing.
constexpr std::uint32_t kMostFds = 3;
constexpr std::uint32_t fds_of(MessageType type) {
  return type == MessageType::Hello ? 1 : type == MessageType::Welcome ? 3 : 0;
}

enum class Received {
  Message,  // right size and magic, known type of this layout or Refuse, and just the descriptors
            // of its type
  Nothing,  // not yet
  HungUp,
  Garbage,
};
struct Incoming {
  ControlMessage message;
  std::array<Fd, kMostFds> fds;
};

// Never waits. False: the other end has gone, or does not read.
bool send_message(int socket, const ControlMessage& message, std::initializer_list<int> fds);
Received receive_message(int socket, Incoming& incoming);

// Is it an eventfd, non-blocking, so that writing to it is what it seems to be?
bool is_doorbell(int fd);

}  // namespace vrb::local
