// The assist tier, target's side: requests that a peer left in our NIC memory, executed on our own
// memory. Service thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "local/nic_memory.h"
#include "local/peer.h"

namespace vrb::local {

// Serves all requests of peer `index` and rings its doorbell (-1: none) when there were any. Each
// one is checked against our key table inside a lane of our own, so that a grace period covers it.
void serve_requests(NicMemory& memory, Peer& self, std::uint32_t index, int doorbell);

}  // namespace vrb::local
