// `verbena run`: becomes the command, in an environment in which it finds Verbena. Single-threaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace vrb::tools {

// Does not return: the command takes the place of this process, or there is a Failure.
[[noreturn]] void run_command(const std::vector<std::string>& command, const std::string& carrier);

}  // namespace vrb::tools
