// SPDX-License-Identifier: Apache-2.0
#include "queue/shared_cq.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "queue/test_memory.h"

namespace vrb::queue {
namespace {

using testing::CqMemory;

CqeBody body(std::uint32_t number) {
  CqeBody b;
  b.imm = number;
  b.opcode = ib::WcOpcode::Recv;
  return b;
}

// Claims and publishes at once.
bool complete(SharedCq& cq, std::uint16_t qp, std::uint32_t number) {
  const auto seq = cq.claim(1, qp);
  return seq && cq.publish(*seq, 1, qp, body(number));
}

std::vector<std::uint32_t> drain(SharedCqConsumer& consumer) {
  std::vector<std::uint32_t> numbers;
  for (;;) {
    const bool promised = consumer.ready();
    const auto taken = consumer.poll();
    EXPECT_EQ(promised, taken.has_value());
    if (!taken) return numbers;
    numbers.push_back(taken->body.imm);
  }
}

using Numbers = std::vector<std::uint32_t>;

TEST(CqWord, KeepsEveryField) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t raw = random();
    EXPECT_EQ(CqWord::unpack(raw).pack(), raw);
  }
  const CqWord w{CqWord::kSeqMask, CqWord::State::Published, 1023, 65535};
  const CqWord back = CqWord::unpack(w.pack());
  EXPECT_EQ(back.seq, w.seq);
  EXPECT_EQ(back.state, w.state);
  EXPECT_EQ(back.peer, w.peer);
  EXPECT_EQ(back.qp, w.qp);
}

TEST(CqWord, DistanceWrapsAt36Bits) {
  EXPECT_EQ(CqWord::distance(5, 3), 2);
  EXPECT_EQ(CqWord::distance(3, 5), -2);
  EXPECT_EQ(CqWord::distance(1, CqWord::kSeqMask), 2);
  EXPECT_EQ(CqWord::distance(CqWord::kSeqMask, 1), -2);
}

TEST(SharedCq, CarriesTheWholeBody) {
  CqMemory m(8);
  CqeBody b;
  b.wqe = 11;
  b.byte_len = 12;
  b.imm = 13;
  b.src_qp = 14;
  b.vendor_err = 15;
  b.status = ib::WcStatus::RemOpErr;
  b.opcode = ib::WcOpcode::RecvRdmaWithImm;
  b.wc_flags = ib::kWcGrh | ib::kWcWithImm;
  b.solicited = 1;
  b.cause_args[0] = 16;
  b.cause_args[1] = 17;
  const auto seq = m.cq.claim(1000, 60000);
  ASSERT_TRUE(seq);
  ASSERT_TRUE(m.cq.publish(*seq, 1000, 60000, b));
  const auto taken = m.consumer.poll();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->qp, 60000);
  EXPECT_EQ(std::memcmp(&taken->body, &b, sizeof b), 0);
}

TEST(SharedCq, WrapsManyTimesAndOver36Bits) {
  const std::uint64_t first = (CqWord::kSeqMask + 1) - 64;
  for (const std::uint32_t entries : {1U, 2U, 16U}) {
    CqMemory m(entries, first);
    std::uint32_t sent = 0;
    std::uint32_t seen = 0;
    for (int round = 0; round < 200; ++round) {
      while (complete(m.cq, 3, sent)) ++sent;
      EXPECT_EQ(sent - seen, entries);
      EXPECT_EQ(m.consumer.backlog(), entries);
      EXPECT_EQ(m.consumer.backlog_hint(), entries);
      for (std::uint32_t i = 0; i < 1 + round % entries; ++i) {
        const auto taken = m.consumer.poll();
        ASSERT_TRUE(taken);
        EXPECT_EQ(taken->body.imm, seen++);
      }
    }
  }
}

