// SPDX-License-Identifier: Apache-2.0
#include "engine/discovery.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace vrb::engine {
namespace {

using testing::ElementsAre;

ib::Gid gid(const char* text) {
  in_addr v4{};
  if (inet_pton(AF_INET, text, &v4) == 1) return ipv4_gid(v4.s_addr);
  ib::Gid result{};
  EXPECT_EQ(inet_pton(AF_INET6, text, result.data()), 1) << text;
  return result;
}

Interface interface(unsigned index, const char* name, unsigned mtu) {
  Interface i;
  i.index = index;
  i.name = name;
  i.up = true;
  i.loopback = index == 1;
  i.mtu = mtu;
  if (!i.loopback) i.mac = {2, 0, 0, 0, 0, static_cast<std::uint8_t>(index)};
  return i;
}

HostNetwork typical() {
  HostNetwork network;
  network.interfaces = {interface(1, "lo", 65536), interface(2, "docker0", 1500),
                        interface(3, "eth0", 9000)};
  for (const auto& [text, index] :
       {std::pair{"127.0.0.1", 1U}, std::pair{"172.17.0.1", 2U}, std::pair{"192.0.2.2", 3U},
        std::pair{"192.0.2.3", 3U}, std::pair{"169.254.7.7", 3U}, std::pair{"::1", 1U},
        std::pair{"fe80::1", 2U}, std::pair{"fe80::2", 3U}, std::pair{"fd00::2", 3U}}) {
    network.addresses.push_back({gid(text), index, false});
  }
  network.default_interface = "eth0";
  network.machine_id = "x";
  return network;
}

std::vector<std::string> table(const PortFacts& facts) {
  std::vector<std::string> lines;
  for (const GidEntry& entry : facts.gids) {
    if (!is_zero(entry.gid)) lines.push_back(gid_address(entry.gid) + " " + entry.ifname);
  }
  return lines;
}

TEST(Discovery, OrderOfTheTable) {
  const PortFacts facts = make_port_facts(typical());
  EXPECT_THAT(table(facts), ElementsAre("192.0.2.2 eth0", "192.0.2.3 eth0", "172.17.0.1 docker0",
                                        "fd00::2 eth0", "169.254.7.7 eth0", "fe80::2 eth0",
                                        "fe80::1 docker0", "127.0.0.1 lo", "::1 lo"));
  EXPECT_EQ(facts.gids[0].ifindex, 3U);
}

TEST(Discovery, WithoutDefaultRouteByInterface) {
  HostNetwork network = typical();
  network.default_interface.clear();
  EXPECT_EQ(table(make_port_facts(network))[0], "172.17.0.1 docker0");
}

TEST(Discovery, DownInterfacesGiveNoGid) {
  HostNetwork network = typical();
  network.interfaces[2].up = false;
  EXPECT_THAT(table(make_port_facts(network)),
              ElementsAre("172.17.0.1 docker0", "fe80::1 docker0", "127.0.0.1 lo", "::1 lo"));
}

TEST(Discovery, TemporaryAddressesComeAfterLastingOnes) {
  HostNetwork network = typical();
  network.addresses.insert(network.addresses.begin(), {gid("2001:db8::7"), 3, true});
  const auto lines = table(make_port_facts(network));
  EXPECT_EQ(lines[3], "fd00::2 eth0");
  EXPECT_EQ(lines[4], "2001:db8::7 eth0");
}

TEST(Discovery, FullTableKeepsLoopback) {
  HostNetwork network = typical();
  for (unsigned i = 0; i < 100; ++i) {
    network.addresses.push_back({ipv4_gid(htonl(0x0a000001 + i)), 3, false});
  }
  const auto lines = table(make_port_facts(network));
  ASSERT_EQ(lines.size(), ib::kGidTableLength);
  EXPECT_EQ(lines.front(), "192.0.2.2 eth0");
  EXPECT_EQ(lines.back(), "127.0.0.1 lo");
}

TEST(Discovery, ActiveMtuIsThatOfTheSmallestInterface) {
  HostNetwork network = typical();
  EXPECT_EQ(make_port_facts(network).active_mtu, 1024U);
  network.interfaces[1].mtu = 9000;
  EXPECT_EQ(make_port_facts(network).active_mtu, 4096U);
  for (const auto& [mtu, expected] :
       {std::pair{4096U + 96, 4096U}, std::pair{4096U + 95, 2048U}, std::pair{1400U, 1024U},
        std::pair{1280U, 1024U}, std::pair{576U, 256U}, std::pair{68U, 256U}}) {
    network.interfaces[2].mtu = mtu;
    EXPECT_EQ(make_port_facts(network).active_mtu, expected) << mtu;
  }
}

TEST(Discovery, LoopbackOnlyHost) {
  HostNetwork network = typical();
  network.interfaces.resize(1);
  const PortFacts facts = make_port_facts(network);
  EXPECT_THAT(table(facts), ElementsAre("127.0.0.1 lo", "::1 lo"));
  EXPECT_EQ(facts.active_mtu, 4096U);
  EXPECT_NE(facts.guid, 0U);
}

TEST(Discovery, NothingAtAllStillNamesThisHost) {
  const PortFacts facts = make_port_facts({});
  EXPECT_THAT(table(facts), ElementsAre("127.0.0.1 lo"));
  EXPECT_NE(facts.guid, 0U);
}

TEST(Discovery, GuidIsTheDefaultInterfacesMac) {
  EXPECT_EQ(make_port_facts(typical()).guid, 0x000000fffe000003U);
  HostNetwork no_mac = typical();
  for (Interface& i : no_mac.interfaces) i.mac = {};
  const std::uint64_t guid = make_port_facts(no_mac).guid;
  EXPECT_NE(guid, 0U);
  EXPECT_EQ(make_port_facts(no_mac).guid, guid);
  no_mac.machine_id = "y";
  EXPECT_NE(make_port_facts(no_mac).guid, guid);
}

TEST(Discovery, DefaultRoute) {
  const std::string head =
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\n";
  EXPECT_EQ(default_route_interface(head), "");
  EXPECT_EQ(default_route_interface(head +
                                    "eth1\t00000000\t010200C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
                                    "eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
                                    "eth2\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"),
            "eth0");
  EXPECT_EQ(default_route_interface(head +
                                    "tun0\t00000000\t010200C0\t0003\t0\t0\t0\t00000080\t0\t0\t0\n"),
            "");
}

TEST(Discovery, Ipv6Lines) {
  HostNetwork network;
  append_ipv6(
      "00000000000000000000000000000001 01 80 10 80       lo\n"
      "fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n"
      "fd000000000000000000000000000002 0a 40 00 01     eth0\n"
      "fd000000000000000000000000000003 04 40 00 40     eth0\n"
      "fd000000000000000000000000000004 04 40 00 88     eth0\n"
      "nonsense\n",
      network);
  ASSERT_EQ(network.addresses.size(), 3U);  // the tentative and the duplicate are left out
  EXPECT_EQ(gid_address(network.addresses[1].gid), "fe80::fc:ff:fe00:1");
  EXPECT_EQ(network.addresses[2].ifindex, 10U);
  EXPECT_TRUE(network.addresses[2].temporary);
}

TEST(Discovery, Words) {
  EXPECT_EQ(gid_address(gid("192.0.2.2")), "192.0.2.2");
  EXPECT_EQ(gid_groups(gid("192.0.2.2")), "0000:0000:0000:0000:0000:ffff:c000:0202");
  EXPECT_EQ(gid_groups(gid("fe80::1")), "fe80:0000:0000:0000:0000:0000:0000:0001");
}

// The real host: whatever getifaddrs says is ours, and the table holds nothing else.
TEST(Discovery, AgreesWithGetifaddrs) {
  ifaddrs* list = nullptr;
  ASSERT_EQ(getifaddrs(&list), 0);
  std::vector<ib::Gid> known;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    if (i->ifa_addr->sa_family == AF_INET) {
      known.push_back(ipv4_gid(reinterpret_cast<sockaddr_in*>(i->ifa_addr)->sin_addr.s_addr));
    } else if (i->ifa_addr->sa_family == AF_INET6) {
      ib::Gid gid{};
      std::memcpy(gid.data(), &reinterpret_cast<sockaddr_in6*>(i->ifa_addr)->sin6_addr, gid.size());
      known.push_back(gid);
    }
  }
  freeifaddrs(list);
  const PortFacts facts = discover();
  EXPECT_NE(facts.guid, 0U);
  EXPECT_FALSE(is_zero(facts.gids[0].gid));
  for (const GidEntry& entry : facts.gids) {
    if (is_zero(entry.gid)) continue;
    EXPECT_THAT(known, testing::Contains(entry.gid)) << gid_address(entry.gid);
    EXPECT_EQ(if_nametoindex(entry.ifname), entry.ifindex);
    EXPECT_TRUE(is_local_gid(entry.gid)) << gid_address(entry.gid);
  }
}

// A socket() of any family in `refused` kills the process, as the filter of a service unit does.
void forbid_sockets(const std::vector<unsigned>& refused) {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
  };
  for (const unsigned family : refused) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, family, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(2);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(3);
}

TEST(Discovery, NeedsNoNetlink) {
  const auto expected = table(discover());
  EXPECT_EXIT(
      {
        forbid_sockets({AF_NETLINK, AF_PACKET});
        const bool same = table(discover()) == expected && is_local_gid(gid("127.0.0.1")) &&
                          !is_local_gid(gid("203.0.113.77"));
        _exit(same ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Discovery, IsLocal) {
  EXPECT_TRUE(is_local_gid(gid("127.0.0.1")));
  EXPECT_TRUE(is_local_gid(gid("127.255.3.4")));
  EXPECT_TRUE(is_local_gid(gid("::1")));
  EXPECT_FALSE(is_local_gid(gid("::")));
  EXPECT_FALSE(is_local_gid(gid("203.0.113.77")));
  EXPECT_FALSE(is_local_gid(gid("2001:db8::1")));
}

}  // namespace
}  // namespace vrb::engine
