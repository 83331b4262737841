// Does a survivor still hold something of those that have gone? Descriptors, mappings, pages of NIC
// memory, receives of its SRQ, peer indices, slots. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>

#include "session.h"
#include "stage.h"

namespace vrb::death {

// Opens the node; empty when it died or stopped over it.
std::optional<Held> open_node(Stage& stage, Process& node, bool polling = false,
                              std::uint32_t cq_entries = 0);

// Expects that `node` comes to hold what it held after Open, but for `living` peers that it may
// still be connected with, in both directions.
void expect_held(Stage& stage, Process& node, const Held& base, std::uint32_t living);

// The whole capacity of the SRQ can be consumed by `sender`, posted, and consumed again.
void expect_all_receives(Stage& stage, Sessions& sessions, Process& sender, Process& node);

// `count` processes that did not exist before connect to `node` and move data, one after the other;
// half of them are killed afterwards.
void expect_fresh_peers(Stage& stage, Sessions& sessions, Process& node, std::uint32_t count);

// The sockets of a process, to be seen gone after its end.
class SlotWatch {
 public:
  explicit SlotWatch(const Process& process);
  bool is_free() const;
  void expect_free(const std::string& whose) const;

 private:
  std::set<std::uint64_t> inodes_;
};

}  // namespace vrb::death
