// The headers were computed apart from this code, with Python's struct; each IPv4 header must also
// sum up to 0xffff, as a receiver checks it.
// SPDX-License-Identifier: Apache-2.0
#include "nic/grh.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace vrb::nic {
namespace {

ib::Gid gid_of(const char* text) {
  ib::Gid gid;
  EXPECT_EQ(inet_pton(AF_INET6, text, gid.data()), 1) << text;
  return gid;
}

using Grh = std::array<std::byte, ib::kGrhBytes>;

Grh written(const GrhFields& fields) {
  Grh grh;
  grh.fill(std::byte{0xaa});
  write_grh(grh.data(), fields);
  return grh;
}

std::string hex(const Grh& grh, std::size_t from = 0) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = from; i < grh.size(); ++i) {
    out += kDigits[std::to_integer<unsigned>(grh[i]) >> 4];
    out += kDigits[std::to_integer<unsigned>(grh[i]) & 15];
  }
  return out;
}

std::uint32_t sum_of_ipv4(const Grh& grh) {
  std::uint32_t sum = 0;
  for (std::size_t i = 20; i < grh.size(); i += 2) {
    sum +=
        std::to_integer<std::uint32_t>(grh[i]) * 256 + std::to_integer<std::uint32_t>(grh[i + 1]);
  }
  return (sum & 0xffff) + (sum >> 16);
}

void expect_ipv4(const GrhFields& fields, const std::string& header) {
  const Grh grh = written(fields);
  EXPECT_EQ(hex(grh).substr(0, 40), std::string(40, '0'));
  EXPECT_EQ(hex(grh, 20), header);
  EXPECT_EQ(sum_of_ipv4(grh), 0xffffU);
}

TEST(Grh, Ipv4) {
  GrhFields f{.sgid = gid_of("::ffff:10.0.0.1"), .dgid = gid_of("::ffff:10.0.0.2")};
  f.hop_limit = 64;
  f.payload = 1024;
  expect_ipv4(f, "4500043400004000401122b70a0000010a000002");
}

TEST(Grh, Ipv4MulticastWithImmediateAndPadding) {
  GrhFields f{.sgid = gid_of("::ffff:192.168.1.17"), .dgid = gid_of("::ffff:239.1.2.3")};
  f.traffic_class = 0xb8;
  f.hop_limit = 1;
  f.flow_label = 0xfffff;
  f.payload = 5;
  f.imm = true;
  expect_ipv4(f, "45b80040000040000111c637c0a80111ef010203");
  f.dgid = gid_of("ff0e::ffff:239.1.2.3");
  expect_ipv4(f, "45b80040000040000111c637c0a80111ef010203");
}

TEST(Grh, Ipv4ChecksumThatCarriesTwice) {
  GrhFields f{.sgid = gid_of("::ffff:255.255.255.255"), .dgid = gid_of("::ffff:255.255.255.255")};
  f.traffic_class = 0xff;
  f.hop_limit = 255;
  f.payload = 4096;
  f.imm = true;
  expect_ipv4(f, "45ff103800004000ff116ab6ffffffffffffffff");
}

TEST(Grh, Ipv6) {
  GrhFields f{.sgid = gid_of("fe80::1"), .dgid = gid_of("2001:db8::2")};
  f.traffic_class = 0x12;
  f.hop_limit = 7;
  f.flow_label = 0xfff3456;
  f.payload = 10;
  // 8 UDP + 12 BTH + 8 DETH + 12 payload and padding + 4 ICRC = 44 = 0x2c
  EXPECT_EQ(hex(written(f)),
            "612f3456002c1107"
            "fe800000000000000000000000000001"
            "20010db8000000000000000000000002");
}

TEST(Grh, Ipv6MulticastAndMixedPairsKeepBothGids) {
  GrhFields f{.sgid = gid_of("::ffff:10.0.0.1"), .dgid = gid_of("ff02::1")};
  EXPECT_EQ(hex(written(f)),
            "6000000000201100"
            "00000000000000000000ffff0a000001"
            "ff020000000000000000000000000001");
}

}  // namespace
}  // namespace vrb::nic
