// SPDX-License-Identifier: Apache-2.0
#include "engine/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <map>

namespace vrb::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Config parse(const std::map<std::string, std::string>& variables) {
  return parse_config(
      [&](const char* name) -> const char* {
        const auto at = variables.find(name);
        return at == variables.end() ? nullptr : at->second.c_str();
      },
      [](std::string_view name, uid_t& uid) {
        uid = 113;
        return name == "redis";
      });
}

TEST(Config, DefaultsWithoutVariables) {
  const Config config = parse({});
  EXPECT_EQ(config.carrier, Carrier::Auto);
  EXPECT_EQ(config.mtu, 0U);
  EXPECT_FALSE(config.explain);
  EXPECT_TRUE(config.move);
  EXPECT_THAT(config.trusted_uids, IsEmpty());
  EXPECT_TRUE(config.kernel_allows(99, 0));
  EXPECT_EQ(config.tree, "");
  EXPECT_THAT(config.errors, IsEmpty());
}

TEST(Config, EmptyVariablesAreUnset) {
  EXPECT_THAT(parse({{"VERBENA_CARRIER", ""}, {"VERBENA_MTU", ""}, {"VERBENA_TREE", ""}}).errors,
              IsEmpty());
}

TEST(Config, GoodValues) {
  const Config config = parse({{"VERBENA_CARRIER", "wire"},
                               {"VERBENA_MTU", "2048"},
                               {"VERBENA_EXPLAIN", "1"},
                               {"VERBENA_MOVE", "0"},
                               {"VERBENA_LOCAL_TRUST", "redis,1002,7,7"},
                               {"VERBENA_KERNEL", "6.1"},
                               {"VERBENA_TREE", "/tmp/x"}});
  EXPECT_THAT(config.errors, IsEmpty());
  EXPECT_EQ(config.carrier, Carrier::Wire);
  EXPECT_EQ(config.mtu, 2048U);
  EXPECT_TRUE(config.explain);
  EXPECT_FALSE(config.move);
  EXPECT_THAT(config.trusted_uids, ElementsAre(7, 113, 1002));
  EXPECT_TRUE(config.trusts(113));
  EXPECT_FALSE(config.trusts(0));
  EXPECT_EQ(config.tree, "/tmp/x");
}

TEST(Config, KernelMask) {
  const Config config = parse({{"VERBENA_KERNEL", "6.1"}});
  EXPECT_TRUE(config.kernel_allows(5, 14));
  EXPECT_TRUE(config.kernel_allows(6, 1));
  EXPECT_FALSE(config.kernel_allows(6, 2));
  EXPECT_FALSE(config.kernel_allows(7, 0));
}

TEST(Config, EachBadValueIsNamedAndLeavesTheDefault) {
  const std::pair<const char*, const char*> bad[] = {
      {"VERBENA_CARRIER", "Local"},     {"VERBENA_CARRIER", "tcp"}, {"VERBENA_MTU", "1000"},
      {"VERBENA_MTU", "8192"},          {"VERBENA_MTU", "128"},     {"VERBENA_MTU", "1024x"},
      {"VERBENA_MTU", "-1024"},         {"VERBENA_EXPLAIN", "yes"}, {"VERBENA_MOVE", "2"},
      {"VERBENA_LOCAL_TRUST", "noone"}, {"VERBENA_KERNEL", "6"},    {"VERBENA_KERNEL", "6.1.2"},
      {"VERBENA_KERNEL", "new"},        {"VERBENA_TREE", "tmp/x"},
  };
  for (const auto& [name, value] : bad) {
    const Config config = parse({{name, value}});
    ASSERT_EQ(config.errors.size(), 1U) << name << "=" << value;
    EXPECT_THAT(config.errors[0], HasSubstr(std::string(name) + "=" + value + ": "));
    EXPECT_EQ(config.carrier, Carrier::Auto);
    EXPECT_EQ(config.mtu, 0U);
    EXPECT_TRUE(config.move);
    EXPECT_TRUE(config.kernel_allows(99, 0));
    EXPECT_EQ(config.tree, "");
  }
}

TEST(Config, OneUnknownUserDoesNotHideTheOthers) {
  const Config config = parse({{"VERBENA_LOCAL_TRUST", "nobody-here,redis,,1001"}});
  EXPECT_EQ(config.errors.size(), 2U);  // the unknown and the empty name
  EXPECT_THAT(config.trusted_uids, ElementsAre(113, 1001));
}

TEST(Config, FindUserReadsPasswdLines) {
  char path[] = "/tmp/verbena-passwd-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  const std::string text =
      "root:x:0:0:root:/root:/bin/bash\n"
      "# comment\n"
      "red:x:1000:1000::/:/bin/sh\n"
      "odd:x:name:1::/:\n"
      "redis:x:113:120:Redis:/var/lib/redis:/usr/sbin/nologin";
  ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(fd);
  uid_t uid = 4;
  EXPECT_TRUE(find_user(path, "redis", uid));
  EXPECT_EQ(uid, 113U);
  EXPECT_TRUE(find_user(path, "root", uid));
  EXPECT_EQ(uid, 0U);
  EXPECT_FALSE(find_user(path, "redi", uid));
  EXPECT_FALSE(find_user(path, "odd", uid));
  EXPECT_FALSE(find_user(path, "", uid));
  EXPECT_FALSE(find_user("/nonexistent", "root", uid));
  std::remove(path);
}

}  // namespace
}  // namespace vrb::engine
