// Functions that open a file by its name.
// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>

#include "preload/export.h"

namespace vrb::preload {
namespace {

using Open = int(const char*, int, ...);
using Open2 = int(const char*, int);
using OpenAt = int(int, const char*, int, ...);
using OpenAt2 = int(int, const char*, int);
using Fopen = void*(const char*, const char*);

constinit Next<Open> g_open("open");
constinit Next<Open> g_open64("open64");
constinit Next<Open2> g_open_2("__open_2");
constinit Next<Open2> g_open64_2("__open64_2");
constinit Next<OpenAt> g_openat("openat");
constinit Next<OpenAt> g_openat64("openat64");
constinit Next<OpenAt2> g_openat_2("__openat_2");
constinit Next<OpenAt2> g_openat64_2("__openat64_2");
constinit Next<Fopen> g_fopen("fopen");
constinit Next<Fopen> g_fopen64("fopen64");

int raw_open(int dir, const char* path, int flags, unsigned mode) {
  return static_cast<int>(syscall(SYS_openat, dir, path, flags, mode));
}

int open_by(Next<Open>& next, const char* path, int flags, unsigned mode) {
  return with_path(path, [&](const char* used) {
    Open* f = next.get();
    return f != nullptr ? f(used, flags, mode) : raw_open(AT_FDCWD, used, flags, mode);
  });
}

int open_by(Next<Open2>& next, const char* path, int flags) {
  return with_path(path, [&](const char* used) {
    Open2* f = next.get();
    return f != nullptr ? f(used, flags) : raw_open(AT_FDCWD, used, flags, 0);
  });
}

int open_by(Next<OpenAt>& next, int dir, const char* path, int flags, unsigned mode) {
  return with_path(path, [&](const char* used) {
    OpenAt* f = next.get();
    return f != nullptr ? f(dir, used, flags, mode) : raw_open(dir, used, flags, mode);
  });
}

int open_by(Next<OpenAt2>& next, int dir, const char* path, int flags) {
  return with_path(path, [&](const char* used) {
    OpenAt2* f = next.get();
    return f != nullptr ? f(dir, used, flags) : raw_open(dir, used, flags, 0);
  });
}

void* open_by(Next<Fopen>& next, const char* path, const char* mode) {
  return with_path(path, [&](const char* used) {
    Fopen* f = next.get();
    return f != nullptr ? f(used, mode) : refuse();
  });
}

bool takes_mode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & __O_TMPFILE) == __O_TMPFILE;
}

}  // namespace
}  // namespace vrb::preload

namespace p = vrb::preload;

// The mode is there only if the flags say so.
#define VRB_MODE(flags)            \
  unsigned mode = 0;               \
  if (p::takes_mode(flags)) {      \
    va_list rest;                  \
    va_start(rest, flags);         \
    mode = va_arg(rest, unsigned); \
    va_end(rest);                  \
  }

// NOLINTBEGIN(bugprone-reserved-identifier): these are the C library's names.

VRB_EXPORT int open(const char* path, int flags, ...) {
  VRB_MODE(flags)
  return p::open_by(p::g_open, path, flags, mode);
}
VRB_EXPORT int open64(const char* path, int flags, ...) {
  VRB_MODE(flags)
  return p::open_by(p::g_open64, path, flags, mode);
}
VRB_EXPORT int openat(int dir, const char* path, int flags, ...) {
  VRB_MODE(flags)
  return p::open_by(p::g_openat, dir, path, flags, mode);
}
VRB_EXPORT int openat64(int dir, const char* path, int flags, ...) {
  VRB_MODE(flags)
  return p::open_by(p::g_openat64, dir, path, flags, mode);
}
VRB_EXPORT int __open_2(const char* path, int flags) {
  return p::open_by(p::g_open_2, path, flags);
}
VRB_EXPORT int __open64_2(const char* path, int flags) {
  return p::open_by(p::g_open64_2, path, flags);
}
VRB_EXPORT int __openat_2(int dir, const char* path, int flags) {
  return p::open_by(p::g_openat_2, dir, path, flags);
}
VRB_EXPORT int __openat64_2(int dir, const char* path, int flags) {
  return p::open_by(p::g_openat64_2, dir, path, flags);
}
VRB_EXPORT void* fopen(const char* path, const char* mode) {
  return p::open_by(p::g_fopen, path, mode);
}
VRB_EXPORT void* fopen64(const char* path, const char* mode) {
  return p::open_by(p::g_fopen64, path, mode);
}

// NOLINTEND(bugprone-reserved-identifier)
