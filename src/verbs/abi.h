// The C ABI of libibverbs as the system's verbs.h declares it, with default visibility, so that
// what we define by those names is exported. Everything in src/verbs gets verbs.h from here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#include <cstdint>
#include <cstring>

// Marks what no header of the system declares.
#define VRB_EXPORT extern "C" __attribute__((visibility("default")))

namespace vrb::verbs {

// The number in an enumeration that a program filled in. It may lie outside of the enumeration's
// range, so that loading it as such would be undefined.
template <class E>
std::uint32_t raw(const E& value) {
  static_assert(sizeof(E) == sizeof(std::uint32_t));
  std::uint32_t number = 0;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

}  // namespace vrb::verbs
