// Tests of the arena: pieces, merging, freshness.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <map>
#include <random>

#include "local/nic_memory.h"

namespace vrb::local {
namespace {

TEST(Arena, PiecesAreWholePagesAndNeverOverlap) {
  constexpr std::uint64_t kSize = 1 << 20;
  Arena arena(kSize);
  std::mt19937_64 random(1);
  std::map<std::uint64_t, std::uint64_t> taken;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 && !taken.empty()) {
      auto piece = taken.begin();
      std::advance(piece, static_cast<std::ptrdiff_t>(random() % taken.size()));
      arena.free(piece->first, piece->second);
      taken.erase(piece);
      continue;
    }
    const std::uint64_t bytes = random() % 20'000;
    const std::uint64_t at = arena.alloc(bytes);
    if (at == ~0ULL) continue;
    const std::uint64_t pages = std::max<std::uint64_t>((bytes + 4095) & ~4095ULL, 4096);
    ASSERT_EQ(at % 4096, 0U);
    ASSERT_LE(at + pages, kSize);
    const auto next = taken.lower_bound(at);
    if (next != taken.end()) {
      ASSERT_LE(at + pages, next->first);
    }
    if (next != taken.begin()) {
      const auto before = std::prev(next);
      ASSERT_LE(before->first + before->second, at);
    }
    taken[at] = pages;
  }
  for (const auto& [at, bytes] : taken) arena.free(at, bytes);
  EXPECT_EQ(arena.alloc(kSize), 0U);  // everything has merged again
}

TEST(Arena, RefusesWhatDoesNotFit) {
  Arena arena(8192);
  EXPECT_EQ(arena.alloc(8193), ~0ULL);
  EXPECT_EQ(arena.alloc(~0ULL), ~0ULL);
  EXPECT_EQ(arena.alloc(~0ULL - 4095), ~0ULL);
  EXPECT_EQ(arena.alloc(1), 0U);
  EXPECT_EQ(arena.alloc(4096), 4096U);
  EXPECT_EQ(arena.alloc(0), ~0ULL);
}

TEST(NicMemory, PiecesAreZeroAgainAfterReuse) {
  auto made = NicMemory::create(42);
  ASSERT_TRUE(made);
  NicMemory& memory = **made;
  for (int round = 0; round < 3; ++round) {
    const auto table = memory.alloc_table(100'000);
    const auto shared = memory.alloc_shared(100'000);
    ASSERT_TRUE(table && shared);
    EXPECT_GE(table->offset, kTablesArena);
    EXPECT_GE(shared->offset, kSharedArena);
    for (std::uint64_t i = 0; i < 100'000; ++i) {
      ASSERT_EQ(memory.tables_at(table->offset)[i], std::byte{0});
      ASSERT_EQ(memory.shared_at(shared->offset)[i], std::byte{0});
    }
    memory.tables_at(table->offset)[99'999] = std::byte{1};
    memory.tables_at(table->offset)[5] = std::byte{1};
    memory.shared_at(shared->offset)[99'999] = std::byte{1};
    memory.free_table(*table);
    memory.free_shared(*shared);
  }
  EXPECT_FALSE(memory.alloc_table(5ULL << 30));
}

TEST(NicMemory, ACausedRefusalUnderAFileSizeLimit) {
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit finite{1 << 30, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &finite), 0);
  const auto made = NicMemory::create(42);
  setrlimit(RLIMIT_FSIZE, &old);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().cause.code, ib::CauseCode::SystemRefused);
}

TEST(NicMemory, ACausedRefusalWithoutAddressSpace) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer itself has used the address space up";
#endif
  rlimit old{};
  getrlimit(RLIMIT_AS, &old);
  const rlimit small{1ULL << 32, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &small), 0);
  const auto made = NicMemory::create(42);
  setrlimit(RLIMIT_AS, &old);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().cause.code, ib::CauseCode::SystemRefused);
}

TEST(NicMemory, UnderMlockallNothingIsFilled) {
  if (mlockall(MCL_FUTURE) != 0) GTEST_SKIP() << "mlockall is not allowed";
  auto made = NicMemory::create(42);
  munlockall();
  if (!made) GTEST_SKIP() << "RLIMIT_MEMLOCK does not allow the mapping";
  struct stat st {};
  fstat((*made)->shared_fd(), &st);
  EXPECT_LT(st.st_blocks, 1024);
  fstat((*made)->tables_fd(), &st);
  EXPECT_LT(st.st_blocks, 1024);
}

}  // namespace
}  // namespace vrb::local
