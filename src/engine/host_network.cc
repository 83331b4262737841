// The part of discovery that asks the kernel.
// SPDX-License-Identifier: Apache-2.0
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "engine/config.h"
#include "engine/discovery.h"
#include "engine/text.h"

namespace vrb::engine {
namespace {

// A datagram socket to ask about interfaces with; nothing is sent on it.
class Asker {
 public:
  Asker() : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    if (fd_ < 0) fd_ = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  }
  ~Asker() {
    if (fd_ >= 0) close(fd_);
  }
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  bool ask(unsigned long request, void* argument) const {
    return fd_ >= 0 && ioctl(fd_, request, argument) == 0;
  }

 private:
  int fd_;
};

// All IPv4 addresses, as the kernel lists them: secondary ones too, under their interface or label.
std::vector<ifreq> ipv4_requests(const Asker& asker) {
  std::vector<ifreq> requests(32);
  for (;;) {
    ifconf list{};
    list.ifc_len = static_cast<int>(requests.size() * sizeof(ifreq));
    list.ifc_req = requests.data();
    if (!asker.ask(SIOCGIFCONF, &list)) return {};
    const std::size_t count = static_cast<std::size_t>(list.ifc_len) / sizeof(ifreq);
    if (count < requests.size()) {
      requests.resize(count);
      return requests;
    }
    requests.resize(requests.size() * 2);  // it was full: there may be more
  }
}

Interface describe(const Asker& asker, unsigned index, const std::string& name) {
  Interface interface;
  interface.index = index;
  interface.name = name;
  ifreq request{};
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  if (asker.ask(SIOCGIFFLAGS, &request)) {
    interface.up = (request.ifr_flags & IFF_UP) != 0;
    interface.loopback = (request.ifr_flags & IFF_LOOPBACK) != 0;
  }
  if (asker.ask(SIOCGIFMTU, &request)) interface.mtu = static_cast<unsigned>(request.ifr_mtu);
  if (asker.ask(SIOCGIFHWADDR, &request) && request.ifr_hwaddr.sa_family == ARPHRD_ETHER) {
    std::memcpy(interface.mac.data(), request.ifr_hwaddr.sa_data, interface.mac.size());
  }
  return interface;
}

std::string name_of(const Asker& asker, unsigned index) {
  ifreq request{};
  request.ifr_ifindex = static_cast<int>(index);
  return asker.ask(SIOCGIFNAME, &request) ? request.ifr_name : "";
}

unsigned index_of(const Asker& asker, const std::string& name) {
  ifreq request{};
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  return asker.ask(SIOCGIFINDEX, &request) ? static_cast<unsigned>(request.ifr_ifindex) : 0;
}

void append_ipv4(const Asker& asker, HostNetwork& network) {
  for (const ifreq& request : ipv4_requests(asker)) {
    if (request.ifr_addr.sa_family != AF_INET) continue;
    sockaddr_in in{};
    std::memcpy(&in, &request.ifr_addr, sizeof in);
    if (in.sin_addr.s_addr == INADDR_ANY) continue;
    // "eth0:1" is a label on eth0.
    std::string name(request.ifr_name, strnlen(request.ifr_name, IFNAMSIZ));
    name.resize(std::min(name.size(), name.find(':')));
    network.addresses.push_back({ipv4_gid(in.sin_addr.s_addr), index_of(asker, name), false});
  }
}

// Only addresses; the interfaces are described when they are wanted.
HostNetwork host_addresses(const Asker& asker) {
  HostNetwork network;
  append_ipv4(asker, network);
  // /proc/net names the network namespace of the process, this names the thread's, as socket()
  // does.
  append_ipv6(read_file("/proc/thread-self/net/if_inet6"), network);
  return network;
}

std::string machine_id() {
  std::string id = read_file("/etc/machine-id");
  if (id.empty()) id = read_file("/proc/sys/kernel/random/boot_id");
  return id;
}

HostNetwork host_network() {
  const Asker asker;
  HostNetwork network = host_addresses(asker);
  for (const Address& address : network.addresses) {
    const auto same = [&](const Interface& i) { return i.index == address.ifindex; };
    if (std::any_of(network.interfaces.begin(), network.interfaces.end(), same)) continue;
    network.interfaces.push_back(describe(asker, address.ifindex, name_of(asker, address.ifindex)));
  }
  network.default_interface = default_route_interface(read_file("/proc/thread-self/net/route"));
  network.machine_id = machine_id();
  return network;
}

}  // namespace

PortFacts discover() {
  PortFacts facts = make_port_facts(host_network());
  if (config().mtu != 0) facts.active_mtu = config().mtu;
  return facts;
}

bool is_local_gid(const ib::Gid& gid) {
  if (is_ipv4(gid) && gid[12] == 127) return true;
  ib::Gid loopback{};
  loopback[15] = 1;
  if (gid == loopback) return true;
  if (is_zero(gid)) return false;
  const HostNetwork network = host_addresses(Asker());
  return std::any_of(network.addresses.begin(), network.addresses.end(),
                     [&](const Address& address) { return address.gid == gid; });
}

}  // namespace vrb::engine
