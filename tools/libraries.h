// Where Verbena's libraries are: beside the running program, as ../lib/verbena, both in the build
// directory and when installed. Plain functions of the single-threaded verbena program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace vrb::tools {

constexpr const char* kVerbsLibrary = "libibverbs.so.1";
constexpr const char* kCmLibrary = "librdmacm.so.1";
constexpr const char* kPreloadLibrary = "libverbena-preload.so";

// The directory; a Failure if the libraries in it are missing or cannot be read.
std::string library_dir();

// The names of those that are there (librdmacm.so.1 may not be built).
std::vector<std::string> library_names(const std::string& dir);

}  // namespace vrb::tools
