// SPDX-License-Identifier: Apache-2.0
#include "local/trust.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "local/layout.h"

namespace vrb::local {
namespace {

constexpr std::uint64_t kInitialUserNs = 0xEFFFFFFD;  // PROC_USER_INIT_INO

std::uint64_t inode_of(const char* path) {
  struct stat st {};
  return stat(path, &st) == 0 ? st.st_ino : 0;
}

std::uint32_t overflow_uid() {
  char text[16] = {};
  const int fd = open("/proc/sys/kernel/overflowuid", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 65534;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  return n > 0 ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)) : 65534;
}

bool is_trusted(const TrustPolicy& policy, std::uint32_t uid) {
  return std::find(policy.trusted_uids.begin(), policy.trusted_uids.end(), uid) !=
         policy.trusted_uids.end();
}

bool same(std::uint64_t a, std::uint64_t b) { return a != 0 && a == b; }

}  // namespace

Ourselves ourselves(const TrustPolicy& policy) {
  Ourselves us;
  us.user_ns = inode_of("/proc/self/ns/user");
  us.pid_ns = inode_of("/proc/self/ns/pid");
  us.net_ns = inode_of("/proc/self/ns/net");
  us.initial_user_ns = us.user_ns == kInitialUserNs;
  us.overflow_uid = overflow_uid();
  us.layout_version = kLayoutVersion;
  us.wire_only = policy.wire_only;
  us.pid = getpid();
  refresh(us);
  return us;
}

void refresh(Ourselves& us) {
  us.uid = geteuid();
  us.dumpable = prctl(PR_GET_DUMPABLE) == 1;
}

ib::Cause judge_user(const Ourselves& us, const TrustPolicy& policy, std::uint32_t uid) {
  // Every user that a namespace does not map looks like the overflow uid (W26).
  const bool anybody = uid == us.overflow_uid && !us.initial_user_ns;
  if (!anybody && (uid == us.uid || is_trusted(policy, uid))) return {};
  return ib::cause(ib::CauseCode::OtherUser, 0, uid, us.uid);
}

ib::Cause judge(const Ourselves& us, const TrustPolicy& policy, const Identity& peer) {
  if (us.wire_only) return ib::cause(ib::CauseCode::WireForced);
  const ib::Cause user = judge_user(us, policy, peer.uid);
  if (user.code != ib::CauseCode::None) return user;
  if (peer.wire_only) return ib::cause(ib::CauseCode::PeerWantsWire);
  if (peer.layout_version != us.layout_version) {
    return ib::cause(ib::CauseCode::OtherLayout, 0, peer.layout_version, us.layout_version);
  }
  if (!us.dumpable || !peer.dumpable) return ib::cause(ib::CauseCode::NotDumpable);
  if (!same(us.net_ns, peer.net_ns)) return ib::cause(ib::CauseCode::OtherNamespace);
  if (is_trusted(policy, peer.uid)) return {};
  const bool together = same(us.user_ns, peer.user_ns) && same(us.pid_ns, peer.pid_ns);
  if (!together || peer.pid == 0) return ib::cause(ib::CauseCode::OtherNamespace);
  return {};
}

}  // namespace vrb::local
