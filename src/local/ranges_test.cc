// Tests of what ranges count as mapped.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "local/kernel.h"
#include "local/transfer.h"

namespace vrb::local {
namespace {

constexpr int kGuardInstall = 102;  // MADV_GUARD_INSTALL, Linux 6.13
constexpr std::uint64_t kPage = 4096;

// Five pages: rw, rw, read-only, none, rw.
class Ranges : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    kernel_mask().procmap_query = GetParam();
    base_ = static_cast<std::byte*>(
        mmap(nullptr, 5 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + 2 * kPage, kPage, PROT_READ);
    mprotect(base_ + 3 * kPage, kPage, PROT_NONE);
  }
  void TearDown() override {
    munmap(base_, 5 * kPage);
    kernel_mask().procmap_query = true;
  }
  std::uint64_t at(std::uint64_t page) const {
    return reinterpret_cast<std::uint64_t>(base_) + page * kPage;
  }
  std::byte* base_ = nullptr;
};

TEST_P(Ranges, RangeMapped) {
  EXPECT_TRUE(range_mapped(at(0), 2 * kPage, true));
  EXPECT_TRUE(range_mapped(at(0) + 100, 3 * kPage - 100, false));
  EXPECT_FALSE(range_mapped(at(0), 2 * kPage + 1, true));
  EXPECT_FALSE(range_mapped(at(0), 3 * kPage + 1, false));
  EXPECT_FALSE(range_mapped(at(3), 1, false));
  EXPECT_TRUE(range_mapped(at(4), kPage, true));
  EXPECT_TRUE(range_mapped(at(3), 0, true));
  EXPECT_FALSE(range_mapped(0, 1, false));
  EXPECT_FALSE(range_mapped(~0ULL - 10, 5, false));
  EXPECT_FALSE(range_mapped(at(0), ~0ULL, false));
  EXPECT_FALSE(range_mapped(at(0), 1ULL << 46, false));
  std::uint64_t on_stack = 0;
  EXPECT_TRUE(range_mapped(reinterpret_cast<std::uint64_t>(&on_stack), 8, true));
}

TEST_P(Ranges, AHoleInTheMiddle) {
  munmap(base_ + kPage, kPage);
  EXPECT_FALSE(range_mapped(at(0), 3 * kPage, false));
  EXPECT_TRUE(range_mapped(at(0), kPage, true));
  EXPECT_FALSE(range_mapped(at(1), 1, true));
  EXPECT_FALSE(mapped(at(0), kPage + 1));
}

TEST_P(Ranges, ManyAreas) {
  // 2000 areas of one page, every other one read-only.
  constexpr std::uint64_t kPages = 2000;
  auto* base = static_cast<std::byte*>(
      mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (std::uint64_t page = 0; page < kPages; page += 2)
    mprotect(base + page * kPage, kPage, PROT_READ);
  const auto start = reinterpret_cast<std::uint64_t>(base);
  EXPECT_TRUE(range_mapped(start, kPages * kPage, false));
  EXPECT_FALSE(range_mapped(start, kPages * kPage, true));
  munmap(base, kPages * kPage);
  EXPECT_FALSE(range_mapped(start, kPages * kPage, false));
}

INSTANTIATE_TEST_SUITE_P(BothWays, Ranges, ::testing::Bool());

TEST(Mapped, AsksWithoutTouching) {
  auto* base = static_cast<std::byte*>(
      mmap(nullptr, 200 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const auto start = reinterpret_cast<std::uint64_t>(base);
  EXPECT_TRUE(mapped(start, 200 * kPage));
  EXPECT_TRUE(mapped(start + 199 * kPage + 4095, 1));
  mprotect(base + 150 * kPage, kPage, PROT_NONE);
  EXPECT_FALSE(mapped(start, 200 * kPage));
  EXPECT_TRUE(mapped(start, 150 * kPage));
  EXPECT_FALSE(mapped(start + 150 * kPage + 17, 1));
  if (madvise(base + 10 * kPage, kPage, kGuardInstall) == 0) {
    EXPECT_FALSE(mapped(start, 11 * kPage));
    EXPECT_TRUE(range_mapped(start, 11 * kPage, true));  // the area is there; no crash either way
  }
  munmap(base, 200 * kPage);
  EXPECT_FALSE(mapped(start, 1));
  EXPECT_FALSE(mapped(0, 1));
  EXPECT_TRUE(mapped(0, 0));
  EXPECT_FALSE(mapped(~0ULL, 2));
}

}  // namespace
}  // namespace vrb::local
