// GIDs: what an address is, and how it reads. RoCEv2 writes an IPv4 address as the IPv4-mapped
// IPv6 address ::ffff:a.b.c.d (IBTA annex A17). Pure functions; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "ib/types.h"

namespace vrb::ib {

constexpr bool is_zero(const Gid& gid) { return gid == Gid{}; }

constexpr bool is_v4_mapped(const Gid& gid) {
  return std::all_of(gid.begin(), gid.begin() + 10, [](std::uint8_t b) { return b == 0; }) &&
         gid[10] == 0xff && gid[11] == 0xff;
}

// ff0e::ffff:a.b.c.d, the other way in which programs write an IPv4 multicast group.
constexpr bool is_v4_multicast_in_v6(const Gid& gid) {
  return gid[0] == 0xff && gid[1] == 0x0e &&
         std::all_of(gid.begin() + 2, gid.begin() + 10, [](std::uint8_t b) { return b == 0; }) &&
         gid[10] == 0xff && gid[11] == 0xff;
}

// ff00::/8, or 224.0.0.0/4 in an IPv4-mapped GID.
constexpr bool is_multicast(const Gid& gid) {
  return gid[0] == 0xff || (is_v4_mapped(gid) && (gid[12] & 0xf0) == 0xe0);
}

// The IPv4 address in the last four bytes, as a number: 10.0.0.1 is 0x0a000001.
constexpr std::uint32_t v4_of(const Gid& gid) {
  return std::uint32_t{gid[12]} << 24 | std::uint32_t{gid[13]} << 16 | std::uint32_t{gid[14]} << 8 |
         gid[15];
}

constexpr Gid make_v4_mapped(std::uint32_t address) {
  Gid gid{};
  gid[10] = gid[11] = 0xff;
  gid[12] = static_cast<std::uint8_t>(address >> 24);
  gid[13] = static_cast<std::uint8_t>(address >> 16);
  gid[14] = static_cast<std::uint8_t>(address >> 8);
  gid[15] = static_cast<std::uint8_t>(address);
  return gid;
}

// As RFC 5952 writes an IPv6 address: "fe80::1", "::ffff:10.0.0.1".
std::string format_gid(const Gid& gid);

}  // namespace vrb::ib
