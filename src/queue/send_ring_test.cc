// SPDX-License-Identifier: Apache-2.0
#include "queue/send_ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace vrb::queue {
namespace {

SendRequest request(std::uint64_t wr_id) {
  SendRequest r;
  r.wr_id = wr_id;
  return r;
}

ib::Sge sge_of(const std::string& text) {
  return {reinterpret_cast<std::uint64_t>(text.data()), static_cast<std::uint32_t>(text.size()), 0};
}

std::string inline_text(const SendRing& ring, const SendWqe& wqe) {
  const auto bytes = ring.inline_bytes(wqe);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(SendRing, ADefaultRingIsFull) {
  SendRing ring;
  EXPECT_TRUE(ring.full());
  EXPECT_TRUE(ring.idle());
  ring.release(0);
  ring.reset();
  EXPECT_EQ(ring.capacity(), 0U);
}

// IBTA 10.8.5.1: a done WQE keeps its slot until a completion at or behind it is polled.
TEST(SendRing, UnsignalledWqesKeepTheirSlots) {
  SendRing ring(5, 1, 0);
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_FALSE(ring.full());
    ring.push(request(i), 0);
  }
  EXPECT_TRUE(ring.full());
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_FALSE(ring.idle());
    EXPECT_EQ(ring.front().request.wr_id, i);
    ring.advance();
  }
  EXPECT_TRUE(ring.idle());
  EXPECT_TRUE(ring.full());
  ring.release(3);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_FALSE(ring.full());
    ring.push(request(5 + i), 0);
  }
  EXPECT_TRUE(ring.full());
  ring.release(2);
  EXPECT_TRUE(ring.full());
  EXPECT_EQ(ring.front().request.wr_id, 5U);
}

TEST(SendRing, HoldsExactlyItsCapacityOverManyRounds) {
  for (const std::uint32_t capacity : {1U, 3U, 8U, 100U}) {
    SendRing ring(capacity, 2, 16);
    std::uint64_t posted = 0;
    for (std::uint64_t round = 0; round < 500; ++round) {
      while (!ring.full()) ring.push(request(posted++), 0);
      EXPECT_EQ(posted - ring.done(), capacity);
      for (std::uint64_t i = 0; i < 1 + round % capacity; ++i) {
        EXPECT_EQ(ring.front().request.wr_id, ring.done());
        ring.advance();
      }
      ring.release(ring.done());
    }
    EXPECT_EQ(ring.posted(), posted);
  }
}

TEST(SendRing, KeepsItsOwnCopyOfTheSges) {
  SendRing ring(4, 2, 0);
  std::vector<ib::Sge> list{{1, 2, 3}, {4, 5, 6}};
  SendRequest r = request(1);
  r.sges = list;
  const SendWqe& wqe = ring.push(r, 7);
  list.assign(2, {});
  ASSERT_EQ(wqe.request.sges.size(), 2U);
  EXPECT_EQ(wqe.request.sges[1].addr, 4U);
  EXPECT_EQ(wqe.length, 7U);
  EXPECT_FALSE(wqe.is_inline);
  EXPECT_TRUE(ring.inline_bytes(wqe).empty());
  const SendWqe& next = ring.push(request(2), 0);
  EXPECT_TRUE(next.request.sges.empty());
  EXPECT_EQ(wqe.request.sges[0].addr, 1U);
}

TEST(SendRing, KeepsInlineDataByValue) {
  SendRing ring(3, 4, 16);
  std::string parts[] = {"abc", "", "defgh"};
  std::vector<ib::Sge> list;
  for (const auto& part : parts) list.push_back(sge_of(part));
  SendRequest r = request(1);
  r.flags = ib::kSendInline;
  r.sges = list;
  const SendWqe& first = ring.push(r, 8);
  std::string sixteen = "0123456789abcdef";
  const ib::Sge one = sge_of(sixteen);
  r.sges = {&one, 1};
  const SendWqe& second = ring.push(r, 16);
  r.sges = {};
  const SendWqe& none = ring.push(r, 0);
  for (auto& part : parts) part.assign(part.size(), '?');
  sixteen.assign(16, '?');
  EXPECT_EQ(inline_text(ring, first), "abcdefgh");
  EXPECT_EQ(inline_text(ring, second), "0123456789abcdef");
  EXPECT_EQ(inline_text(ring, none), "");
  EXPECT_TRUE(first.request.sges.empty());
}

TEST(SendRing, NeverCopiesMoreThanItHasRoomFor) {
  SendRing ring(2, 1, 4);
  const std::string text = "abcdef";
  const ib::Sge list[] = {sge_of(text), sge_of(text)};
  SendRequest r = request(1);
  r.sges = list;
  EXPECT_EQ(ring.push(r, 12).request.sges.size(), 1U);
  r.flags = ib::kSendInline;
  EXPECT_EQ(inline_text(ring, ring.push(r, 12)), "abcd");
}

TEST(SendRing, ResetEmptiesItAndALatePollChangesNothing) {
  SendRing ring(4, 1, 0);
  for (std::uint64_t i = 0; i < 4; ++i) ring.push(request(i), 0);
  ring.advance();
  ring.reset();
  EXPECT_TRUE(ring.idle());
  ring.release(1);
  ring.release(4);
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_FALSE(ring.full());
    ring.push(request(10 + i), 0);
  }
  EXPECT_TRUE(ring.full());
  EXPECT_EQ(ring.front().request.wr_id, 10U);
}

TEST(SendRing, MovesWithItsContents) {
  SendRing ring(2, 1, 4);
  const ib::Sge sge{1, 2, 3};
  SendRequest r = request(1);
  r.sges = {&sge, 1};
  ring.push(r, 2);
  ring.push(request(2), 0);
  ring.release(1);
  SendRing moved(std::move(ring));
  EXPECT_FALSE(moved.full());
  EXPECT_EQ(moved.front().request.sges[0].length, 2U);
  moved.push(request(3), 0);
  EXPECT_TRUE(moved.full());
  SendRing assigned;
  assigned = std::move(moved);
  EXPECT_TRUE(assigned.full());
  EXPECT_EQ(assigned.posted(), 3U);
}

TEST(SendRing, APollerFreesSlotsWhileTheOwnerPosts) {
  SendRing ring(16, 1, 8);
  std::atomic<std::uint64_t> done{0};
  constexpr std::uint64_t kTotal = 100000;
  std::thread poller([&] {
    for (std::uint64_t seen = 0; seen < kTotal;) {
      seen = done.load();
      ring.release(seen);
      std::this_thread::yield();
    }
  });
  for (std::uint64_t i = 0; i < kTotal;) {
    if (ring.full()) {
      std::this_thread::yield();
      continue;
    }
    ring.push(request(i++), 0);
    ASSERT_EQ(ring.front().request.wr_id, i - 1);
    ring.advance();
    done.store(ring.done());
  }
  poller.join();
  EXPECT_FALSE(ring.full());
}

}  // namespace
}  // namespace vrb::queue
