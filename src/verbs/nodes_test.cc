// The shared library as a program binds it: versions side by side, private names that must work or
// be silent, and nothing that breaks a program of another age.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "verbs/private_node.h"

namespace {

class Nodes : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(VERBENA_LIBIBVERBS, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void TearDown() override { dlclose(library_); }
  template <class F>
  F* bind(const char* name, const char* version) {
    void* symbol = dlvsym(library_, name, version);
    EXPECT_NE(symbol, nullptr) << name << "@" << version;
    return reinterpret_cast<F*>(symbol);
  }

 private:
  void* library_ = nullptr;
};

TEST_F(Nodes, OldAndNewStandSideBySide) {
  auto* const now = bind<ibv_device**(int*)>("ibv_get_device_list", "IBVERBS_1.1");
  auto* const old = bind<ibv_device**(int*)>("ibv_get_device_list", "IBVERBS_1.0");
  int count = 0;
  ibv_device** list = now(&count);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(count, 1);
  bind<void(ibv_device**)>("ibv_free_device_list", "IBVERBS_1.1")(list);
  errno = 0;
  EXPECT_EQ(old(&count), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(bind<int(void*)>("ibv_dealloc_pd", "IBVERBS_1.0")(nullptr), EOPNOTSUPP);
  EXPECT_EQ(bind<int(void*)>("ibv_close_device", "IBVERBS_1.0")(nullptr), -1);
}

TEST_F(Nodes, PrivateNamesOfEveryRelease) {
  for (const std::string release : {"34", "57", "59", "64", "65"}) {
    const std::string node = "IBVERBS_PRIVATE_" + release;
    bind<void(const void*)>(("verbs_register_driver_" + release).c_str(), node.c_str())(nullptr);
    EXPECT_EQ(bind<int()>("ibv_cmd_alloc_pd", node.c_str())(), EOPNOTSUPP);
    EXPECT_LT(bind<int()>("ibv_cmd_poll_cq", node.c_str())(), 0);
    EXPECT_EQ(bind<void*()>("verbs_open_device", node.c_str())(), nullptr);
    EXPECT_EQ(*bind<bool>("verbs_allow_disassociate_destroy", node.c_str()), false);
    bind<void()>("verbs_set_ops", node.c_str())();
  }
}

TEST_F(Nodes, GidTypeWorks) {
  auto* const open = bind<ibv_context*(ibv_device*)>("ibv_open_device", "IBVERBS_1.1");
  auto* const close = bind<int(ibv_context*)>("ibv_close_device", "IBVERBS_1.1");
  ibv_device** list = bind<ibv_device**(int*)>("ibv_get_device_list", "IBVERBS_1.1")(nullptr);
  ASSERT_NE(list, nullptr);
  ibv_context* context = open(list[0]);
  ASSERT_NE(context, nullptr);
  bind<void(ibv_device**)>("ibv_free_device_list", "IBVERBS_1.1")(list);
  auto* const type_of = bind<int(ibv_context*, std::uint8_t, unsigned, int*)>("ibv_query_gid_type",
                                                                              "IBVERBS_PRIVATE_34");
  int type = -1;
  EXPECT_EQ(type_of(context, 1, 0, &type), 0);
  EXPECT_EQ(type, vrb::verbs::kSysfsRoceV2);
  EXPECT_EQ(close(context), 0);
}

TEST_F(Nodes, NewerReleases) {
  errno = 0;
  EXPECT_EQ(bind<void*(void*, void*)>("ibv_reg_mr_ex", "IBVERBS_1.15")(nullptr, nullptr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(bind<int(void*)>("ibv_destroy_comp_cntr", "IBVERBS_1.18")(nullptr), EOPNOTSUPP);
}

}  // namespace
