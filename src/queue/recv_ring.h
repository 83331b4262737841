// The receive queue of a QP or SRQ. Entries (receive WQEs with their SGEs) and the count of posted
// ones lie in the sealed tables: only the owner writes them. Claim words lie in writable NIC
// memory: a sender takes an entry by one CAS on its claim word. wr_ids and what is in use stay
// private to the owner (RecvPoster).
//
// Entry i serves positions i, i + n, i + 2n ... of the posting order. Its tag is position + 1 once
// it is posted (0: never). The claim word is (position + 1) << 12 | state << 10 | peer; 0: never
// claimed.
//   posted at pos, claim word of an earlier round  --CAS--> Claimed(pos, peer)
//   --after the CQE is published--> Done(pos)  --owner polls the CQE--> the entry is free for a
//   later position
// Whoever frees an entry that was not finished (a poll before finish(), a flush, a death) makes its
// word Done, so that a late sender's CAS fails; a claim looks at the tag again after its CAS for
// the same reason. The owner never waits for a stuck claim: it skips an entry that is still in use
// and posts at the next free position, so a sender steps over positions whose tag is of an older
// round. `head` is a hint that anyone may push forward; it never stays beyond an entry that can be
// claimed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ib/types.h"

namespace vrb::queue {

struct RecvEntry {
  std::atomic<std::uint64_t> tag;
  std::uint32_t num_sge;
  std::uint32_t reserved;
  // ib::Sge sge[max_sge] follows
  ib::Sge* sges() { return reinterpret_cast<ib::Sge*>(this + 1); }
  const ib::Sge* sges() const { return reinterpret_cast<const ib::Sge*>(this + 1); }
};
static_assert(sizeof(RecvEntry) == 16);

// In the tables, in front of the entries.
struct alignas(64) RecvRingHeader {
  std::atomic<std::uint64_t> posted;  // positions below this one were posted or skipped
  std::atomic<std::uint32_t>
      limit;              // SRQ: senders report when fewer entries than this are left; 0 = none
  std::uint32_t entries;  // power of two
  std::uint32_t max_sge;
  std::uint32_t pd;      // whose keys the SGEs are
  std::uint64_t claims;  // offset of the RecvClaims in the writable NIC memory
  // Names the queue among all that this process ever makes; 0: it is taken away, leave it alone.
  std::atomic<std::uint64_t> id;
  std::uint64_t reserved[3];
};
static_assert(sizeof(RecvRingHeader) == 64);

// In writable NIC memory, in front of the claim words.
struct alignas(64) RecvClaims {
  std::atomic<std::uint64_t> head;  // hint
  std::atomic<std::uint64_t>
      waiting;  // a sender found nothing: bit (peer & 63) asks post_recv for a doorbell
  std::uint64_t pad[6];
  // std::atomic<std::uint64_t> word[entries] follows
  std::atomic<std::uint64_t>* words() {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(this + 1);
  }
};
static_assert(sizeof(RecvClaims) == 64);

struct ClaimWord {
  enum class State : std::uint8_t { Free = 0, Claimed = 1, Done = 2 };
  std::uint64_t round = 0;  // position + 1
  State state = State::Free;
  std::uint16_t peer = 0;
  static constexpr std::uint64_t kRoundMask = (1ULL << 52) - 1;
  static constexpr ClaimWord unpack(std::uint64_t word) {
    return {word >> 12, static_cast<State>((word >> 10) & 3),
            static_cast<std::uint16_t>(word & 0x3ff)};
  }
  constexpr std::uint64_t pack() const {
    return round << 12 | std::uint64_t(state) << 10 | std::uint64_t(peer & 0x3ff);
  }
};

// Both sides' view. Bounds were checked by whoever made it.
struct RecvRing {
  const RecvRingHeader* header = nullptr;
  const std::byte* entries = nullptr;
  RecvClaims* claims = nullptr;
  std::uint32_t count = 0;  // copies of the header's fields, checked once
  std::uint32_t max_sge = 0;

  static std::size_t stride(std::uint32_t max_sge) {
    return sizeof(RecvEntry) + max_sge * sizeof(ib::Sge);
  }
  static std::size_t table_bytes(std::uint32_t count, std::uint32_t max_sge) {
    return sizeof(RecvRingHeader) + count * stride(max_sge);
  }
  static std::size_t claim_bytes(std::uint32_t count) {
    return sizeof(RecvClaims) + count * sizeof(std::atomic<std::uint64_t>);
  }
  const RecvEntry& entry(std::uint64_t position) const {
    return *reinterpret_cast<const RecvEntry*>(entries +
                                               (position & (count - 1)) * stride(max_sge));
  }
  std::atomic<std::uint64_t>& word(std::uint64_t position) const {
    return claims->words()[position & (count - 1)];
  }
  // The SGEs of a claimed position, as many as fit into the entry.
  std::span<const ib::Sge> sges(std::uint64_t position) const;

