// SPDX-License-Identifier: Apache-2.0
#include "shadow.h"

#include <algorithm>

namespace vrb::model {
namespace {

using Use = Shadow::Use;

// Kinds of use in a mark. Atomics count as read and written.
constexpr unsigned kGathered = 1, kRead = 2, kWritten = 4, kFetched = 8;
constexpr unsigned kChanged = kWritten | kFetched;
constexpr std::uint16_t kManyReaders = 0xfff;

constexpr unsigned kinds_of(Use use) {
  switch (use) {
    case Use::Gather:
    case Use::Inline:
      return kGathered;
    case Use::Fetch:
      return kFetched;
    case Use::Read:
      return kRead;
    case Use::Write:
      return kWritten;
    case Use::Atomic:
      return kRead | kWritten;
    case Use::Own:
      return kChanged;
  }
  return 0;
}

constexpr bool only_reads(Use use) { return (kinds_of(use) & kChanged) == 0; }

// The rules for a byte that the same queue used before (IBTA table 76: what is ordered, and what
// only behind a fence).
Shadow::Look after_own(unsigned before, Use use) {
  switch (use) {
    case Use::Gather:
      return {(before & kWritten) == 0, (before & kFetched) != 0};
    case Use::Read:
      return {(before & kFetched) == 0, (before & kRead) != 0};
    case Use::Write:
    case Use::Atomic:
      return {(before & (kGathered | kFetched)) == 0, (before & kRead) != 0};
    case Use::Inline:
    case Use::Fetch:
    case Use::Own:
      break;
  }
  return {false, false};
}

}  // namespace

std::vector<std::byte> gather(std::span<const std::byte> memory, std::span<const Range> ranges) {
  std::vector<std::byte> bytes;
  for (const Range& r : ranges) {
    const auto part = memory.subspan(r.offset, r.length);
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

void scatter(std::span<std::byte> memory, std::span<const Range> ranges,
             std::span<const std::byte> bytes) {
  for (const Range& r : ranges) {
    const auto part = bytes.first(std::min<std::uint64_t>(r.length, bytes.size()));
    std::ranges::copy(part, memory.begin() + static_cast<std::ptrdiff_t>(r.offset));
    bytes = bytes.subspan(part.size());
  }
}

void Shadow::new_round() {
  for (const Range& r : marked_) {
    std::fill_n(marks_.begin() + static_cast<std::ptrdiff_t>(r.offset), r.length, 0);
  }
  marked_.clear();
}

Shadow::Look Shadow::look(Range range, std::uint16_t queue, Use use) const {
  Look all;
  for (std::uint64_t i = range.offset; i < range.offset + range.length; ++i) {
    const unsigned mark = marks_[i];
    if (mark == 0) continue;
    const unsigned before = mark & 15;
    if (only_reads(use) && (before & kChanged) == 0 && mark >> 4 != queue) continue;
    if (mark >> 4 != queue || queue == kProgram) return {false, false};
    const bool reads = only_reads(use) && (before & kChanged) == 0;
    const Look one = reads ? Look{true, (before & kRead) != 0} : after_own(before, use);
    if (!one.allowed) return one;
    all.fence |= one.fence;
  }
  return all;
}

void Shadow::mark(Range range, std::uint16_t queue, Use use) {
  const unsigned kinds = kinds_of(use);
  for (std::uint64_t i = range.offset; i < range.offset + range.length; ++i) {
    const unsigned before = marks_[i];
    const bool foreign = before != 0 && before >> 4 != queue;
    const unsigned owner = foreign ? kManyReaders : queue;
    marks_[i] = static_cast<std::uint16_t>(owner << 4 | (before & 15) | kinds);
  }
  if (range.length != 0) marked_.push_back(range);
}

}  // namespace vrb::model
