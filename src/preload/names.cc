// Functions that read directories and links, or give back names: what they give back is below /sys
// and /dev again. (The tree's own links are relative or lead out of it, so readlink's answers need
// no change.)
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "preload/export.h"

namespace vrb::preload {
namespace {

using ChangeDir = int(const char*);
using OpenDir = void*(const char*);
using ReadLink = long(const char*, char*, size_t);
using ReadLinkChk = long(const char*, char*, size_t, size_t);
using ReadLinkAt = long(int, const char*, char*, size_t);
using ReadLinkAtChk = long(int, const char*, char*, size_t, size_t);
using RealPath = char*(const char*, char*);
using RealPathChk = char*(const char*, char*, size_t);
using Canonicalize = char*(const char*);
using ScanDir = int(const char*, void*, void*, void*);
using GlobError = int(const char*, int);

// The beginning of glob_t; that of glob64_t is the same.
struct GlobResult {
  size_t count;
  char** paths;
  size_t offset;
};
using Glob = int(const char*, int, GlobError*, GlobResult*);

constinit Next<ChangeDir> g_chdir("chdir");
constinit Next<OpenDir> g_opendir("opendir");
constinit Next<ReadLink> g_readlink("readlink");
constinit Next<ReadLinkChk> g_readlink_chk("__readlink_chk");
constinit Next<ReadLinkAt> g_readlinkat("readlinkat");
constinit Next<ReadLinkAtChk> g_readlinkat_chk("__readlinkat_chk");
constinit Next<RealPath> g_realpath("realpath");
constinit Next<RealPathChk> g_realpath_chk("__realpath_chk");
constinit Next<Canonicalize> g_canonicalize("canonicalize_file_name");
constinit Next<ScanDir> g_scandir("scandir");
constinit Next<ScanDir> g_scandir64("scandir64");
constinit Next<Glob> g_glob("glob");
constinit Next<Glob> g_glob64("glob64");

long raw_readlink(int dir, const char* path, char* out, size_t size) {
  return syscall(SYS_readlinkat, dir, path, out, size);
}

// A name from realpath() and its like, which may lie in the tree.
char* outside(const char* asked, char* name) {
  if (name == nullptr || find_place(asked).prefix == nullptr) return name;
  if (const char* root = tree(); root != nullptr) strip_root(root, name);
  return name;
}

int scan_by(Next<ScanDir>& next, const char* path, void* list, void* filter, void* compare) {
  return with_path(path, [&](const char* used) {
    ScanDir* f = next.get();
    if (f != nullptr) return f(used, list, filter, compare);
    refuse();
    return -1;
  });
}

// Glob would read these in the tree's own name as part of the pattern.
bool is_literal(const char* root) { return strpbrk(root, "*?[]{}~\\") == nullptr; }

int glob_by(Next<Glob>& next, const char* pattern, int flags, GlobError* on_error,
            GlobResult* result) {
  constexpr int kNoSpace = 1;
  constexpr int kDoOffsets = 1 << 3;
  constexpr int kAppend = 1 << 5;
  Glob* f = next.get();
  if (f == nullptr) return kNoSpace;
  const Place place = find_place(pattern);
  const char* root = place.prefix == nullptr ? nullptr : tree();
  if (root == nullptr || !is_literal(root)) return f(pattern, flags, on_error, result);
  const size_t before = (flags & kAppend) != 0 ? result->count : 0;
  const int rc = call_moved(pattern, root, place,
                            [&](const char* used) { return f(used, flags, on_error, result); });
  if (rc != 0) return rc;
  const size_t offset = (flags & kDoOffsets) != 0 ? result->offset : 0;
  for (size_t i = before; i < result->count; ++i) strip_root(root, result->paths[offset + i]);
  return 0;
}

}  // namespace
}  // namespace vrb::preload

namespace p = vrb::preload;

// NOLINTBEGIN(bugprone-reserved-identifier): these are the C library's names.

VRB_EXPORT int chdir(const char* path) {
  return p::with_path(path, [&](const char* used) {
    p::ChangeDir* f = p::g_chdir.get();
    return f != nullptr ? f(used) : static_cast<int>(syscall(SYS_chdir, used));
  });
}

VRB_EXPORT void* opendir(const char* path) {
  return p::with_path(path, [&](const char* used) {
    p::OpenDir* f = p::g_opendir.get();
    return f != nullptr ? f(used) : p::refuse();
  });
}

VRB_EXPORT long readlink(const char* path, char* out, size_t size) {
  return p::with_path(path, [&](const char* used) {
    p::ReadLink* f = p::g_readlink.get();
    return f != nullptr ? f(used, out, size) : p::raw_readlink(AT_FDCWD, used, out, size);
  });
}
VRB_EXPORT long __readlink_chk(const char* path, char* out, size_t size, size_t room) {
  return p::with_path(path, [&](const char* used) {
    p::ReadLinkChk* f = p::g_readlink_chk.get();
    return f != nullptr ? f(used, out, size, room) : p::raw_readlink(AT_FDCWD, used, out, size);
  });
}
VRB_EXPORT long readlinkat(int dir, const char* path, char* out, size_t size) {
  return p::with_path(path, [&](const char* used) {
    p::ReadLinkAt* f = p::g_readlinkat.get();
    return f != nullptr ? f(dir, used, out, size) : p::raw_readlink(dir, used, out, size);
  });
}
VRB_EXPORT long __readlinkat_chk(int dir, const char* path, char* out, size_t size, size_t room) {
  return p::with_path(path, [&](const char* used) {
    p::ReadLinkAtChk* f = p::g_readlinkat_chk.get();
    return f != nullptr ? f(dir, used, out, size, room) : p::raw_readlink(dir, used, out, size);
  });
}

VRB_EXPORT char* realpath(const char* path, char* out) {
  return p::outside(path, p::with_path(path, [&](const char* used) {
                      p::RealPath* f = p::g_realpath.get();
                      return f != nullptr ? f(used, out) : static_cast<char*>(p::refuse());
                    }));
}
VRB_EXPORT char* __realpath_chk(const char* path, char* out, size_t room) {
  return p::outside(path, p::with_path(path, [&](const char* used) {
                      p::RealPathChk* f = p::g_realpath_chk.get();
                      return f != nullptr ? f(used, out, room) : static_cast<char*>(p::refuse());
                    }));
}
VRB_EXPORT char* canonicalize_file_name(const char* path) {
  return p::outside(path, p::with_path(path, [&](const char* used) {
                      p::Canonicalize* f = p::g_canonicalize.get();
                      return f != nullptr ? f(used) : static_cast<char*>(p::refuse());
                    }));
}

VRB_EXPORT int scandir(const char* path, void* list, void* filter, void* compare) {
  return p::scan_by(p::g_scandir, path, list, filter, compare);
}
VRB_EXPORT int scandir64(const char* path, void* list, void* filter, void* compare) {
  return p::scan_by(p::g_scandir64, path, list, filter, compare);
}

VRB_EXPORT int glob(const char* pattern, int flags, p::GlobError* on_error, p::GlobResult* result) {
  return p::glob_by(p::g_glob, pattern, flags, on_error, result);
}
VRB_EXPORT int glob64(const char* pattern, int flags, p::GlobError* on_error,
                      p::GlobResult* result) {
  return p::glob_by(p::g_glob64, pattern, flags, on_error, result);
}

// NOLINTEND(bugprone-reserved-identifier)
