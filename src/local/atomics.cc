// Atomics on our own memory, for loopback and for assist requests.
// SPDX-License-Identifier: Apache-2.0
#include "local/transfer.h"

namespace vrb::local {

std::uint64_t compare_swap(std::uint64_t va, std::uint64_t compare, std::uint64_t swap) {
  auto* word = reinterpret_cast<std::uint64_t*>(va);
  __atomic_compare_exchange_n(word, &compare, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return compare;
}

std::uint64_t fetch_add(std::uint64_t va, std::uint64_t add) {
  return __atomic_fetch_add(reinterpret_cast<std::uint64_t*>(va), add, __ATOMIC_SEQ_CST);
}

}  // namespace vrb::local
