// Calls each function that the preload interposes, on a path that it redirects and on one that it
// leaves alone, and names those that went wrong. It opens files inside malloc and before any
// constructor has run, as allocators and libraries of real programs do. Run by driver.py below
// `verbena run`.
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

// NOLINTBEGIN(bugprone-reserved-identifier): the C library's own names.
extern "C" {
void* __libc_malloc(size_t);
int __open_2(const char*, int);
int __open64_2(const char*, int);
int __openat_2(int, const char*, int);
int __openat64_2(int, const char*, int);
ssize_t __readlink_chk(const char*, char*, size_t, size_t);
ssize_t __readlinkat_chk(int, const char*, char*, size_t, size_t);
char* __realpath_chk(const char*, char*, size_t);
}

namespace {

constexpr const char* kMoved = "/sys/class/infiniband/verbena0/node_type";
constexpr const char* kPlain = "/proc/self/status";
constexpr const char* kLink = "/sys/class/infiniband_verbs/uverbs240/device";
constexpr const char* kDir = "/sys/class/infiniband/verbena0/ports";

int g_wrong = 0;
bool g_opened_in_malloc = false;
bool g_opened_early = false;

void expect(bool ok, const char* what) {
  if (ok) return;
  std::printf("%s: %s\n", what, std::strerror(errno));
  ++g_wrong;
}

bool is_open(int fd) {
  char c = 0;
  const bool ok = fd >= 0 && read(fd, &c, 1) == 1;
  if (fd >= 0) close(fd);
  return ok;
}

bool is_open(FILE* file) {
  const bool ok = file != nullptr && std::fgetc(file) != EOF;
  if (file != nullptr) std::fclose(file);
  return ok;
}

void check_open(const char* path) {
  expect(is_open(open(path, O_RDONLY)), "open");
  expect(is_open(open64(path, O_RDONLY)), "open64");
  expect(is_open(openat(AT_FDCWD, path, O_RDONLY)), "openat");
  expect(is_open(openat64(AT_FDCWD, path, O_RDONLY)), "openat64");
  expect(is_open(__open_2(path, O_RDONLY)), "__open_2");
  expect(is_open(__open64_2(path, O_RDONLY)), "__open64_2");
  expect(is_open(__openat_2(AT_FDCWD, path, O_RDONLY)), "__openat_2");
  expect(is_open(__openat64_2(AT_FDCWD, path, O_RDONLY)), "__openat64_2");
  expect(is_open(std::fopen(path, "r")), "fopen");
  expect(is_open(fopen64(path, "r")), "fopen64");
}

// The old names are not to be linked any more, only to be looked up.
using Xstat = int(int, const char*, struct stat*);
using FxstatAt = int(int, int, const char*, struct stat*, int);

template <class F>
F* old_name(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

void check_stat(const char* path) {
  constexpr int kVersion = 1;
  struct stat st {};
  struct stat64 st64 {};
  struct statx stx {};
  expect(access(path, R_OK) == 0, "access");
  expect(eaccess(path, R_OK) == 0, "eaccess");
  expect(euidaccess(path, R_OK) == 0, "euidaccess");
  expect(faccessat(AT_FDCWD, path, R_OK, 0) == 0, "faccessat");
  expect(faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0, "faccessat(AT_EACCESS)");
  expect(stat(path, &st) == 0 && S_ISREG(st.st_mode), "stat");
  expect(lstat(path, &st) == 0 && S_ISREG(st.st_mode), "lstat");
  expect(stat64(path, &st64) == 0 && S_ISREG(st64.st_mode), "stat64");
  expect(lstat64(path, &st64) == 0 && S_ISREG(st64.st_mode), "lstat64");
  expect(fstatat(AT_FDCWD, path, &st, 0) == 0, "fstatat");
  expect(fstatat64(AT_FDCWD, path, &st64, 0) == 0, "fstatat64");
  expect(statx(AT_FDCWD, path, 0, STATX_TYPE, &stx) == 0 && S_ISREG(stx.stx_mode), "statx");
  for (const char* name : {"__xstat", "__xstat64", "__lxstat", "__lxstat64"}) {
    auto* f = old_name<Xstat>(name);
    std::memset(&st, 0, sizeof st);
    expect(f != nullptr && f(kVersion, path, &st) == 0 && S_ISREG(st.st_mode), name);
  }
  for (const char* name : {"__fxstatat", "__fxstatat64"}) {
    auto* f = old_name<FxstatAt>(name);
    std::memset(&st, 0, sizeof st);
    expect(f != nullptr && f(kVersion, AT_FDCWD, path, &st, 0) == 0 && S_ISREG(st.st_mode), name);
  }
  const auto no_attribute = [](ssize_t n) {
    return n >= 0 || errno == ENODATA || errno == ENOTSUP;
  };
  expect(no_attribute(getxattr(path, "user.x", nullptr, 0)), "getxattr");
  expect(no_attribute(lgetxattr(path, "user.x", nullptr, 0)), "lgetxattr");
  expect(no_attribute(listxattr(path, nullptr, 0)), "listxattr");
  expect(no_attribute(llistxattr(path, nullptr, 0)), "llistxattr");
}

void check_directories() {
  DIR* dir = opendir(kDir);
  expect(dir != nullptr, "opendir");
  if (dir != nullptr) closedir(dir);
  dirent** list = nullptr;
  expect(scandir(kDir, &list, nullptr, alphasort) == 3, "scandir");
  dirent64** list64 = nullptr;
  expect(scandir64(kDir, &list64, nullptr, alphasort64) == 3, "scandir64");
  expect(chdir(kDir) == 0 && is_open(open("1/state", O_RDONLY)), "chdir");
  expect(chdir("/") == 0, "chdir /");
}

bool is(const char* name, const char* wanted) {
  return name != nullptr && std::strcmp(name, wanted) == 0;
}

void check_globs() {
  glob_t found{};
  expect(glob("/sys/class/infiniband/*/ports/*", 0, nullptr, &found) == 0, "glob");
  expect(found.gl_pathc == 1 && is(found.gl_pathv[0], "/sys/class/infiniband/verbena0/ports/1"),
         "glob: its answer");
  expect(glob("/etc/passw[d]", GLOB_APPEND, nullptr, &found) == 0, "glob of another place");
  expect(glob("/dev/infiniband/uv*", GLOB_APPEND, nullptr, &found) == 0, "glob(GLOB_APPEND)");
  expect(found.gl_pathc == 3 && is(found.gl_pathv[1], "/etc/passwd") &&
             is(found.gl_pathv[2], "/dev/infiniband/uverbs240"),
         "glob(GLOB_APPEND): its answer");
  globfree(&found);
  glob64_t found64{};
  found64.gl_offs = 2;
  expect(glob64("/dev/infiniband/uv*", GLOB_DOOFFS, nullptr, &found64) == 0 &&
             is(found64.gl_pathv[2], "/dev/infiniband/uverbs240"),
         "glob64");
  globfree64(&found64);
  expect(glob("/sys/class/infiniband/nothing*", 0, nullptr, &found) == GLOB_NOMATCH,
         "glob without a match");
}

void check_names() {
  constexpr const char* kTarget = "../../infiniband/verbena0/device";
  constexpr const char* kReal = "/sys/class/infiniband/verbena0/device";
  const auto link_is = [](ssize_t n, const char* name) {
    return n == static_cast<ssize_t>(std::strlen(kTarget)) && std::memcmp(name, kTarget, n) == 0;
  };
  char name[PATH_MAX];
  expect(link_is(readlink(kLink, name, sizeof name), name), "readlink");
  expect(link_is(readlinkat(AT_FDCWD, kLink, name, sizeof name), name), "readlinkat");
  expect(link_is(__readlink_chk(kLink, name, sizeof name, sizeof name), name), "__readlink_chk");
  expect(link_is(__readlinkat_chk(AT_FDCWD, kLink, name, sizeof name, sizeof name), name),
         "__readlinkat_chk");
  expect(is(realpath(kLink, name), kReal), "realpath");
  expect(is(realpath(kLink, nullptr), kReal), "realpath(nullptr)");
  expect(is(__realpath_chk(kLink, name, sizeof name), kReal), "__realpath_chk");
  expect(is(canonicalize_file_name(kLink), kReal), "canonicalize_file_name");
  expect(is(realpath("/sys/class/infiniband/verbena0/../verbena0/ports", name),
            "/sys/class/infiniband/verbena0/ports"),
         "realpath with ..");
  expect(is(realpath("/usr/../etc/passwd", name), "/etc/passwd"), "realpath of another place");
}

void check_modes_and_errors() {
  char path[] = "/tmp/verbena-probe-XXXXXX";
  if (mkdtemp(path) == nullptr) return expect(false, "mkdtemp");
  char file[64];
  std::snprintf(file, sizeof file, "%s/file", path);
  umask(0);
  struct stat st {};
  close(open(file, O_CREAT | O_WRONLY, 0640));
  expect(stat(file, &st) == 0 && (st.st_mode & 0777) == 0640, "open(O_CREAT): the mode");
  unlink(file);
  close(openat(AT_FDCWD, file, O_CREAT | O_WRONLY, 0604));
  expect(stat(file, &st) == 0 && (st.st_mode & 0777) == 0604, "openat(O_CREAT): the mode");
  unlink(file);
  rmdir(path);
  errno = 0;
  expect(open("/sys/class/infiniband/absent", O_RDONLY) == -1 && errno == ENOENT, "open: ENOENT");
  expect(opendir(kMoved) == nullptr && errno == ENOTDIR, "opendir: ENOTDIR");
  const char* null = nullptr;
  asm("" : "+r"(null));  // hide it from warnings
  expect(access(null, R_OK) == -1 && errno == EFAULT, "access: EFAULT");
}

__attribute__((constructor(101))) void open_early() {
  g_opened_early = is_open(open(kMoved, O_RDONLY));
}

}  // namespace

// As an allocator that looks at the system when it is first used.
extern "C" void* malloc(size_t size) {
  static bool inside = false;
  if (!inside) {
    inside = true;
    g_opened_in_malloc = is_open(open(kPlain, O_RDONLY));
  }
  return __libc_malloc(size);
}
// NOLINTEND(bugprone-reserved-identifier)

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--plain") == 0) {  // there is no tree
    check_open(kPlain);
    check_stat(kPlain);
    errno = 0;
    expect(access(kMoved, R_OK) == -1 && errno == ENOENT, "access without a tree");
    return g_wrong == 0 ? 0 : 1;
  }
  expect(g_opened_early, "open in an early constructor");
  void* volatile block = std::malloc(1);
  std::free(block);
  expect(g_opened_in_malloc, "open in malloc");
  for (const char* path : {kMoved, kPlain}) {
    check_open(path);
    check_stat(path);
  }
  check_directories();
  check_globs();
  check_names();
  check_modes_and_errors();
  std::printf("%d wrong\n", g_wrong);
  return g_wrong == 0 ? 0 : 1;
}
