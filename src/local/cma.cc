// SPDX-License-Identifier: Apache-2.0
#include "local/cma.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace vrb::local {
namespace {

constexpr unsigned long kMostParts = 64;

unsigned long fill(iovec (&parts)[kMostParts], Cursor from, std::uint64_t bytes) {
  unsigned long count = 0;
  while (bytes != 0 && count < kMostParts) {
    const Segment run = from.run();
    if (run.length == 0) break;
    const std::uint64_t length = std::min(run.length, bytes);
    parts[count++] = {reinterpret_cast<void*>(run.addr), length};
    from.advance(length);
    bytes -= length;
  }
  return count;
}

// After EFAULT with nothing copied: was it our side?
bool is_our_fault(Direction direction, const Cursor& local) {
  const std::uint64_t at = local.run().addr;
  return !mapped(at, 1) || (direction == Direction::Get && !range_mapped(at, 1, true));
}

}  // namespace

Copied cma_copy(Peer& peer, Direction direction, Cursor local, Cursor remote, std::uint64_t bytes) {
  Copied copied;
  const long call = direction == Direction::Put ? SYS_process_vm_writev : SYS_process_vm_readv;
  iovec ours[kMostParts];
  iovec theirs[kMostParts];
  while (copied.bytes < bytes) {
    const unsigned long n_ours = fill(ours, local, bytes - copied.bytes);
    const unsigned long n_theirs = fill(theirs, remote, bytes - copied.bytes);
    if (n_ours == 0 || n_theirs == 0) break;
    if (!peer.alive()) {
      copied.error = ESRCH;
      break;
    }
    const long n = syscall(call, peer.pid, ours, n_ours, theirs, n_theirs, 0);
    if (n > 0) {
      const auto moved = static_cast<std::uint64_t>(n);
      local.advance(moved);
      remote.advance(moved);
      copied.bytes += moved;
      continue;
    }
    copied.error = n == 0 ? EFAULT : errno;
    if (copied.error == EPERM || copied.error == ENOSYS) {
      peer.cma.store(false, std::memory_order_relaxed);
    }
    copied.local_fault = copied.error == EFAULT && is_our_fault(direction, local);
    break;
  }
  return copied;
}

}  // namespace vrb::local
