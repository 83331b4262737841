// SPDX-License-Identifier: Apache-2.0
#include "queue/recv_ring.h"

#include <algorithm>

#include "base/points.h"

namespace vrb::queue {
namespace {

using State = ClaimWord::State;

constexpr std::uint32_t kRaces = 64;

}  // namespace

std::span<const ib::Sge> RecvRing::sges(std::uint64_t position) const {
  const RecvEntry& e = entry(position);
  return {e.sges(), std::min(e.num_sge, max_sge)};
}

// A tag of an older round than `position` is an entry whose claim was given back after the owner
// had skipped it; a newer one is met at its own position.
std::optional<std::uint64_t> RecvRing::claimable(std::uint64_t position) const {
  const std::uint64_t tag = entry(position).tag.load(std::memory_order_acquire);
  if (tag == 0 || tag - 1 > position) return std::nullopt;
  if (((tag - 1 - position) & (count - 1)) != 0) return std::nullopt;
  const auto w = ClaimWord::unpack(word(position).load(std::memory_order_seq_cst));
  if (w.round >= tag) return std::nullopt;
  return tag - 1;
}

std::uint64_t RecvRing::first_claimable(std::uint64_t from, std::uint64_t posted) const {
  while (from < posted && !claimable(from)) ++from;
  return from;
}

std::optional<std::uint64_t> RecvRing::find() const {
  std::uint64_t position = claims->head.load(std::memory_order_acquire);
  const std::uint64_t posted = header->posted.load(std::memory_order_acquire);
  if (position > posted || posted - position > count)
    position = posted - std::min<std::uint64_t>(posted, count);
  for (; position < posted; ++position) {
    if (const auto found = claimable(position)) return found;
  }
  return std::nullopt;
}

bool RecvRing::try_claim(std::uint64_t position, std::uint16_t peer) const {
  const auto& tag = entry(position).tag;
  std::uint64_t before = word(position).load(std::memory_order_acquire);
  if (ClaimWord::unpack(before).round >= position + 1) return false;
  if (tag.load(std::memory_order_acquire) != position + 1) return false;
  std::uint64_t mine = ClaimWord{position + 1, State::Claimed, peer}.pack();
  if (!word(position).compare_exchange_strong(before, mine, std::memory_order_seq_cst))
    return false;
  VRB_POINT("recv_claimed");
  if (tag.load(std::memory_order_acquire) == position + 1) return true;
  word(position).compare_exchange_strong(mine, before, std::memory_order_seq_cst);
  return false;
}

std::optional<std::uint64_t> RecvRing::claim(std::uint16_t peer) const {
  for (std::uint32_t turns = kRaces; turns != 0; --turns) {
    const auto position = find();
    if (!position || try_claim(*position, peer)) return position;
  }
  return std::nullopt;
}

void RecvRing::ask_doorbell(std::uint16_t peer) const {
  claims->waiting.fetch_or(1ULL << (peer & 63), std::memory_order_seq_cst);
}

// The hint is pushed over entries that cannot be claimed, and then those are looked at again: of a
// push and a give_back() at the same time at least one sees the other and pulls the hint back.
void RecvRing::finish(std::uint64_t position, std::uint16_t peer) const {
  std::uint64_t mine = ClaimWord{position + 1, State::Claimed, peer}.pack();
  word(position).compare_exchange_strong(mine, ClaimWord{position + 1, State::Done, peer}.pack(),
                                         std::memory_order_seq_cst);
  VRB_POINT("recv_done");
  std::uint64_t head = claims->head.load(std::memory_order_acquire);
  const std::uint64_t posted = header->posted.load(std::memory_order_acquire);
  const std::uint64_t oldest = posted - std::min<std::uint64_t>(posted, count);
  const std::uint64_t from = head < oldest || head > posted ? oldest : head;
  const std::uint64_t to = first_claimable(from, posted);
  if (to == head) return;
  if (!claims->head.compare_exchange_strong(head, to, std::memory_order_seq_cst)) return;
  VRB_POINT("recv_head_pushed");
  const std::uint64_t again = first_claimable(from, to);
  if (again != to) pull_head(again);
}

void RecvRing::pull_head(std::uint64_t position) const {
  std::uint64_t head = claims->head.load(std::memory_order_seq_cst);
  for (std::uint32_t turns = kRaces; turns != 0 && head > position; --turns) {
    if (claims->head.compare_exchange_strong(head, position, std::memory_order_seq_cst)) return;
  }
}

void RecvRing::give_back(std::uint64_t position, std::uint16_t peer) const {
  std::uint64_t mine = ClaimWord{position + 1, State::Claimed, peer}.pack();
  if (!word(position).compare_exchange_strong(mine, 0, std::memory_order_seq_cst)) return;
  VRB_POINT("recv_given_back");
  pull_head(position);
}

std::uint32_t RecvRing::unclaimed() const {
  const std::uint64_t head = claims->head.load(std::memory_order_acquire);
  const std::uint64_t posted = header->posted.load(std::memory_order_acquire);
  if (head >= posted) return 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(posted - head, count));
}

