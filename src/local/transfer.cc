// SPDX-License-Identifier: Apache-2.0
#include "local/transfer.h"

#include "base/points.h"
#include "local/cma.h"
#include "local/copy.h"

namespace vrb::local {
namespace {

constexpr std::uint64_t kTail = 8;  // bytes that a CMA put keeps for a call of their own

Copied copy_by_address(Cursor from, Cursor to, std::uint64_t bytes) {
  Copied copied;
  while (copied.bytes < bytes) {
    const Segment in = from.run();
    const Segment out = to.run();
    const std::uint64_t n = std::min({in.length, out.length, bytes - copied.bytes});
    if (n == 0) break;
    copy_ascending(reinterpret_cast<std::byte*>(out.addr),
                   reinterpret_cast<const std::byte*>(in.addr), n);
    from.advance(n);
    to.advance(n);
    copied.bytes += n;
  }
  return copied;
}

}  // namespace

Copied put(Peer& peer, std::span<const Segment> local, std::span<const Segment> remote,
           std::uint64_t skip, std::uint64_t budget, bool last_last) {
  Cursor from(local, skip);
  Cursor to(remote, skip);
  if (peer.self) return copy_by_address(from, to, budget);
  const std::uint64_t left = to.left();
  const std::uint64_t bytes = std::min(left, budget);
  if (!last_last || bytes < left || bytes <= kTail) {
    return cma_copy(peer, Direction::Put, from, to, bytes);
  }
  Copied copied = cma_copy(peer, Direction::Put, from, to, bytes - kTail);
  if (copied.error != 0 || copied.bytes != bytes - kTail) return copied;
  VRB_POINT("put.tail");
  from.advance(copied.bytes);
  to.advance(copied.bytes);
  const Copied tail = cma_copy(peer, Direction::Put, from, to, kTail);
  copied.bytes += tail.bytes;
  copied.error = tail.error;
  copied.local_fault = tail.local_fault;
  return copied;
}

Copied get(Peer& peer, std::span<const Segment> local, std::span<const Segment> remote,
           std::uint64_t skip, std::uint64_t budget) {
  Cursor to(local, skip);
  Cursor from(remote, skip);
  if (peer.self) return copy_by_address(from, to, budget);
  return cma_copy(peer, Direction::Get, to, from, std::min(from.left(), budget));
}

}  // namespace vrb::local
