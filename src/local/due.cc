// Marking an object for the owner's service thread.
// SPDX-License-Identifier: Apache-2.0
#include "base/points.h"
#include "local/nic_memory.h"

namespace vrb::local {

void set_due(DueSet& set, std::uint32_t index) {
  if (index >= kDueBits) return;
  const std::uint32_t word = index / 64;
  set.word[word].fetch_or(1ULL << (index % 64));
  VRB_POINT("due.word");
  set.summary[word / 64].fetch_or(1ULL << (word % 64));
  VRB_POINT("due.summary");
}

}  // namespace vrb::local
