// What the device and its port answer to questions, in the structs of verbs.h; also the two
// functions of the tables that programs reach through the context. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verbs/abi.h"

namespace vrb::verbs {

ibv_device_attr device_attributes();
ibv_port_attr port_attributes();

// Entries of struct verbs_context: the caller's struct may be shorter or longer than ours.
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr, std::size_t size);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t size);

// The lowest index with this GID, or -1.
int find_gid(const union ibv_gid& gid);

}  // namespace vrb::verbs
