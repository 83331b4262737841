// Which carrier an address asks for. Reads the host's addresses; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nic/qp_attr.h"

namespace vrb::engine {

enum class Destination { ThisHost, Group, Elsewhere };
// An address vector without GRH means this host (RoCE has no LIDs).
Destination destination(const nic::AddressVector& av);
// Is there an address in this place of our GID table?
bool holds_gid(unsigned index);

}  // namespace vrb::engine
