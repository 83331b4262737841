// Config: what the environment (VERBENA_*) asks of this process, parsed once and then read-only.
// A bad value never stops a library inside somebody's program: it is noted in errors, explained
// when VERBENA_EXPLAIN is on, and the default holds. `verbena run` fails on it instead. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace vrb::engine {

enum class Carrier { Auto, Local, Wire };

struct Config {
  Carrier carrier = Carrier::Auto;  // VERBENA_CARRIER=auto|local|wire
  unsigned mtu = 0;                 // VERBENA_MTU in bytes; 0: what the interfaces carry
  bool explain = false;             // VERBENA_EXPLAIN=0|1
  bool move = true;                 // VERBENA_MOVE=0|1: the shared-pages tier
  bool cma = true;                  // VERBENA_CMA=0|1: copies by process_vm_*
  std::vector<uid_t> trusted_uids;  // VERBENA_LOCAL_TRUST=name|uid,...; sorted
  unsigned kernel_major = 0;        // VERBENA_KERNEL=6.1: features of later kernels are not used;
  unsigned kernel_minor = 0;        //   0.0: nothing is masked
  std::string tree;                 // VERBENA_TREE: root of the generated tree, or empty
  std::vector<std::string> errors;  // one sentence for each value that was not understood

  bool trusts(uid_t uid) const;
  // May a feature be tried that came with this kernel? (The kernel itself may still refuse it.)
  bool kernel_allows(unsigned major, unsigned minor) const;
};

// Returns the value of a variable or nullptr.
using Environment = std::function<const char*(const char* name)>;
// Returns whether the user exists and gives its id.
using UserLookup = std::function<bool(std::string_view name, uid_t& uid)>;

Config parse_config(const Environment& environment, const UserLookup& user);

// This process's, parsed at the first call. Set-uid programs see defaults only.
const Config& config();

// Looks the user up in a passwd(5) file, without NSS (which would load modules into strangers'
// processes).
bool find_user(const char* passwd_path, std::string_view name, uid_t& uid);

const char* carrier_name(Carrier carrier);

}  // namespace vrb::engine
