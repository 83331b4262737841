// How the project and its device call themselves, in one place: the ABI, the generated tree and the
// `verbena` program must agree. Plain constants.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vrb::engine {

constexpr const char* kVersion = "0.1.0";         // of the project; also the device's fw_ver
constexpr const char* kDeviceName = "verbena0";   // ibv_device.name, and in /sys/class/infiniband
constexpr const char* kUverbsName = "uverbs240";  // ibv_device.dev_name, and in /dev/infiniband
constexpr const char* kBoardId = "VERBENA";
constexpr const char* kHcaType = "Verbena";
constexpr std::uint32_t kPortCapFlags = 0x04010000;   // IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS
constexpr std::uint8_t kActiveWidth = 4;              // 8X
constexpr std::uint8_t kActiveSpeed = 32;             // 25 Gb/s a lane (EDR)
constexpr const char* kRate = "200 Gb/sec (8X EDR)";  // the same in sysfs' words

}  // namespace vrb::engine
