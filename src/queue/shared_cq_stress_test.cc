// Several producers and one consumer at once, with producers that stop or die between claim and
// publication.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <semaphore>
#include <thread>
#include <vector>

#include "queue/shared_cq.h"
#include "queue/test_memory.h"

namespace vrb::queue {
namespace {

using testing::CqMemory;

constexpr std::uint16_t kProducers = 4;
constexpr std::uint16_t kQps = 6;  // every producer sends to all of them, as UD senders do

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint32_t kPerProducer = 20000;
#else
constexpr std::uint32_t kPerProducer = 100000;
#endif

struct Arena {
  explicit Arena(std::uint32_t entries) : memory(entries) {}
  CqMemory memory;
  std::atomic<std::uint32_t> dead[kProducers] = {};  // peer index of a dead incarnation; 0 = none
  std::atomic<std::uint32_t> finished{0};
  std::atomic<std::uint64_t> refused{0};
};

class Producer {
 public:
  Producer(Arena& arena, std::uint16_t id, bool unruly)
      : arena_(arena), cq_(arena.memory.cq), id_(id), peer_(1 + id), unruly_(unruly), random_(id) {}

  void run() {
    std::uint32_t next[kQps] = {};
    for (std::uint32_t i = 0; i < kPerProducer;) {
      const auto qp = static_cast<std::uint16_t>(random_() % kQps);
      const auto seq = cq_.claim(peer_, qp);
      if (!seq) {
        arena_.refused.fetch_add(1, std::memory_order_relaxed);
        std::this_thread::yield();
        continue;
      }
      CqeBody body;
      body.src_qp = id_;
      body.imm = next[qp];
      body.opcode = ib::WcOpcode::Recv;
      if (unruly_ && misbehave(*seq, qp, body)) continue;
      if (!cq_.publish(*seq, peer_, qp, body)) {
        ADD_FAILURE() << "the entry of a living producer was taken away";
        break;
      }
      ++next[qp];
      ++i;
    }
    arena_.finished.fetch_add(1);
  }

 private:
  // True when the incarnation died: its completion never happened.
  bool misbehave(std::uint64_t seq, std::uint16_t qp, const CqeBody& body) {
    const auto dice = random_() % 5000;
    if (dice < 5) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 2000));
    if (dice != 4999) return false;
    const std::uint16_t old = peer_;
    arena_.dead[id_].store(old);
    while (arena_.dead[id_].load() != 0) std::this_thread::yield();
    EXPECT_FALSE(cq_.publish(seq, old, qp, body));
    peer_ = static_cast<std::uint16_t>(1 + id_ + kProducers * (random_() % 100));
    return true;
  }

  Arena& arena_;
  SharedCq cq_;
  std::uint16_t id_;
  std::uint16_t peer_;
  bool unruly_;
  std::mt19937_64 random_;
};

class OrderCheck {
 public:
  void see(const SharedCqConsumer::Taken& taken) {
    ASSERT_LT(taken.qp, kQps);
    ASSERT_LT(taken.body.src_qp, kProducers);
    errors_ += taken.body.imm != next_[taken.qp][taken.body.src_qp]++;
    ++seen_;
  }
  std::uint64_t seen() const { return seen_; }
  std::uint64_t errors() const { return errors_; }

 private:
  std::uint32_t next_[kQps][kProducers] = {};
  std::uint64_t seen_ = 0;
  std::uint64_t errors_ = 0;
};

void clean_up(Arena& arena) {
  for (auto& dead : arena.dead) {
    const auto peer = static_cast<std::uint16_t>(dead.load());
    if (peer == 0) continue;
    arena.memory.consumer.void_claims_of(peer);
    dead.store(0);
  }
}

