// SPDX-License-Identifier: Apache-2.0
#include "nic/grh.h"

#include <algorithm>

#include "ib/gid.h"

namespace vrb::nic {
namespace {

constexpr std::uint32_t kIpv4Bytes = 20;
constexpr std::uint32_t kUdpBytes = 8;
constexpr std::uint32_t kBthBytes = 12;
constexpr std::uint32_t kDethBytes = 8;
constexpr std::uint32_t kImmBytes = 4;
constexpr std::uint32_t kIcrcBytes = 4;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::size_t kChecksumAt = 10;

// Everything behind the IP header: the message is padded to a multiple of four.
std::uint16_t udp_length(const GrhFields& f) {
  const std::uint32_t padded = (f.payload + 3) & ~3U;
  return static_cast<std::uint16_t>(kUdpBytes + kBthBytes + kDethBytes + (f.imm ? kImmBytes : 0) +
                                    padded + kIcrcBytes);
}

class Writer {
 public:
  explicit Writer(std::byte* out) : out_(out) {}
  void u8(std::uint32_t v) { *out_++ = static_cast<std::byte>(v & 0xff); }
  void u16(std::uint32_t v) {
    u8(v >> 8);
    u8(v);
  }
  void u32(std::uint32_t v) {
    u16(v >> 16);
    u16(v);
  }
  void gid(const ib::Gid& gid) {
    for (const std::uint8_t b : gid) u8(b);
  }

 private:
  std::byte* out_;
};

// RFC 1071.
std::uint16_t checksum(const std::byte* header) {
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < kIpv4Bytes; i += 2) {
    sum += std::to_integer<std::uint32_t>(header[i]) << 8 |
           std::to_integer<std::uint32_t>(header[i + 1]);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

void write_ipv4(std::byte* out, const GrhFields& f) {
  Writer w(out);
  w.u8(0x45);  // version 4, five words
  w.u8(f.traffic_class);
  w.u16(kIpv4Bytes + udp_length(f));
  w.u16(0);  // identification
  w.u16(kDontFragment);
  w.u8(f.hop_limit);
  w.u8(kProtocolUdp);
  w.u16(0);  // checksum
  w.u32(ib::v4_of(f.sgid));
  w.u32(ib::v4_of(f.dgid));
  Writer(out + kChecksumAt).u16(checksum(out));
}

void write_ipv6(std::byte* out, const GrhFields& f) {
  Writer w(out);
  w.u32(6U << 28 | std::uint32_t{f.traffic_class} << 20 | (f.flow_label & 0xfffff));
  w.u16(udp_length(f));
  w.u8(kProtocolUdp);
  w.u8(f.hop_limit);
  w.gid(f.sgid);
  w.gid(f.dgid);
}

}  // namespace

void write_grh(std::byte out[ib::kGrhBytes], const GrhFields& fields) {
  const bool to_v4 = ib::is_v4_mapped(fields.dgid) || ib::is_v4_multicast_in_v6(fields.dgid);
  if (!ib::is_v4_mapped(fields.sgid) || !to_v4) return write_ipv6(out, fields);
  const std::size_t unused = ib::kGrhBytes - kIpv4Bytes;
  std::fill_n(out, unused, std::byte{0});
  write_ipv4(out + unused, fields);
}

}  // namespace vrb::nic
