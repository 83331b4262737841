// Arms the die-or-stop points of base/points.h from the environment, in a build that has them:
// VERBENA_POINT=name:kill|stop[:n] ends or stops this process at the n-th pass (docs/testing.md),
// VERBENA_POINT_LOG=file appends the name of each point when it is first passed. Nothing otherwise.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vrb::engine {

void install_point_hook();

}  // namespace vrb::engine
