// One engine a process, also across fork: the child's handler marks the parent's engine as
// abandoned and closes its descriptors, so that slots and peers see the truth (A36); the next call
// makes a new engine. The handlers are registered when the library is loaded (A35), by the one
// constructor it has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vrb::engine {

class Engine;
Engine& current_engine();
void install_hooks();  // of base, for spinning and for broken invariants

}  // namespace vrb::engine
