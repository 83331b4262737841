// Each die-or-stop point that a part of the triangle passes, taken by SIGKILL and by SIGSTOP, at
// the first pass and at a later one. VERBENA_POINTS_SAMPLE (a divisor or "all"),
// VERBENA_POINTS_SEED and VERBENA_POINTS_CASE (as printed: part/point:kill|stop:pass[:forget])
// choose (docs/testing.md).
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <iostream>

#include "cases.h"
#include "triangle.h"

namespace vrb::death {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr TriangleSize kSize{28, 6};
#else
constexpr TriangleSize kSize{112, 50};
#endif

[[maybe_unused]] bool play(const Fault& fault) {
  try {
    return Triangle(kSize, fault).play();
  } catch (const Failure& failure) {
    ADD_FAILURE() << failure.what();
    return true;
  }
}

class Points : public ::testing::TestWithParam<std::tuple<Part, int>> {};

TEST_P(Points, OthersGoOn) {
#if !defined(VERBENA_POINTS)
  GTEST_SKIP() << "this build has no die-or-stop points (VERBENA_POINTS=ON)";
#else
  const auto [part, signal] = GetParam();
  const CaseList list = choose_cases(kSize, part, signal);
  std::uint32_t reached = 0;
  for (const Fault& fault : list.chosen) {
    std::cout << fault.describe() << std::flush;
    const auto start = std::chrono::steady_clock::now();
    const bool here = play(fault);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - start);
    std::cout << (here ? "" : " (not reached)") << ", " << took.count() << " ms" << std::endl;
    reached += here ? 1 : 0;
  }
  std::cout << list.points << " points, " << list.all << " cases, " << list.chosen.size()
            << " taken, " << reached << " reached" << std::endl;
  EXPECT_TRUE(list.chosen.empty() || reached > 0);
#endif
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Part, int>>& test) {
  const auto part = static_cast<std::size_t>(std::get<0>(test.param));
  return std::string(kPartNames[part]) + (std::get<1>(test.param) == SIGKILL ? "_kill" : "_stop");
}

INSTANTIATE_TEST_SUITE_P(Every, Points,
                         ::testing::Combine(::testing::Values(Part::Initiator, Part::Target,
                                                              Part::Third),
                                            ::testing::Values(SIGKILL, SIGSTOP)),
                         name_of);

TEST(Triangle, WithoutFault) { EXPECT_FALSE(Triangle(kSize, std::nullopt).play()); }

}  // namespace
}  // namespace vrb::death
