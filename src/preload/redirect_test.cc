// SPDX-License-Identifier: Apache-2.0
#include "preload/redirect.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace vrb::preload {
namespace {

std::string used(const char* path) {
  return with_path(path, [](const char* p) { return std::string(p); });
}

class Redirect : public testing::Test {
 protected:
  void SetUp() override { setenv("VERBENA_TREE", "/tree", 1); }
  void TearDown() override { unsetenv("VERBENA_TREE"); }
};

TEST_F(Redirect, TheThreePrefixes) {
  EXPECT_EQ(used("/sys/class/infiniband"), "/tree/sys/class/infiniband");
  EXPECT_EQ(used("/sys/class/infiniband/"), "/tree/sys/class/infiniband/");
  EXPECT_EQ(used("/sys/class/infiniband/verbena0/ports/1"),
            "/tree/sys/class/infiniband/verbena0/ports/1");
  EXPECT_EQ(used("/sys/class/infiniband_verbs/abi_version"),
            "/tree/sys/class/infiniband_verbs/abi_version");
  EXPECT_EQ(used("/dev/infiniband/uverbs240"), "/tree/dev/infiniband/uverbs240");
}

TEST_F(Redirect, OddSpellings) {
  EXPECT_EQ(used("//sys//class/./infiniband//x"), "/tree/sys/class/infiniband//x");
  EXPECT_EQ(used("/dev/./infiniband/."), "/tree/dev/infiniband/.");
  EXPECT_EQ(used("/sys/class/infiniband/verbena0/device/../fw_ver"),
            "/tree/sys/class/infiniband/verbena0/device/../fw_ver");
}

TEST_F(Redirect, NothingElse) {
  for (const char* path :
       {"/", "", "/sys", "/sys/class", "/sys/class/", "/sys/class/infiniband_mad/x",
        "/sys/class/infinibandx", "/sys/class/net/eth0", "/dev", "/dev/null", "/dev/infiniband0",
        "sys/class/infiniband", "/sys/class/infiniband/..", "/dev/infiniband/../null",
        "/dev/infiniband/x/../../null", "/tmp/dev/infiniband", "/sys/dev/infiniband", "/system",
        "/dev/.infiniband"}) {
    EXPECT_EQ(used(path), path);
  }
  EXPECT_TRUE(with_path(nullptr, [](const char* p) { return p == nullptr; }));
}

TEST_F(Redirect, NothingWithoutATree) {
  setenv("VERBENA_TREE", "tree", 1);
  EXPECT_EQ(used("/dev/infiniband"), "/dev/infiniband");
  setenv("VERBENA_TREE", "", 1);
  EXPECT_EQ(used("/dev/infiniband"), "/dev/infiniband");
  unsetenv("VERBENA_TREE");
  EXPECT_EQ(used("/dev/infiniband"), "/dev/infiniband");
}

TEST_F(Redirect, WhatDoesNotFitStays) {
  const std::string fits = "/dev/infiniband/" + std::string(kPathMax - 22, 'x');
  EXPECT_EQ(used(fits.c_str()), "/tree" + fits);
  const std::string longer = fits + "x";
  EXPECT_EQ(used(longer.c_str()), longer);
}

TEST_F(Redirect, StripRoot) {
  const auto strip = [](std::string path) {
    strip_root("/tree", path.data());
    return std::string(path.c_str());
  };
  EXPECT_EQ(strip("/tree/sys/class"), "/sys/class");
  EXPECT_EQ(strip("/trees/sys"), "/trees/sys");
  EXPECT_EQ(strip("/tree"), "/tree");
  EXPECT_EQ(strip("/dev/null"), "/dev/null");
}

}  // namespace
}  // namespace vrb::preload
