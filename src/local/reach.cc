// Which tier reaches a range of a peer: the one place where that is decided.
// SPDX-License-Identifier: Apache-2.0
#include "local/transfer.h"

namespace vrb::local {

Tier reach(const Peer& peer, const memory::KeyEntry&, std::uint64_t, std::uint64_t) {
  if (peer.self) return Tier::Mapped;
  return peer.cma.load(std::memory_order_relaxed) ? Tier::Cma : Tier::Assist;
}

}  // namespace vrb::local
