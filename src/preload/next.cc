// SPDX-License-Identifier: Apache-2.0
#include "preload/next.h"

#include <dlfcn.h>
#include <errno.h>

namespace vrb::preload {
namespace {

#if defined(__x86_64__)
constexpr const char* kOldest = "GLIBC_2.2.5";
#else
constexpr const char* kOldest = "GLIBC_2.17";
#endif

__attribute__((tls_model("initial-exec"))) thread_local bool t_looking = false;

}  // namespace

void* find_next(const char* name) {
  if (t_looking) return nullptr;
  t_looking = true;
  const int saved = errno;
  void* found = dlsym(RTLD_NEXT, name);
  // __xstat and its like have only a version that dlsym() does not see.
  if (found == nullptr) found = dlvsym(RTLD_NEXT, name, kOldest);
  if (found == nullptr) dlerror();  // nobody else should find our failure there
  errno = saved;
  t_looking = false;
  return found;
}

}  // namespace vrb::preload
