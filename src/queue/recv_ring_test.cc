// SPDX-License-Identifier: Apache-2.0
#include "queue/recv_ring.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "queue/test_memory.h"

namespace vrb::queue {
namespace {

using testing::RecvMemory;

bool post(RecvMemory& m, std::uint64_t wr_id) {
  const ib::Sge sge{wr_id, 100, 5};
  return m.poster.post(wr_id, {&sge, 1});
}

// A whole message of one sender: returns the address of the SGE that it used.
std::optional<std::uint64_t> receive(RecvMemory& m, std::uint16_t peer = 1) {
  const auto position = m.ring.claim(peer);
  if (!position) return std::nullopt;
  const std::uint64_t addr = m.ring.sges(*position)[0].addr;
  m.ring.finish(*position, peer);
  const auto index = static_cast<std::uint32_t>(*position & (m.ring.count - 1));
  EXPECT_EQ(m.poster.complete(index), addr);
  return addr;
}

std::uint32_t index_of(const RecvMemory& m, std::uint64_t position) {
  return static_cast<std::uint32_t>(position & (m.ring.count - 1));
}

TEST(ClaimWord, KeepsEveryField) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t raw = random();
    EXPECT_EQ(ClaimWord::unpack(raw).pack(), raw);
  }
  const ClaimWord w{ClaimWord::kRoundMask, ClaimWord::State::Done, 1023};
  const ClaimWord back = ClaimWord::unpack(w.pack());
  EXPECT_EQ(back.round, w.round);
  EXPECT_EQ(back.state, w.state);
  EXPECT_EQ(back.peer, w.peer);
}

TEST(RecvRing, ServesInOrderOverManyRounds) {
  for (const std::uint32_t entries : {1U, 4U, 64U}) {
    RecvMemory m(entries, 2, entries);
    std::uint64_t posted = 0;
    std::uint64_t seen = 0;
    for (std::uint32_t round = 0; round < 300; ++round) {
      while (post(m, posted)) ++posted;
      EXPECT_EQ(posted - seen, entries);
      EXPECT_EQ(m.ring.unclaimed(), entries);
      for (std::uint32_t i = 0; i < 1 + round % entries; ++i) EXPECT_EQ(receive(m), seen++);
    }
    while (receive(m)) {
    }
    EXPECT_FALSE(m.ring.find());
    EXPECT_EQ(m.ring.unclaimed(), 0U);
  }
}

TEST(RecvRing, HoldsNoMoreThanItsCapacity) {
  RecvMemory m(8, 1, 5);
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_TRUE(post(m, i));
  EXPECT_FALSE(post(m, 5));
  EXPECT_EQ(m.poster.outstanding(), 5U);
  const auto claimed = m.ring.claim(1);
  ASSERT_TRUE(claimed);
  EXPECT_FALSE(post(m, 5));
  m.ring.finish(*claimed, 1);
  EXPECT_FALSE(post(m, 5));
  EXPECT_EQ(m.poster.complete(index_of(m, *claimed)), 0U);
  EXPECT_TRUE(post(m, 5));
}

TEST(RecvRing, CopiesSgesAndBoundsThem) {
  RecvMemory m(4, 3, 4);
  const ib::Sge list[] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}};
  ASSERT_TRUE(m.poster.post(1, {list, 3}));
  ASSERT_TRUE(m.poster.post(2, {list, 4}));
  ASSERT_TRUE(m.poster.post(3, {}));
  EXPECT_EQ(m.ring.sges(0).size(), 3U);
  EXPECT_EQ(m.ring.sges(0)[2].lkey, 9U);
  EXPECT_EQ(m.ring.sges(1).size(), 3U);
  EXPECT_TRUE(m.ring.sges(2).empty());
  const_cast<RecvEntry&>(m.ring.entry(2)).num_sge = 0xffffffff;
  EXPECT_EQ(m.ring.sges(2).size(), 3U);
  EXPECT_EQ(m.table.as<RecvRingHeader>()->pd, 7U);
  EXPECT_EQ(m.table.as<RecvRingHeader>()->claims, 4096U);
}

