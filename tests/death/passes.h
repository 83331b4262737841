// Counts how often each die-or-stop point is passed in this process, for the enumeration of points.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace vrb::death {

constexpr const char* kCountPasses = "VERBENA_DEATH_COUNT";  // set: count

// Begins when the environment asks for it. Not together with VERBENA_POINT or VERBENA_POINT_LOG,
// for which the engine sets a hook of its own.
void count_passes();
std::map<std::string, std::uint32_t> passes();

}  // namespace vrb::death