TEST(SharedCq, StepsOverAHoleButNotInsideItsQp) {
  CqMemory m(16);
  const auto hole = m.cq.claim(2, 100);
  EXPECT_TRUE(complete(m.cq, 200, 1));
  EXPECT_TRUE(complete(m.cq, 100, 2));
  EXPECT_TRUE(complete(m.cq, 200, 3));
  EXPECT_EQ(drain(m.consumer), (Numbers{1, 3}));
  EXPECT_EQ(m.consumer.backlog(), 1U);
  EXPECT_EQ(m.consumer.backlog_hint(), 2U);
  EXPECT_TRUE(m.cq.publish(*hole, 2, 100, body(0)));
  EXPECT_TRUE(complete(m.cq, 100, 4));
  EXPECT_EQ(drain(m.consumer), (Numbers{0, 2, 4}));
  EXPECT_EQ(m.consumer.backlog_hint(), 0U);
}

TEST(SharedCq, HoldsBackMoreThanItRemembers) {
  CqMemory m(256);
  const auto hole = m.cq.claim(2, 1);
  Numbers of_one{0};
  Numbers of_two;
  for (std::uint32_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(complete(m.cq, i % 2 == 0 ? 2 : 1, i));
    (i % 2 == 0 ? of_two : of_one).push_back(i);
  }
  EXPECT_EQ(drain(m.consumer), of_two);
  EXPECT_TRUE(complete(m.cq, 2, 101));
  EXPECT_EQ(drain(m.consumer), Numbers{101});
  EXPECT_EQ(m.consumer.backlog(), 50U);
  EXPECT_TRUE(m.cq.publish(*hole, 2, 1, body(0)));
  EXPECT_EQ(drain(m.consumer), of_one);
  EXPECT_EQ(m.consumer.backlog(), 0U);
}

TEST(SharedCq, KnowsManyQpsWithHoles) {
  CqMemory m(512);
  std::vector<std::uint64_t> holes;
  for (std::uint16_t qp = 0; qp < 100; ++qp) holes.push_back(*m.cq.claim(2, qp));
  for (std::uint16_t qp = 0; qp < 100; ++qp) ASSERT_TRUE(complete(m.cq, qp, 100U + qp));
  for (std::uint16_t qp = 200; qp < 210; ++qp) ASSERT_TRUE(complete(m.cq, qp, qp));
  EXPECT_EQ(drain(m.consumer), (Numbers{200, 201, 202, 203, 204, 205, 206, 207, 208, 209}));
  for (std::uint16_t qp = 0; qp < 100; ++qp) m.cq.publish(holes[qp], 2, qp, body(qp));
  Numbers all(200);
  for (std::uint32_t i = 0; i < 200; ++i) all[i] = i;
  EXPECT_EQ(drain(m.consumer), all);
}

