// SPDX-License-Identifier: Apache-2.0
#include "local/fds.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace vrb::local {
namespace {

constexpr int kFdLimit = 65536;
constexpr int kFirstFd = 512;

std::atomic<std::uint64_t> g_ours[kFdLimit / 64];
std::atomic<std::uint32_t> g_epoch{0};

void note(int fd) { g_ours[fd / 64].fetch_or(1ULL << (fd % 64)); }
void forget(int fd) { g_ours[fd / 64].fetch_and(~(1ULL << (fd % 64))); }

int move_up(int fd) {
  if (fd >= kFirstFd) return fd;
  for (const int from : {kFirstFd, kFirstFd / 2, kFirstFd / 4}) {
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, from);
    if (high < 0) continue;
    close(fd);
    return high;
  }
  return fd;
}

}  // namespace

std::uint32_t fork_epoch() { return g_epoch.load(std::memory_order_relaxed); }

Fd Fd::adopt(int fd) {
  Fd result;
  if (fd < 0) return result;
  fd = move_up(fd);
  if (fd >= kFdLimit) {
    close(fd);
    errno = EMFILE;
    return result;
  }
  note(fd);
  result.fd_ = fd;
  result.epoch_ = fork_epoch();
  return result;
}

Fd Fd::duplicate(int fd) { return adopt(fcntl(fd, F_DUPFD_CLOEXEC, kFirstFd / 4)); }

void Fd::reset() {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0 || epoch_ != fork_epoch()) return;
  forget(fd);
  close(fd);
}

void abandon_fds() {
  for (int word = 0; word < kFdLimit / 64; ++word) {
    std::uint64_t bits = g_ours[word].exchange(0);
    for (; bits != 0; bits &= bits - 1) close(word * 64 + __builtin_ctzll(bits));
  }
  g_epoch.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace vrb::local
