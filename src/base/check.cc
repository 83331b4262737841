// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

namespace vrb::base {
namespace {
CheckHook g_hook = nullptr;
}

void set_check_hook(CheckHook hook) { g_hook = hook; }

void check_failed(const char* file, int line, const char* what) {
  if (g_hook != nullptr) g_hook(file, line, what);
  __builtin_trap();
}

}  // namespace vrb::base