TEST(RecvRing, APositionIsClaimedOnce) {
  RecvMemory m(4, 1, 4);
  ASSERT_TRUE(post(m, 1));
  EXPECT_EQ(m.ring.find(), 0U);
  EXPECT_FALSE(m.ring.try_claim(1, 1));
  EXPECT_FALSE(m.ring.try_claim(4, 1));
  EXPECT_TRUE(m.ring.try_claim(0, 1));
  EXPECT_FALSE(m.ring.try_claim(0, 2));
  EXPECT_FALSE(m.ring.find());
  m.ring.finish(0, 2);
  EXPECT_EQ(ClaimWord::unpack(m.ring.word(0)).state, ClaimWord::State::Claimed);
  m.ring.finish(0, 1);
  EXPECT_EQ(ClaimWord::unpack(m.ring.word(0)).state, ClaimWord::State::Done);
  EXPECT_FALSE(m.ring.try_claim(0, 2));
}

TEST(RecvRing, SkipsAnEntryThatIsStuck) {
  RecvMemory m(4, 1, 4);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(post(m, i));
  ASSERT_EQ(receive(m), 0U);
  const auto stuck = m.ring.claim(9);
  ASSERT_EQ(stuck, 1U);
  std::uint64_t posted = 4;
  std::uint64_t seen = 2;
  for (int round = 0; round < 50; ++round) {
    while (post(m, posted)) ++posted;
    EXPECT_EQ(posted - seen, 3U);
    EXPECT_EQ(receive(m), seen++);
    EXPECT_EQ(receive(m), seen++);
  }
  m.ring.finish(*stuck, 9);
  EXPECT_EQ(m.poster.complete(1), 1U);
  while (post(m, posted)) ++posted;
  EXPECT_EQ(posted - seen, 4U);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(receive(m), seen++);
}

// The sender is stopped between the CQE and finish(): the owner goes on with the entry.
TEST(RecvRing, APollBeforeFinishFreesTheEntry) {
  RecvMemory m(2, 1, 2);
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_TRUE(post(m, i));
  ASSERT_EQ(m.ring.claim(9), 0U);
  EXPECT_EQ(m.poster.complete(0), 0U);
  EXPECT_EQ(receive(m), 1U);
  for (std::uint64_t i = 2; i < 4; ++i) ASSERT_TRUE(post(m, i));
  EXPECT_EQ(receive(m), 2U);
  ASSERT_EQ(m.ring.claim(8), 3U);
  m.ring.finish(0, 9);
  EXPECT_FALSE(m.ring.find());
}

TEST(RecvRing, GiveBackOffersThePositionAgain) {
  RecvMemory m(4, 1, 4);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(post(m, i));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(m.ring.claim(1), 0U);
    m.ring.give_back(0, 1);
  }
  m.ring.give_back(0, 1);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(receive(m), i);
  m.ring.give_back(2, 1);
  EXPECT_FALSE(m.ring.find());
}

// Others went round the ring several times while a claim was held that then comes to nothing.
TEST(RecvRing, GiveBackAfterSeveralRoundsLosesNothing) {
  RecvMemory m(4, 1, 4);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(post(m, i));
  ASSERT_EQ(m.ring.claim(9), 0U);
  std::uint64_t posted = 4;
  for (std::uint64_t seen = 1; seen < 40; ++seen) {
    ASSERT_EQ(receive(m), seen);
    ASSERT_TRUE(post(m, posted++));
  }
  m.ring.give_back(0, 9);
  EXPECT_EQ(receive(m), 0U);
  ASSERT_TRUE(post(m, posted));
  for (std::uint64_t seen = 40; seen <= posted; ++seen) EXPECT_EQ(receive(m), seen);
}

TEST(RecvPoster, RefusesFalseIndices) {
  RecvMemory m(4, 1, 4);
  ASSERT_TRUE(post(m, 1));
  for (const std::uint32_t index : {1U, 3U, 4U, 5U, 0x80000000U, 0xffffffffU}) {
    EXPECT_FALSE(m.poster.complete(index));
  }
  EXPECT_EQ(m.poster.complete(0), 1U);
  EXPECT_FALSE(m.poster.complete(0));
  EXPECT_EQ(m.poster.outstanding(), 0U);
}

