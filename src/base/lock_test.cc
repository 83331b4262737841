// SPDX-License-Identifier: Apache-2.0
#include "base/lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/points.h"

namespace vrb::base {
namespace {

std::atomic<int> g_yields{0};

void count_yield() {
  g_yields.fetch_add(1);
  std::this_thread::yield();
}

TEST(SpinLock, LetsOneInAtATime) {
  SpinLock lock;
  std::uint64_t count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        const SpinGuard guard(lock);
        ++count;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(count, 80000U);
}

TEST(SpinLock, TryLockDoesNotWait) {
  SpinLock lock;
  for (int round = 0; round < 2; ++round) {
    if (!lock.try_lock()) FAIL();
    std::thread([&lock] { EXPECT_FALSE(lock.try_lock()); }).join();
    lock.unlock();
  }
}

TEST(SpinLock, LetsOthersRunWhileItSpins) {
  set_yield_hook(count_yield);
  SpinLock lock;
  lock.lock();
  std::thread waiter([&lock] { const SpinGuard guard(lock); });
  while (g_yields.load() == 0) std::this_thread::yield();
  lock.unlock();
  waiter.join();
  set_yield_hook(nullptr);
  yield();
  EXPECT_GT(g_yields.load(), 0);
}

const char* g_point = nullptr;

TEST(Points, CallTheHook) {
  reach_point("nobody listens");
  set_point_hook([](const char* name) { g_point = name; });
  reach_point("here");
  EXPECT_STREQ(g_point, "here");
  set_point_hook(nullptr);
  reach_point("there");
  EXPECT_STREQ(g_point, "here");
}

}  // namespace
}  // namespace vrb::base
