// The shared half of a completion queue: the ring in writable NIC memory in which peers (and our
// own loopback) claim an entry by one CAS, fill it and publish it. Producers: any thread of any
// process that is inside a lane of the owner. Consumer: the owner, under its CQ lock. Everything
// read here is unchecked input.
//
// An entry's word is seq << 28 | state << 26 | peer << 16 | qp. The entry at ring index i takes the
// sequence numbers i, i + n, i + 2n ... In round `seq`:
//   Free(seq) --CAS by a producer--> Claimed(seq, peer, qp) --xchg--> Published(seq, peer, qp)
//   --consumer--> Free(seq + n);   Claimed by a dead peer --cleaner--> Void(seq) --consumer-->
//   Free(seq + n)
// The published entry is the commit point of a two-sided operation. The consumer steps over entries
// that are claimed but not published, and over all later entries of that QP in the same scan (order
// per QP). Claims are contiguous: the tail hint never passes an entry that is free, so sequence
// numbers are given out in order, and an entry whose former round was not taken yet makes claim()
// fail. Sequence numbers have 36 bits and wrap.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ib/types.h"

namespace vrb::queue {

// What a completion says. For a receive, `wqe` is the index of the receive entry; the owner finds
// the wr_id.
struct CqeBody {
  std::uint32_t wqe = 0;
  std::uint32_t byte_len = 0;
  std::uint32_t imm = 0;  // as posted (network order)
  std::uint32_t src_qp = 0;
  std::uint32_t vendor_err = 0;  // code of the cause
  ib::WcStatus status = ib::WcStatus::Success;
  ib::WcOpcode opcode = ib::WcOpcode::Send;
  std::uint8_t wc_flags = 0;
  std::uint8_t solicited = 0;
  std::uint64_t cause_args[2] = {};
  std::uint64_t rq_id = 0;  // of the receive queue in which `wqe` was claimed
  std::uint64_t reserved = 0;
};
static_assert(sizeof(CqeBody) == 56);

struct alignas(64) SharedCqe {
  std::atomic<std::uint64_t> word;
  CqeBody body;
};
static_assert(sizeof(SharedCqe) == 64);

// What a peer must see of the arming (ibv_req_notify_cq).
enum class Armed : std::uint32_t { No = 0, Solicited = 1, Any = 2 };

struct alignas(64) SharedCqHeader {
  std::atomic<std::uint64_t> tail;  // hint: anyone may push it forward
  std::uint64_t pad0[7];
  std::atomic<std::uint32_t> armed;  // an Armed; taken by the owner, who delivers the event
  std::uint32_t pad1[15];
};
static_assert(sizeof(SharedCqHeader) == 128);

struct CqWord {
  enum class State : std::uint8_t { Free = 0, Claimed = 1, Published = 2, Void = 3 };
  std::uint64_t seq = 0;  // 36 bits
  State state = State::Free;
  std::uint16_t peer = 0;  // 10 bits
  std::uint16_t qp = 0;    // index of the owner's QP

  static constexpr std::uint64_t kSeqMask = (1ULL << 36) - 1;
  static constexpr CqWord unpack(std::uint64_t word) {
    return {word >> 28, static_cast<State>((word >> 26) & 3),
            static_cast<std::uint16_t>((word >> 16) & 0x3ff), static_cast<std::uint16_t>(word)};
  }
  constexpr std::uint64_t pack() const {
    return seq << 28 | std::uint64_t(state) << 26 | std::uint64_t(peer & 0x3ff) << 16 | qp;
  }
  // How far sequence number `a` lies ahead of `b`, modulo 2^36.
  static constexpr std::int64_t distance(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::int64_t>((a - b) << 28) >> 28;
  }
};

// A place to publish in: the ring as both sides see it. `entries` is a power of two.
class SharedCq {
 public:
  SharedCq() = default;
  SharedCq(SharedCqHeader* header, SharedCqe* ring, std::uint32_t entries)
      : header_(header), ring_(ring), entries_(entries) {}

  static std::size_t bytes(std::uint32_t entries) {
    return sizeof(SharedCqHeader) + entries * sizeof(SharedCqe);
  }

