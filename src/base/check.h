// CHECK: a broken invariant of our own ends the process, for wrong memory in somebody else's
// program is worse than a crash. Bad input is never a CHECK. What happens is a hook that the engine
// sets; without one the process traps. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vrb::base {

using CheckHook = void (*)(const char* file, int line, const char* what);

// Set once at start, before other threads run.
void set_check_hook(CheckHook hook);
[[noreturn]] void check_failed(const char* file, int line, const char* what);

}  // namespace vrb::base

#define VRB_CHECK(condition)              \
  (static_cast<bool>(condition) ? void(0) \
                                : ::vrb::base::check_failed(__FILE__, __LINE__, #condition))
