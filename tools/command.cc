// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <vector>

#include "failure.h"
#include "program_kind.h"

namespace vrb::tools {
namespace {

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";  // as execvp without PATH

std::vector<std::string> search_path() {
  const char* value = std::getenv("PATH");
  std::string rest = value == nullptr ? kDefaultPath : value;
  std::vector<std::string> dirs;
  for (std::size_t at = 0; at <= rest.size();) {
    const std::size_t end = std::min(rest.find(':', at), rest.size());
    dirs.push_back(end == at ? "." : rest.substr(at, end - at));
    at = end + 1;
  }
  return dirs;
}

// 0, or the errno value that exec would give.
int usable(const std::string& path) {
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) return errno;
  if (S_ISDIR(st.st_mode)) return EISDIR;
  if (!S_ISREG(st.st_mode)) return EACCES;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

[[noreturn]] void fail_unusable(const std::string& name, int error) {
  if (error == ENOENT || error == ENOTDIR) fail(kNotFound, "{}: command not found", name);
  if (error == EISDIR) fail(kNotExecutable, "{} is a directory", name);
  if (error == EACCES) fail(kNotExecutable, "{} is not executable (permission denied)", name);
  fail(kNotExecutable, "{} cannot be executed: {}", name, std::strerror(error));
}

// Programs whose work is to start others with a cleaned environment.
bool is_privilege_tool(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  constexpr const char* kTools[] = {"sudo", "sudo-rs", "doas", "su", "pkexec"};
  return std::find(std::begin(kTools), std::end(kTools), name) != std::end(kTools);
}

void check_privileges(const std::string& path) {
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) return;
  const bool set_uid = (st.st_mode & S_ISUID) != 0;
  const bool set_gid = (st.st_mode & S_ISGID) != 0 && (st.st_mode & S_IXGRP) != 0;
  const bool capabilities = getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  if (!set_uid && !set_gid && !capabilities) return;
  if (is_privilege_tool(path)) {
    fail(kNotExecutable,
         "{} drops the variables that Verbena needs: let it start verbena run -- CMD instead",
         path);
  }
  const char* kind = set_uid ? "set-uid" : set_gid ? "set-gid" : "given file capabilities";
  fail(kNotExecutable,
       "{} is {}: the loader ignores Verbena's variables for such programs (verbena install "
       "--system "
       "reaches them)",
       path, kind);
}

}  // namespace

std::string find_command(const std::string& name) {
  if (name.empty()) fail(kNotFound, "the command is empty");
  if (name.find('/') != std::string::npos) {
    if (const int error = usable(name); error != 0) fail_unusable(name, error);
    return name;
  }
  int worst = ENOENT;
  for (const std::string& dir : search_path()) {
    std::string path = dir + "/" + name;
    const int error = usable(path);
    if (error == 0) return path;
    if (error == EACCES && access(path.c_str(), F_OK) == 0) worst = EACCES;
  }
  fail_unusable(name, worst);
}

std::string check_command(const std::string& path) {
  check_privileges(path);
  const ProgramKind kind = program_kind(path);
  switch (kind.form) {
    case ProgramForm::Script: {
      const int error = usable(kind.interpreter);
      if (error != 0) {
        fail(kNotExecutable, "{} is a script for {}, which cannot be executed: {}", path,
             kind.interpreter, std::strerror(error));
      }
      check_privileges(kind.interpreter);
      return "";
    }
    case ProgramForm::Foreign:
      fail(kNotExecutable, "{} is built for another machine or word size than Verbena's libraries",
           path);
    case ProgramForm::Static:
      return fmt::format("{} is statically linked: only programs that it starts will use Verbena",
                         path);
    case ProgramForm::Dynamic:
      if (kind.interpreter.find("musl") != std::string::npos) {
        fail(kNotExecutable, "{} is built for the C library musl, Verbena's libraries for glibc",
             path);
      }
      if (const int error = usable(kind.interpreter); error != 0) {
        fail(kNotExecutable, "{} needs the loader {}, which cannot be executed: {}", path,
             kind.interpreter, std::strerror(error));
      }
      return "";
    case ProgramForm::Unknown:
      break;
  }
  return "";
}

}  // namespace vrb::tools
