// The generated tree: a directory that stands in for /sys/class/infiniband,
// /sys/class/infiniband_verbs and /dev/infiniband. It lies in
// ${XDG_RUNTIME_DIR:-/tmp}/verbena-<uid>/<hash of its contents>, belongs to the user alone (0700),
// is shared by all of the user's processes that see the same network, and is never removed by us.
// The preload library redirects programs to it. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/discovery.h"

namespace vrb::engine {

// Makes the tree, or completes it if it is there. Returns its root, a canonical path; "" with
// errno.
std::string make_tree(const PortFacts& facts);

// VERBENA_TREE where it names a directory, otherwise a tree that is made at the first call. "" when
// none can be made.
std::string tree_root();

// The same in a parent directory of the caller's choice, for tests. "" with errno (EPERM: the
// directory is a link, somebody else's, or open to others).
std::string make_tree_below(const std::string& parent, const PortFacts& facts);

}  // namespace vrb::engine
