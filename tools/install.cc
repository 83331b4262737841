// SPDX-License-Identifier: Apache-2.0
#include "install.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "failure.h"
#include "libraries.h"

namespace vrb::tools {
namespace {
namespace fs = std::filesystem;

constexpr const char* kLibraryDir = "/usr/local/lib/verbena";
// Directories are searched in the order of these files' names: 00- comes before the distribution's.
constexpr const char* kConfDir = "/etc/ld.so.conf.d";
constexpr const char* kConfFile = "/etc/ld.so.conf.d/00-verbena.conf";
constexpr const char* kConfText =
    "# Written by `verbena install --system`; `verbena install --uninstall` takes it away.\n"
    "/usr/local/lib/verbena\n";

[[noreturn]] void fail_io(const std::string& what, const std::error_code& error) {
  fail(kUnusable, "{}: {}", what, error.message());
}

void check_root(const std::string& root) {
  if (root.empty()) {
    if (geteuid() != 0) fail(kUnusable, "install changes the whole system and needs root");
    return;
  }
  if (!fs::is_directory(root)) fail(kUnusable, "{} is not a directory", root);
}

// Writes through a new file, so that programs that use the old one keep it.
void replace(const std::string& path, const std::string& content) {
  const std::string fresh = path + ".new";
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  if (!file || chmod(fresh.c_str(), 0644) != 0) {
    fail(kUnusable, "{} cannot be written: {}", fresh, std::strerror(errno));
  }
  std::error_code error;
  fs::rename(fresh, path, error);
  if (error) fail_io(path + " cannot be written", error);
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || content.empty()) fail(kUnusable, "{} cannot be read", path);
  return content;
}

std::string output_of(const std::string& command, int& status) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) fail(kUnusable, "ldconfig cannot be run: {}", std::strerror(errno));
  char chunk[4096];
  while (std::size_t n = std::fread(chunk, 1, sizeof chunk, pipe)) output.append(chunk, n);
  status = pclose(pipe);
  return output;
}

std::string ldconfig(const std::string& root, const std::string& options) {
  std::string quoted;  // a name in single quotes, for the shell
  for (const char c : root) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  const std::string where = root.empty() ? "" : " -r '" + quoted + "'";
  int status = 0;
  std::string output = output_of(
      "PATH=\"$PATH:/usr/sbin:/sbin\"; exec ldconfig" + where + options + " 2>/dev/null", status);
  if (status != 0) fail(kUnusable, "ldconfig failed with status {}", WEXITSTATUS(status));
  return output;
}

// A staged root that has no loader configuration, or of which we are not the master, is left alone.
bool renew_cache(const std::string& root) {
  if (!root.empty() && (geteuid() != 0 || !fs::exists(root + "/etc/ld.so.conf"))) {
    fmt::print("ldconfig was not run: {} is only staged\n", root);
    return false;
  }
  ldconfig(root, "");
  return true;
}

// What the loader will take is the first entry of the name in its cache.
void verify(const std::string& root) {
  const std::string cache = ldconfig(root, " -p");
  const std::size_t at = cache.find(std::string("\t") + kVerbsLibrary + " ");
  const std::string line =
      at == std::string::npos ? "" : cache.substr(at, cache.find('\n', at) - at);
  if (line.find(std::string("=> ") + kLibraryDir + "/") != std::string::npos) return;
  fail(kUnusable,
       "installed, but the loader still prefers another {}: a file in {} that sorts before "
       "00-verbena.conf, or /etc/ld.so.conf does not include that directory",
       kVerbsLibrary, kConfDir);
}

}  // namespace

void install_system(const std::string& root) {
  check_root(root);
  const std::string from = library_dir();
  const std::string to = root + kLibraryDir;
  std::error_code error;
  for (const std::string& dir : {to, root + kConfDir}) {
    fs::create_directories(dir, error);
    if (error) fail_io(dir + " cannot be made", error);
  }
  for (const std::string& name : library_names(from)) {
    replace(to + "/" + name, content_of(from + "/" + name));
    fmt::print("{}/{}\n", to, name);
  }
  replace(root + kConfFile, kConfText);
  fmt::print("{}\n", root + kConfFile);
  if (renew_cache(root)) verify(root);
  fmt::print(
      "Every program that is started from now on finds Verbena instead of the system's RDMA "
      "libraries. Undo: verbena install --uninstall\n");
}

void uninstall_system(const std::string& root) {
  check_root(root);
  std::vector<std::string> paths = {root + kConfFile};
  for (const char* name : {kVerbsLibrary, kCmLibrary, kPreloadLibrary}) {
    paths.push_back(root + kLibraryDir + "/" + name);
  }
  bool removed = false;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::remove(path, error)) {
      fmt::print("removed {}\n", path);
      removed = true;
    }
    if (error) fail_io(path + " cannot be removed", error);
  }
  std::error_code not_empty;
  fs::remove(root + kLibraryDir, not_empty);  // stays if somebody put something else there
  if (!removed) fail(kUnusable, "nothing to undo: Verbena is not installed system-wide");
  renew_cache(root);
}

}  // namespace vrb::tools
