// Small helpers to read text from the kernel's and the system's files without streams, locales or
// NSS, since we run inside other people's processes. Plain functions; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vrb::engine {

// Takes the text up to the separator off the front of rest; the separator goes too.
std::string_view take(std::string_view& rest, char separator);

// The whole file, or "" when it cannot be read.
std::string read_file(const char* path);

// All of the text is a decimal number that fits.
bool parse_number(std::string_view text, unsigned& value);

}  // namespace vrb::engine