// A completion of an entry that nobody claimed is false, but the entry must not be received into
// again.
TEST(RecvPoster, ACompletedEntryCannotBeClaimed) {
  RecvMemory m(4, 1, 4);
  ASSERT_TRUE(post(m, 1));
  EXPECT_EQ(m.poster.complete(0), 1U);
  EXPECT_FALSE(m.ring.find());
  EXPECT_FALSE(m.ring.try_claim(0, 1));
}

TEST(RecvPoster, TakesAllInPostingOrder) {
  RecvMemory m(4, 1, 4);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(post(m, i));
  ASSERT_EQ(receive(m), 0U);
  ASSERT_EQ(m.ring.claim(2), 1U);
  for (std::uint64_t i = 3; i < 5; ++i) ASSERT_TRUE(post(m, i));
  const auto taken = m.poster.take_all({2, 77});
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_EQ(taken[0].wr_id, 1U);
  EXPECT_EQ(taken[0].index, 1U);
  EXPECT_EQ(taken[1].wr_id, 3U);
  EXPECT_EQ(taken[2].wr_id, 4U);
  EXPECT_EQ(taken[2].index, 0U);
  EXPECT_EQ(m.poster.outstanding(), 1U);
  EXPECT_FALSE(m.poster.complete(3));
  EXPECT_EQ(m.poster.complete(2), 2U);
  EXPECT_FALSE(m.ring.find());
  for (std::uint64_t i = 10; i < 14; ++i) ASSERT_TRUE(post(m, i));
  for (std::uint64_t position = 0; position < 5; ++position) {
    EXPECT_FALSE(m.ring.try_claim(position, 3));
  }
  m.ring.finish(1, 2);
  for (std::uint64_t i = 10; i < 14; ++i) EXPECT_EQ(receive(m), i);
}

TEST(RecvPoster, RecoversWhatTheDeadHadClaimed) {
  RecvMemory m(8, 2, 8);
  for (std::uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(post(m, i));
  ASSERT_EQ(m.ring.claim(5), 0U);
  ASSERT_EQ(m.ring.claim(6), 1U);
  ASSERT_EQ(m.ring.claim(5), 2U);
  ASSERT_EQ(m.ring.claim(5), 3U);
  m.poster.recover(5, {2});
  EXPECT_EQ(m.poster.outstanding(), 6U);
  EXPECT_EQ(m.poster.complete(2), 2U);
  m.ring.finish(1, 6);
  EXPECT_EQ(m.poster.complete(1), 1U);
  for (const std::uint64_t wr_id : {4U, 5U, 0U, 3U}) EXPECT_EQ(receive(m), wr_id);
  EXPECT_EQ(m.poster.outstanding(), 0U);
  EXPECT_FALSE(m.ring.find());
}

TEST(RecvPoster, RecoversFromADeathInsideGiveBack) {
  RecvMemory m(4, 1, 4);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(post(m, i));
  ASSERT_EQ(m.ring.claim(5), 0U);
  for (std::uint64_t i = 1; i < 4; ++i) ASSERT_EQ(receive(m, 6), i);
  m.ring.word(0).store(0);
  EXPECT_FALSE(m.ring.find());
  m.poster.recover(5, {});
  EXPECT_EQ(receive(m, 6), 0U);
}

TEST(RecvPoster, LimitAndDoorbells) {
  RecvMemory m(4, 1, 4);
  m.poster.set_limit(3);
  EXPECT_EQ(m.ring.header->limit.load(), 3U);
  EXPECT_EQ(m.poster.take_waiting(), 0U);
  m.ring.ask_doorbell(3);
  m.ring.ask_doorbell(64 + 5);
  EXPECT_EQ(m.poster.take_waiting(), (1ULL << 3 | 1ULL << 5));
  EXPECT_EQ(m.poster.take_waiting(), 0U);
}

}  // namespace
}  // namespace vrb::queue
