// ibv_get_sysfs_path and ibv_read_sysfs_file, which programs use though no header declares them:
// both serve the generated tree.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "engine/sysfs_tree.h"
#include "verbs/adapt.h"
#include "verbs/private_node.h"

namespace vrb::verbs {
namespace {

constexpr std::string_view kSysClass = "/sys/class/infiniband";  // also of infiniband_verbs

// Never destroyed: other threads may still ask while the process exits.
const std::string& sysfs() {
  static const std::string* path = new std::string(engine::tree_root() + "/sys");
  return *path;
}

// Where the file really is; the preload library may not be there.
std::string real_path(const char* dir, const char* file) {
  std::string path = std::string(dir) + "/" + file;
  if (path.starts_with(kSysClass)) path.replace(0, std::string_view("/sys").size(), sysfs());
  return path;
}

ib::Result<std::size_t> read_text(const std::string& path, char* buf, std::size_t size) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return ib::refuse(static_cast<ib::Errc>(errno), ib::CauseCode::SystemRefused, 2, errno);
  const ssize_t n = read(fd, buf, size);
  const int error = errno;
  close(fd);
  if (n < 0)
    return ib::refuse(static_cast<ib::Errc>(error), ib::CauseCode::SystemRefused, 0, error);
  return static_cast<std::size_t>(n);
}

}  // namespace
}  // namespace vrb::verbs

using namespace vrb;
using namespace vrb::verbs;

const char* ibv_get_sysfs_path() {
  return ptr_ret("ibv_get_sysfs_path",
                 [](const char*) -> ib::Result<const char*> { return sysfs().c_str(); });
}

// Returns the length without a newline at the end, which becomes the NUL; a text that leaves no
// room for the NUL is an error.
int ibv_read_sysfs_file(const char* dir, const char* file, char* buf, size_t size) {
  std::size_t length = 0;
  const int failed =
      minus_one_ret("ibv_read_sysfs_file", [&](const char* verb) -> ib::Result<void> {
        if (auto ok = all_set(verb, dir, file, buf); !ok) return ok;
        const auto got = read_text(real_path(dir, file), buf, size);
        if (!got) return base::Unexpected{got.error()};
        length = *got;
        if (length > 0 && buf[length - 1] == '\n') --length;
        if (length == size)
          return ib::refuse(ib::Errc::Range, ib::CauseCode::LimitExceeded, length, size);
        buf[length] = '\0';
        return {};
      });
  return failed != 0 ? -1 : static_cast<int>(length);
}
