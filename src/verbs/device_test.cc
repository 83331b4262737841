// The device, its port and its tables as programs see them.
// SPDX-License-Identifier: Apache-2.0
#include <endian.h>

#include <set>

#include "engine/api.h"
#include "verbs/objects.h"
#include "verbs/private_node.h"
#include "verbs/test_device.h"

namespace vrb::verbs {
namespace {

TEST(DeviceList, HoldsOneDevice) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(list[1], nullptr);
  ibv_device* device = list[0];
  ibv_free_device_list(list);
  EXPECT_STREQ(ibv_get_device_name(device), "verbena0");
  EXPECT_STREQ(device->dev_name, "uverbs240");
  EXPECT_EQ(ibv_get_device_index(device), 240);
  EXPECT_NE(ibv_get_device_guid(device), 0U);
  EXPECT_EQ(device->node_type, IBV_NODE_CA);
  EXPECT_EQ(device->transport_type, IBV_TRANSPORT_IB);
}

TEST(DeviceList, NoProviderTakesTheDeviceForItsOwn) {
  const void* behind = nullptr;
  std::memcpy(&behind, reinterpret_cast<const char*>(&the_device()) + sizeof(ibv_device),
              sizeof behind);
  EXPECT_EQ(behind, nullptr);
}

TEST(DeviceList, StrangersAreRefused) {
  ibv_device stranger{};
  EXPECT_EQ(ibv_open_device(&stranger), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_open_device(nullptr), nullptr);
  EXPECT_EQ(ibv_get_device_index(&stranger), -1);
  EXPECT_EQ(ibv_close_device(nullptr), -1);
}

using Device = DeviceTest;

TEST_F(Device, ContextIsExtended) {
  ASSERT_NE(verbs_get_ctx(context_), nullptr);
  EXPECT_EQ(verbs_get_ctx(context_)->sz, sizeof(verbs_context));
  EXPECT_EQ(context_->num_comp_vectors, 1);
  EXPECT_GE(context_->async_fd, 0);
}

TEST_F(Device, Attributes) {
  ibv_device_attr attr{};
  ASSERT_EQ(ibv_query_device(context_, &attr), 0);
  EXPECT_EQ(attr.vendor_part_id, 1824U);
  EXPECT_EQ(attr.atomic_cap, IBV_ATOMIC_HCA);
  EXPECT_EQ(attr.phys_port_cnt, 1);
  EXPECT_EQ(attr.node_guid, ibv_get_device_guid(context_->device));
  ibv_device_attr_ex extended;
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &extended), 0);
  EXPECT_EQ(extended.orig_attr.node_guid, attr.node_guid);
  EXPECT_EQ(extended.orig_attr.max_qp, attr.max_qp);
  EXPECT_EQ(extended.device_cap_flags_ex, attr.device_cap_flags);
  EXPECT_EQ(extended.phys_port_cnt_ex, 1U);
  EXPECT_EQ(ibv_query_device(context_, nullptr), EINVAL);
}

// A program may be built with a shorter or a longer struct than ours.
TEST_F(Device, AttributesOfOtherLengths) {
  struct {
    ibv_device_attr_ex known;
    unsigned char later[64];
  } longer;
  std::memset(static_cast<void*>(&longer), 0xff, sizeof longer);
  verbs_context* table = verbs_get_ctx(context_);
  ASSERT_EQ(table->query_device_ex(context_, nullptr, &longer.known, sizeof longer), 0);
  for (const unsigned char byte : longer.later) EXPECT_EQ(byte, 0);

  ibv_port_attr port;
  std::memset(static_cast<void*>(&port), 0xff, sizeof port);
  ASSERT_EQ(table->query_port(context_, 1, &port, offsetof(ibv_port_attr, link_layer)), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, 0xff);
  auto* const old = reinterpret_cast<_compat_ibv_port_attr*>(&port);
  ASSERT_EQ((ibv_query_port)(context_, 1, old), 0);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(port.port_cap_flags2, 0xffff);
}

