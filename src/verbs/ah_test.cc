// Addresses out of the 40 bytes in front of a UD receive.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "engine/api.h"
#include "nic/grh.h"
#include "verbs/objects.h"
#include "verbs/port.h"
#include "verbs/test_device.h"

namespace vrb::verbs {
namespace {

class FromWc : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    wc_.wc_flags = IBV_WC_GRH;
  }

  int init(const nic::GrhFields& fields) {
    std::array<std::byte, ib::kGrhBytes> bytes;
    nic::write_grh(bytes.data(), fields);
    std::memcpy(static_cast<void*>(&grh_), bytes.data(), bytes.size());
    return ibv_init_ah_from_wc(context_, 1, &wc_, &grh_, &attr_);
  }

  static ib::Gid v6(std::uint8_t last) {
    return {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
  }
  static ib::Gid v4(std::uint8_t last) {
    return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, last};
  }
  // An own GID of one kind, or the zero GID.
  static ib::Gid own(bool want_v4) {
    for (const engine::GidEntry& entry : engine::port_facts().gids) {
      if (!engine::is_zero(entry.gid) && engine::is_ipv4(entry.gid) == want_v4) return entry.gid;
    }
    return {};
  }
  static bool is(const union ibv_gid& gid, const ib::Gid& expected) {
    return std::memcmp(gid.raw, expected.data(), expected.size()) == 0;
  }
  union ibv_gid own_gid() {
    union ibv_gid gid;
    EXPECT_EQ(ibv_query_gid(context_, 1, attr_.grh.sgid_index, &gid), 0);
    return gid;
  }

  ibv_wc wc_{};
  ibv_grh grh_{};
  ibv_ah_attr attr_{};
};

TEST_F(FromWc, V4) {
  const ib::Gid to = own(true);
  if (engine::is_zero(to)) GTEST_SKIP() << "this host has no IPv4 address";
  ASSERT_EQ(init({.sgid = v4(7), .dgid = to, .traffic_class = 0x28, .hop_limit = 1}), 0);
  EXPECT_EQ(attr_.is_global, 1);
  EXPECT_TRUE(is(attr_.grh.dgid, v4(7)));
  EXPECT_TRUE(is(own_gid(), to));
  EXPECT_EQ(attr_.grh.traffic_class, 0x28);
  EXPECT_GT(attr_.grh.hop_limit, 1)
      << "the way back may be longer than what was left of the way here";
  EXPECT_EQ(attr_.port_num, 1);
}

TEST_F(FromWc, V6) {
  const ib::Gid to = own(false);
  if (engine::is_zero(to)) GTEST_SKIP() << "this host has no IPv6 address";
  ASSERT_EQ(init({.sgid = v6(7), .dgid = to, .traffic_class = 0x28, .flow_label = 0x54321}), 0);
  EXPECT_TRUE(is(attr_.grh.dgid, v6(7)));
  EXPECT_TRUE(is(own_gid(), to));
  EXPECT_EQ(attr_.grh.traffic_class, 0x28);
  EXPECT_EQ(attr_.grh.flow_label, 0x54321U);
}

TEST_F(FromWc, TheAnswerToAGroupComesFromAnOwnAddress) {
  if (engine::is_zero(own(true))) GTEST_SKIP() << "this host has no IPv4 address";
  const ib::Gid group{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 224, 0, 0, 9};
  ASSERT_EQ(init({.sgid = v4(7), .dgid = group}), 0);
  EXPECT_TRUE(is(own_gid(), own(true)));
}

// The checksum tells an IPv4 header from the end of an IPv6 one that looks like it.
TEST_F(FromWc, AWrongChecksumIsNoV4Header) {
  ASSERT_EQ(init({.sgid = v4(7), .dgid = own(true)}), 0);
  auto* const bytes = reinterpret_cast<std::uint8_t*>(&grh_);
  bytes[30] ^= 1;
  EXPECT_EQ(ibv_init_ah_from_wc(context_, 1, &wc_, &grh_, &attr_), -1);
  bytes[0] = 0x60;
  EXPECT_EQ(ibv_init_ah_from_wc(context_, 1, &wc_, &grh_, &attr_), 0) << "then it is IPv6";
}

TEST_F(FromWc, NoGrh) {
  wc_.wc_flags = 0;
  EXPECT_EQ(ibv_init_ah_from_wc(context_, 1, &wc_, nullptr, &attr_), 0);
  EXPECT_EQ(attr_.is_global, 0);
  EXPECT_EQ(ibv_create_ah_from_wc(pd_, &wc_, nullptr, 1), nullptr) << "RoCE has no LIDs";
  wc_.wc_flags = IBV_WC_GRH;
  EXPECT_EQ(ibv_init_ah_from_wc(context_, 1, &wc_, nullptr, &attr_), -1);
  EXPECT_EQ(ibv_init_ah_from_wc(nullptr, 1, &wc_, &grh_, &attr_), -1);
}

TEST_F(FromWc, Create) {
  ASSERT_EQ(init({.sgid = own(true), .dgid = own(true)}), 0);
  ibv_ah* ah = ibv_create_ah_from_wc(pd_, &wc_, &grh_, 1);
  ASSERT_NE(ah, nullptr);
  EXPECT_EQ(ah->pd, pd_);
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

using Ah = FromWc;

TEST_F(Ah, Refusals) {
  ibv_ah_attr attr{};
  attr.port_num = 1;
  EXPECT_EQ(ibv_create_ah(pd_, &attr), nullptr) << "not global";
  EXPECT_EQ(errno, EINVAL);
  attr.is_global = 1;
  attr.port_num = 2;
  EXPECT_EQ(ibv_create_ah(pd_, &attr), nullptr);
  attr.port_num = 1;
  attr.grh.sgid_index = 32;
  EXPECT_EQ(ibv_create_ah(pd_, &attr), nullptr);
  EXPECT_EQ(ibv_create_ah(pd_, nullptr), nullptr);
  EXPECT_EQ(ibv_destroy_ah(nullptr), EINVAL);
}

TEST_F(Ah, EthernetAddresses) {
  ibv_ah_attr attr{};
  attr.port_num = 1;
  std::uint8_t mac[6] = {};
  std::uint16_t vid = 0;
  const ib::Gid local{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55};
  std::memcpy(attr.grh.dgid.raw, local.data(), local.size());
  EXPECT_EQ(ibv_resolve_eth_l2_from_gid(context_, &attr, mac, &vid), 0);
  const std::uint8_t expected[] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55};
  EXPECT_EQ(std::memcmp(mac, expected, sizeof mac), 0);
  EXPECT_EQ(vid, 0xffff);
  std::memcpy(attr.grh.dgid.raw, v6(9).data(), 16);
  EXPECT_EQ(ibv_resolve_eth_l2_from_gid(context_, &attr, mac, &vid), -EHOSTUNREACH);
  attr.port_num = 0;
  EXPECT_EQ(ibv_resolve_eth_l2_from_gid(context_, &attr, mac, &vid), -EINVAL);
}

}  // namespace
}  // namespace vrb::verbs
