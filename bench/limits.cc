// What the machine itself gives: limits hand-off CORE CORE prints half the median round trip of a
// cache line between two processes in ns; limits memcpy BYTES the bytes a second of memcpy between
// two warm buffers, in MB/s.
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::uint32_t kRounds = 200'000;
constexpr double kSeconds = 0.5;

using Clock = std::chrono::steady_clock;

struct Line {
  alignas(64) std::atomic<std::uint32_t> value{0};
};

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    throw std::runtime_error(std::string("sched_setaffinity: ") + std::strerror(errno));
  }
}

// Each way has a line of its own, as two peers write into each other's memory.
void hand_off(int here, int there) {
  void* shared =
      mmap(nullptr, 2 * sizeof(Line), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("mmap");
  auto* lines = new (shared) Line[2];
  const pid_t echo = fork();
  if (echo < 0) throw std::runtime_error("fork");
  if (echo == 0) {
    pin(there);
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
      while (lines[0].value.load(std::memory_order_acquire) != round) continue;
      lines[1].value.store(round, std::memory_order_release);
    }
    _exit(0);
  }
  pin(here);
  std::vector<double> halves(kRounds);
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    const auto start = Clock::now();
    lines[0].value.store(round, std::memory_order_release);
    while (lines[1].value.load(std::memory_order_acquire) != round) continue;
    halves[round - 1] = std::chrono::duration<double, std::nano>(Clock::now() - start).count() / 2;
  }
  waitpid(echo, nullptr, 0);
  std::nth_element(halves.begin(), halves.begin() + kRounds / 2, halves.end());
  std::printf("%.1f ns\n", halves[kRounds / 2]);
}

void copy(std::size_t bytes) {
  std::vector<char> from(bytes, 'x');
  std::vector<char> to(bytes, 'y');
  std::uint64_t copied = 0;
  const auto start = Clock::now();
  double seconds = 0;
  while (seconds < kSeconds) {
    for (int i = 0; i < 16; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      asm volatile("" : : "r"(to.data()) : "memory");
    }
    copied += 16 * bytes;
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  std::printf("%.1f MB/s\n", static_cast<double>(copied) / seconds / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    if (what == "hand-off" && argc == 4) {
      hand_off(std::atoi(argv[2]), std::atoi(argv[3]));
    } else if (what == "memcpy" && argc == 3 && std::atol(argv[2]) > 0) {
      copy(static_cast<std::size_t>(std::atol(argv[2])));
    } else {
      std::fprintf(stderr, "usage: limits hand-off CORE CORE | limits memcpy BYTES\n");
      return 2;
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "limits: %s\n", error.what());
    return 1;
  }
}
