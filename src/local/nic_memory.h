// NIC memory of this process: creates, seals and maps the two files of layout.h, gives out pieces
// of their arenas, and runs the grace period behind which things may be taken away. Owned by the
// engine, lives as long as the process (a forked child drops it). alloc/free and grace: any thread;
// the rest before other threads see it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/lock.h"
#include "ib/cause.h"
#include "local/kernel.h"
#include "local/layout.h"

namespace vrb::local {

// First-fit allocator over [0, size), pieces of whole 4 KiB pages. Fresh memory is zero; freed
// pages are punched.
class Arena {
 public:
  explicit Arena(std::uint64_t size) { free_[0] = size; }
  // Offset, or ~0 when nothing fits.
  std::uint64_t alloc(std::uint64_t bytes);
  void free(std::uint64_t offset, std::uint64_t bytes);

 private:
  std::map<std::uint64_t, std::uint64_t> free_;  // offset -> length, neighbours merged
};

// A piece of a file of NIC memory: `offset` from the start of the file.
struct Piece {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

class NicMemory {
 public:
  // SystemRefused when memfds cannot be made (or RLIMIT_FSIZE is finite: the kernel would kill us,
  // A12).
  static ib::Result<std::unique_ptr<NicMemory>> create(std::uint64_t incarnation);

  Tables& tables() { return *tables_; }
  Shared& shared() { return *shared_; }
  std::byte* tables_at(std::uint64_t offset) {
    return reinterpret_cast<std::byte*>(tables_) + offset;
  }
  std::byte* shared_at(std::uint64_t offset) {
    return reinterpret_cast<std::byte*>(shared_) + offset;
  }
  int tables_fd() const { return tables_fd_.get(); }
  int shared_fd() const { return shared_fd_.get(); }
  std::uint64_t incarnation() const { return tables_->header.incarnation; }

  // Zeroed pieces of the arenas; OutOfMemory when full.
  ib::Result<Piece> alloc_table(std::uint64_t bytes);
  ib::Result<Piece> alloc_shared(std::uint64_t bytes);
  // Only after a grace period. A piece that a quarantined lane may still touch is kept until that
  // lane moves.
  void free_table(Piece piece);
  void free_shared(Piece piece);

  // Waits until every lane that is inside has changed: afterwards nobody uses what was made invalid
  // before the call. Spins 10 us, then sleeps, at most `limit_ms`; false = some lane is still
  // inside (quarantine: what was taken away must not be reused until quarantine_over()). Full fence
  // included. A20 to A22.
  bool grace(std::uint32_t limit_ms = 100);
  // True when no lane of an unfinished grace() is still inside.
  bool quarantine_over();
  // Service thread: a peer index whose holder is dead: its lanes count as outside from now on.
  void forget_lanes(std::uint32_t peer_index);
  // Peer indices in use, so that grace() scans no more than that.
  void set_peers_in_use(std::uint32_t count) {
    peers_in_use_.store(count, std::memory_order_release);
  }

  // Child of fork: closes every descriptor of the local carrier. The mappings were not inherited.
  void abandon();

 private:
  NicMemory() = default;
  struct Stuck {
    std::uint32_t peer, lane;
    std::uint64_t epoch;
  };
  struct Held {
    bool table;
    Piece piece;
  };
  bool still_inside(const Stuck& lane) const;
  // Lanes that are inside now and not known to be stuck; `stuck` says whether there are such, too.
  std::vector<Stuck> lanes_inside(bool& stuck);
  bool is_known(const Stuck& lane) const VRB_REQUIRES(lock_);
  void remember_stuck(const std::vector<Stuck>& lanes);
  void give_back(const Held& held) VRB_REQUIRES(lock_);

  Mapping tables_map_, shared_map_;
  Tables* tables_ = nullptr;
  Shared* shared_ = nullptr;
  Fd tables_fd_, shared_fd_;
  base::SpinLock lock_;
  Arena table_arena_ VRB_GUARDED_BY(lock_){kTablesBytes - kTablesArena};
  Arena shared_arena_ VRB_GUARDED_BY(lock_){kSharedBytes - kSharedArena};
  std::vector<Stuck> stuck_ VRB_GUARDED_BY(lock_);  // lanes that outlasted a grace period
  std::vector<Held> held_ VRB_GUARDED_BY(lock_);    // pieces freed meanwhile
  std::atomic<std::uint32_t> peers_in_use_{1};
};

// Sets the bit of an object for the owner's service thread (peers and owner), and takes bits
// (owner).
void set_due(DueSet& set, std::uint32_t index);
// Calls `f(index)` for every set bit after clearing it; bounded, trusts nothing.
template <class F>
void take_due(DueSet& set, F f) {
  constexpr std::uint32_t kSummaries = kDueBits / 64 / 64;
  for (std::uint32_t s = 0; s < kSummaries; ++s) {
    if (set.summary[s].load(std::memory_order_relaxed) == 0) continue;
    std::uint64_t words = set.summary[s].exchange(0);
    while (words != 0) {
      const std::uint32_t w = s * 64 + static_cast<std::uint32_t>(__builtin_ctzll(words));
      words &= words - 1;
      std::uint64_t bits = set.word[w].exchange(0);
      while (bits != 0) {
        f(w * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits)));
        bits &= bits - 1;
      }
    }
  }
}

}  // namespace vrb::local
