// System call filters like those that services run under, by seccomp and without a library for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace vrb::death {

// "no-cma": process_vm_readv and process_vm_writev answer EPERM (Yama, containers).
// "service": what Debian's redis-server.service forbids ends the process; netlink sockets too.
// False: the kernel took no filter, or the name is none.
bool install_filter(std::string_view name);

}  // namespace vrb::death
