// Tests of due sets: every mark is taken, whatever the words hold.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>

#include "local/nic_memory.h"

namespace vrb::local {
namespace {

TEST(Due, GivesEveryBitOnce) {
  const auto set = std::make_unique<DueSet>();
  std::set<std::uint32_t> expected = {0, 63, 64, 4095, 4096, kDueBits - 1};
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) expected.insert(static_cast<std::uint32_t>(random() % kDueBits));
  for (const std::uint32_t index : expected) set_due(*set, index);
  set_due(*set, 64);
  set_due(*set, kDueBits);  // out of range: ignored
  std::set<std::uint32_t> taken;
  take_due(*set, [&](std::uint32_t index) { EXPECT_TRUE(taken.insert(index).second); });
  EXPECT_EQ(taken, expected);
  take_due(*set, [&](std::uint32_t) { ADD_FAILURE(); });
}

TEST(Due, LosesNothingBetweenThreads) {
  const auto set = std::make_unique<DueSet>();
  constexpr std::uint32_t kObjects = 200;
  constexpr std::uint64_t kRounds = 20'000;
  std::vector<std::atomic<std::uint64_t>> posted(kObjects);
  std::vector<std::uint64_t> seen(kObjects);
  std::atomic<bool> stop{false};
  std::thread producer([&] {
    std::mt19937 random(4);
    for (std::uint64_t i = 0; i < kRounds; ++i) {
      const auto object = static_cast<std::uint32_t>(random() % kObjects);
      posted[object].fetch_add(1);
      set_due(*set, object * 97);
    }
    stop = true;
  });
  const auto take = [&] {
    take_due(*set, [&](std::uint32_t index) { seen[index / 97] = posted[index / 97].load(); });
  };
  while (!stop) take();
  producer.join();
  take();
  for (std::uint32_t i = 0; i < kObjects; ++i) EXPECT_EQ(seen[i], posted[i].load());
}

}  // namespace
}  // namespace vrb::local
