// What the port of verbena0 is on this host: its GID table, MTU and GUID, read from the kernel's
// interfaces. Uses ioctls and /proc only, for a sandboxed service may not open a netlink socket.
// Plain functions without state, any thread; the engine calls discover() once and keeps the result,
// since a GID's index must not change while the process lives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ib/limits.h"
#include "ib/types.h"

namespace vrb::engine {

struct GidEntry {
  ib::Gid gid{};  // all zero: the entry is empty
  unsigned ifindex = 0;
  char ifname[16] = {};
};

struct PortFacts {
  std::array<GidEntry, ib::kGidTableLength> gids{};
  unsigned active_mtu = 1024;  // bytes: 256, 512, 1024, 2048 or 4096
  std::uint64_t guid =
      0;  // of node, system image and port; as a number (the ABI wants it big-endian)
};

PortFacts discover();

// Whether the address belongs to this host (in this network namespace), now: 127.0.0.0/8, ::1, and
// whatever address an interface has. IPv4 addresses are ::ffff:a.b.c.d.
bool is_local_gid(const ib::Gid& gid);

ib::Gid ipv4_gid(std::uint32_t address);  // in network byte order
bool is_ipv4(const ib::Gid& gid);
bool is_zero(const ib::Gid& gid);
std::string gid_address(const ib::Gid& gid);  // "192.0.2.2" or "fd00::2"
std::string gid_groups(const ib::Gid& gid);   // "0000:0000:...:c000:0202", as in sysfs

// The part without system calls, for tests.
struct Interface {
  unsigned index = 0;
  std::string name;
  bool up = false;
  bool loopback = false;
  unsigned mtu = 0;
  std::array<std::uint8_t, 6> mac{};  // all zero: it has none
};
struct Address {
  ib::Gid gid{};
  unsigned ifindex = 0;
  bool temporary = false;  // an IPv6 privacy or deprecated address: listed after lasting ones
};
struct HostNetwork {
  std::vector<Interface> interfaces;
  std::vector<Address> addresses;
  std::string default_interface;  // of the default route; may be empty
  std::string machine_id;         // anything that is stable and tells hosts apart
};
PortFacts make_port_facts(const HostNetwork& network);
// The interface of the default route with the lowest metric, out of /proc/net/route's text.
std::string default_route_interface(const std::string& proc_net_route);
// Appends the addresses of /proc/net/if_inet6's text; those that are not usable (yet) are left out.
void append_ipv6(const std::string& proc_net_if_inet6, HostNetwork& network);

}  // namespace vrb::engine
