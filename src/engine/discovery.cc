// SPDX-License-Identifier: Apache-2.0
#include "engine/discovery.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "engine/text.h"

namespace vrb::engine {
namespace {

// The order of the table (the first IPv4 entry is what perftest and UCX take, so it must be an
// address that other hosts reach).
enum class Rank { DefaultRouteIpv4, GlobalIpv4, GlobalIpv6, LinkLocal, Loopback };

bool is_loopback(const ib::Gid& gid) {
  if (is_ipv4(gid)) return gid[12] == 127;
  return gid[15] == 1 && std::all_of(gid.begin(), gid.end() - 1, [](auto b) { return b == 0; });
}

bool is_link_local(const ib::Gid& gid) {
  if (is_ipv4(gid)) return gid[12] == 169 && gid[13] == 254;
  return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

// IPv4 or IPv6 and UDP headers, BTH, the largest extension (AtomicETH with XRCETH) and ICRC.
constexpr unsigned kRoceOverhead = 40 + 8 + 12 + 28 + 4 + 4;

unsigned path_mtu(unsigned interface_mtu) {
  unsigned mtu = 4096;
  while (mtu > 256 && mtu + kRoceOverhead > interface_mtu) mtu /= 2;
  return mtu;
}

struct Candidate {
  const Address* address;
  const Interface* interface;
  Rank rank;
  bool on_default;
};

Rank rank_of(const Address& address, bool on_default) {
  if (is_loopback(address.gid)) return Rank::Loopback;
  if (is_link_local(address.gid)) return Rank::LinkLocal;
  if (!is_ipv4(address.gid)) return Rank::GlobalIpv6;
  return on_default ? Rank::DefaultRouteIpv4 : Rank::GlobalIpv4;
}

std::vector<Candidate> candidates(const HostNetwork& network) {
  std::vector<Candidate> found;
  for (const Address& address : network.addresses) {
    const auto same = [&](const Interface& i) { return i.index == address.ifindex; };
    const auto at = std::find_if(network.interfaces.begin(), network.interfaces.end(), same);
    if (at == network.interfaces.end() || !at->up) continue;
    const bool on_default = at->name == network.default_interface;
    found.push_back({&address, &*at, rank_of(address, on_default), on_default});
  }
  const auto key = [](const Candidate& c) {
    return std::tuple(c.rank, c.interface->loopback, !c.on_default, c.address->temporary,
                      c.interface->index);
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
  // An address on two interfaces (fe80::1 often is) stays twice: the interface tells them apart.
  // A host with more addresses than the table keeps its first loopback address.
  if (found.size() > ib::kGidTableLength) {
    const auto loopback = std::find_if(found.begin(), found.end(),
                                       [](const auto& c) { return c.rank == Rank::Loopback; });
    if (loopback != found.end() && loopback - found.begin() >= int{ib::kGidTableLength}) {
      found[ib::kGidTableLength - 1] = *loopback;
    }
    found.resize(ib::kGidTableLength);
  }
  return found;
}

std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// EUI-64 of a MAC.
std::uint64_t guid_of_mac(const std::array<std::uint8_t, 6>& mac) {
  const std::uint8_t bytes[8] = {
      static_cast<std::uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
  std::uint64_t guid = 0;
  for (const std::uint8_t b : bytes) guid = guid << 8 | b;
  return guid;
}

std::uint64_t choose_guid(const HostNetwork& network) {
  const Interface* best = nullptr;
  for (const Interface& i : network.interfaces) {
    if (i.loopback || i.mac == decltype(i.mac){}) continue;
    const bool preferred = i.name == network.default_interface;
    if (best == nullptr || preferred || (i.up && !best->up)) best = &i;
    if (preferred) break;
  }
  if (best != nullptr) return guid_of_mac(best->mac);
  // No MAC: a hash, marked as a locally made EUI-64 (bit 1 of the first byte is 0 in a modified
  // EUI-64).
  const std::uint64_t hash = fnv1a(network.machine_id) & ~(std::uint64_t{3} << 56);
  return hash == 0 ? 1 : hash;
}

}  // namespace

PortFacts make_port_facts(const HostNetwork& network) {
  PortFacts facts;
  unsigned smallest = ~0U;
  std::size_t used = 0;
  for (const Candidate& c : candidates(network)) {
    GidEntry& entry = facts.gids[used++];
    entry.gid = c.address->gid;
    entry.ifindex = c.interface->index;
    std::snprintf(entry.ifname, sizeof entry.ifname, "%s", c.interface->name.c_str());
    if (!c.interface->loopback) smallest = std::min(smallest, c.interface->mtu);
  }
  if (used == 0) {  // no network that we may look at: this host itself can always be named
    facts.gids[0].gid = ipv4_gid(htonl(INADDR_LOOPBACK));
    facts.gids[0].ifindex = 1;
    std::strcpy(facts.gids[0].ifname, "lo");
  }
  facts.active_mtu = path_mtu(smallest);
  facts.guid = choose_guid(network);
  return facts;
}

std::string default_route_interface(const std::string& proc_net_route) {
  constexpr unsigned kRouteUp = 1;
  std::string best;
  unsigned best_metric = ~0U;
  for (std::string_view rest = proc_net_route; !rest.empty();) {
    const std::string line(take(rest, '\n'));
    char name[16];
    unsigned destination = 0;
    unsigned flags = 0;
    unsigned metric = 0;
    unsigned mask = 0;
    // Iface Destination Gateway Flags RefCnt Use Metric Mask ...
    if (std::sscanf(line.c_str(), "%15s %x %*x %x %*d %*d %u %x", name, &destination, &flags,
                    &metric, &mask) != 5) {
      continue;
    }
    const bool is_default = destination == 0 && mask == 0 && (flags & kRouteUp) != 0;
    if (is_default && (best.empty() || metric < best_metric)) {
      best = name;
      best_metric = metric;
    }
  }
  return best;
}

void append_ipv6(const std::string& proc_net_if_inet6, HostNetwork& network) {
  constexpr unsigned kTemporary = 0x01;
  constexpr unsigned kDadFailed = 0x08;
  constexpr unsigned kDeprecated = 0x20;
  constexpr unsigned kTentative = 0x40;
  for (std::string_view rest = proc_net_if_inet6; !rest.empty();) {
    const std::string line(take(rest, '\n'));
    unsigned index = 0;
    unsigned flags = 0;
    // address interface-index prefix-length scope flags name
    if (line.size() < 33 || std::sscanf(line.c_str() + 32, " %x %*x %*x %x", &index, &flags) != 2) {
      continue;
    }
    if ((flags & (kDadFailed | kTentative)) != 0) continue;
    Address address;
    address.ifindex = index;
    address.temporary = (flags & (kTemporary | kDeprecated)) != 0;
    for (std::size_t i = 0; i < address.gid.size(); ++i) {
      unsigned byte = 0;
      if (std::sscanf(line.c_str() + 2 * i, "%2x", &byte) != 1) break;
      address.gid[i] = static_cast<std::uint8_t>(byte);
    }
    network.addresses.push_back(address);
  }
}

ib::Gid ipv4_gid(std::uint32_t address) {
  ib::Gid gid{};
  gid[10] = gid[11] = 0xff;
  std::memcpy(&gid[12], &address, sizeof address);
  return gid;
}

bool is_ipv4(const ib::Gid& gid) {
  constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.data(), kPrefix, sizeof kPrefix) == 0;
}

bool is_zero(const ib::Gid& gid) { return gid == ib::Gid{}; }

std::string gid_address(const ib::Gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_ipv4(gid)) {
    inet_ntop(AF_INET, &gid[12], text, sizeof text);
  } else {
    inet_ntop(AF_INET6, gid.data(), text, sizeof text);
  }
  return text;
}

std::string gid_groups(const ib::Gid& gid) {
  std::string text;
  for (std::size_t i = 0; i < gid.size(); i += 2) {
    char group[6];
    std::snprintf(group, sizeof group, "%s%02x%02x", i == 0 ? "" : ":", gid[i], gid[i + 1]);
    text += group;
  }
  return text;
}

}  // namespace vrb::engine
