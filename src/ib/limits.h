// Every number that the device reports or that a user might ask about, in one place. Plain
// constants.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vrb::ib {

constexpr std::uint32_t kMaxQp = 65536;  // entries of a process' table: four slots of 16,384
constexpr std::uint32_t kMaxQpWr = 1U << 20;
constexpr std::uint32_t kMaxSge = 32;
constexpr std::uint32_t kMaxInline = 1024;
constexpr std::uint32_t kMaxCq = 1U << 20;
constexpr std::uint32_t kMaxCqe = 4U << 20;
constexpr std::uint32_t kMaxMr = 1U << 20;
constexpr std::uint32_t kMaxPd = 1U << 20;
constexpr std::uint32_t kMaxSrq = 1U << 20;
constexpr std::uint32_t kMaxSrqWr = 1U << 20;
constexpr std::uint32_t kMaxAh = 1U << 20;
constexpr std::uint32_t kMaxQpRdAtom = 128;
constexpr std::uint32_t kMaxResRdAtom = kMaxQp * kMaxQpRdAtom;
constexpr std::uint32_t kMaxMcastGroups = 8192;
constexpr std::uint32_t kMaxMcastQpAttach = 1024;
constexpr std::uint32_t kMaxTotalMcastQpAttach = 65536;
constexpr std::uint32_t kMaxMessage = 1U << 30;  // bytes; IBTA allows 2 GiB, we carry 1 GiB
constexpr std::uint64_t kMaxMrSize = ~0ULL;
constexpr std::uint32_t kGidTableLength = 32;
constexpr std::uint32_t kPkeyTableLength = 1;
constexpr std::uint16_t kDefaultPkey = 0xffff;
constexpr std::uint32_t kLocalCaAckDelay = 15;
constexpr std::uint32_t kVendorId = 0x565242;  // "VRB", a locally administered OUI: nobody's NIC
constexpr std::uint32_t kVendorPartId = 1824;
constexpr std::uint32_t kGrhBytes = 40;
constexpr std::uint32_t kSlots = 1024;
constexpr std::uint32_t kQpsPerSlot = 16384;
constexpr std::uint16_t kSlotPortBase = 17910;  // slot s owns UDP port kSlotPortBase + s
constexpr int kDeviceIndex = 240;               // also the number of uverbs240

}  // namespace vrb::ib