void stress(std::uint32_t entries, bool unruly) {
  Arena arena(entries);
  std::vector<std::thread> threads;
  for (std::uint16_t id = 0; id < kProducers; ++id) {
    threads.emplace_back([&arena, id, unruly] { Producer(arena, id, unruly).run(); });
  }
  OrderCheck check;
  for (;;) {
    const bool last_look = arena.finished.load() == kProducers;
    while (auto taken = arena.memory.consumer.poll()) check.see(*taken);
    if (last_look) break;
    clean_up(arena);
    std::this_thread::yield();
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(check.seen(), std::uint64_t{kPerProducer} * kProducers);
  EXPECT_EQ(check.errors(), 0U);
  EXPECT_FALSE(arena.memory.consumer.ready());
  for (std::uint32_t i = 0; i < entries; ++i) {
    EXPECT_EQ(CqWord::unpack(arena.memory.cq.ring()[i].word.load()).state, CqWord::State::Free);
  }
}

TEST(SharedCqStress, OrderlyProducers) { stress(256, false); }
TEST(SharedCqStress, TinyRing) { stress(4, false); }
TEST(SharedCqStress, StoppedAndDeadProducers) { stress(256, true); }
TEST(SharedCqStress, StoppedAndDeadProducersInASmallRing) { stress(16, true); }

// A stopped producer holds its entry while the others finish all their work.
TEST(SharedCqStress, OneStoppedProducerDoesNotHoldUpTheOthers) {
  Arena arena(1U << 16);
  SharedCq stopped = arena.memory.cq;
  const auto hole = stopped.claim(1000, kQps);
  std::thread other([&arena] {
    for (std::uint32_t i = 0; i < (1U << 16) - 1; ++i) {
      const auto seq = arena.memory.cq.claim(1, 1);
      ASSERT_TRUE(seq);
      ASSERT_TRUE(arena.memory.cq.publish(*seq, 1, 1, CqeBody{.imm = i}));
    }
  });
  std::uint32_t seen = 0;
  while (seen < (1U << 16) - 1) {
    if (const auto taken = arena.memory.consumer.poll()) {
      EXPECT_EQ(taken->body.imm, seen++);
    }
  }
  other.join();
  ASSERT_TRUE(hole);
  EXPECT_FALSE(arena.memory.cq.claim(1, 1));
  EXPECT_TRUE(stopped.publish(*hole, 1000, kQps, CqeBody{}));
  EXPECT_TRUE(arena.memory.consumer.poll());
  EXPECT_TRUE(arena.memory.cq.claim(1, 1));
}

// Each message is sent just when the consumer, having found nothing, arms and goes to sleep: a lost
// wake-up leaves both waiting for each other.
TEST(SharedCqStress, NoWakeUpIsLost) {
  CqMemory m(64);
  std::counting_semaphore<> events(0);
  std::atomic<std::uint32_t> seen{0};
  constexpr std::uint32_t kMessages = kPerProducer / 4;
  const auto dawdle = [](std::mt19937_64& random) {
    for (auto i = random() % 64; i != 0; --i) std::atomic_signal_fence(std::memory_order_seq_cst);
  };
  std::thread producer([&] {
    SharedCq cq = m.cq;
    std::mt19937_64 random(1);
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      for (std::uint32_t turns = 0; seen.load() != i; ++turns) {
        if (turns > 100) std::this_thread::yield();
      }
      dawdle(random);
      const auto seq = cq.claim(1, 1);
      ASSERT_TRUE(seq);
      ASSERT_TRUE(cq.publish(*seq, 1, 1, CqeBody{.imm = i}));
      if (cq.take_armed(i % 7 == 0)) events.release();
    }
  });
  std::mt19937_64 random(2);
  bool awake = true;
  while (awake && seen.load() < kMessages) {
    if (const auto taken = m.consumer.poll()) {
      EXPECT_EQ(taken->body.imm, seen.load());
      seen.fetch_add(1);
      if (seen.load() % 4 == 0) continue;
    }
    if (seen.load() == kMessages) break;
    dawdle(random);
    m.cq.arm(Armed::Any);
    if (!m.consumer.ready()) awake = events.try_acquire_for(std::chrono::seconds(20));
  }
  if (!awake) {
    ADD_FAILURE() << "asleep after " << seen.load();
    while (seen.load() != kMessages) {
      if (m.consumer.poll()) seen.fetch_add(1);
    }
  }
  producer.join();
}

}  // namespace
}  // namespace vrb::queue
