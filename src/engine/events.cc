// SPDX-License-Identifier: Apache-2.0
#include "engine/events.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace vrb::engine {

int make_event_fd() { return eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE); }

void post_event_fd(int fd) {
  const std::uint64_t one = 1;
  while (fd >= 0 && write(fd, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

bool wait_event_fd(int fd) {
  std::uint64_t taken = 0;
  return fd >= 0 && read(fd, &taken, sizeof taken) == sizeof taken;
}

void close_descriptor(int fd) { close(fd); }

void Unacknowledged::add() {
  const std::lock_guard guard(mutex_);
  ++count_;
}

void Unacknowledged::remove(unsigned n) {
  const std::lock_guard guard(mutex_);
  count_ -= std::min(n, count_);
  if (count_ == 0) none_.notify_all();
}

void Unacknowledged::wait_for_none() {
  std::unique_lock lock(mutex_);
  none_.wait(lock, [this] { return count_ == 0; });
}

}  // namespace vrb::engine
