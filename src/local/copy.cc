// SPDX-License-Identifier: Apache-2.0
#include "local/copy.h"

#include <cstdint>

// Another process or a polling thread reads what we store: a race by design, which TSan must not
// see.
#define VRB_NO_TSAN __attribute__((no_sanitize("thread")))

namespace vrb::local {
namespace {

using Block = unsigned long long __attribute__((vector_size(16), may_alias));
using LooseBlock = unsigned long long __attribute__((vector_size(16), aligned(1), may_alias));

bool aligned(const std::byte* p, std::size_t to) {
  return (reinterpret_cast<std::uintptr_t>(p) & (to - 1)) == 0;
}

// Keeps the compiler from turning a loop into memcpy and from moving stores past each other; on a
// machine that reorders stores, the processor too.
inline void keep_order() {
#if defined(__x86_64__)
  asm volatile("" ::: "memory");
#else
  __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

template <class Word>
VRB_NO_TSAN inline void one_store(std::byte*& to, const std::byte*& from, std::size_t& bytes) {
  Word value;
  __builtin_memcpy(&value, from, sizeof value);
  keep_order();
  __atomic_store_n(reinterpret_cast<Word*>(to), value, __ATOMIC_RELAXED);
  to += sizeof(Word);
  from += sizeof(Word);
  bytes -= sizeof(Word);
}

template <class Word>
VRB_NO_TSAN inline void align(std::byte*& to, const std::byte*& from, std::size_t& bytes) {
  if (bytes >= sizeof(Word) && !aligned(to, 2 * sizeof(Word))) one_store<Word>(to, from, bytes);
}

// 64 bytes a turn, `to` is aligned to 16. Only the order between lines matters before the end.
VRB_NO_TSAN inline void blocks(std::byte*& to, const std::byte*& from, std::size_t& bytes) {
  for (; bytes >= 128; bytes -= 64, to += 64, from += 64) {
    const auto* in = reinterpret_cast<const LooseBlock*>(from);
    auto* out = reinterpret_cast<Block*>(to);
    const LooseBlock a = in[0], b = in[1], c = in[2], d = in[3];
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
    asm volatile("" ::: "memory");
  }
}

}  // namespace

VRB_NO_TSAN void copy_ascending(std::byte* to, const std::byte* from, std::size_t bytes) {
  align<std::uint8_t>(to, from, bytes);
  align<std::uint16_t>(to, from, bytes);
  align<std::uint32_t>(to, from, bytes);
  if (bytes >= 128) {
    align<std::uint64_t>(to, from, bytes);
    blocks(to, from, bytes);
  }
  while (bytes >= 8) one_store<std::uint64_t>(to, from, bytes);
  if (bytes >= 4) one_store<std::uint32_t>(to, from, bytes);
  if (bytes >= 2) one_store<std::uint16_t>(to, from, bytes);
  if (bytes >= 1) one_store<std::uint8_t>(to, from, bytes);
}

}  // namespace vrb::local
