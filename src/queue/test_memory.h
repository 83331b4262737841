// For tests: zeroed memory of exactly the size asked for, aligned as NIC memory is, so that a
// sanitizer sees every step outside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>

#include "queue/recv_ring.h"
#include "queue/shared_cq.h"

namespace vrb::queue::testing {

class Memory {
 public:
  explicit Memory(std::size_t bytes)
      : bytes_(bytes), data_(static_cast<std::byte*>(::operator new(bytes, kAlign))) {
    std::memset(data_, 0, bytes);
  }
  ~Memory() { ::operator delete(data_, kAlign); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  template <class T>
  T* as(std::size_t offset = 0) const {
    return reinterpret_cast<T*>(data_ + offset);
  }
  // What a hostile peer does: any value into any word.
  void scribble(std::mt19937_64& random) const {
    const std::uint64_t value = random() >> (random() % 64);
    __atomic_store_n(as<std::uint64_t>() + random() % (bytes_ / 8), value, __ATOMIC_RELAXED);
  }
  void flip_bit(std::mt19937_64& random) const {
    __atomic_fetch_xor(as<std::uint64_t>() + random() % (bytes_ / 8), 1ULL << (random() % 64),
                       __ATOMIC_RELAXED);
  }

 private:
  static constexpr std::align_val_t kAlign{64};
  std::size_t bytes_;
  std::byte* data_;
};

struct CqMemory {
  explicit CqMemory(std::uint32_t entries, std::uint64_t first = 0)
      : memory(SharedCq::bytes(entries)),
        cq(memory.as<SharedCqHeader>(), memory.as<SharedCqe>(sizeof(SharedCqHeader)), entries),
        consumer(cq, first) {
    cq.initialise(first);
  }
  Memory memory;
  SharedCq cq;
  SharedCqConsumer consumer;
};

struct RecvMemory {
  RecvMemory(std::uint32_t entries, std::uint32_t max_sge, std::uint32_t capacity)
      : table(RecvRing::table_bytes(entries, max_sge)),
        claims(RecvRing::claim_bytes(entries)),
        poster(table.as<RecvRingHeader>(), claims.as<RecvClaims>(), entries, max_sge, capacity,
               ib::Pdn{7}, 4096),
        ring(poster.ring()) {}
  Memory table;
  Memory claims;
  RecvPoster poster;
  RecvRing ring;
};

}  // namespace vrb::queue::testing
