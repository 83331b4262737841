// What the memory of a rank must hold, and who uses which byte in the current round: operations of
// different send queues run at the same time, so that only those of one queue may meet in a byte.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "protocol.h"

namespace vrb::model {

struct Range {
  std::uint64_t offset = 0, length = 0;  // in the arena
};

// Concatenates or spreads the bytes of ranges.
std::vector<std::byte> gather(std::span<const std::byte> memory, std::span<const Range> ranges);
void scatter(std::span<std::byte> memory, std::span<const Range> ranges,
             std::span<const std::byte> bytes);

class Shadow {
 public:
  // How a work request uses a byte.
  enum class Use : std::uint8_t {
    Gather,  // source of SEND and WRITE
    Inline,  // the same, read while it is posted
    Fetch,   // destination of READ and atomics
    Read,    // the remote side of READ
    Write,   // of WRITE
    Atomic,  // of atomics
    Own,     // by the program, or a receive buffer
  };
  static constexpr std::uint16_t kProgram = 0xffe;  // a "queue" of its own: meets nobody

  Shadow() : bytes_(kArenaBytes), marks_(kArenaBytes) {}

  std::span<std::byte> bytes() { return bytes_; }

  void new_round();
  struct Look {
    bool allowed = true;
    bool fence = false;  // only behind a fence: a READ or atomic of the same queue was there first
  };
  // May `queue` (1 to 0xffd) use the range so, given all that was marked in this round?
  Look look(Range range, std::uint16_t queue, Use use) const;
  void mark(Range range, std::uint16_t queue, Use use);

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::uint16_t> marks_;  // queue << 4 | kinds of use
  std::vector<Range> marked_;
};

}  // namespace vrb::model
