// Die-or-stop points: in a build with VERBENA_POINTS each VRB_POINT("name") between two stores of a
// claim, publish, arm, lane or handshake path calls a hook, so that a test can end or stop the
// process just there (docs/testing.md). In any other build a point is nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vrb::base {

using PointHook = void (*)(const char* name);
void set_point_hook(PointHook hook);
void reach_point(const char* name);

}  // namespace vrb::base

#if defined(VERBENA_POINTS)
#define VRB_POINT(name) ::vrb::base::reach_point(name)
#else
#define VRB_POINT(name) void(0)
#endif
