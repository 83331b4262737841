// What the interposing files share. They declare the C library's functions themselves instead of
// including its headers, whose inline and renamed variants (fortify, large files) would get in the
// way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <errno.h>
#include <linux/fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "preload/next.h"
#include "preload/redirect.h"

#define VRB_EXPORT extern "C" __attribute__((visibility("default")))

extern "C" long syscall(long number, ...) noexcept;

namespace vrb::preload {

// For functions that have no system call to fall back to.
inline void* refuse() {
  errno = ENOSYS;
  return nullptr;
}

}  // namespace vrb::preload
