// Descriptors of the local carrier. They lie at high numbers, so that programs that use select()
// keep the low ones (A45), and each is noted in a process-wide bitmap, so that the child of a fork
// can close them all without taking a lock (A36). An Fd that the parent owned does nothing in the
// child. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

namespace vrb::local {

class Fd {
 public:
  Fd() = default;
  // Takes `fd` over and moves it up; empty (errno EMFILE) when it cannot be noted, and for fd < 0.
  static Fd adopt(int fd);
  // A duplicate of a descriptor that stays somebody else's.
  static Fd duplicate(int fd);
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), epoch_(other.epoch_) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
      epoch_ = other.epoch_;
    }
    return *this;
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
  std::uint32_t epoch_ = 0;
};

// How many times this process became a forked child. What was made under another value belongs to a
// parent.
std::uint32_t fork_epoch();
// Child of fork: closes every descriptor of the bitmap and starts a new epoch.
void abandon_fds();

}  // namespace vrb::local
