// SPDX-License-Identifier: Apache-2.0
#include "memory/key_table.h"

namespace vrb::memory {
namespace {

using ib::CauseCode;

// A released index rests until this many are waiting behind it, so that a stale key meets another's
// region as late as the table allows.
constexpr std::size_t kResting = 1024;

constexpr bool wraps(std::uint64_t first, std::uint64_t length) {
  return length != 0 && first + (length - 1) < first;
}

KeyCheck no(const ib::Cause& cause) { return {false, {}, cause}; }

}  // namespace

KeyCheck KeyView::unknown(std::uint32_t key) { return no(ib::cause(CauseCode::KeyUnknown, key)); }

KeyCheck KeyView::refused(std::uint32_t key, ib::Pdn pd, std::uint32_t need, std::uint64_t addr,
                          std::uint64_t length) const {
  const KeyEntry& e = base_[key >> 8];
  if (pd != kAnyPd && e.pd != pd.value) {
    return no(ib::cause(CauseCode::KeyOtherPd, key, e.pd, pd.value));
  }
  const std::uint64_t access = e.tag.load(std::memory_order_acquire) >> 16 & 0xffff;
  if ((need & ~access) != 0) return no(ib::cause(CauseCode::KeyAccess, key, access, need));
  return no(ib::cause(CauseCode::KeyRange, key, addr, length));
}

KeyTable::KeyTable(std::span<KeyEntry> table) : table_(table), slots_(1) {}

std::uint32_t KeyTable::take_index() {
  const std::size_t waiting = free_.size() - free_head_;
  const bool fresh_left = slots_.size() < table_.size();
  if (fresh_left && waiting <= kResting) {
    slots_.emplace_back();
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  if (waiting == 0) return 0;
  const std::uint32_t index = free_[free_head_++];
  if (free_head_ > kResting && free_head_ > free_.size() / 2) {
    free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(free_head_));
    free_head_ = 0;
  }
  return index;
}

KeyTable::Slot* KeyTable::slot_of(std::uint32_t key, Slot::State state) {
  const std::uint32_t index = key >> 8;
  if (index == 0 || index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  return slot.state == state && slot.variant == (key & 0xff) ? &slot : nullptr;
}

ib::Result<std::uint32_t> KeyTable::publish(const Region& region) {
  if (wraps(region.iova, region.length) || wraps(region.va, region.length)) {
    return ib::refuse(ib::Errc::Invalid, CauseCode::MemoryNotMapped, region.va, region.length);
  }
  const std::uint32_t index = take_index();
  if (index == 0) {
    return ib::refuse(ib::Errc::NoMemory, CauseCode::LimitExceeded, in_use_ + 1ULL, in_use_);
  }
  Slot& slot = slots_[index];
  ++slot.variant;
  slot.state = Slot::State::Live;
  ++in_use_;
  write(index, region);
  return index << 8 | slot.variant;
}

void KeyTable::write(std::uint32_t index, const Region& region) {
  KeyEntry& e = table_[index];
  e.iova = region.iova;
  e.length = region.length;
  e.va = region.va;
  e.pd = region.pd.value;
  e.moved = 0;
  e.tag.store(
      1 | std::uint64_t{slots_[index].variant} << 8 | std::uint64_t{region.access & 0xffff} << 16,
      std::memory_order_release);
}

bool KeyTable::republish(std::uint32_t key, const Region& region) {
  Slot* const slot = slot_of(key, Slot::State::Invalid);
  if (slot == nullptr || wraps(region.iova, region.length) || wraps(region.va, region.length)) {
    return false;
  }
  slot->state = Slot::State::Live;
  write(key >> 8, region);
  return true;
}

void KeyTable::invalidate(std::uint32_t key) {
  Slot* const slot = slot_of(key, Slot::State::Live);
  if (slot == nullptr) return;
  table_[key >> 8].tag.store(0, std::memory_order_seq_cst);
  slot->state = Slot::State::Invalid;
}

void KeyTable::release(std::uint32_t key) {
  Slot* const slot = slot_of(key, Slot::State::Invalid);
  if (slot == nullptr) return;
  slot->state = Slot::State::Free;
  --in_use_;
  free_.push_back(key >> 8);
}

}  // namespace vrb::memory
