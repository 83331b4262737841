// SPDX-License-Identifier: Apache-2.0
#include "base/strong_int.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>
#include <unordered_set>

namespace vrb::base {
namespace {

using Apples = StrongInt<struct ApplesTag, std::uint32_t>;
using Pears = StrongInt<struct PearsTag, std::uint32_t>;

static_assert(!std::is_convertible_v<Apples, Pears>);
static_assert(!std::is_constructible_v<Apples, Pears>);
static_assert(!std::is_convertible_v<std::uint32_t, Apples>);
static_assert(!std::is_convertible_v<Apples, std::uint32_t>);
static_assert(sizeof(Apples) == sizeof(std::uint32_t));
static_assert(std::is_trivially_copyable_v<Apples>);

TEST(StrongInt, ComparesLikeItsRepresentation) {
  EXPECT_EQ(Apples{}, Apples{0});
  EXPECT_NE(Apples{1}, Apples{2});
  EXPECT_LT(Apples{1}, Apples{2});
  EXPECT_GE(Apples{0xffffffff}, Apples{2});
}

TEST(StrongInt, Hashes) {
  std::unordered_set<Apples> set{Apples{1}, Apples{1}, Apples{2}};
  EXPECT_EQ(set.size(), 2U);
  EXPECT_TRUE(set.contains(Apples{2}));
}

}  // namespace
}  // namespace vrb::base