  // Owner, before anybody can see the ring: sets all words to Free, beginning with sequence number
  // `first` (a multiple of entries()).
  void initialise(std::uint64_t first = 0);

  // Producer. Claims the next free entry for `qp`; empty when the ring is full (or a hole blocks
  // it).
  std::optional<std::uint64_t> claim(std::uint16_t peer, std::uint16_t qp);
  // Producer, when claim() has nothing: is every entry a completion that the owner did not take
  // (overrun)? Otherwise somebody's claim holds the ring up, or did a moment ago (A27).
  bool full_of_completions() const;
  // Producer: fills and publishes the entry that claim() returned. False when the word is no longer
  // ours (the owner gave us up as dead): then nothing was published.
  bool publish(std::uint64_t seq, std::uint16_t peer, std::uint16_t qp, const CqeBody& body);
  // Producer: gives up an entry that claim() returned without publishing it (it becomes Void).
  void abandon(std::uint64_t seq, std::uint16_t peer, std::uint16_t qp);
  // Producer, after publish(): does this completion satisfy the arming? Then the owner must be
  // told, and takes the arming itself: a producer that stops in between has taken nothing from
  // others. publish() is a full fence before this look, req_notify one after its store (A29).
  // `solicited`: the message asked for it, or the completion is in error (IBTA 11.4.2.2).
  bool calls_for_event(bool solicited) const;
  // Owner: takes the arming if a completion satisfies it; true means that the event is due now.
  bool take_armed(bool solicited);

  // Owner: arms (never weakens Any to Solicited), full fence included.
  void arm(Armed how);

  std::uint32_t entries() const { return entries_; }
  SharedCqHeader* header() const { return header_; }
  SharedCqe* ring() const { return ring_; }
  SharedCqe& at(std::uint64_t seq) const { return ring_[seq & (entries_ - 1)]; }

 private:
  SharedCqHeader* header_ = nullptr;
  SharedCqe* ring_ = nullptr;
  std::uint32_t entries_ = 0;
};

// The owner's consuming end. Needs the CQ lock.
class SharedCqConsumer {
 public:
  SharedCqConsumer() = default;
  explicit SharedCqConsumer(SharedCq cq, std::uint64_t first = 0) : cq_(cq), next_(first) {}

  struct Taken {
    std::uint16_t qp;
    CqeBody body;
  };
  // The next published entry in order, by the rule above; empty when there is none to take now.
  // Status, opcode and flags of the body are values that exist.
  std::optional<Taken> poll();
  // Is there an entry that poll() would take? (For the look after arming.)
  bool ready() const;
  // Entries published and not yet taken: a scan over them, bounded by entries().
  std::uint32_t backlog() const;
  // Entries claimed or published and not yet taken as the tail hint tells, in constant time.
  std::uint32_t backlog_hint() const;
  // What a peer has published and poll() holds back, behind a claim of somebody else.
  struct Published {
    std::uint16_t qp;
    std::uint32_t wqe;
  };
  std::vector<Published> published_by(std::uint16_t peer) const;
  // Turns the claims of a dead peer into Void. Published entries stay.
  void void_claims_of(std::uint16_t peer);
  const SharedCq& ring() const { return cq_; }
  // The sequence number that is looked at next; earlier ones were taken or stepped over.
  std::uint64_t position() const { return next_; }

 private:
  enum class Look : std::uint8_t { Take, Hold, Drop, Passed, End };
  class SkipSet;
  Look look(std::uint64_t seq, SkipSet& skip, CqWord& word) const;
  std::optional<Taken> poll_held(SkipSet& skip);
  Taken take(std::uint64_t seq, std::uint16_t qp);
  void free_entry(std::uint64_t seq);
  // One past the last sequence number that can have been claimed.
  std::uint64_t end() const { return (held_count_ == 0 ? next_ : held_[0]) + cq_.entries(); }

  SharedCq cq_;
  std::uint64_t next_ = 0;  // sequence numbers below this were taken or are in held_
  std::uint32_t held_count_ = 0;
  std::array<std::uint64_t, 16> held_{};  // stepped over, ascending; when it is full, next_ stays
};

}  // namespace vrb::queue
