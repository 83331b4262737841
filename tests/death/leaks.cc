// SPDX-License-Identifier: Apache-2.0
#include "leaks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include "holdings.h"
#include "nic.h"

namespace vrb::death {
namespace {

// Of one connected peer: its socket, pidfd and doorbell, and the same for the other direction.
constexpr std::uint32_t kFdsPerPeer = 6;
constexpr std::uint32_t kMapsPerPeer = 2;
// Pages of tables that the work touched and that are kept for the next: 1 MiB, in blocks.
constexpr std::uint64_t kWorkBlocks = 2048;
constexpr int kLooks = 10'000;

void sleep_a_little() {
  const timespec t{0, 1'000'000};
  nanosleep(&t, nullptr);
}

bool fits(const Held& held, const Held& base, std::uint32_t living) {
  const bool fds = held.fds >= base.fds && held.fds <= base.fds + living * kFdsPerPeer;
  const bool maps = held.maps >= base.maps && held.maps <= base.maps + living * kMapsPerPeer;
  return fds && maps && held.blocks <= base.blocks + kWorkBlocks;
}

}  // namespace

std::optional<Held> open_node(Stage& stage, Process& node, bool polling, std::uint32_t cq_entries) {
  Message order;
  order.tag = Tag::Open;
  order.polling = polling;
  order.cq_entries = cq_entries;
  const auto opened = stage.ask(node, order, Tag::Opened);
  if (!opened) return std::nullopt;
  return opened->held;
}

// The service thread notices an end a moment later, so this looks until it fits.
void expect_held(Stage& stage, Process& node, const Held& base, std::uint32_t living) {
  Message order;
  order.tag = Tag::Count;
  Held held;
  for (int look = 0; look < kLooks; ++look) {
    const auto counted = stage.ask(node, order, Tag::Counted);
    if (!counted) return;
    held = counted->held;
    if (fits(held, base, living)) return;
    sleep_a_little();
  }
  ADD_FAILURE() << stage.title() << ": " << node.name() << " holds " << held.fds
                << " descriptors (had " << base.fds << "), " << held.maps << " mappings (had "
                << base.maps << "), " << held.blocks << " blocks (had " << base.blocks << "), with "
                << living << " peers alive";
}

void expect_all_receives(Stage& stage, Sessions& sessions, Process& sender, Process& node) {
  Message order;
  order.tag = Tag::Hold;
  const auto held = stage.ask(node, order, Tag::Held);
  if (!held) return;
  EXPECT_EQ(held->number, kSrqEntries) << stage.title() << ": " << node.name();
  sessions.complete(sender, node, {{held->number, kSend, 0}, {}});
  order.tag = Tag::Refill;
  const auto refilled = stage.ask(node, order, Tag::Refilled);
  if (!refilled) return;
  EXPECT_EQ(refilled->number, kSrqEntries) << stage.title() << ": " << node.name();
  sessions.complete(sender, node, {{kSrqEntries + 1, kSend, 0}, {}});
}

void expect_fresh_peers(Stage& stage, Sessions& sessions, Process& node, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    Process& fresh = stage.start("fresh" + std::to_string(i));
    if (!open_node(stage, fresh)) return;
    sessions.complete(fresh, node, {{1, kAllOps, 0}, {}});
    if (i % 2 == 0) {
      stage.quit(fresh);
    } else {
      fresh.signal(SIGKILL);
      stage.wait_for_death(fresh);
    }
  }
}

SlotWatch::SlotWatch(const Process& process) : inodes_(socket_inodes(process.pid())) {}

bool SlotWatch::is_free() const { return bound_inodes(inodes_).empty(); }

void SlotWatch::expect_free(const std::string& whose) const {
  EXPECT_TRUE(is_free()) << whose << ": a slot is held after the process's end";
}

}  // namespace vrb::death