  // Sender, inside a lane. The first position that can be claimed now; empty = receiver not ready.
  std::optional<std::uint64_t> find() const;
  // Sender: takes the position; false when somebody else was faster (find again).
  bool try_claim(std::uint64_t position, std::uint16_t peer) const;
  // Sender: find() and try_claim() until one succeeds; a bounded number of lost races looks like
  // "none".
  std::optional<std::uint64_t> claim(std::uint16_t peer) const;
  // Sender: asks post_recv for a doorbell. Look with find() once more afterwards.
  void ask_doorbell(std::uint16_t peer) const;
  // Sender: after the CQE was published. Pushes the head hint on.
  void finish(std::uint64_t position, std::uint16_t peer) const;
  // Sender: gives a claim back that came to nothing (a drop); only for the position last claimed by
  // us. The owner finds it by recover() at the latest; the head hint is pulled back.
  void give_back(std::uint64_t position, std::uint16_t peer) const;
  // Posted entries not yet claimed, as far as the hints tell (for the SRQ limit).
  std::uint32_t unclaimed() const;

 private:
  // The position at which the entry of `position` can be claimed now, not beyond `position`.
  std::optional<std::uint64_t> claimable(std::uint64_t position) const;
  // The first position from `from` on, below `posted`, that can be claimed; `posted` when there is
  // none.
  std::uint64_t first_claimable(std::uint64_t from, std::uint64_t posted) const;
  void pull_head(std::uint64_t position) const;
};

// The owner's end. Needs the RQ's or SRQ's lock.
class RecvPoster {
 public:
  RecvPoster() = default;
  // Both regions zeroed. `capacity` (what the program was promised) <= entries.
  RecvPoster(RecvRingHeader* header, RecvClaims* claims, std::uint32_t entries,
             std::uint32_t max_sge, std::uint32_t capacity, ib::Pdn pd, std::uint64_t claims_offset,
             std::uint64_t id = 1);

  // False when `capacity` entries are posted and not completed. `sges.size()` <= max_sge.
  bool post(std::uint64_t wr_id, std::span<const ib::Sge> sges);
  // The completion of entry `index` was polled: returns its wr_id and frees the entry (nobody can
  // claim it any more); empty when `index` is out of range or not in use (a peer's false
  // completion).
  std::optional<std::uint64_t> complete(std::uint32_t index);
  // Takes back, in posting order, all entries that are in use and for which `spared(index)` is
  // false: used to flush (the caller completes them) once nobody can claim any more. Returns
  // {index, wr_id}.
  struct Flushed {
    std::uint32_t index;
    std::uint64_t wr_id;
  };
  std::vector<Flushed> take_all(const std::vector<std::uint32_t>& spared);
  // Posts entry `index` again, behind the others: its message came to nothing. Ignored when the
  // entry is not in use.
  void put_back(std::uint32_t index);
  // Before the grace period after which the memory is freed: senders give nothing back any more.
  void retire() { header_->id.store(0); }
  std::uint64_t id() const { return header_ == nullptr ? 0 : header_->id.load(); }
  // Posts again, behind the others, the entries that `dead_peer` had claimed, except those in
  // `published` (their CQE stands). The dead peer's lanes are known to be gone.
  void recover(std::uint16_t dead_peer, const std::vector<std::uint32_t>& published);
  void set_limit(std::uint32_t limit);
  // Did a sender ask for a doorbell since the last call? Returns and clears the bits.
  std::uint64_t take_waiting();

  RecvRing ring() const;
  std::uint32_t outstanding() const { return outstanding_; }
  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t max_sge() const { return max_sge_; }

 private:
  RecvRingHeader* header_ = nullptr;
  RecvClaims* claims_ = nullptr;
  std::uint32_t entries_ = 0, max_sge_ = 0, capacity_ = 0, outstanding_ = 0;
  std::uint64_t next_ = 0;
  struct Use {
    std::uint64_t wr_id = 0;
    std::uint64_t position = 0;
    bool in_use = false;
  };
  RecvEntry& entry(std::uint64_t position) const;
  // Ends the claim of an entry in use, whatever its state, and frees it.
  void free_entry(std::uint32_t index);

  std::vector<Use> use_;
};

}  // namespace vrb::queue
