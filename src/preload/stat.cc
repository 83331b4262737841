// Functions that ask about a file by its name. struct stat is the kernel's on 64-bit machines, so
// the "64" functions and the old __xstat ones are the same as the plain ones.
// SPDX-License-Identifier: Apache-2.0
#include "preload/export.h"

namespace vrb::preload {
namespace {

using Access = int(const char*, int);
using FaccessAt = int(int, const char*, int, int);
using Stat = int(const char*, void*);
using FstatAt = int(int, const char*, void*, int);
using Xstat = int(int, const char*, void*);
using FxstatAt = int(int, int, const char*, void*, int);
using Statx = int(int, const char*, int, unsigned, void*);
using GetXattr = long(const char*, const char*, void*, size_t);
using ListXattr = long(const char*, char*, size_t);

constinit Next<Access> g_access("access");
constinit Next<Access> g_eaccess("eaccess");
constinit Next<Access> g_euidaccess("euidaccess");
constinit Next<FaccessAt> g_faccessat("faccessat");
constinit Next<Stat> g_stat("stat");
constinit Next<Stat> g_stat64("stat64");
constinit Next<Stat> g_lstat("lstat");
constinit Next<Stat> g_lstat64("lstat64");
constinit Next<FstatAt> g_fstatat("fstatat");
constinit Next<FstatAt> g_fstatat64("fstatat64");
constinit Next<Xstat> g_xstat("__xstat");
constinit Next<Xstat> g_xstat64("__xstat64");
constinit Next<Xstat> g_lxstat("__lxstat");
constinit Next<Xstat> g_lxstat64("__lxstat64");
constinit Next<FxstatAt> g_fxstatat("__fxstatat");
constinit Next<FxstatAt> g_fxstatat64("__fxstatat64");
constinit Next<Statx> g_statx("statx");
constinit Next<GetXattr> g_getxattr("getxattr");
constinit Next<GetXattr> g_lgetxattr("lgetxattr");
constinit Next<ListXattr> g_listxattr("listxattr");
constinit Next<ListXattr> g_llistxattr("llistxattr");

int raw_access(int dir, const char* path, int mode) {
  return static_cast<int>(syscall(SYS_faccessat, dir, path, mode));
}

int raw_stat(int dir, const char* path, void* st, int flags) {
  return static_cast<int>(syscall(SYS_newfstatat, dir, path, st, flags));
}

int access_by(Next<Access>& next, const char* path, int mode) {
  return with_path(path, [&](const char* used) {
    Access* f = next.get();
    return f != nullptr ? f(used, mode) : raw_access(AT_FDCWD, used, mode);
  });
}

// flags: what the function adds to a plain stat.
int stat_by(Next<Stat>& next, const char* path, void* st, int flags) {
  return with_path(path, [&](const char* used) {
    Stat* f = next.get();
    return f != nullptr ? f(used, st) : raw_stat(AT_FDCWD, used, st, flags);
  });
}

int stat_by(Next<FstatAt>& next, int dir, const char* path, void* st, int flags) {
  return with_path(path, [&](const char* used) {
    FstatAt* f = next.get();
    return f != nullptr ? f(dir, used, st, flags) : raw_stat(dir, used, st, flags);
  });
}

int stat_by(Next<Xstat>& next, int version, const char* path, void* st, int flags) {
  return with_path(path, [&](const char* used) {
    Xstat* f = next.get();
    return f != nullptr ? f(version, used, st) : raw_stat(AT_FDCWD, used, st, flags);
  });
}

long xattr_by(Next<GetXattr>& next, long number, const char* path, const char* name, void* value,
              size_t size) {
  return with_path(path, [&](const char* used) {
    GetXattr* f = next.get();
    return f != nullptr ? f(used, name, value, size) : syscall(number, used, name, value, size);
  });
}

long xattr_by(Next<ListXattr>& next, long number, const char* path, char* list, size_t size) {
  return with_path(path, [&](const char* used) {
    ListXattr* f = next.get();
    return f != nullptr ? f(used, list, size) : syscall(number, used, list, size);
  });
}

int stat_by(Next<FxstatAt>& next, int version, int dir, const char* path, void* st, int flags) {
  return with_path(path, [&](const char* used) {
    FxstatAt* f = next.get();
    return f != nullptr ? f(version, dir, used, st, flags) : raw_stat(dir, used, st, flags);
  });
}

}  // namespace
}  // namespace vrb::preload

