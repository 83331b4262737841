// What rdma-core keeps private to itself and programs import all the same: the functions of its
// IBVERBS_PRIVATE nodes that have to work here (docs/abi.md). No header of the system declares
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verbs/abi.h"

namespace vrb::verbs {

constexpr int kSysfsRoceV1 = 0, kSysfsRoceV2 = 1;  // enum ibv_gid_type_sysfs

// Exported as ibv_query_gid_type by nodes/private_node.cc. Returns 0, or -1 with errno.
int query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type);

}  // namespace vrb::verbs

VRB_EXPORT const char* ibv_get_sysfs_path();
VRB_EXPORT int ibv_read_sysfs_file(const char* dir, const char* file, char* buf, size_t size);
VRB_EXPORT int ibv_dontfork_range(void* base, size_t size);
VRB_EXPORT int ibv_dofork_range(void* base, size_t size);
