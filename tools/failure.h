// Failure: why the verbena program cannot go on, as the one line that it prints on stderr before it
// ends with the status. Thrown by any of its parts, caught in main().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace vrb::tools {

// Statuses as shells give them.
constexpr int kUnusable = 1;
constexpr int kUsage = 2;
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

struct Failure : std::runtime_error {
  Failure(int status_arg, const std::string& line) : std::runtime_error(line), status(status_arg) {}
  int status;
};

template <class... A>
[[noreturn]] void fail(int status, fmt::format_string<A...> format, A&&... args) {
  throw Failure(status, fmt::format(format, std::forward<A>(args)...));
}

// Prints "verbena: text" on stderr as one line, whatever the text holds.
void print_line(std::string text);

}  // namespace vrb::tools
