// Trust: who may meet whom over the local carrier (A41, A42, VERBENA_LOCAL_TRUST). Both ends of a
// handshake judge the other one by this, from what the kernel says (user and pid, SO_PEERCRED) and
// what the process says of itself. judge() and judge_user() are pure; ourselves() asks the kernel.
// Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "ib/cause.h"

namespace vrb::local {

struct TrustPolicy {
  std::vector<std::uint32_t> trusted_uids;  // besides our own; waives the user and pid namespaces
  bool wire_only = false;  // VERBENA_CARRIER=wire: refuse everybody with PeerWantsWire
  bool no_cma = false;     // never copy by process_vm_*: everything goes by assist
};

// What decides about one end.
struct Identity {
  std::uint32_t uid = 0;
  pid_t pid = 0;              // as we see it; 0: in a pid namespace that we do not see
  std::uint64_t user_ns = 0;  // inodes of /proc/self/ns/*; 0: unknown, which equals nothing
  std::uint64_t pid_ns = 0;
  std::uint64_t net_ns = 0;
  bool dumpable = false;
  bool wire_only = false;
  std::uint32_t layout_version = 0;
};

// What our own end must know besides.
struct Ourselves : Identity {
  std::uint32_t overflow_uid = 65534;
  bool initial_user_ns = false;
};

Ourselves ourselves(const TrustPolicy& policy);
// Asks again for what can change in a running process: uid and dumpable. A process with a second
// thread (our service thread) cannot change its user namespace, and its pid and network namespaces
// only for others.
void refresh(Ourselves& us);

// The user alone, before anything was said: None or OtherUser (args: 0, its uid, ours).
ib::Cause judge_user(const Ourselves& us, const TrustPolicy& policy, std::uint32_t uid);
// Everything. None: they may meet.
ib::Cause judge(const Ourselves& us, const TrustPolicy& policy, const Identity& peer);

}  // namespace vrb::local
