// The environment variables that put a program on Verbena, as `verbena run` sets them and `verbena
// env` prints them. Plain functions of the single-threaded verbena program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace vrb::tools {

struct Variable {
  std::string name;
  std::string value;
};

// Checks VERBENA_* of the caller, the libraries, and makes the tree; a Failure where one of them is
// bad. What LD_LIBRARY_PATH and LD_PRELOAD held stays, behind ours. carrier may be empty: then
// VERBENA_CARRIER stays as it is.
std::vector<Variable> make_variables(const std::string& carrier);

// A Failure that names the first VERBENA_* variable whose value is bad.
void check_config();

enum class EnvStyle { Shell, Systemd, Mpi };

// `verbena env`: the text to print.
std::string format_variables(const std::vector<Variable>& variables, EnvStyle style);

}  // namespace vrb::tools
