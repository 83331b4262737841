// The cases of the points test: all points that a part passes in a run without fault, and the
// seeded sample of them that the environment asks for. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "triangle.h"

namespace vrb::death {

struct CaseList {
  std::size_t points = 0;  // that the part passes
  std::size_t all = 0;     // cases
  std::vector<Fault> chosen;
};

// Runs the triangle a few times to see what is passed, then chooses. Prints the seed.
CaseList choose_cases(const TriangleSize& size, Part part, int signal);

// VERBENA_POINTS_SEED, or a fresh one.
std::uint64_t points_seed();
// VERBENA_POINTS_SAMPLE: one of how many; 1 for "all".
std::size_t sample_divisor();

}  // namespace vrb::death
