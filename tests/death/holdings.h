// What a process holds: descriptors, mappings and pages of NIC memory, sockets. Read from /proc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>

#include "message.h"

namespace vrb::death {

// Descriptors, mappings of NIC memory and blocks of its files of the calling process.
Held count_held();

// Inodes of the sockets that a process holds, and what its descriptors are called.
std::set<std::uint64_t> socket_inodes(pid_t pid);
std::set<std::string> descriptor_names(pid_t pid);

// Which of these inodes the network namespace still knows as UDP ports or named Unix sockets.
std::set<std::uint64_t> bound_inodes(const std::set<std::uint64_t>& inodes);

}  // namespace vrb::death
