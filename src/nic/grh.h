// The 40 bytes in front of the payload of a UD receive: the network header of the packet, as RoCEv2
// shows it to the application (IBTA annex A17). Between two IPv4 GIDs the last 20 of them are
// an IPv4 header and the first 20 are zero; else they are an IPv6 header, whose next header is UDP.
// Pure function; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "ib/limits.h"
#include "ib/types.h"

namespace vrb::nic {

struct GrhFields {
  ib::Gid sgid{}, dgid{};
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint32_t flow_label = 0;  // 20 bits; IPv4 has none
  std::uint32_t payload = 0;     // bytes of the message, without padding
  bool imm = false;
};

void write_grh(std::byte out[ib::kGrhBytes], const GrhFields& fields);

}  // namespace vrb::nic
