// Address handles: ibv_create_ah(3), ibv_create_ah_from_wc(3). The 40 bytes in front of a UD
// receive hold an IPv6 header, or 20 unused bytes and an IPv4 header (IBTA annex A17.4.5.1).
// SPDX-License-Identifier: Apache-2.0
#include <endian.h>

#include <algorithm>
#include <array>
#include <memory>

#include "verbs/adapt.h"
#include "verbs/objects.h"
#include "verbs/port.h"
#include "verbs/qp_attr.h"

namespace vrb::verbs {
namespace {

constexpr std::size_t kV4At = 20;  // in the GRH; also the length of an IPv4 header
constexpr std::uint8_t kHopLimit = 64;

using Grh = std::array<std::uint8_t, ib::kGrhBytes>;

// What an answer needs to know of the packet that came.
struct Arrival {
  union ibv_gid from {
  }, to{};
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;
};

// Is there an IPv4 header with the right checksum?
bool is_v4(const Grh& grh) {
  if (grh[kV4At] != 0x45) return false;
  std::uint32_t sum = 0;
  for (std::size_t i = kV4At; i < grh.size(); i += 2)
    sum += std::uint32_t{grh[i]} << 8 | grh[i + 1];
  sum = (sum & 0xffff) + (sum >> 16);
  return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

union ibv_gid v4_gid(const std::uint8_t* address) {
  union ibv_gid gid {};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::copy_n(address, 4, gid.raw + 12);
  return gid;
}

bool read_grh(const Grh& grh, Arrival& arrival) {
  if (is_v4(grh)) {
    arrival.traffic_class = grh[kV4At + 1];
    arrival.from = v4_gid(&grh[kV4At + 12]);
    arrival.to = v4_gid(&grh[kV4At + 16]);
    return true;
  }
  if (grh[0] >> 4 != 6) return false;
  arrival.traffic_class = static_cast<std::uint8_t>(grh[0] << 4 | grh[1] >> 4);
  arrival.flow_label = std::uint32_t{grh[1]} << 16 & 0xf0000;
  arrival.flow_label |= std::uint32_t{grh[2]} << 8 | grh[3];
  std::copy_n(&grh[8], 16, arrival.from.raw);
  std::copy_n(&grh[24], 16, arrival.to.raw);
  return true;
}

// The own GID to answer from: the one that the packet came to; for a group, the first one of the
// sender's kind.
int own_index(const Arrival& arrival) {
  if (const int exact = find_gid(arrival.to); exact >= 0) return exact;
  const bool v4 = arrival.from.raw[10] == 0xff && arrival.from.raw[0] == 0;
  const auto& gids = engine::port_facts().gids;
  for (std::size_t i = 0; i < gids.size(); ++i) {
    if (!engine::is_zero(gids[i].gid) && engine::is_ipv4(gids[i].gid) == v4) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

ib::Result<void> set_grh(const char* verb, const ibv_grh* from, ibv_ah_attr& to) {
  if (auto ok = all_set(verb, from); !ok) return ok;
  Grh grh;
  std::memcpy(grh.data(), from, grh.size());
  Arrival arrival;
  if (!read_grh(grh, arrival)) {
    return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadAttribute, IBV_WC_GRH, grh[0]);
  }
  const int index = own_index(arrival);
  if (index < 0) {
    return refused(verb, ib::Errc::NoEntry, ib::CauseCode::BadGidIndex, -1, ib::kGidTableLength);
  }
  to.is_global = 1;
  to.grh = {.dgid = arrival.from,
            .flow_label = arrival.flow_label,
            .sgid_index = static_cast<std::uint8_t>(index),
            .hop_limit = kHopLimit,
            .traffic_class = arrival.traffic_class};
  return {};
}

// RoCE has no LIDs: an address is a GID.
ib::Result<void> check_global(const char* verb, const ibv_ah_attr& attr) {
  if (attr.is_global != 0) return {};
  return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadAttribute, IBV_QP_AV, attr.is_global);
}

}  // namespace
}  // namespace vrb::verbs

using namespace vrb;
using namespace vrb::verbs;

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  return ptr_ret("ibv_create_ah", [&](const char* verb) -> ib::Result<ibv_ah*> {
    if (auto ok = all_set(verb, pd, attr); !ok) return base::Unexpected{ok.error()};
    if (auto ok = check_global(verb, *attr); !ok) return base::Unexpected{ok.error()};
    auto ah = std::make_unique<VerbsAh>(pd->context);
    const auto made = engine::create_ah(ours(pd).impl, to_address_vector(*attr));
    if (!made) return base::Unexpected{made.error()};
    ah->impl = *made;
    ah->pd = pd;
    return ah.release();
  });
}

int ibv_destroy_ah(ibv_ah* ah) {
  return int_ret("ibv_destroy_ah", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, ah); !ok) return ok;
    if (auto ok = engine::destroy_ah(ours(ah).impl); !ok) return ok;
    delete &ours(ah);
    return {};
  });
}

int ibv_init_ah_from_wc(ibv_context* context, uint8_t port, ibv_wc* wc, ibv_grh* grh,
                        ibv_ah_attr* attr) {
  return minus_one_ret("ibv_init_ah_from_wc", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context, wc, attr); !ok) return ok;
    *attr = {};
    attr->dlid = wc->slid;
    attr->sl = wc->sl;
    attr->src_path_bits = wc->dlid_path_bits;
    attr->port_num = port;
    return (wc->wc_flags & IBV_WC_GRH) != 0 ? set_grh(verb, grh, *attr) : ib::Result<void>{};
  });
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port) {
  ibv_ah_attr attr;
  ibv_context* context = pd != nullptr ? pd->context : nullptr;
  if (ibv_init_ah_from_wc(context, port, wc, grh, &attr) != 0) return nullptr;
  return ibv_create_ah(pd, &attr);
}
