// SPDX-License-Identifier: Apache-2.0
#include "network.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "ib/limits.h"

namespace vrb::death {
namespace {

bool enter_new_network() {
  if (unshare(CLONE_NEWNET) == 0) return true;
  const uid_t uid = getuid();
  const gid_t gid = getgid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << uid << ' ' << uid << " 1";
  std::ofstream("/proc/self/gid_map") << gid << ' ' << gid << " 1";
  return true;
}

void bring_loopback_up() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  if (ioctl(fd, SIOCGIFFLAGS, &request) == 0) {
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    ioctl(fd, SIOCSIFFLAGS, &request);
  }
  close(fd);
}

}  // namespace

PrivateNetwork::PrivateNetwork(std::uint32_t free_slots) {
  former_ = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  made_ = enter_new_network();
  if (!made_) return;
  bring_loopback_up();
  occupy(free_slots);
}

void PrivateNetwork::occupy(std::uint32_t free_slots) {
  for (std::uint32_t slot = free_slots; slot < ib::kSlots; ++slot) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(ib::kSlotPortBase + slot));
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    ports_.push_back(fd);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
  }
}

PrivateNetwork::~PrivateNetwork() {
  for (const int fd : ports_) close(fd);
  // Out of a user namespace there is no way back; the next test may as well live there.
  if (made_ && setns(former_, CLONE_NEWNET) != 0) made_ = false;
  close(former_);
}

}  // namespace vrb::death
