// SPDX-License-Identifier: Apache-2.0
#include "local/copy.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace vrb::local {
namespace {

TEST(Copy, EveryLengthAndAlignment) {
  std::vector<std::byte> from(600), to(600), expected(600);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  for (std::size_t length = 0; length <= 300; ++length) {
    for (std::size_t a = 0; a < 17; ++a) {
      for (std::size_t b = 0; b < 17; b += 3) {
        std::memset(to.data(), 0xee, to.size());
        std::memset(expected.data(), 0xee, expected.size());
        std::memcpy(expected.data() + b, from.data() + a, length);
        copy_ascending(to.data() + b, from.data() + a, length);
        ASSERT_EQ(std::memcmp(to.data(), expected.data(), to.size()), 0)
            << length << ' ' << a << ' ' << b;
      }
    }
  }
}

TEST(Copy, DownwardsWhereTheRangesOverlap) {
  std::vector<std::byte> memory(1000), expected;
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i);
  for (const std::size_t distance : {1, 5, 16, 63, 64, 100}) {
    expected = memory;
    std::memmove(expected.data(), memory.data() + distance, 800);
    copy_ascending(memory.data(), memory.data() + distance, 800);
    ASSERT_EQ(memory, expected) << distance;
  }
}

// A program that polls the last byte finds the whole message, of any size and alignment (A32).
TEST(Copy, TheLastByteIsTheLast) {
  constexpr std::size_t kMost = 4096 + 16;
  alignas(64) static std::byte target[kMost];
  std::vector<std::byte> source(kMost);
  std::atomic<std::size_t> start{0}, length{0};
  std::atomic<std::uint32_t> round{0}, seen{0};
  std::atomic<std::uint64_t> early{0};
  constexpr std::uint32_t kRounds = 3000;
  std::thread poller([&] {
    for (std::uint32_t r = 1; r <= kRounds; ++r) {
      while (round.load(std::memory_order_acquire) != r) std::this_thread::yield();
      const std::size_t begin = start;
      const std::size_t n = length;
      const auto value = static_cast<std::uint8_t>(r % 251 + 1);
      const auto at = [&](std::size_t i) {
        return __atomic_load_n(reinterpret_cast<std::uint8_t*>(target) + begin + i,
                               __ATOMIC_ACQUIRE);
      };
      for (unsigned spins = 1; at(n - 1) != value; ++spins) {
        if (spins % 4096 == 0) std::this_thread::yield();
      }
      for (std::size_t i = 0; i < n; ++i) early += at(i) != value ? 1 : 0;
      seen.store(r, std::memory_order_release);
    }
  });
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    start = r * 5 % 16;
    length = 1 + r * 37 % (kMost - 16);
    std::memset(source.data(), static_cast<int>(r % 251 + 1), source.size());
    std::memset(target, 0, sizeof target);
    round.store(r, std::memory_order_release);
    copy_ascending(target + start, source.data() + r % 9, std::min(length.load(), kMost - 16));
    while (seen.load(std::memory_order_acquire) != r) std::this_thread::yield();
  }
  poller.join();
  EXPECT_EQ(early.load(), 0U);
}

}  // namespace
}  // namespace vrb::local
