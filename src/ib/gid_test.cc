// SPDX-License-Identifier: Apache-2.0
#include "ib/gid.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <string>

namespace vrb::ib {
namespace {

Gid gid_of(const char* text) {
  Gid gid;
  EXPECT_EQ(inet_pton(AF_INET6, text, gid.data()), 1) << text;
  return gid;
}

TEST(Gid, Kinds) {
  EXPECT_TRUE(is_zero(Gid{}));
  EXPECT_FALSE(is_zero(gid_of("::1")));
  EXPECT_TRUE(is_v4_mapped(gid_of("::ffff:0.0.0.0")));
  EXPECT_FALSE(is_v4_mapped(gid_of("::fffe:10.0.0.1")));
  EXPECT_FALSE(is_v4_mapped(gid_of("1::ffff:10.0.0.1")));
  EXPECT_FALSE(is_v4_mapped(Gid{}));
}

TEST(Gid, Multicast) {
  EXPECT_TRUE(is_multicast(gid_of("ff02::1")));
  EXPECT_TRUE(is_multicast(gid_of("ff0e::ffff:239.1.2.3")));
  EXPECT_TRUE(is_multicast(gid_of("::ffff:224.0.0.1")));
  EXPECT_TRUE(is_multicast(gid_of("::ffff:239.255.255.255")));
  EXPECT_FALSE(is_multicast(gid_of("::ffff:223.255.255.255")));
  EXPECT_FALSE(is_multicast(gid_of("::ffff:240.0.0.0")));
  EXPECT_FALSE(is_multicast(gid_of("fe80::1")));
  EXPECT_TRUE(is_v4_multicast_in_v6(gid_of("ff0e::ffff:239.1.2.3")));
  EXPECT_FALSE(is_v4_multicast_in_v6(gid_of("ff02::ffff:239.1.2.3")));
  EXPECT_FALSE(is_v4_multicast_in_v6(gid_of("ff0e:1::ffff:239.1.2.3")));
}

TEST(Gid, V4BackAndForth) {
  const Gid gid = make_v4_mapped(0x0a010203);
  EXPECT_EQ(gid, gid_of("::ffff:10.1.2.3"));
  EXPECT_EQ(v4_of(gid), 0x0a010203U);
}

TEST(Gid, TextIsThatOfInetNtop) {
  for (const char* text :
       {"::1", "::", "fe80::1", "fe80::42:acff:fe11:2", "2001:db8::1:0:0:1", "ff0e::ffff:ef01:203",
        "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:0", "1::", "0:1:2:3:4:5:6:7", "1:0:2:3:4:5:6:7",
        "::ffff:10.0.0.1", "::ffff:255.255.255.255", "a:b:c::d"}) {
    char expected[INET6_ADDRSTRLEN];
    const Gid gid = gid_of(text);
    ASSERT_NE(inet_ntop(AF_INET6, gid.data(), expected, sizeof expected), nullptr);
    EXPECT_EQ(format_gid(gid), expected);
  }
}

}  // namespace
}  // namespace vrb::ib
