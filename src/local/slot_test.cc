// SPDX-License-Identifier: Apache-2.0
#include "local/slot.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>

#include "ib/limits.h"
#include "local/test_support.h"

namespace vrb::local::testing {
namespace {

bool is_taken(std::uint32_t slot) {
  const auto slots = Switchboard::running_slots();
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

TEST(Slot, BothTheNameAndThePortAreHeldAndFreed) {
  std::uint32_t slot;
  {
    Node node;
    slot = node.slot;
    SlotSockets second;
    EXPECT_EQ(bind_slot(slot, second), EADDRINUSE);
    EXPECT_TRUE(is_taken(slot));
    for (const int family : {AF_INET, AF_INET6}) {
      const Fd udp = Fd::adopt(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      if (!udp) continue;
      sockaddr_in6 v6{};
      sockaddr_in v4{};
      v6.sin6_family = AF_INET6;
      v4.sin_family = AF_INET;
      v4.sin_port = v6.sin6_port = htons(static_cast<std::uint16_t>(ib::kSlotPortBase + slot));
      const int one = 1;
      setsockopt(udp.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
      setsockopt(udp.get(), SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
      const bool six = family == AF_INET6;
      const auto* address =
          six ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
      EXPECT_NE(bind(udp.get(), address, six ? sizeof v6 : sizeof v4), 0);
    }
  }
  SlotSockets sockets;
  EXPECT_EQ(bind_slot(slot, sockets), 0);
}

TEST(Slot, ASquattedNameFreesThePort) {
  std::uint32_t slot = 0;
  const Fd squatter = squat(slot);
  const Node node({}, slot);
  EXPECT_NE(node.slot, slot);
  const Fd udp = Fd::adopt(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<std::uint16_t>(ib::kSlotPortBase + slot));
  EXPECT_EQ(bind(udp.get(), reinterpret_cast<const sockaddr*>(&v4), sizeof v4), 0);
}

TEST(Slot, AProcessTakesSeveral) {
  Node node;
  for (std::uint32_t i = 1; i < kSlotsPerProcess; ++i) {
    const auto ordinal = node.board->take_slot(random_number());
    ASSERT_TRUE(ordinal);
    EXPECT_EQ(*ordinal, i);
    EXPECT_EQ(node.board->find(node.board->slot(i)), node.board->self());
    const std::uint32_t expected = i < kQps / ib::kQpsPerSlot ? i * ib::kQpsPerSlot + 9 : kQps;
    EXPECT_EQ(node.board->self()->qp_index(ib::Qpn{node.board->slot(i) << 14 | 9}), expected);
  }
  const auto refused = node.board->take_slot(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().cause.code, ib::CauseCode::LimitExceeded);
}

TEST(Slot, DescriptorsLieHigh) {
  const Node node;
  EXPECT_GE(node.board->poll_fd(), 512);
  EXPECT_GE(node.memory->tables_fd(), 512);
  EXPECT_GE(node.memory->shared_fd(), 512);
}

TEST(Slot, ListedSlots) {
  EXPECT_TRUE(listed_slots("").empty());
  const std::vector<std::uint32_t> expected = {7, 1023};
  EXPECT_EQ(listed_slots("Num       RefCount Protocol Flags    Type St Inode Path\n"
                         "ffff: 00000002 00000000 00010000 0005 01 1234 @verbena/1023\n"
                         "ffff: 00000003 00000000 00000000 0005 03 1235 @verbena/8\n"
                         "ffff: 00000002 00000000 00010000 0005 01 1236 @verbena/7\n"
                         "ffff: 00000002 00000000 00010000 0005 01 1236 @verbena/7\n"
                         "ffff: 00000002 00000000 00010000 0005 01 1237 @verbena/1024\n"
                         "ffff: 00000002 00000000 00010000 0005 01 1237 @verbena/x\n"
                         "ffff: 00000002 00000000 00010000 0005 01 1237 @verbena/cm/7/*\n"
                         "ffff: 00000002 00000000 00010000 0001 01 1238 /run/verbena/3\n"
                         "garbage\n\n"),
            expected);
}

}  // namespace
}  // namespace vrb::local::testing
