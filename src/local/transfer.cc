// SPDX-License-Identifier: Apache-2.0
#include "local/transfer.h"

#include "local/cma.h"
#include "local/copy.h"

namespace vrb::local {
namespace {

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
           std::uint64_t skip, std::uint64_t budget) {
  Cursor from(local, skip);
  Cursor to(remote, skip);
  if (peer.self) return copy_by_address(from, to, budget);
  return cma_copy(peer, Direction::Put, from, to, std::min(to.left(), budget));
}

Copied get(Peer& peer, std::span<const Segment> local, std::span<const Segment> remote,
           std::uint64_t skip, std::uint64_t budget) {
  Cursor to(local, skip);
  Cursor from(remote, skip);
  if (peer.self) return copy_by_address(from, to, budget);
  return cma_copy(peer, Direction::Get, to, from, std::min(from.left(), budget));
}

}  // namespace vrb::local
