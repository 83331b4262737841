// Strong integers: values of one representation that must not be swapped for one another.
// A StrongInt compares, hashes and prints like its representation and converts only on request.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <functional>

namespace vrb::base {

template <class Tag, class Rep>
struct StrongInt {
  Rep value{};

  constexpr StrongInt() = default;
  explicit constexpr StrongInt(Rep v) : value(v) {}
  constexpr auto operator<=>(const StrongInt&) const = default;
};

}  // namespace vrb::base

template <class Tag, class Rep>
struct std::hash<vrb::base::StrongInt<Tag, Rep>> {
  std::size_t operator()(vrb::base::StrongInt<Tag, Rep> v) const noexcept {
    return std::hash<Rep>{}(v.value);
  }
};
