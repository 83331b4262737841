// Copies to and from another process, and within one.
// SPDX-License-Identifier: Apache-2.0
#include "local/transfer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include "local/test_support.h"

namespace vrb::local::testing {
namespace {

struct Region {
  std::uint32_t key = 0;
  std::uint64_t at = 0;
};

Region make_region(Helper& helper, std::uint64_t bytes) {
  std::ostringstream command;
  command << "region " << std::hex << bytes << " f";
  std::istringstream answer(helper.ask(command.str()));
  Region region;
  answer >> region.key >> region.at;
  return region;
}

Segment of(std::vector<std::byte>& bytes) {
  return {reinterpret_cast<std::uint64_t>(bytes.data()), bytes.size()};
}

class Transfer : public ::testing::Test {
 protected:
  void SetUp() override {
    peer_ = node_.reach_slot(helper_.slot);
    ASSERT_EQ(peer_->state(), PeerState::Ready);
    if (!peer_->cma) GTEST_SKIP() << "CMA is not allowed here";
    region_ = make_region(helper_, kBytes);
    data_.resize(kBytes);
    std::mt19937 random(5);
    for (std::byte& b : data_) b = static_cast<std::byte>(random());
  }
  std::vector<std::byte> back() {
    std::vector<std::byte> seen(kBytes);
    const Segment local[] = {of(seen)};
    const Segment remote[] = {{region_.at, kBytes}};
    const Copied copied = get(*peer_, local, remote, 0, kBytes);
    EXPECT_EQ(copied.bytes, kBytes);
    EXPECT_EQ(copied.error, 0);
    return seen;
  }

