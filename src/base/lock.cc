// SPDX-License-Identifier: Apache-2.0
#include "base/lock.h"

namespace vrb::base {
namespace {
YieldHook g_yield = nullptr;
}

void set_yield_hook(YieldHook hook) { g_yield = hook; }

void yield() {
  if (g_yield != nullptr) g_yield();
}

}  // namespace vrb::base
