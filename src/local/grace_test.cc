// Lanes, grace periods and quarantine (A20 to A23).
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "local/test_support.h"

namespace vrb::local::testing {
namespace {

// A helper whose lane at the node is entered and left on command.
class Grace : public ::testing::Test {
 protected:
  void meet(Helper& helper) {
    helper.tell("find " + std::to_string(node_.slot));
    ASSERT_TRUE(node_.until([&] { return helper.has_answer(); }));
    ASSERT_EQ(helper.hear(), "1 0");
  }
  Node node_;
};

TEST_F(Grace, NobodyInside) {
  Helper helpers[3];
  for (Helper& helper : helpers) meet(helper);
  EXPECT_TRUE(node_.memory->grace());
  constexpr int kRounds = 100'000;
  const std::uint64_t start = now_ns();
  for (int i = 0; i < kRounds; ++i) node_.memory->grace();
  const double each = static_cast<double>(now_ns() - start) / kRounds;
  std::printf("a grace period with three idle peers: %.0f ns\n", each);
  EXPECT_LT(each, 20'000);
}

TEST_F(Grace, AStuckLaneIsQuarantinedAndLaterReleased) {
  Helper helper;
  meet(helper);
  const auto piece = node_.memory->alloc_shared(4096);
  const auto table = node_.memory->alloc_table(4096);
  ASSERT_TRUE(piece && table);
  ASSERT_EQ(helper.ask("enter"), "inside");
  helper.kill(SIGSTOP);
  const std::uint64_t start = now_ns();
  EXPECT_FALSE(node_.memory->grace(100));
  const std::uint64_t first = now_ns() - start;
  EXPECT_GE(first, 100'000'000U);
  EXPECT_LT(first, 2'000'000'000U);
  // The same lane is not waited for again.
  const std::uint64_t again = now_ns();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(node_.memory->grace(100));
  EXPECT_LT(now_ns() - again, 1'000'000'000U);
  EXPECT_FALSE(node_.memory->quarantine_over());
  // What is freed now is not given out again.
  node_.memory->free_shared(*piece);
  node_.memory->free_table(*table);
  EXPECT_NE(node_.memory->alloc_shared(4096)->offset, piece->offset);
  EXPECT_NE(node_.memory->alloc_table(4096)->offset, table->offset);
  helper.kill(SIGCONT);
  ASSERT_EQ(helper.ask("leave"), "outside");
  EXPECT_TRUE(node_.memory->quarantine_over());
  EXPECT_EQ(node_.memory->alloc_shared(4096)->offset, piece->offset);
  EXPECT_EQ(node_.memory->alloc_table(4096)->offset, table->offset);
  EXPECT_TRUE(node_.memory->grace());
}

TEST_F(Grace, ADeadLaneEndsTheQuarantine) {
  Helper helper;
  meet(helper);
  ASSERT_EQ(helper.ask("enter"), "inside");
  EXPECT_FALSE(node_.memory->grace(1));
  helper.kill(SIGKILL);
  EXPECT_TRUE(node_.until([&] { return node_.deaths == 1; }));
  EXPECT_TRUE(node_.memory->quarantine_over());
  EXPECT_TRUE(node_.memory->grace());
}

TEST_F(Grace, WaitsForALaneThatIsLeft) {
  std::atomic<bool> inside{false}, left{false};
  std::thread user([&] {
    const InsideLane lane(*node_.board->self());
    inside = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    left = true;
  });
  while (!inside) std::this_thread::yield();
  EXPECT_TRUE(node_.memory->grace(60'000));
  EXPECT_TRUE(left);
  user.join();
}

// What was made invalid before a grace period is not used after it, by more threads than there are
// lanes.
TEST_F(Grace, NobodyUsesWhatWasTakenAway) {
  constexpr int kThreads = 12;
  constexpr int kRounds = 2000;
  struct Object {
    std::atomic<bool> valid{false};
    std::atomic<int> users{0};
  };
  static Object objects[2];
  std::atomic<Object*> current{&objects[0]};
  objects[0].valid = true;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const InsideLane lane(*node_.board->self());
        Object* object = current.load(std::memory_order_acquire);
        wrong += object->valid.load() ? 0 : 1;
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    Object* old = current.load();
    Object* next = old == &objects[0] ? &objects[1] : &objects[0];
    next->valid = true;
    current.store(next, std::memory_order_release);
    if (node_.memory->grace(60'000)) old->valid = false;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Grace, TheLanesOfTheDeadAreOutside) {
  {
    Helper helper;
    meet(helper);
    ASSERT_EQ(helper.ask("enter"), "inside");
  }
  ASSERT_TRUE(node_.until([&] { return node_.deaths == 1; }));
  for (std::uint32_t index = 0; index < kPeers; ++index) {
    for (const Lane& lane : node_.memory->shared().lanes[index])
      ASSERT_EQ(lane.epoch.load() & 1, 0U);
  }
}

}  // namespace
}  // namespace vrb::local::testing
