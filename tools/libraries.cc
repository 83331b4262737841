// SPDX-License-Identifier: Apache-2.0
#include "libraries.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "failure.h"

namespace vrb::tools {
namespace fs = std::filesystem;

std::string library_dir() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) fail(kUnusable, "/proc/self/exe cannot be read: {}", error.message());
  std::string dir = (self.parent_path().parent_path() / "lib" / "verbena").string();
  for (const char* name : {kVerbsLibrary, kPreloadLibrary}) {
    const std::string path = dir + "/" + name;
    if (access(path.c_str(), R_OK) != 0) {
      fail(kUnusable, "the library {} cannot be used ({}): build or install Verbena again", path,
           std::strerror(errno));
    }
  }
  return dir;
}

std::vector<std::string> library_names(const std::string& dir) {
  std::vector<std::string> names;
  for (const char* name : {kVerbsLibrary, kCmLibrary, kPreloadLibrary}) {
    if (fs::exists(dir + "/" + name)) names.emplace_back(name);
  }
  return names;
}

}  // namespace vrb::tools
