// The CMA tier: process_vm_readv and process_vm_writev towards a peer. Any thread, inside a lane.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "local/cursor.h"

namespace vrb::local {

enum class Direction : bool { Put, Get };

// Copies `bytes` between the two places. The peer is looked at before each call (a pid must never
// be taken for another process's); EPERM and ENOSYS switch the tier off for this peer.
Copied cma_copy(Peer& peer, Direction direction, Cursor local, Cursor remote, std::uint64_t bytes);

}  // namespace vrb::local
