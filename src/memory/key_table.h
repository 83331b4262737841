// The key table of a NIC: which memory an L_Key or R_Key names. It lies in the sealed tables of NIC
// memory: the owner writes it (KeyTable, under the engine's MR lock), peers and our own data path
// read it (KeyView) while they are inside a lane, without a lock.
//
// A key is index << 8 | variant. An entry's body is written before its tag becomes valid by one
// release store, and is never changed in place: rereg writes it anew behind an invalid tag, reuse
// takes a new variant. An index is reused only after the grace period that follows its invalidation
// (docs/local.md), so a reader inside a lane sees a stable body.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ib/cause.h"
#include "ib/types.h"

namespace vrb::memory {

struct alignas(64) KeyEntry {
  std::atomic<std::uint64_t>
      tag;  // valid (bit 0) | variant (bits 8..15) | access flags (bits 16..31); 0 = none
  std::uint64_t iova;    // first address that the key names
  std::uint64_t length;  // bytes; iova + length - 1 never wraps
  std::uint64_t va;      // where iova lies in the owner's address space
  std::uint32_t pd;
  std::uint32_t moved;  // 0: not moved. Step 2: generation of the moved pages
  std::uint64_t reserved[3];
};
static_assert(sizeof(KeyEntry) == 64 && alignof(KeyEntry) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// What a key resolved to: the range in the owner's address space.
struct Resolved {
  std::uint64_t va = 0;
  const KeyEntry* entry = nullptr;
};

// The outcome of a key check: the address, or why the key does not grant it (KeyUnknown,
// KeyOtherPd, KeyAccess, KeyRange).
struct KeyCheck {
  bool ok = false;
  Resolved resolved;
  ib::Cause cause;
};

// A reader's view of a table of `entries` entries at `base`. Trusts nothing in it: indices are
// bounded and ranges are checked without overflow.
class KeyView {
 public:
  KeyView() = default;
  KeyView(const KeyEntry* base, std::uint32_t entries) : base_(base), entries_(entries) {}

  // Does `key` name [addr, addr + length) for `pd` with all of `need`? `pd` kAnyPd skips the PD
  // check. A length of 0 is judged like any other; whether a key is looked at for it at all is the
  // caller's rule. IBTA 10.6.3, 9.7.4.1.6 (R_Key check).
  KeyCheck check(std::uint32_t key, ib::Pdn pd, std::uint32_t need, std::uint64_t addr,
                 std::uint64_t length) const {
    const std::uint32_t index = key >> 8;
    if (index == 0 || index >= entries_) return unknown(key);
    const KeyEntry& e = base_[index];
    const std::uint64_t tag = e.tag.load(std::memory_order_acquire);
    if ((tag & 0xff01) != ((key & 0xff) << 8 | 1)) return unknown(key);
    const bool pd_fits = pd == kAnyPd || e.pd == pd.value;
    const bool access_fits = (need & ~(tag >> 16 & 0xffff)) == 0;
    const std::uint64_t offset = addr - e.iova;
    const std::uint64_t size = e.length;
    if (!pd_fits || !access_fits || addr < e.iova || offset > size || length > size - offset) {
      return refused(key, pd, need, addr, length);
    }
    return {true, {e.va + offset, &e}, {}};
  }

  static constexpr ib::Pdn kAnyPd{0xffffffff};

 private:
  static KeyCheck unknown(std::uint32_t key);
  KeyCheck refused(std::uint32_t key, ib::Pdn pd, std::uint32_t need, std::uint64_t addr,
                   std::uint64_t length) const;

  const KeyEntry* base_ = nullptr;
  std::uint32_t entries_ = 0;
};

// The owner's side: gives out and takes back keys. Not thread-safe: the caller holds the MR lock.
class KeyTable {
 public:
  // `table`: zeroed entries in NIC memory (or the heap in tests). Index 0 is never given out.
  explicit KeyTable(std::span<KeyEntry> table);

  struct Region {
    std::uint64_t iova, length, va;
    ib::Pdn pd;
    std::uint32_t access;  // bits 0..15 of ibv_access_flags
  };
  // Publishes a region and returns its key; LimitExceeded when the table is full, MemoryNotMapped
  // when the region wraps round the end of the address space.
  ib::Result<std::uint32_t> publish(const Region& region);
  // Makes the key invalid at once; a key that is not valid is ignored. The index stays out of use
  // until release().
  void invalidate(std::uint32_t key);
  // Gives an invalidated key another region, after the grace period (ibv_rereg_mr(3) keeps the
  // keys: programs hold on to them). False when the region wraps or the key is not an invalidated
  // one.
  bool republish(std::uint32_t key, const Region& region);
  // Gives the index of an invalidated key back, after the grace period; any other key is ignored.
  void release(std::uint32_t key);

  KeyView view() const { return {table_.data(), static_cast<std::uint32_t>(table_.size())}; }
  std::uint32_t in_use() const { return in_use_; }

 private:
  struct Slot {
    enum class State : std::uint8_t { Free, Live, Invalid };
    std::uint8_t variant = 0;  // of its key, or of the last one
    State state = State::Free;
  };
  std::uint32_t take_index();  // 0: none
  void write(std::uint32_t index, const Region& region);
  Slot* slot_of(std::uint32_t key, Slot::State state);

  std::span<KeyEntry> table_;
  std::vector<std::uint32_t> free_;  // released indices, oldest first from free_head_ on
  std::size_t free_head_ = 0;
  std::vector<Slot> slots_;  // of each index that was ever used
  std::uint32_t in_use_ = 0;
};

}  // namespace vrb::memory
