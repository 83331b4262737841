// Names and rates are those of Debian's own libibverbs, whatever number a program asks about.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "verbs/abi.h"

namespace {

constexpr int kFirst = -2, kLast = 300;
// Every rate in Mb/s and its neighbours lie below.
constexpr int kLastMbps = 1300000;

class AgainstDebian : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(DEBIAN_LIBIBVERBS, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) GTEST_SKIP() << "no " DEBIAN_LIBIBVERBS;
  }
  void TearDown() override {
    if (library_ != nullptr) dlclose(library_);
  }
  template <class R, class E>
  void compare(const char* name, R (*ours)(E), int last = kLast) {
    auto* const theirs = reinterpret_cast<R (*)(int)>(dlsym(library_, name));
    ASSERT_NE(theirs, nullptr) << name;
    auto* const same = reinterpret_cast<R (*)(int)>(ours);  // enumerations are ints to a caller
    for (int i = kFirst; i <= last; ++i) {
      if constexpr (std::is_pointer_v<R>) {
        EXPECT_STREQ(same(i), theirs(i)) << name << " of " << i;
      } else {
        EXPECT_EQ(same(i), theirs(i)) << name << " of " << i;
      }
    }
  }

 private:
  void* library_ = nullptr;
};

TEST_F(AgainstDebian, Names) {
  compare("ibv_node_type_str", ibv_node_type_str);
  compare("ibv_port_state_str", ibv_port_state_str);
  compare("ibv_event_type_str", ibv_event_type_str);
  compare("ibv_wc_status_str", ibv_wc_status_str);
}

TEST_F(AgainstDebian, Rates) {
  compare("ibv_rate_to_mult", ibv_rate_to_mult);
  compare("mult_to_ibv_rate", mult_to_ibv_rate, 600);
  compare("ibv_rate_to_mbps", ibv_rate_to_mbps);
  compare("mbps_to_ibv_rate", mbps_to_ibv_rate, kLastMbps);
}

}  // namespace