TEST(SharedCq, AHoleUsesUpTheRingAndNothingIsOverrun) {
  CqMemory m(8);
  const auto hole = m.cq.claim(2, 1);
  Numbers expected;
  std::uint32_t sent = 0;
  for (int i = 0; i < 100; ++i) {
    if (complete(m.cq, 2, sent)) expected.push_back(sent++);
    const auto taken = m.consumer.poll();
    if (taken) {
      EXPECT_EQ(taken->body.imm, sent - 1);
    }
  }
  EXPECT_EQ(expected.size(), 7U);
  EXPECT_FALSE(m.cq.claim(3, 3));
  EXPECT_FALSE(m.cq.full_of_completions());
  EXPECT_TRUE(m.cq.publish(*hole, 2, 1, body(77)));
  EXPECT_FALSE(m.cq.claim(3, 3));
  EXPECT_FALSE(m.cq.full_of_completions());
  EXPECT_EQ(drain(m.consumer), Numbers{77});
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_TRUE(complete(m.cq, 2, i));
  EXPECT_FALSE(complete(m.cq, 2, 8));
  EXPECT_TRUE(m.cq.full_of_completions());
  EXPECT_EQ(drain(m.consumer), (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(SharedCq, VoidsTheClaimsOfTheDeadOnly) {
  CqMemory m(16);
  const auto dead1 = m.cq.claim(5, 1);
  const auto dead2 = m.cq.claim(5, 2);
  ASSERT_TRUE(m.cq.publish(*dead2, 5, 2, body(2)));
  const auto living = m.cq.claim(6, 3);
  ASSERT_TRUE(complete(m.cq, 1, 4));
  m.consumer.void_claims_of(5);
  EXPECT_FALSE(m.cq.publish(*dead1, 5, 1, body(99)));
  EXPECT_EQ(drain(m.consumer), (Numbers{2, 4}));
  EXPECT_TRUE(m.cq.publish(*living, 6, 3, body(3)));
  EXPECT_EQ(drain(m.consumer), Numbers{3});
  EXPECT_FALSE(m.cq.publish(*dead1, 5, 1, body(99)));
  for (std::uint32_t i = 0; i < 16; ++i) EXPECT_TRUE(complete(m.cq, 1, i));
  EXPECT_EQ(drain(m.consumer).size(), 16U);
}

TEST(SharedCq, AbandonedEntriesDelayNobody) {
  CqMemory m(4);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const auto seq = m.cq.claim(1, 1);
    ASSERT_TRUE(seq);
    m.cq.abandon(*seq, 1, 1);
    EXPECT_FALSE(m.cq.publish(*seq, 1, 1, body(99)));
    ASSERT_TRUE(complete(m.cq, 1, i));
    EXPECT_EQ(drain(m.consumer), Numbers{i});
  }
}

TEST(SharedCq, FindsItsWayFromAnOldTailHint) {
  CqMemory m(8);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(complete(m.cq, 1, i));
    ASSERT_TRUE(m.consumer.poll());
  }
  for (std::uint32_t i = 0; i < 5; ++i) ASSERT_TRUE(complete(m.cq, 1, i));
  m.cq.header()->tail.store(3);
  EXPECT_TRUE(complete(m.cq, 1, 5));
  EXPECT_EQ(m.cq.header()->tail.load(), 1006U);
  EXPECT_EQ(drain(m.consumer), (Numbers{0, 1, 2, 3, 4, 5}));
}

TEST(SharedCq, RepairsWordsThatNobodyWroteByTheRules) {
  CqMemory m(8);
  for (std::uint64_t i = 0; i < 8; ++i) m.cq.ring()[i].word.store(~i * 0x123456789abcdefULL);
  while (m.consumer.poll()) {
  }
  std::uint32_t sent = 0;
  while (complete(m.cq, 1, sent)) ++sent;
  EXPECT_EQ(sent, 8U);
  EXPECT_EQ(drain(m.consumer).size(), 8U);
}

TEST(SharedCq, GivesOutOnlyValuesThatExist) {
  CqMemory m(8);
  CqeBody b;
  b.status = static_cast<ib::WcStatus>(200);
  b.opcode = static_cast<ib::WcOpcode>(77);
  b.wc_flags = 0xff;
  const auto seq = m.cq.claim(1, 1);
  ASSERT_TRUE(m.cq.publish(*seq, 1, 1, b));
  const auto taken = m.consumer.poll();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->body.status, ib::WcStatus::GeneralErr);
  EXPECT_EQ(taken->body.opcode, ib::WcOpcode::Recv);
  EXPECT_EQ(taken->body.wc_flags, 0x83);
}

TEST(SharedCq, ArmingIsTakenOnceAndNeverWeakened) {
  CqMemory m(8);
  EXPECT_FALSE(m.cq.take_armed(true));
  m.cq.arm(Armed::Solicited);
  EXPECT_FALSE(m.cq.take_armed(false));
  EXPECT_TRUE(m.cq.take_armed(true));
  EXPECT_FALSE(m.cq.take_armed(true));
  m.cq.arm(Armed::Any);
  m.cq.arm(Armed::Solicited);
  EXPECT_TRUE(m.cq.take_armed(false));
  m.cq.arm(Armed::Solicited);
  m.cq.arm(Armed::Any);
  EXPECT_TRUE(m.cq.take_armed(false));
  m.cq.header()->armed.store(0xdeadbeef);
  EXPECT_TRUE(m.cq.take_armed(false));
  EXPECT_FALSE(m.cq.take_armed(false));
}

TEST(SharedCq, AnEmptyConsumerHasNothing) {
  SharedCqConsumer none;
  EXPECT_FALSE(none.poll());
  EXPECT_FALSE(none.ready());
  EXPECT_EQ(none.backlog(), 0U);
  EXPECT_EQ(none.backlog_hint(), 0U);
}

}  // namespace
}  // namespace vrb::queue
