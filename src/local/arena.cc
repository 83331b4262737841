// First-fit allocation of pieces of a file of NIC memory.
// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "local/nic_memory.h"

namespace vrb::local {
namespace {

constexpr std::uint64_t kPage = 4096;

// Whole pages, at least one; 0 when that overflows.
std::uint64_t round_up(std::uint64_t bytes) {
  return bytes == 0 ? kPage : (bytes + kPage - 1) & ~(kPage - 1);
}

}  // namespace

std::uint64_t Arena::alloc(std::uint64_t bytes) {
  const std::uint64_t want = round_up(bytes);
  if (want == 0) return ~0ULL;
  for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
    const auto [offset, length] = *hole;
    if (length < want) continue;
    free_.erase(hole);
    if (length > want) free_[offset + want] = length - want;
    return offset;
  }
  return ~0ULL;
}

void Arena::free(std::uint64_t offset, std::uint64_t bytes) {
  auto piece = free_.emplace(offset, round_up(bytes)).first;
  const auto next = std::next(piece);
  if (next != free_.end() && piece->first + piece->second == next->first) {
    piece->second += next->second;
    free_.erase(next);
  }
  if (piece == free_.begin()) return;
  const auto before = std::prev(piece);
  if (before->first + before->second != piece->first) return;
  before->second += piece->second;
  free_.erase(piece);
}

}  // namespace vrb::local
