// SPDX-License-Identifier: Apache-2.0
#include "queue/shared_cq.h"

#include <algorithm>
#include <bit>

#include "base/points.h"

namespace vrb::queue {
namespace {

using State = CqWord::State;
using BodyWords = std::array<std::uint64_t, sizeof(CqeBody) / 8>;

// Retries of a lost race for one word, after which a peer is taken to be playing with it.
constexpr std::uint32_t kRaces = 64;

// The body crosses as 64-bit words, each read once: what was checked is what is used.
void store_body(CqeBody& to, const CqeBody& from) {
  const auto words = std::bit_cast<BodyWords>(from);
  auto* out = reinterpret_cast<std::uint64_t*>(&to);
  for (std::size_t i = 0; i < words.size(); ++i) {
    __atomic_store_n(out + i, words[i], __ATOMIC_RELAXED);
  }
}

CqeBody load_body(const CqeBody& from) {
  BodyWords words;
  const auto* in = reinterpret_cast<const std::uint64_t*>(&from);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = __atomic_load_n(in + i, __ATOMIC_RELAXED);
  }
  auto body = std::bit_cast<CqeBody>(words);
  if (body.status > ib::WcStatus::GeneralErr) body.status = ib::WcStatus::GeneralErr;
  if (body.opcode != ib::WcOpcode::RecvRdmaWithImm && body.opcode > ib::WcOpcode::FetchAdd) {
    body.opcode = ib::WcOpcode::Recv;
  }
  body.wc_flags &= ib::kWcGrh | ib::kWcWithImm | ib::kWcIpv4;
  return body;
}

}  // namespace

void SharedCq::initialise(std::uint64_t first) {
  header_->tail.store(first & CqWord::kSeqMask, std::memory_order_relaxed);
  header_->armed.store(0, std::memory_order_relaxed);
  for (std::uint64_t i = 0; i < entries_; ++i) {
    ring_[i].word.store(CqWord{.seq = first + i}.pack(), std::memory_order_release);
  }
}

std::optional<std::uint64_t> SharedCq::claim(std::uint16_t peer, std::uint16_t qp) {
  std::uint64_t hint = header_->tail.load(std::memory_order_relaxed);
  std::uint64_t seq = hint & CqWord::kSeqMask;
  for (std::uint64_t turns = 2ULL * entries_ + kRaces; turns != 0; --turns) {
    auto& word = at(seq).word;
    std::uint64_t seen = word.load(std::memory_order_acquire);
    const CqWord w = CqWord::unpack(seen);
    const std::int64_t lead = CqWord::distance(w.seq, seq);
    if (lead < 0) return std::nullopt;  // of an earlier round and not taken yet: full
    if (lead > 0) {                     // taken, and with it all one round below were claimed
      seq = (w.seq - entries_ + 1) & CqWord::kSeqMask;
      continue;
    }
    if (w.state == State::Free) {
      const CqWord mine{seq, State::Claimed, peer, qp};
      if (!word.compare_exchange_strong(seen, mine.pack(), std::memory_order_acq_rel)) continue;
      VRB_POINT("cq_claimed");
      const std::uint64_t next = (seq + 1) & CqWord::kSeqMask;
      if (CqWord::distance(next, hint) > 0) {
        header_->tail.compare_exchange_strong(hint, next, std::memory_order_relaxed);
      }
      VRB_POINT("cq_tail_pushed");
      return seq;
    }
    seq = (seq + 1) & CqWord::kSeqMask;
  }
  return std::nullopt;
}

bool SharedCq::full_of_completions() const {
  for (std::uint64_t i = 0; i < entries_; ++i) {
    const CqWord w = CqWord::unpack(at(i).word.load(std::memory_order_acquire));
    if (w.state != State::Published) return false;
  }
  return true;
}

bool SharedCq::publish(std::uint64_t seq, std::uint16_t peer, std::uint16_t qp,
                       const CqeBody& body) {
  SharedCqe& entry = at(seq);
  std::uint64_t mine = CqWord{seq, State::Claimed, peer, qp}.pack();
  if (entry.word.load(std::memory_order_relaxed) != mine) return false;
  store_body(entry.body, body);
  VRB_POINT("cq_body_written");
  const CqWord published{seq, State::Published, peer, qp};
  return entry.word.compare_exchange_strong(mine, published.pack(), std::memory_order_seq_cst);
}

