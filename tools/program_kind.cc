// SPDX-License-Identifier: Apache-2.0
#include "program_kind.h"

#include <elf.h>

#include <cstring>
#include <fstream>

namespace vrb::tools {
namespace {

#if defined(__x86_64__)
constexpr unsigned kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = EM_AARCH64;
#else
#error "name this machine's ELF number"
#endif

// "#! interpreter argument"
std::string script_interpreter(const std::string& line) {
  constexpr const char* kBlank = " \t";
  const std::size_t from = line.find_first_not_of(kBlank, 2);
  if (from == std::string::npos) return "";
  return line.substr(from, line.find_first_of(kBlank, from) - from);
}

// The loader that an ELF program names, "" if none.
std::string elf_interpreter(std::ifstream& file, const Elf64_Ehdr& header) {
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof part));
    if (!file.read(reinterpret_cast<char*>(&part), sizeof part)) return "";
    if (part.p_type != PT_INTERP || part.p_filesz > 4096) continue;
    std::string name(part.p_filesz, '\0');
    file.seekg(static_cast<std::streamoff>(part.p_offset));
    file.read(name.data(), static_cast<std::streamsize>(name.size()));
    return name.c_str();  // up to the NUL
  }
  return "";
}

}  // namespace

ProgramKind program_kind(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char mark[2] = {};
  if (!file.read(mark, sizeof mark)) return {};
  file.seekg(0);
  if (std::memcmp(mark, "#!", 2) == 0) {
    std::string line;
    std::getline(file, line);
    const std::string interpreter = script_interpreter(line);
    if (interpreter.empty()) return {};
    return {ProgramForm::Script, interpreter};
  }
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return {};
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
    return {ProgramForm::Foreign, ""};
  }
  const std::string interpreter = elf_interpreter(file, header);
  // The loader itself has no loader either, and starts dynamic programs: `ld.so prog`.
  const bool is_loader = path.find("/ld-linux") != std::string::npos;
  if (interpreter.empty() && is_loader) return {};
  return {interpreter.empty() ? ProgramForm::Static : ProgramForm::Dynamic, interpreter};
}

}  // namespace vrb::tools
