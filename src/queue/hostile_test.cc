// Whatever a peer writes into the memory that it can write, the owner and honest senders neither
// step outside their arrays (the sanitizer builds watch) nor stay in a loop.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "queue/recv_ring.h"
#include "queue/test_memory.h"

namespace vrb::queue {
namespace {

using testing::CqMemory;
using testing::Memory;
using testing::RecvMemory;
using Random = std::mt19937_64;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRounds = 20000;
#else
constexpr int kRounds = 200000;
#endif

void spoil(const Memory& memory, Random& random) {
  for (auto i = random() % 4; i != 0; --i) {
    if (random() % 2 == 0) {
      memory.scribble(random);
    } else {
      memory.flip_bit(random);
    }
  }
}

void use_as_producer(SharedCq cq, Random& random) {
  const auto peer = static_cast<std::uint16_t>(random());
  const auto qp = static_cast<std::uint16_t>(random());
  CqeBody body;
  body.wqe = static_cast<std::uint32_t>(random());
  if (const auto seq = cq.claim(peer, qp)) {
    ASSERT_LE(*seq, CqWord::kSeqMask);
    if (random() % 8 == 0) {
      cq.abandon(*seq, peer, qp);
    } else if (cq.publish(*seq, peer, qp, body)) {
      cq.take_armed(random() % 2 == 0);
    }
  }
  cq.publish(random(), peer, qp, body);
}

void use_as_consumer(SharedCqConsumer& consumer, Random& random) {
  SharedCq cq = consumer.ring();
  cq.arm(random() % 2 == 0 ? Armed::Any : Armed::Solicited);
  consumer.ready();
  ASSERT_LE(consumer.backlog(), cq.entries());
  ASSERT_LE(consumer.backlog_hint(), cq.entries());
  if (const auto taken = consumer.poll()) {
    ASSERT_LE(taken->body.status, ib::WcStatus::GeneralErr);
  }
  if (random() % 16 == 0) consumer.void_claims_of(static_cast<std::uint16_t>(random() % 1024));
}

void use_as_sender(const RecvRing& ring, Random& random) {
  const auto peer = static_cast<std::uint16_t>(random() % 1024);
  if (const auto position = ring.claim(peer)) {
    if (random() % 2 == 0) {
      ring.finish(*position, peer);
    } else {
      ring.give_back(*position, peer);
    }
  }
  ring.try_claim(random(), peer);
  ring.finish(random(), peer);
  ring.give_back(random(), peer);
  ring.ask_doorbell(peer);
  ASSERT_LE(ring.unclaimed(), ring.count);
}

void use_as_poster(RecvPoster& poster, Random& random) {
  const ib::Sge sge{random(), 1, 1};
  poster.post(random(), {&sge, 1});
  poster.complete(static_cast<std::uint32_t>(random() % (2 * poster.ring().count)));
  poster.take_waiting();
  const auto peer = static_cast<std::uint16_t>(random() % 1024);
  if (random() % 16 == 0) poster.recover(peer, {static_cast<std::uint32_t>(random())});
  if (random() % 64 == 0) poster.take_all({static_cast<std::uint32_t>(random())});
  ASSERT_LE(poster.outstanding(), poster.capacity());
}

TEST(Hostile, CompletionQueueOfGarbage) {
  Random random(1);
  for (const std::uint32_t entries : {1U, 4U, 32U}) {
    CqMemory m(entries);
    for (int round = 0; round < kRounds; ++round) {
      spoil(m.memory, random);
      use_as_producer(m.cq, random);
      use_as_consumer(m.consumer, random);
    }
  }
}

// Whatever was in the words, an owner that polls ends with a ring that works, once the tail hint is
// right.
TEST(Hostile, CompletionQueueRecovers) {
  Random random(2);
  for (int round = 0; round < kRounds / 100; ++round) {
    CqMemory m(16);
    for (int i = 0; i < 50; ++i) {
      spoil(m.memory, random);
      use_as_producer(m.cq, random);
      use_as_consumer(m.consumer, random);
    }
    for (std::uint16_t peer = 0; peer < 1024; ++peer) m.consumer.void_claims_of(peer);
    for (int i = 0; i < 64; ++i) {
      while (m.consumer.poll()) {
      }
      m.cq.header()->tail.store(m.consumer.position());
      const auto seq = m.cq.claim(1, 1);
      if (seq) m.cq.publish(*seq, 1, 1, {});
    }
    while (m.consumer.poll()) {
    }
    EXPECT_FALSE(m.consumer.ready());
    for (std::uint32_t i = 0; i < 16; ++i) {
      const auto seq = m.cq.claim(1, 1);
      ASSERT_TRUE(seq);
      ASSERT_TRUE(m.cq.publish(*seq, 1, 1, {}));
    }
    EXPECT_EQ(m.consumer.backlog(), 16U);
  }
}

TEST(Hostile, ReceiveQueueOfGarbage) {
  Random random(3);
  for (const std::uint32_t entries : {1U, 4U, 32U}) {
    RecvMemory m(entries, 1, entries);
    for (int round = 0; round < kRounds; ++round) {
      spoil(m.claims, random);
      use_as_sender(m.ring, random);
      use_as_poster(m.poster, random);
    }
  }
}

// The owner of the tables is the hostile one: a sender reads entries and counters that make no
// sense.
TEST(Hostile, TablesOfGarbage) {
  Random random(4);
  RecvMemory m(16, 2, 16);
  for (int round = 0; round < kRounds; ++round) {
    spoil(m.table, random);
    spoil(m.claims, random);
    use_as_sender(m.ring, random);
    ASSERT_LE(m.ring.sges(random()).size(), 2U);
  }
}

TEST(Hostile, GarbageWhileAllAreAtWork) {
  CqMemory cq(16);
  RecvMemory recv(16, 1, 16);
  std::atomic<bool> end{false};
  std::thread vandal([&] {
    Random random(5);
    while (!end.load()) {
      spoil(cq.memory, random);
      spoil(recv.claims, random);
    }
  });
  std::thread sender([&] {
    Random random(6);
    while (!end.load()) {
      use_as_producer(cq.cq, random);
      use_as_sender(recv.ring, random);
    }
  });
  Random random(7);
  for (int round = 0; round < kRounds; ++round) {
    use_as_consumer(cq.consumer, random);
    use_as_poster(recv.poster, random);
  }
  end.store(true);
  vandal.join();
  sender.join();
}

}  // namespace
}  // namespace vrb::queue