namespace p = vrb::preload;

// NOLINTBEGIN(bugprone-reserved-identifier): these are the C library's names.

VRB_EXPORT int access(const char* path, int mode) { return p::access_by(p::g_access, path, mode); }
VRB_EXPORT int eaccess(const char* path, int mode) {
  return p::access_by(p::g_eaccess, path, mode);
}
VRB_EXPORT int euidaccess(const char* path, int mode) {
  return p::access_by(p::g_euidaccess, path, mode);
}
VRB_EXPORT int faccessat(int dir, const char* path, int mode, int flags) {
  return p::with_path(path, [&](const char* used) {
    p::FaccessAt* f = p::g_faccessat.get();
    return f != nullptr ? f(dir, used, mode, flags) : p::raw_access(dir, used, mode);
  });
}

VRB_EXPORT int stat(const char* path, void* st) { return p::stat_by(p::g_stat, path, st, 0); }
VRB_EXPORT int stat64(const char* path, void* st) { return p::stat_by(p::g_stat64, path, st, 0); }
VRB_EXPORT int lstat(const char* path, void* st) {
  return p::stat_by(p::g_lstat, path, st, AT_SYMLINK_NOFOLLOW);
}
VRB_EXPORT int lstat64(const char* path, void* st) {
  return p::stat_by(p::g_lstat64, path, st, AT_SYMLINK_NOFOLLOW);
}
VRB_EXPORT int fstatat(int dir, const char* path, void* st, int flags) {
  return p::stat_by(p::g_fstatat, dir, path, st, flags);
}
VRB_EXPORT int fstatat64(int dir, const char* path, void* st, int flags) {
  return p::stat_by(p::g_fstatat64, dir, path, st, flags);
}
VRB_EXPORT int __xstat(int version, const char* path, void* st) {
  return p::stat_by(p::g_xstat, version, path, st, 0);
}
VRB_EXPORT int __xstat64(int version, const char* path, void* st) {
  return p::stat_by(p::g_xstat64, version, path, st, 0);
}
VRB_EXPORT int __lxstat(int version, const char* path, void* st) {
  return p::stat_by(p::g_lxstat, version, path, st, AT_SYMLINK_NOFOLLOW);
}
VRB_EXPORT int __lxstat64(int version, const char* path, void* st) {
  return p::stat_by(p::g_lxstat64, version, path, st, AT_SYMLINK_NOFOLLOW);
}
VRB_EXPORT int __fxstatat(int version, int dir, const char* path, void* st, int flags) {
  return p::stat_by(p::g_fxstatat, version, dir, path, st, flags);
}
VRB_EXPORT int __fxstatat64(int version, int dir, const char* path, void* st, int flags) {
  return p::stat_by(p::g_fxstatat64, version, dir, path, st, flags);
}
VRB_EXPORT int statx(int dir, const char* path, int flags, unsigned mask, void* st) {
  return p::with_path(path, [&](const char* used) {
    p::Statx* f = p::g_statx.get();
    return f != nullptr ? f(dir, used, flags, mask, st)
                        : static_cast<int>(syscall(SYS_statx, dir, used, flags, mask, st));
  });
}

// ls -l asks for these of each file.
VRB_EXPORT long getxattr(const char* path, const char* name, void* value, size_t size) {
  return p::xattr_by(p::g_getxattr, SYS_getxattr, path, name, value, size);
}
VRB_EXPORT long lgetxattr(const char* path, const char* name, void* value, size_t size) {
  return p::xattr_by(p::g_lgetxattr, SYS_lgetxattr, path, name, value, size);
}
VRB_EXPORT long listxattr(const char* path, char* list, size_t size) {
  return p::xattr_by(p::g_listxattr, SYS_listxattr, path, list, size);
}
VRB_EXPORT long llistxattr(const char* path, char* list, size_t size) {
  return p::xattr_by(p::g_llistxattr, SYS_llistxattr, path, list, size);
}

// NOLINTEND(bugprone-reserved-identifier)
