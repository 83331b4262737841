// SPDX-License-Identifier: Apache-2.0
#include "engine/sysfs_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "engine/config.h"
#include "engine/text.h"
#include "engine/tree_files.h"

namespace vrb::engine {
namespace {

constexpr const char* kTemporary = "/tmp";

std::string online_cpus() {
  std::string list = read_file("/sys/devices/system/cpu/online");
  while (!list.empty() && list.back() == '\n') list.pop_back();
  return list.empty() ? "0" : list;
}

// A directory that nobody else can have prepared or can change.
bool make_private_dir(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
  struct stat st {};
  if (lstat(path.c_str(), &st) != 0) return false;
  if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0) return true;
  errno = EPERM;
  return false;
}

// Makes the directories that lead to the file.
bool make_parents(const std::string& root, const std::string& path) {
  for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string dir = root + "/" + path.substr(0, at);
    if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) return false;
  }
  return true;
}

bool is_there(const std::string& path, const TreeFile& file) {
  struct stat st {};
  if (lstat(path.c_str(), &st) != 0) return false;
  return (file.link ? S_ISLNK(st.st_mode) : S_ISREG(st.st_mode)) &&
         st.st_size == static_cast<off_t>(file.content.size());
}

bool write_file(const std::string& path, const std::string& content) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  const ssize_t n = write(fd, content.data(), content.size());
  const bool ok = n == static_cast<ssize_t>(content.size()) && fchmod(fd, 0444) == 0;
  const int error = n >= 0 && n < static_cast<ssize_t>(content.size()) ? ENOSPC : errno;
  close(fd);
  errno = error;
  return ok;
}

// Several processes and threads may do this at once: each writes a file of its own and renames it,
// so that whoever finds the file finds all of it.
bool put(const std::string& root, const TreeFile& file) {
  const std::string path = root + "/" + file.path;
  if (is_there(path, file)) return true;
  if (!make_parents(root, file.path)) return false;
  static std::atomic<unsigned> serial{0};
  const std::string temporary =
      path + ".new-" + std::to_string(getpid()) + "-" + std::to_string(serial++);
  unlink(temporary.c_str());
  const bool made = file.link ? symlink(file.content.c_str(), temporary.c_str()) == 0
                              : write_file(temporary, file.content);
  if (made && rename(temporary.c_str(), path.c_str()) == 0) return true;
  const int error = errno;
  unlink(temporary.c_str());
  errno = error;
  return false;
}

std::string content_hash(const std::vector<TreeFile>& files) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;  // where one text ends
  };
  for (const TreeFile& file : files) {
    mix(file.path);
    mix(file.content);
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

// Fills base, which is private already.
std::string fill(const std::string& base, const std::vector<TreeFile>& files) {
  char canonical[PATH_MAX];
  if (realpath(base.c_str(), canonical) == nullptr) return "";
  std::string root = std::string(canonical) + "/" + content_hash(files);
  if (!make_private_dir(root)) return "";
  for (const TreeFile& file : files) {
    if (!put(root, file)) return "";
  }
  return root;
}

std::string fill_below(const std::string& parent, const std::vector<TreeFile>& files) {
  const std::string base = parent + "/verbena-" + std::to_string(geteuid());
  return make_private_dir(base) ? fill(base, files) : "";
}

// When the usual place is taken by somebody else.
std::string fill_anew(const std::vector<TreeFile>& files) {
  std::string base = std::string(kTemporary) + "/verbena-XXXXXX";
  return mkdtemp(base.data()) == nullptr ? "" : fill(base, files);
}

}  // namespace

std::string make_tree_below(const std::string& parent, const PortFacts& facts) {
  return fill_below(parent, tree_files(facts, online_cpus()));
}

std::string make_tree(const PortFacts& facts) {
  const std::vector<TreeFile> files = tree_files(facts, online_cpus());
  std::string root;
  if (const char* runtime = secure_getenv("XDG_RUNTIME_DIR");
      runtime != nullptr && *runtime == '/') {
    root = fill_below(runtime, files);
  }
  if (root.empty()) root = fill_below(kTemporary, files);
  if (root.empty()) root = fill_anew(files);
  return root;
}

std::string tree_root() {
  // Never destroyed: other threads may still ask while the process exits.
  static const std::string& root = *new std::string([] {
    struct stat st {};
    const std::string& given = config().tree;
    if (!given.empty() && stat(given.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return given;
    return make_tree(discover());
  }());
  return root;
}

}  // namespace vrb::engine
