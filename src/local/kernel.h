// What the local carrier asks of the kernel for memory: sealed sparse files and their mappings, all
// by raw system calls, because other libraries patch libc's (A13). Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "ib/cause.h"
#include "local/fds.h"

namespace vrb::local {

// Features of newer kernels that may be tried (VERBENA_KERNEL). Set once, before anything else of
// local.
struct KernelMask {
  bool peer_pidfd = true;     // SO_PEERPIDFD, 6.5
  bool noexec_seal = true;    // MFD_NOEXEC_SEAL, 6.3
  bool procmap_query = true;  // PROCMAP_QUERY, 6.11
};
KernelMask& kernel_mask();

// A sparse memfd of `bytes`. SystemRefused where memfds are not to be had, or with a finite
// RLIMIT_FSIZE, under which the kernel would kill the process (A12).
ib::Result<Fd> make_file(const char* name, std::uint64_t bytes);
bool add_seals(int fd, unsigned seals);
// Is it a memfd of just this size that can neither shrink nor grow, and (tables) not be written by
// us? Then no access to a mapping of it raises SIGBUS. For descriptors that a peer sent.
bool is_sealed_file(int fd, std::uint64_t bytes, bool read_only);
bool punch(int fd, std::uint64_t offset, std::uint64_t bytes);
// Zeroes what was ever written in a range of a mapped file that may not be punched.
void clear_data(int fd, std::byte* mapping, std::uint64_t offset, std::uint64_t bytes);

// A shared mapping of a whole sparse file; never inherited by a child, never dumped, never locked
// (A11).
class Mapping {
 public:
  Mapping() = default;
  static ib::Result<Mapping> of(int fd, std::uint64_t bytes, bool writable);
  ~Mapping() { reset(); }
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_), epoch_(other.epoch_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      reset();
      base_ = std::exchange(other.base_, nullptr);
      bytes_ = other.bytes_;
      epoch_ = other.epoch_;
    }
    return *this;
  }
  std::byte* get() const { return base_; }
  // Unmaps; in a forked child there is nothing to unmap and whatever lies there now is somebody
  // else's.
  void reset();

 private:
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint32_t epoch_ = 0;
};

// pidfd of the process at the other end of a Unix socket; empty where the kernel gives none, or
// `gone`.
struct PeerPid {
  Fd fd;
  bool gone = false;
};
PeerPid peer_pidfd(int socket, int pid);
bool has_ended(int pidfd);  // without waiting

}  // namespace vrb::local
