// SPDX-License-Identifier: Apache-2.0
#include "local/slot.h"

#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ib/limits.h"

namespace vrb::local {
namespace {

constexpr int kBacklog = 128;

// 0 with an empty descriptor: the host has not got this family.
int bind_udp(int family, const sockaddr* address, socklen_t length, Fd& fd) {
  Fd udp = Fd::adopt(socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!udp) return errno == EAFNOSUPPORT ? 0 : errno;
  const int one = 1;
  if (family == AF_INET6) setsockopt(udp.get(), IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  // Nobody reads it before the wire carrier does: keep what strangers send small.
  setsockopt(udp.get(), SOL_SOCKET, SO_RCVBUF, &one, sizeof one);
  if (bind(udp.get(), address, length) != 0) return errno == EADDRNOTAVAIL ? 0 : errno;
  fd = std::move(udp);
  return 0;
}

int bind_ports(std::uint32_t slot, SlotSockets& sockets) {
  const auto port = htons(static_cast<std::uint16_t>(ib::kSlotPortBase + slot));
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = port;
  int error = bind_udp(AF_INET, reinterpret_cast<const sockaddr*>(&v4), sizeof v4, sockets.udp4);
  if (error != 0) return error;
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = port;
  error = bind_udp(AF_INET6, reinterpret_cast<const sockaddr*>(&v6), sizeof v6, sockets.udp6);
  if (error == 0 && !sockets.udp4 && !sockets.udp6) error = EAFNOSUPPORT;
  return error;
}

int listen_at(std::uint32_t slot, Fd& listener) {
  Fd fd = Fd::adopt(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  const SlotName name = slot_name(slot);
  if (bind(fd.get(), name.get(), name.length) != 0) return errno;
  if (listen(fd.get(), kBacklog) != 0) return errno;
  listener = std::move(fd);
  return 0;
}

}  // namespace

int bind_slot(std::uint32_t slot, SlotSockets& sockets) {
  SlotSockets made;
  int error = bind_ports(slot, made);
  if (error == 0) error = listen_at(slot, made.listener);
  if (error == 0) sockets = std::move(made);
  return error;
}

SlotName slot_name(std::uint32_t slot) {
  SlotName name{};
  name.address.sun_family = AF_UNIX;
  const int n = std::snprintf(name.address.sun_path + 1, sizeof name.address.sun_path - 1,
                              "verbena/%u", slot);
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  return name;
}

std::vector<std::uint32_t> listed_slots(std::string_view text) {
  constexpr unsigned long kListens = 0x10000;  // __SO_ACCEPTCON
  std::vector<std::uint32_t> slots;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    unsigned long flags = 0;
    char path[32] = {};
    // Num RefCount Protocol Flags Type St Inode Path
    if (std::sscanf(line.c_str(), "%*s %*x %*x %lx %*x %*x %*u %31s", &flags, path) != 2) continue;
    if ((flags & kListens) == 0 || std::strncmp(path, "@verbena/", 9) != 0) continue;
    char* end = nullptr;
    const unsigned long slot = std::strtoul(path + 9, &end, 10);
    if (end == path + 9 || *end != '\0' || slot >= ib::kSlots) continue;
    slots.push_back(static_cast<std::uint32_t>(slot));
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

}  // namespace vrb::local
