// SPDX-License-Identifier: Apache-2.0
#include "memory/key_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace vrb::memory {
namespace {

using ib::CauseCode;

constexpr std::uint64_t kTop = ~0ULL;
constexpr ib::Pdn kPd{3};

struct Fixture {
  explicit Fixture(std::size_t entries) : entries_(entries), table({entries_.data(), entries}) {}
  std::vector<KeyEntry> entries_;
  KeyTable table;
};

KeyTable::Region region(std::uint64_t iova, std::uint64_t length, std::uint64_t va,
                        std::uint32_t access = ib::kLocalWrite) {
  return {iova, length, va, kPd, access};
}

CauseCode why(const KeyView& view, std::uint32_t key, std::uint64_t addr, std::uint64_t length,
              ib::Pdn pd = kPd, std::uint32_t need = 0) {
  const KeyCheck check = view.check(key, pd, need, addr, length);
  EXPECT_EQ(check.ok, check.cause.code == CauseCode::None);
  EXPECT_EQ(check.ok, check.resolved.entry != nullptr);
  return check.cause.code;
}

TEST(KeyView, AnEmptyTableKnowsNoKey) {
  EXPECT_EQ(why({}, 0x100, 0, 0), CauseCode::KeyUnknown);
  Fixture f(4);
  for (const std::uint32_t key : {0U, 1U, 0x100U, 0x3ffU, 0x400U, 0xffffffffU}) {
    EXPECT_EQ(why(f.table.view(), key, 0, 0), CauseCode::KeyUnknown);
  }
}

TEST(KeyView, ResolvesInsideTheRegion) {
  Fixture f(4);
  const std::uint32_t key = *f.table.publish(region(0x1000, 0x100, 0x7f0000));
  const KeyView view = f.table.view();
  const KeyCheck check = view.check(key, kPd, ib::kLocalWrite, 0x1010, 0xf0);
  ASSERT_TRUE(check.ok);
  EXPECT_EQ(check.resolved.va, 0x7f0010U);
  EXPECT_EQ(check.resolved.entry, &f.entries_[key >> 8]);
  EXPECT_EQ(why(view, key, 0x1000, 0x100), CauseCode::None);
  EXPECT_EQ(why(view, key, 0x1000, 0x101), CauseCode::KeyRange);
  EXPECT_EQ(why(view, key, 0xfff, 1), CauseCode::KeyRange);
  EXPECT_EQ(why(view, key, 0x10ff, 1), CauseCode::None);
  EXPECT_EQ(why(view, key, 0x1100, 1), CauseCode::KeyRange);
  EXPECT_EQ(why(view, key, 0x1010, kTop), CauseCode::KeyRange);
  EXPECT_EQ(why(view, key, kTop, kTop), CauseCode::KeyRange);
}

TEST(KeyView, JudgesALengthOfZeroByItsAddress) {
  Fixture f(4);
  const std::uint32_t key = *f.table.publish(region(0x1000, 0x100, 0x1000));
  EXPECT_EQ(why(f.table.view(), key, 0x1000, 0), CauseCode::None);
  EXPECT_EQ(why(f.table.view(), key, 0x1100, 0), CauseCode::None);
  EXPECT_EQ(why(f.table.view(), key, 0x1101, 0), CauseCode::KeyRange);
  EXPECT_EQ(why(f.table.view(), key, 0xfff, 0), CauseCode::KeyRange);
  const std::uint32_t empty = *f.table.publish(region(0x2000, 0, 0x2000));
  EXPECT_EQ(why(f.table.view(), empty, 0x2000, 0), CauseCode::None);
  EXPECT_EQ(why(f.table.view(), empty, 0x2000, 1), CauseCode::KeyRange);
}

TEST(KeyView, TellsWhatAKeyDoesNotGrant) {
  Fixture f(4);
  const std::uint32_t access = ib::kLocalWrite | ib::kRemoteRead;
  const std::uint32_t key = *f.table.publish(region(0x1000, 0x100, 0x1000, access));
  const KeyView view = f.table.view();
  const KeyCheck pd = view.check(key, ib::Pdn{4}, 0, 0, 0);
  EXPECT_EQ(pd.cause.code, CauseCode::KeyOtherPd);
  EXPECT_EQ(pd.cause.args[1], 3U);
  EXPECT_EQ(pd.cause.args[2], 4U);
  EXPECT_TRUE(view.check(key, KeyView::kAnyPd, 0, 0x1000, 1).ok);
  const KeyCheck denied = view.check(key, kPd, ib::kRemoteWrite | ib::kRemoteRead, 0x1000, 1);
  EXPECT_EQ(denied.cause.code, CauseCode::KeyAccess);
  EXPECT_EQ(denied.cause.args[0], key);
  EXPECT_EQ(denied.cause.args[1], access);
  EXPECT_EQ(denied.cause.args[2], ib::kRemoteWrite | ib::kRemoteRead);
  EXPECT_EQ(why(view, key, 0x1000, 1, kPd, 1U << 20), CauseCode::KeyAccess);
  for (std::uint32_t variant = 0; variant < 256; ++variant) {
    const std::uint32_t other = (key & ~0xffU) | variant;
    EXPECT_EQ(why(view, other, 0x1000, 1), other == key ? CauseCode::None : CauseCode::KeyUnknown);
  }
}

TEST(KeyView, RegionsAtTheEndOfTheAddressSpace) {
  Fixture f(4);
  EXPECT_EQ(f.table.publish(region(kTop, 2, 0)).error().cause.code, CauseCode::MemoryNotMapped);
  EXPECT_EQ(f.table.publish(region(0, 2, kTop)).error().errc, ib::Errc::Invalid);
  const std::uint32_t last = *f.table.publish(region(kTop - 0xf, 0x10, 0x1000));
  EXPECT_EQ(why(f.table.view(), last, kTop, 1), CauseCode::None);
  EXPECT_EQ(why(f.table.view(), last, kTop, 2), CauseCode::KeyRange);
  EXPECT_EQ(why(f.table.view(), last, 0, 0), CauseCode::KeyRange);
  const std::uint32_t all = *f.table.publish(region(0, kTop, 0));
  EXPECT_EQ(why(f.table.view(), all, 0, kTop), CauseCode::None);
  EXPECT_EQ(why(f.table.view(), all, 1, kTop), CauseCode::KeyRange);
}

// The check against the same question asked in 128 bits, with values around every edge.
TEST(KeyView, AgreesWithArithmeticThatCannotOverflow) {
  std::mt19937_64 random(1);
  const auto number = [&random]() -> std::uint64_t {
    const std::uint64_t small = random() % 8;
    switch (random() % 4) {
      case 0:
        return small;
      case 1:
        return kTop - small;
      case 2:
        return (1ULL << 63) + small - 4;
      default:
        return random() >> (random() % 64);
    }
  };
  for (int i = 0; i < 200000; ++i) {
    Fixture f(2);
    const std::uint64_t iova = number();
    const std::uint64_t size = number();
    const auto key = f.table.publish(region(iova, size, 0));
    const auto end = static_cast<unsigned __int128>(iova) + size;
    ASSERT_EQ(key.has_value(), end <= static_cast<unsigned __int128>(kTop) + 1 || size == 0);
    if (!key) continue;
    const std::uint64_t addr = random() % 2 == 0 ? number() : iova + random() % 9 - 4;
    const std::uint64_t length = random() % 2 == 0 ? number() : size + random() % 9 - 4;
    const bool inside = addr >= iova && static_cast<unsigned __int128>(addr) + length <= end;
    const KeyCheck check = f.table.view().check(*key, kPd, 0, addr, length);
    ASSERT_EQ(check.ok, inside) << iova << ' ' << size << ' ' << addr << ' ' << length;
    if (inside) {
      ASSERT_EQ(check.resolved.va, addr - iova);
    }
  }
}

TEST(KeyView, TakesAnyGarbage) {
  std::mt19937_64 random(2);
  std::vector<KeyEntry> entries(8);
  const KeyView view(entries.data(), 8);
  for (int i = 0; i < 200000; ++i) {
    KeyEntry& e = entries[random() % 8];
    e.tag = random();
    e.iova = random();
    e.length = random();
    e.pd = static_cast<std::uint32_t>(random() % 4);
    view.check(static_cast<std::uint32_t>(random() % 0x1000), kPd, 0, random(), random());
    view.check(static_cast<std::uint32_t>(random()), kPd, 0, random(), random());
  }
}

TEST(KeyTable, NeverGivesIndexZeroAndStopsWhenFull) {
  Fixture f(5);
  std::set<std::uint32_t> indices;
  for (int i = 0; i < 4; ++i) indices.insert(*f.table.publish(region(0, 1, 0)) >> 8);
  EXPECT_EQ(indices, (std::set<std::uint32_t>{1, 2, 3, 4}));
  const auto refused = f.table.publish(region(0, 1, 0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().cause.code, CauseCode::LimitExceeded);
  EXPECT_EQ(refused.error().cause.args[0], 5U);
  EXPECT_EQ(refused.error().cause.args[1], 4U);
  EXPECT_EQ(f.table.in_use(), 4U);
}

TEST(KeyTable, AnIndexRestsUntilItIsReleased) {
  Fixture f(2);
  const std::uint32_t key = *f.table.publish(region(0, 8, 0));
  f.table.release(key);
  EXPECT_TRUE(f.table.view().check(key, kPd, 0, 0, 8).ok);
  f.table.invalidate(key);
  EXPECT_EQ(why(f.table.view(), key, 0, 8), CauseCode::KeyUnknown);
  EXPECT_FALSE(f.table.publish(region(0, 8, 0)));
  f.table.invalidate(key);
  f.table.release(key ^ 1);
  EXPECT_EQ(f.table.in_use(), 1U);
  f.table.release(key);
  f.table.release(key);
  EXPECT_EQ(f.table.in_use(), 0U);
  const std::uint32_t next = *f.table.publish(region(0, 8, 0));
  EXPECT_NE(next, key);
  EXPECT_EQ(next >> 8, key >> 8);
  EXPECT_FALSE(f.table.publish(region(0, 8, 0)));
  f.table.invalidate(key);
  EXPECT_TRUE(f.table.view().check(next, kPd, 0, 0, 8).ok);
}

TEST(KeyTable, AKeyComesBackLate) {
  Fixture f(1U << 13);
  std::map<std::uint32_t, std::uint32_t> last_seen;
  std::set<std::uint32_t> indices;
  for (std::uint32_t i = 0; i < 600000; ++i) {
    const std::uint32_t key = *f.table.publish(region(0, 8, 0));
    const auto seen = last_seen.find(key);
    if (seen != last_seen.end()) {
      ASSERT_GT(i - seen->second, 200000U);
    }
    last_seen[key] = i;
    indices.insert(key >> 8);
    f.table.invalidate(key);
    f.table.release(key);
  }
  EXPECT_LT(indices.size(), 2000U) << "a loop of registrations must not walk over the whole table";
}

// A reader that finds a key valid sees the body that belongs to it. The index rests between two
// lives, as the grace period has it.
TEST(KeyTable, AReaderSeesWholeEntries) {
  Fixture f(2);
  std::atomic<std::uint32_t> current{0};
  std::atomic<std::uint32_t> inside{0};
  std::atomic<bool> end{false};
  std::thread reader([&] {
    while (!end.load()) {
      inside.fetch_add(1);
      const std::uint32_t key = current.load();
      const KeyCheck check = f.table.view().check(key, kPd, 0, key, 8);
      if (check.ok) {
        EXPECT_EQ(check.resolved.va, std::uint64_t{key} * 3);
      }
      inside.fetch_add(1);
    }
  });
  for (std::uint32_t i = 0; i < 20000; ++i) {
    const std::uint32_t expected = 0x100 | ((i + 1) & 0xff);
    const std::uint32_t key = *f.table.publish(region(expected, 8, std::uint64_t{expected} * 3));
    ASSERT_EQ(key, expected);
    current.store(key);
    f.table.invalidate(key);
    const std::uint32_t epoch = inside.load();
    while (epoch % 2 == 1 && inside.load() == epoch) std::this_thread::yield();
    f.table.release(key);
  }
  end.store(true);
  reader.join();
}

}  // namespace
}  // namespace vrb::memory