TEST_F(Device, Port) {
  ibv_port_attr attr{};
  ASSERT_EQ(ibv_query_port(context_, 1, &attr), 0);
  EXPECT_EQ(attr.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(attr.lid, 0);
  EXPECT_EQ(attr.max_mtu, IBV_MTU_4096);
  EXPECT_LE(attr.active_mtu, attr.max_mtu);
  EXPECT_GE(attr.active_mtu, IBV_MTU_256);
  EXPECT_EQ(attr.gid_tbl_len, 32);
  for (const int port : {0, 2, 11}) {
    errno = 0;
    EXPECT_EQ(ibv_query_port(context_, static_cast<std::uint8_t>(port), &attr), EINVAL);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_F(Device, GidTable) {
  ibv_gid_entry entries[32];
  const ssize_t count = ibv_query_gid_table(context_, entries, 32, 0);
  ASSERT_GT(count, 0);
  std::set<std::uint32_t> filled;
  for (ssize_t i = 0; i < count; ++i) {
    union ibv_gid gid;
    filled.insert(entries[i].gid_index);
    ASSERT_EQ(ibv_query_gid(context_, 1, static_cast<int>(entries[i].gid_index), &gid), 0);
    EXPECT_EQ(std::memcmp(&gid, &entries[i].gid, sizeof gid), 0);
    EXPECT_EQ(entries[i].gid_type, IBV_GID_TYPE_ROCE_V2);
    EXPECT_EQ(entries[i].port_num, 1U);
  }
  const union ibv_gid zero {};
  for (std::uint32_t i = 0; i < 32; ++i) {
    union ibv_gid gid;
    ibv_gid_entry entry;
    ASSERT_EQ(ibv_query_gid(context_, 1, static_cast<int>(i), &gid), 0);
    EXPECT_EQ(std::memcmp(&gid, &zero, sizeof gid) != 0, filled.contains(i));
    EXPECT_EQ(ibv_query_gid_ex(context_, 1, i, &entry, 0), filled.contains(i) ? 0 : ENODATA);
  }
}

TEST_F(Device, GidTableRefusals) {
  ibv_gid_entry entry;
  union ibv_gid gid;
  EXPECT_EQ(ibv_query_gid_table(context_, &entry, 0, 0), -EINVAL);
  EXPECT_EQ(ibv_query_gid_table(context_, &entry, 32, 1), -EOPNOTSUPP);
  EXPECT_EQ(ibv_query_gid_ex(context_, 1, 0, &entry, 1), EOPNOTSUPP);
  EXPECT_EQ(ibv_query_gid_ex(context_, 1, 32, &entry, 0), EINVAL);
  EXPECT_EQ(ibv_query_gid_ex(context_, 2, 0, &entry, 0), EINVAL);
  EXPECT_EQ(ibv_query_gid(context_, 1, 32, &gid), -1);
  EXPECT_EQ(ibv_query_gid(context_, 1, -1, &gid), -1);
  EXPECT_EQ(ibv_query_gid(context_, 2, 0, &gid), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Device, GidType) {
  int type = -1;
  EXPECT_EQ(query_gid_type(context_, 1, 0, &type), 0);
  EXPECT_EQ(type, kSysfsRoceV2);
  EXPECT_EQ(query_gid_type(context_, 1, 32, &type), -1);
}

TEST_F(Device, PkeyTable) {
  __be16 pkey = 0;
  EXPECT_EQ(ibv_query_pkey(context_, 1, 0, &pkey), 0);
  EXPECT_EQ(be16toh(pkey), 0xffff);
  EXPECT_EQ(ibv_query_pkey(context_, 1, 1, &pkey), -1);
  EXPECT_EQ(ibv_get_pkey_index(context_, 1, htobe16(0xffff)), 0);
  EXPECT_EQ(ibv_get_pkey_index(context_, 1, htobe16(0x8001)), -1);
}

TEST_F(Device, WhatIsNotBuiltSaysSo) {
  errno = 0;
  EXPECT_EQ(ibv_open_xrcd(context_, nullptr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  errno = 0;
  EXPECT_EQ(ibv_alloc_mw(pd_, IBV_MW_TYPE_1), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  errno = 0;
  ibv_cq_init_attr_ex attr{};
  EXPECT_EQ(ibv_create_cq_ex(context_, &attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(ibv_import_pd(context_, 1), nullptr);
  EXPECT_EQ(ibv_reg_dmabuf_mr(pd_, 0, 4096, 0, 0, 0), nullptr);
}

// Wrong, but programs do it: the device first, then what was made from it.
TEST(Close, ObjectsMayBeDestroyedAfterwards) {
  ibv_context* context = ibv_open_device(&the_device());
  ASSERT_NE(context, nullptr);
  ibv_pd* pd = ibv_alloc_pd(context);
  ASSERT_NE(pd, nullptr);
  EXPECT_EQ(ibv_close_device(context), 0);
  EXPECT_EQ(pd->context, context);
  ibv_dealloc_pd(pd);
}

TEST(Fork, NeedsNoPreparation) {
  EXPECT_EQ(ibv_fork_init(), 0);
  EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

TEST(Sysfs, ServesTheGeneratedTree) {
  const std::string root = ibv_get_sysfs_path();
  EXPECT_TRUE(root.ends_with("/sys")) << root;
  char text[64] = {};
  const int length = ibv_read_sysfs_file(the_device().ibdev_path, "board_id", text, sizeof text);
  ASSERT_GT(length, 0);
  EXPECT_EQ(text[length], '\0');
  EXPECT_EQ(text[length - 1] == '\n', false);
  char same[64] = {};
  const std::string dir = root + "/class/infiniband/verbena0";
  EXPECT_EQ(ibv_read_sysfs_file(dir.c_str(), "board_id", same, sizeof same), length);
  EXPECT_STREQ(same, text);
  EXPECT_EQ(ibv_read_sysfs_file(dir.c_str(), "board_id", same, 2), -1) << "no room for the text";
  EXPECT_EQ(ibv_read_sysfs_file(dir.c_str(), "absent", same, sizeof same), -1);
}

}  // namespace
}  // namespace vrb::verbs
