// The command that `verbena run` shall start: where it is, and whether it can work with us at all.
// The loader ignores LD_LIBRARY_PATH and LD_PRELOAD for programs that give privileges, so those are
// refused before they start without Verbena. Plain functions of the single-threaded verbena
// program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vrb::tools {

// The file that execvp() would take. A Failure with 127 (not found) or 126 (not executable).
std::string find_command(const std::string& name);

// A Failure with 126 for a program that would run without us or not at all: set-uid, set-gid, with
// file capabilities, of another word size or C library, with an interpreter that does not exist.
// Returns a warning, or "", for one that can go on but gains nothing itself (statically linked).
std::string check_command(const std::string& path);

}  // namespace vrb::tools
