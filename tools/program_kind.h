// What kind of program a file is, read from its first bytes. Plain functions; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vrb::tools {

enum class ProgramForm {
  Unknown,  // not readable, or something that only the kernel or a shell understands
  Script,   // starts with #!; interpreter says for what
  Dynamic,  // an ELF program of our kind; interpreter is its loader
  Static,   // an ELF program of our kind without a loader
  Foreign,  // an ELF program for another machine or word size
};

struct ProgramKind {
  ProgramForm form = ProgramForm::Unknown;
  std::string interpreter;
};

ProgramKind program_kind(const std::string& path);

}  // namespace vrb::tools
