// ibv_fork_init(3), ibv_is_fork_initialized(3). The engine gives a forked child its own copy of
// registered memory whether it is asked to or not.
// SPDX-License-Identifier: Apache-2.0
#include "verbs/private_node.h"

int ibv_fork_init() { return 0; }

ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

int ibv_dontfork_range(void*, size_t) { return 0; }

int ibv_dofork_range(void*, size_t) { return 0; }
