// SPDX-License-Identifier: Apache-2.0
#include "base/points.h"

namespace vrb::base {
namespace {
PointHook g_hook = nullptr;
}

void set_point_hook(PointHook hook) { g_hook = hook; }

void reach_point(const char* name) {
  if (g_hook != nullptr) g_hook(name);
}

}  // namespace vrb::base