RecvPoster::RecvPoster(RecvRingHeader* header, RecvClaims* claims, std::uint32_t entries,
                       std::uint32_t max_sge, std::uint32_t capacity, ib::Pdn pd,
                       std::uint64_t claims_offset, std::uint64_t id)
    : header_(header),
      claims_(claims),
      entries_(entries),
      max_sge_(max_sge),
      capacity_(std::min(capacity, entries)),
      use_(entries) {
  header->entries = entries;
  header->max_sge = max_sge;
  header->pd = pd.value;
  header->claims = claims_offset;
  header->id.store(id, std::memory_order_relaxed);
}

RecvRing RecvPoster::ring() const {
  return {header_, reinterpret_cast<const std::byte*>(header_ + 1), claims_, entries_, max_sge_};
}

RecvEntry& RecvPoster::entry(std::uint64_t position) const {
  auto* const base = reinterpret_cast<std::byte*>(header_ + 1);
  return *reinterpret_cast<RecvEntry*>(base +
                                       (position & (entries_ - 1)) * RecvRing::stride(max_sge_));
}

bool RecvPoster::post(std::uint64_t wr_id, std::span<const ib::Sge> sges) {
  if (outstanding_ >= capacity_) return false;
  while (use_[next_ & (entries_ - 1)].in_use) ++next_;
  RecvEntry& e = entry(next_);
  e.num_sge = static_cast<std::uint32_t>(std::min<std::size_t>(sges.size(), max_sge_));
  std::copy_n(sges.begin(), e.num_sge, e.sges());
  use_[next_ & (entries_ - 1)] = {wr_id, next_, true};
  ++outstanding_;
  ++next_;
  e.tag.store(next_, std::memory_order_release);
  VRB_POINT("recv_tagged");
  header_->posted.store(next_, std::memory_order_release);
  return true;
}

void RecvPoster::free_entry(std::uint32_t index) {
  Use& use = use_[index];
  auto& word = claims_->words()[index];
  std::uint64_t seen = word.load(std::memory_order_acquire);
  const ClaimWord w = ClaimWord::unpack(seen);
  if (w.round != use.position + 1 || w.state != State::Done) {
    word.exchange(ClaimWord{use.position + 1, State::Done, 0}.pack(), std::memory_order_seq_cst);
  }
  use.in_use = false;
  --outstanding_;
}

std::optional<std::uint64_t> RecvPoster::complete(std::uint32_t index) {
  if (index >= entries_ || !use_[index].in_use) return std::nullopt;
  free_entry(index);
  return use_[index].wr_id;
}

std::vector<RecvPoster::Flushed> RecvPoster::take_all(const std::vector<std::uint32_t>& spared) {
  std::vector<bool> spare(entries_);
  for (const std::uint32_t index : spared) {
    if (index < entries_) spare[index] = true;
  }
  std::vector<Flushed> taken;
  for (std::uint32_t index = 0; index < entries_; ++index) {
    if (use_[index].in_use && !spare[index]) taken.push_back({index, use_[index].wr_id});
  }
  std::ranges::sort(taken, {}, [this](const Flushed& f) { return use_[f.index].position; });
  for (const Flushed& f : taken) free_entry(f.index);
  return taken;
}

void RecvPoster::put_back(std::uint32_t index) {
  if (index >= entries_ || !use_[index].in_use) return;
  const auto from = entry(index).sges();
  const std::vector<ib::Sge> sges(from, from + entry(index).num_sge);
  const std::uint64_t wr_id = use_[index].wr_id;
  free_entry(index);
  post(wr_id, sges);
}

void RecvPoster::recover(std::uint16_t dead_peer, const std::vector<std::uint32_t>& published) {
  std::vector<std::uint32_t> lost;
  for (std::uint32_t index = 0; index < entries_; ++index) {
    const auto w = ClaimWord::unpack(claims_->words()[index].load(std::memory_order_acquire));
    const bool claimed = w.state == State::Claimed && w.round == use_[index].position + 1;
    if (use_[index].in_use && claimed && w.peer == dead_peer) lost.push_back(index);
  }
  std::erase_if(
      lost, [&](std::uint32_t i) { return std::ranges::find(published, i) != published.end(); });
  std::ranges::sort(lost, {}, [this](std::uint32_t index) { return use_[index].position; });
  for (const std::uint32_t index : lost) put_back(index);
  // The dead peer may have put a word back and not the hint.
  claims_->head.store(next_ - std::min<std::uint64_t>(next_, entries_), std::memory_order_seq_cst);
}

void RecvPoster::set_limit(std::uint32_t limit) {
  header_->limit.store(limit, std::memory_order_release);
}

std::uint64_t RecvPoster::take_waiting() {
  if (claims_->waiting.load(std::memory_order_relaxed) == 0) return 0;
  return claims_->waiting.exchange(0, std::memory_order_acq_rel);
}

}  // namespace vrb::queue
