// Several senders on one shared receive queue and its CQ, while the owner posts and polls: claims
// that are given back, senders that stop at any step and senders that die with what they had
// claimed.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "queue/recv_ring.h"
#include "queue/test_memory.h"

namespace vrb::queue {
namespace {

using testing::CqMemory;
using testing::RecvMemory;

constexpr std::uint16_t kSenders = 3;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint32_t kPerSender = 10000;
#else
constexpr std::uint32_t kPerSender = 50000;
#endif

struct Arena {
  Arena(std::uint32_t entries, std::uint32_t capacity)
      : recv(entries, 1, capacity), cq(entries * 2) {}
  RecvMemory recv;
  CqMemory cq;
  std::atomic<std::uint32_t> dead[kSenders] = {};
  std::atomic<std::uint32_t> finished{0};
};

class Sender {
 public:
  Sender(Arena& arena, std::uint16_t id, bool unruly)
      : arena_(arena), cq_(arena.cq.cq), id_(id), peer_(1 + id), unruly_(unruly), random_(id) {}

  void run() {
    for (std::uint32_t sent = 0; sent < kPerSender;) {
      const auto position = arena_.recv.ring.claim(peer_);
      if (!position) {
        std::this_thread::yield();
        continue;
      }
      if (chance(100)) {
        arena_.recv.ring.give_back(*position, peer_);
        continue;
      }
      if (pause_or_die()) continue;
      const auto seq = cq_.claim(peer_, id_);
      if (!seq) {
        arena_.recv.ring.give_back(*position, peer_);
        std::this_thread::yield();
        continue;
      }
      if (pause_or_die()) continue;
      CqeBody body;
      body.wqe = static_cast<std::uint32_t>(*position & (arena_.recv.ring.count - 1));
      body.imm = sent++;
      body.cause_args[0] = arena_.recv.ring.sges(*position)[0].addr;
      if (!cq_.publish(*seq, peer_, id_, body)) {
        ADD_FAILURE() << "the entry of a living sender was taken away";
        break;
      }
      if (pause_or_die()) continue;
      arena_.recv.ring.finish(*position, peer_);
    }
    arena_.finished.fetch_add(1);
  }

 private:
  bool chance(std::uint32_t one_in) { return unruly_ && random_() % one_in == 0; }
  bool pause_or_die() {
    if (chance(3000)) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 1000));
    if (!chance(5000)) return false;
    arena_.dead[id_].store(peer_);
    while (arena_.dead[id_].load() != 0) std::this_thread::yield();
    peer_ = static_cast<std::uint16_t>(1 + id_ + kSenders * (random_() % 100));
    return true;
  }

  Arena& arena_;
  SharedCq cq_;
  std::uint16_t id_;
  std::uint16_t peer_;
  bool unruly_;
  std::mt19937_64 random_;
};

class Owner {
 public:
  explicit Owner(Arena& arena) : arena_(arena) {}

  void post_all() {
    for (;;) {
      const ib::Sge sge{next_wr_, 1, 1};
      if (!arena_.recv.poster.post(next_wr_, {&sge, 1})) return;
      completed_.push_back(0);
      ++next_wr_;
    }
  }
  void poll_all() {
    while (const auto taken = arena_.cq.consumer.poll()) {
      const auto wr_id = arena_.recv.poster.complete(taken->body.wqe);
      ASSERT_TRUE(wr_id);
      EXPECT_EQ(*wr_id, taken->body.cause_args[0]);
      EXPECT_EQ(completed_[*wr_id]++, 0);
      EXPECT_EQ(taken->body.imm, next_message_[taken->qp]++);
      descents_ += *wr_id < last_wr_;
      last_wr_ = *wr_id;
      ++seen_;
    }
  }
  void clean_up() {
    for (auto& dead : arena_.dead) {
      const auto peer = static_cast<std::uint16_t>(dead.load());
      if (peer == 0) continue;
      arena_.cq.consumer.void_claims_of(peer);
      poll_all();
      arena_.recv.poster.recover(peer, {});
      dead.store(0);
    }
  }
  void run(std::uint32_t senders) {
    for (;;) {
      const bool last_look = arena_.finished.load() == senders;
      poll_all();
      if (last_look) break;
      clean_up();
      post_all();
      std::this_thread::yield();
    }
    for (const auto& rest : arena_.recv.poster.take_all({})) EXPECT_EQ(completed_[rest.wr_id]++, 0);
    for (std::uint64_t wr = 0; wr < next_wr_; ++wr) ASSERT_EQ(completed_[wr], 1) << wr;
    EXPECT_EQ(seen_, std::uint64_t{senders} * kPerSender);
    EXPECT_EQ(arena_.recv.poster.outstanding(), 0U);
  }
  std::uint64_t descents() const { return descents_; }

 private:
  Arena& arena_;
  std::uint64_t next_wr_ = 0;
  std::uint64_t last_wr_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t descents_ = 0;
  std::uint32_t next_message_[kSenders] = {};
  std::vector<std::uint8_t> completed_;
};

void stress(std::uint32_t entries, std::uint32_t capacity, std::uint16_t senders, bool unruly,
            bool ordered) {
  Arena arena(entries, capacity);
  std::vector<std::thread> threads;
  for (std::uint16_t id = 0; id < senders; ++id) {
    threads.emplace_back([&arena, id, unruly] { Sender(arena, id, unruly).run(); });
  }
  Owner owner(arena);
  owner.run(senders);
  for (auto& thread : threads) thread.join();
  if (ordered) {
    EXPECT_EQ(owner.descents(), 0U);
  }
}

TEST(RecvRingStress, OneSenderKeepsTheOrder) { stress(64, 64, 1, false, true); }
TEST(RecvRingStress, OneSenderInATinyRing) { stress(2, 2, 1, false, true); }
TEST(RecvRingStress, OneUnrulySenderLosesNothing) { stress(64, 50, 1, true, false); }
TEST(RecvRingStress, ManySenders) { stress(128, 128, kSenders, false, false); }
TEST(RecvRingStress, ManySendersInATinyRing) { stress(4, 3, kSenders, false, false); }
TEST(RecvRingStress, StoppedAndDeadSenders) { stress(128, 100, kSenders, true, false); }
TEST(RecvRingStress, StoppedAndDeadSendersInASmallRing) { stress(8, 8, kSenders, true, false); }

}  // namespace
}  // namespace vrb::queue