  static constexpr std::uint64_t kBytes = 64 * 1024;
  Node node_;
  Helper helper_;
  std::shared_ptr<Peer> peer_;
  Region region_;
  std::vector<std::byte> data_;
};

TEST_F(Transfer, PutAndGet) {
  const Segment local[] = {of(data_)};
  const Segment remote[] = {{region_.at, kBytes}};
  const Copied copied = put(*peer_, local, remote, 0, kBytes);
  EXPECT_EQ(copied.bytes, kBytes);
  EXPECT_EQ(copied.error, 0);
  EXPECT_EQ(back(), data_);
}

TEST_F(Transfer, InSlicesBetweenListsOfDifferentParts) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 50; ++round) {
    const auto cut = [&](std::uint64_t start, std::uint64_t bytes, unsigned most) {
      std::vector<Segment> list;
      for (std::uint64_t done = 0; done < bytes;) {
        std::uint64_t n =
            list.size() + 1 == most ? bytes - done : std::min(bytes - done, random() % 5000);
        list.push_back({start + done, n});
        done += n;
      }
      return list;
    };
    const std::uint64_t bytes = 1 + random() % kBytes;
    std::shuffle(data_.begin(), data_.end(), random);
    const auto local = cut(of(data_).addr, bytes, 100);
    const auto remote = cut(region_.at, bytes, 33);
    for (std::uint64_t done = 0; done < bytes;) {
      const Copied copied = put(*peer_, local, remote, done, 1 + random() % 20'000);
      ASSERT_EQ(copied.error, 0);
      ASSERT_GT(copied.bytes, 0U);
      done += copied.bytes;
    }
    const auto seen = back();
    ASSERT_TRUE(std::equal(data_.begin(), data_.begin() + static_cast<std::ptrdiff_t>(bytes),
                           seen.begin()));
  }
}

TEST_F(Transfer, AStoppedPeer) {
  helper_.kill(SIGSTOP);
  const Segment local[] = {of(data_)};
  const Segment remote[] = {{region_.at, kBytes}};
  EXPECT_EQ(put(*peer_, local, remote, 0, kBytes).bytes, kBytes);
  EXPECT_EQ(back(), data_);
  helper_.kill(SIGCONT);
}

TEST_F(Transfer, FaultAtThePeer) {
  const Segment local[] = {of(data_)};
  const Segment over[] = {{region_.at + kBytes - 5000, kBytes}};  // an inaccessible page follows
  const Copied written = put(*peer_, local, over, 0, kBytes);
  EXPECT_EQ(written.bytes, 5000U);
  EXPECT_EQ(written.error, EFAULT);
  EXPECT_FALSE(written.local_fault);
  const Copied read = get(*peer_, local, over, 0, kBytes);
  EXPECT_EQ(read.bytes, 5000U);
  EXPECT_EQ(read.error, EFAULT);
  EXPECT_FALSE(read.local_fault);
  EXPECT_TRUE(peer_->cma);
}

TEST_F(Transfer, FaultOnOurSide) {
  auto* ours = static_cast<std::byte*>(
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(ours + 4096, 4096, PROT_NONE);
  const Segment local[] = {{reinterpret_cast<std::uint64_t>(ours), 8192}};
  const Segment remote[] = {{region_.at, 8192}};
  const Copied written = put(*peer_, local, remote, 0, 8192);
  EXPECT_EQ(written.bytes, 4096U);
  EXPECT_EQ(written.error, EFAULT);
  EXPECT_TRUE(written.local_fault);
  mprotect(ours + 4096, 4096, PROT_READ);
  const Copied read = get(*peer_, local, remote, 0, 8192);
  EXPECT_EQ(read.bytes, 4096U);
  EXPECT_TRUE(read.local_fault);
  EXPECT_EQ(put(*peer_, local, remote, 0, 8192).bytes, 8192U);
  munmap(ours, 8192);
}

TEST_F(Transfer, ADeadPeer) {
  helper_.kill(SIGKILL);
  const Segment local[] = {of(data_)};
  const Segment remote[] = {{region_.at, kBytes}};
  EXPECT_EQ(put(*peer_, local, remote, 0, kBytes).error, ESRCH);
  EXPECT_EQ(get(*peer_, local, remote, 0, kBytes).error, ESRCH);
}

TEST(TransferOrder, NothingBehindAFault) {
  Node node;
  Node other;
  const auto peer = node.board->find(other.slot);
  ASSERT_TRUE(node.until([&] {
    other.turn();
    return peer->state() == PeerState::Ready;
  }));
  if (!peer->cma) GTEST_SKIP() << "CMA is not allowed here";
  std::vector<std::byte> from(20'000, std::byte{7});
  std::vector<std::byte> to(20'000);
  auto* gap = static_cast<std::byte*>(
      mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  munmap(gap + 4096, 4096);
  const Segment local[] = {{reinterpret_cast<std::uint64_t>(from.data()), 3 * 4096}};
  const Segment remote[] = {{reinterpret_cast<std::uint64_t>(gap), 3 * 4096}};
  const Copied copied = put(*peer, local, remote, 0, 1 << 20);
  EXPECT_EQ(copied.error, EFAULT);
  EXPECT_EQ(copied.bytes, 4096U);
  EXPECT_EQ(gap[3 * 4096 - 1], std::byte{0});
  munmap(gap, 4096);
  munmap(gap + 8192, 4096);
}

// A thread that polls the last byte finds the whole message (A32), also when the kernel copies.
TEST(TransferOrder, WhoPollsTheLastByteFindsAll) {
  Node node;
  Node other;
  const auto peer = node.board->find(other.slot);
  ASSERT_TRUE(node.until([&] {
    other.turn();
    return peer->state() == PeerState::Ready;
  }));
  if (!peer->cma) GTEST_SKIP() << "CMA is not allowed here";
  constexpr std::size_t kMost = 16'384;
  constexpr std::uint32_t kRounds = 400;
  std::vector<std::byte> from(kMost);
  static std::uint8_t to[kMost];
  std::atomic<std::uint32_t> begun{0}, seen{0};
  std::atomic<std::uint64_t> early{0};
  const auto size_of = [](std::uint32_t round) { return 9 + round * 997 % (kMost - 9); };
  std::thread poller([&] {
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
      const std::size_t bytes = size_of(round);
      const auto value = static_cast<std::uint8_t>(round % 251 + 1);
      const auto at = [&](std::size_t i) { return __atomic_load_n(&to[i], __ATOMIC_ACQUIRE); };
      while (begun.load(std::memory_order_acquire) != round) std::this_thread::yield();
      while (at(bytes - 1) != value) std::this_thread::yield();
      for (std::size_t i = 0; i < bytes; ++i) early += at(i) != value ? 1 : 0;
      seen.store(round, std::memory_order_release);
    }
  });
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    std::fill(from.begin(), from.end(), static_cast<std::byte>(round % 251 + 1));
    std::memset(to, 0, sizeof to);
    begun.store(round, std::memory_order_release);
    const Segment local[] = {{of(from).addr, size_of(round)}};
    const Segment remote[] = {{reinterpret_cast<std::uint64_t>(to), size_of(round)}};
    const std::size_t body = size_of(round) - 8;
    ASSERT_EQ(put(*peer, local, remote, 0, body).bytes, body);
    ASSERT_EQ(put(*peer, local, remote, body, 8).bytes, 8U);
    while (seen.load(std::memory_order_acquire) != round) std::this_thread::yield();
  }
  poller.join();
  EXPECT_EQ(early, 0U);
}

TEST(TransferSelf, ByAddress) {
  Node node;
  const auto self = node.board->self();
  std::vector<std::byte> from(10'000), to(10'000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 31);
  const std::uint64_t a = reinterpret_cast<std::uint64_t>(from.data());
  const std::uint64_t b = reinterpret_cast<std::uint64_t>(to.data());
  const Segment local[] = {{a, 100}, {a + 100, 0}, {a + 100, 9900}};
  const Segment remote[] = {{b, 5000}, {b + 5000, 5000}};
  EXPECT_EQ(put(*self, local, remote, 0, 7000).bytes, 7000U);
  EXPECT_EQ(put(*self, local, remote, 7000, 7000).bytes, 3000U);
  EXPECT_EQ(from, to);
  std::fill(from.begin(), from.end(), std::byte{0});
  EXPECT_EQ(get(*self, local, remote, 0, ~0ULL).bytes, 10'000U);
  EXPECT_EQ(from, to);
  EXPECT_EQ(reach(*self, self->tables->keys[1], a, 1), Tier::Mapped);
}

TEST(Atomics, ReturnTheValueBefore) {
  alignas(8) std::uint64_t word = 5;
  const auto va = reinterpret_cast<std::uint64_t>(&word);
  EXPECT_EQ(fetch_add(va, 3), 5U);
  EXPECT_EQ(compare_swap(va, 9, 1), 8U);
  EXPECT_EQ(word, 8U);
  EXPECT_EQ(compare_swap(va, 8, 1), 8U);
  EXPECT_EQ(word, 1U);
}

}  // namespace
}  // namespace vrb::local::testing
