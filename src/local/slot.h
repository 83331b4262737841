// A slot: the UDP port 17910 + slot on both families, which makes it ours alone in this network
// namespace, and the listener on the abstract socket @verbena/<slot>, by which a QPN finds its
// process. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "local/fds.h"

namespace vrb::local {

struct SlotSockets {
  Fd udp4, udp6, listener;
};

// 0, or the errno: EADDRINUSE when the port or the name is somebody else's.
int bind_slot(std::uint32_t slot, SlotSockets& sockets);

struct SlotName {
  sockaddr_un address;
  socklen_t length;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};
SlotName slot_name(std::uint32_t slot);

// The slots of the listening sockets in the text of /proc/net/unix, in order.
std::vector<std::uint32_t> listed_slots(std::string_view text);

}  // namespace vrb::local
