// ibv_resolve_eth_l2_from_gid: the Ethernet address behind a GID, for programs that build frames
// themselves. Answers what can be known without sending anything. Returns 0 or a negative errno
// value, as rdma-core does.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string_view>

#include "engine/text.h"
#include "verbs/adapt.h"
#include "verbs/port.h"

namespace vrb::verbs {
namespace {

using Mac = std::array<std::uint8_t, ETHERNET_LL_SIZE>;
constexpr std::uint16_t kNoVlan = 0xffff;

bool is_link_local(const ib::Gid& gid) { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

// The groups of IPv4 and IPv6 have fixed addresses (RFC 1112, RFC 2464).
std::optional<Mac> mac_of_group(const ib::Gid& gid) {
  if (engine::is_ipv4(gid) && (gid[12] & 0xf0) == 0xe0) {
    return Mac{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(gid[13] & 0x7f), gid[14], gid[15]};
  }
  if (gid[0] == 0xff) return Mac{0x33, 0x33, gid[12], gid[13], gid[14], gid[15]};
  return std::nullopt;
}

// A link-local address made from the interface's address (RFC 4291, appendix A).
std::optional<Mac> mac_of_link_local(const ib::Gid& gid) {
  if (!is_link_local(gid) || gid[11] != 0xff || gid[12] != 0xfe) return std::nullopt;
  return Mac{static_cast<std::uint8_t>(gid[8] ^ 2), gid[9], gid[10], gid[13], gid[14], gid[15]};
}

// An own GID: by the link-local one of its interface.
std::optional<Mac> mac_of_own(const ib::Gid& gid) {
  const auto& gids = engine::port_facts().gids;
  const auto own =
      std::find_if(gids.begin(), gids.end(), [&](const auto& e) { return e.gid == gid; });
  if (own == gids.end()) return std::nullopt;
  for (const engine::GidEntry& entry : gids) {
    if (entry.ifindex != own->ifindex) continue;
    if (const auto mac = mac_of_link_local(entry.gid)) return mac;
  }
  return std::nullopt;
}

// A neighbour that the kernel has resolved already. IPv4 only: the table of IPv6 needs netlink.
std::optional<Mac> mac_of_neighbour(const ib::Gid& gid) {
  const std::string table = engine::read_file("/proc/net/arp");
  const std::string wanted = engine::gid_address(gid) + " ";
  std::string_view rest = table;
  while (!rest.empty()) {
    const std::string line(engine::take(rest, '\n'));
    if (!line.starts_with(wanted)) continue;
    Mac m;
    const int n = std::sscanf(line.c_str(), "%*s %*s %*s %hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &m[0],
                              &m[1], &m[2], &m[3], &m[4], &m[5]);
    if (n == ETHERNET_LL_SIZE && m != Mac{}) return m;
  }
  return std::nullopt;
}

ib::Result<Mac> resolve(const char* verb, const ibv_ah_attr& attr) {
  if (attr.port_num != 1) {
    return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadPort, attr.port_num);
  }
  ib::Gid gid;
  std::copy_n(attr.grh.dgid.raw, gid.size(), gid.begin());
  for (const auto& source : {mac_of_group, mac_of_link_local, mac_of_own, mac_of_neighbour}) {
    if (const auto mac = source(gid)) return *mac;
  }
  return ib::refuse(ib::Errc::HostUnreachable, ib::CauseCode::None);
}

}  // namespace
}  // namespace vrb::verbs

using namespace vrb;
using namespace vrb::verbs;

int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attr,
                                uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t* vid) {
  return -int_ret("ibv_resolve_eth_l2_from_gid", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context, attr, eth_mac); !ok) return ok;
    const auto mac = resolve(verb, *attr);
    if (!mac) return base::Unexpected{mac.error()};
    std::copy(mac->begin(), mac->end(), eth_mac);
    if (vid != nullptr) *vid = kNoVlan;
    return {};
  });
}
