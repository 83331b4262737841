// SPDX-License-Identifier: Apache-2.0
#include "launch.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "command.h"
#include "failure.h"
#include "variables.h"

namespace vrb::tools {

void run_command(const std::vector<std::string>& command, const std::string& carrier) {
  if (command.empty()) fail(kUsage, "run needs a command: verbena run [options] -- CMD ...");
  const std::vector<Variable> variables = make_variables(carrier);
  const std::string path = find_command(command.front());
  const std::string warning = check_command(path);
  if (!warning.empty()) print_line(warning);

  for (const Variable& v : variables) {
    if (setenv(v.name.c_str(), v.value.c_str(), 1) != 0) {
      fail(kUnusable, "{} cannot be set: {}", v.name, std::strerror(errno));
    }
  }
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  // The path has a slash, so nothing is searched again; a script without #! goes to the shell.
  execvp(path.c_str(), arguments.data());
  fail(errno == ENOENT ? kNotFound : kNotExecutable, "{} cannot be executed: {}", path,
       std::strerror(errno));
}

}  // namespace vrb::tools