void SharedCq::abandon(std::uint64_t seq, std::uint16_t peer, std::uint16_t qp) {
  std::uint64_t mine = CqWord{seq, State::Claimed, peer, qp}.pack();
  at(seq).word.compare_exchange_strong(mine, CqWord{seq, State::Void, peer, qp}.pack(),
                                       std::memory_order_acq_rel);
}

bool SharedCq::calls_for_event(bool solicited) const {
  const auto armed = static_cast<Armed>(header_->armed.load(std::memory_order_seq_cst));
  return armed == Armed::Any || (armed == Armed::Solicited && solicited);
}

bool SharedCq::take_armed(bool solicited) {
  std::uint32_t seen = header_->armed.load(std::memory_order_seq_cst);
  for (std::uint32_t turns = kRaces; turns != 0; --turns) {
    if (seen == static_cast<std::uint32_t>(Armed::No)) return false;
    if (seen == static_cast<std::uint32_t>(Armed::Solicited) && !solicited) return false;
    if (header_->armed.compare_exchange_strong(seen, 0, std::memory_order_seq_cst)) return true;
  }
  return true;  // an event too many does no harm
}

void SharedCq::arm(Armed how) {
  if (how == Armed::Solicited) {
    std::uint32_t seen = 0;
    header_->armed.compare_exchange_strong(seen, static_cast<std::uint32_t>(how),
                                           std::memory_order_seq_cst);
  } else {
    header_->armed.exchange(static_cast<std::uint32_t>(how), std::memory_order_seq_cst);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// The QPs whose entries this scan steps over. Exact for the first few; beyond those, QPs that share
// their low bits are held back together.
class SharedCqConsumer::SkipSet {
 public:
  void add(std::uint16_t qp) {
    if (has(qp)) return;
    if (count_ < few_.size()) {
      few_[count_++] = qp;
      return;
    }
    if (!many_used_) many_.fill(0);
    many_used_ = true;
    many_[(qp / 64) % many_.size()] |= 1ULL << (qp % 64);
  }
  bool has(std::uint16_t qp) const {
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (few_[i] == qp) return true;
    }
    return many_used_ && ((many_[(qp / 64) % many_.size()] >> (qp % 64)) & 1) != 0;
  }

 private:
  std::uint32_t count_ = 0;
  bool many_used_ = false;
  std::array<std::uint16_t, 16> few_;
  std::array<std::uint64_t, 64> many_;
};

// Only the owner changes a sequence number, so a word of neither this round nor the next was not
// written by the rules: it is dropped like a void one.
SharedCqConsumer::Look SharedCqConsumer::look(std::uint64_t seq, SkipSet& skip,
                                              CqWord& word) const {
  word = CqWord::unpack(cq_.at(seq).word.load(std::memory_order_acquire));
  if (word.seq != (seq & CqWord::kSeqMask)) {
    return word.seq == ((seq + cq_.entries()) & CqWord::kSeqMask) ? Look::Passed : Look::Drop;
  }
  switch (word.state) {
    case State::Published:
      return skip.has(word.qp) ? Look::Hold : Look::Take;
    case State::Claimed:
      skip.add(word.qp);
      return Look::Hold;
    case State::Void:
      return Look::Drop;
    case State::Free:
      break;
  }
  return Look::End;
}

void SharedCqConsumer::free_entry(std::uint64_t seq) {
  const CqWord next_round{.seq = seq + cq_.entries()};
  cq_.at(seq).word.store(next_round.pack(), std::memory_order_release);
}

SharedCqConsumer::Taken SharedCqConsumer::take(std::uint64_t seq, std::uint16_t qp) {
  Taken taken{qp, load_body(cq_.at(seq).body)};
  free_entry(seq);
  return taken;
}

std::optional<SharedCqConsumer::Taken> SharedCqConsumer::poll_held(SkipSet& skip) {
  CqWord word;
  std::uint32_t kept = 0;
  std::optional<Taken> taken;
  for (std::uint32_t i = 0; i < held_count_; ++i) {
    const std::uint64_t seq = held_[i];
    const Look found = taken.has_value() ? Look::Hold : look(seq, skip, word);
    switch (found) {
      case Look::Hold:
        held_[kept++] = seq;
        break;
      case Look::Take:
        taken = take(seq, word.qp);
        break;
      case Look::Drop:
      case Look::End:
        free_entry(seq);
        break;  // a claimed entry never becomes free by the rules
      case Look::Passed:
        break;
    }
  }
  held_count_ = kept;
  return taken;
}

std::optional<SharedCqConsumer::Taken> SharedCqConsumer::poll() {
  SkipSet skip;
  CqWord word;
  if (held_count_ != 0) {
    if (auto taken = poll_held(skip)) return taken;
  }
  const std::uint64_t last = end();
  for (std::uint64_t seq = next_; seq != last; ++seq) {
    const bool at_front = seq == next_;
    switch (look(seq, skip, word)) {
      case Look::End:
        return std::nullopt;
      case Look::Take:
        if (at_front) ++next_;
        return take(seq, word.qp);
      case Look::Drop:
        free_entry(seq);
        [[fallthrough]];
      case Look::Passed:
        if (at_front) ++next_;
        break;
      case Look::Hold:
        if (at_front && held_count_ < held_.size()) {
          held_[held_count_++] = seq;
          ++next_;
        }
        break;
    }
  }
  return std::nullopt;
}

bool SharedCqConsumer::ready() const {
  SkipSet skip;
  CqWord word;
  for (std::uint32_t i = 0; i < held_count_; ++i) {
    if (look(held_[i], skip, word) == Look::Take) return true;
  }
  const std::uint64_t last = end();
  for (std::uint64_t seq = next_; seq != last; ++seq) {
    const Look found = look(seq, skip, word);
    if (found == Look::Take) return true;
    if (found == Look::End) return false;
  }
  return false;
}

std::uint32_t SharedCqConsumer::backlog() const {
  std::uint32_t published = 0;
  const auto count = [&](std::uint64_t seq) {
    const CqWord w = CqWord::unpack(cq_.at(seq).word.load(std::memory_order_acquire));
    const bool current = w.seq == (seq & CqWord::kSeqMask);
    if (current && w.state == State::Published) ++published;
    return !(current && w.state == State::Free);
  };
  for (std::uint32_t i = 0; i < held_count_; ++i) count(held_[i]);
  const std::uint64_t last = end();
  for (std::uint64_t seq = next_; seq != last && count(seq); ++seq) {
  }
  return published;
}

std::uint32_t SharedCqConsumer::backlog_hint() const {
  if (cq_.entries() == 0) return 0;
  const std::uint64_t tail = cq_.header()->tail.load(std::memory_order_relaxed);
  const std::int64_t claimed = std::max<std::int64_t>(CqWord::distance(tail, next_), 0);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t(claimed) + held_count_, cq_.entries()));
}

std::vector<SharedCqConsumer::Published> SharedCqConsumer::published_by(std::uint16_t peer) const {
  std::vector<Published> found;
  for (std::uint64_t i = 0; i < cq_.entries(); ++i) {
    const SharedCqe& entry = cq_.at(i);
    const CqWord w = CqWord::unpack(entry.word.load(std::memory_order_acquire));
    if (w.state != State::Published || w.peer != peer) continue;
    found.push_back({w.qp, load_body(entry.body).wqe});
  }
  return found;
}

void SharedCqConsumer::void_claims_of(std::uint16_t peer) {
  for (std::uint64_t i = 0; i < cq_.entries(); ++i) {
    auto& word = cq_.at(i).word;
    std::uint64_t seen = word.load(std::memory_order_acquire);
    CqWord w = CqWord::unpack(seen);
    if (w.state != State::Claimed || w.peer != peer) continue;
    w.state = State::Void;
    word.compare_exchange_strong(seen, w.pack(), std::memory_order_acq_rel);
  }
}

}  // namespace vrb::queue
