// SPDX-License-Identifier: Apache-2.0
#include "journey.h"

#include <string>

#include "launch.h"
#include "libraries.h"

namespace vrb::tools {

int run_journey() { run_command({library_dir() + "/verbena-journey"}, std::string()); }

}  // namespace vrb::tools
