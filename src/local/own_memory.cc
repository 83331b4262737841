// SPDX-License-Identifier: Apache-2.0
#include "local/own_memory.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "local/copy.h"

namespace vrb::local {
namespace {

constexpr std::uint64_t kTail = 8;

enum class Outcome { Done, Fault, Refused };

Outcome copy_by_call(long call, std::byte* ours, std::uint64_t theirs, std::uint64_t length) {
  while (length != 0) {
    const iovec a{ours, length};
    const iovec b{reinterpret_cast<void*>(theirs), length};
    const long n = syscall(call, getpid(), &a, 1, &b, 1, 0);
    if (n < 0 && errno != EFAULT) return Outcome::Refused;
    if (n <= 0) return Outcome::Fault;
    ours += n;
    theirs += static_cast<std::uint64_t>(n);
    length -= static_cast<std::uint64_t>(n);
  }
  return Outcome::Done;
}

// Only NIC memory's own file, which was made under an unlimited RLIMIT_FSIZE.
bool copy_by_file(long call, int fd, std::uint64_t address, std::uint64_t length,
                  std::uint64_t offset) {
  while (length != 0) {
    const long n = syscall(call, fd, address, length, offset);
    if (n <= 0) return false;
    address += static_cast<std::uint64_t>(n);
    offset += static_cast<std::uint64_t>(n);
    length -= static_cast<std::uint64_t>(n);
  }
  return true;
}

bool write_part(std::uint64_t to, const Staging& from, std::uint64_t at, std::uint64_t length) {
  const Outcome outcome = copy_by_call(SYS_process_vm_writev, from.bytes + at, to + at, length);
  if (outcome != Outcome::Refused) return outcome == Outcome::Done;
  if (from.fd >= 0) return copy_by_file(SYS_pread64, from.fd, to + at, length, from.offset + at);
  copy_ascending(reinterpret_cast<std::byte*>(to + at), from.bytes + at, length);
  return true;
}

}  // namespace

bool read_own(const Staging& to, std::uint64_t from, std::uint64_t length) {
  const Outcome outcome = copy_by_call(SYS_process_vm_readv, to.bytes, from, length);
  if (outcome != Outcome::Refused) return outcome == Outcome::Done;
  if (to.fd >= 0) return copy_by_file(SYS_pwrite64, to.fd, from, length, to.offset);
  copy_ascending(to.bytes, reinterpret_cast<const std::byte*>(from), length);
  return true;
}

bool write_own(std::uint64_t to, const Staging& from, std::uint64_t length) {
  const std::uint64_t tail = length > kTail ? kTail : 0;
  if (!write_part(to, from, 0, length - tail)) return false;
  return tail == 0 || write_part(to, from, length - tail, tail);
}

}  // namespace vrb::local
