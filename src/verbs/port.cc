// SPDX-License-Identifier: Apache-2.0
#include "verbs/port.h"

#include <endian.h>

#include <algorithm>
#include <bit>

#include "verbs/adapt.h"

namespace vrb::verbs {
namespace {

constexpr std::uint64_t kPageSizes = 0xfffff000;  // 4 KiB to 2 GiB
constexpr std::uint8_t kWidth8x = 4;
constexpr std::uint8_t kSpeed25G = 32;  // of a lane
constexpr std::uint8_t kLinkUp = 5;     // IBTA 14.2.5.6, PortPhysicalState
constexpr unsigned kCapabilities =
    IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN;

constexpr ibv_mtu mtu_of(unsigned bytes) {
  return static_cast<ibv_mtu>(std::bit_width(bytes) - std::bit_width(256U) + IBV_MTU_256);
}
static_assert(mtu_of(1024) == IBV_MTU_1024 && mtu_of(4096) == IBV_MTU_4096);

// Fills a struct whose length the caller knows and we may not.
template <class T>
void copy_out(T* to, std::size_t size, const T& from) {
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(static_cast<void*>(to), &from, std::min(size, sizeof from));
}

}  // namespace

ibv_device_attr device_attributes() {
  ibv_device_attr a{};
  std::strncpy(a.fw_ver, VERBENA_VERSION, sizeof a.fw_ver - 1);
  a.node_guid = a.sys_image_guid = htobe64(engine::port_facts().guid);
  a.max_mr_size = ib::kMaxMrSize;
  a.page_size_cap = kPageSizes;
  a.vendor_id = ib::kVendorId;
  a.vendor_part_id = ib::kVendorPartId;
  a.max_qp = ib::kMaxQp;
  a.max_qp_wr = ib::kMaxQpWr;
  a.device_cap_flags = kCapabilities;
  a.max_sge = a.max_sge_rd = a.max_srq_sge = ib::kMaxSge;
  a.max_cq = ib::kMaxCq;
  a.max_cqe = ib::kMaxCqe;
  a.max_mr = ib::kMaxMr;
  a.max_pd = ib::kMaxPd;
  a.max_qp_rd_atom = a.max_qp_init_rd_atom = ib::kMaxQpRdAtom;
  a.max_res_rd_atom = ib::kMaxResRdAtom;
  a.atomic_cap = IBV_ATOMIC_HCA;
  a.max_mcast_grp = ib::kMaxMcastGroups;
  a.max_mcast_qp_attach = ib::kMaxMcastQpAttach;
  a.max_total_mcast_qp_attach = ib::kMaxTotalMcastQpAttach;
  a.max_ah = ib::kMaxAh;
  a.max_srq = ib::kMaxSrq;
  a.max_srq_wr = ib::kMaxSrqWr;
  a.max_pkeys = ib::kPkeyTableLength;
  a.local_ca_ack_delay = ib::kLocalCaAckDelay;
  a.phys_port_cnt = 1;
  return a;
}

ibv_port_attr port_attributes() {
  ibv_port_attr a{};
  a.state = IBV_PORT_ACTIVE;
  a.max_mtu = IBV_MTU_4096;
  a.active_mtu = mtu_of(engine::port_facts().active_mtu);
  a.gid_tbl_len = ib::kGidTableLength;
  a.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  a.max_msg_sz = ib::kMaxMessage;
  a.pkey_tbl_len = ib::kPkeyTableLength;
  a.max_vl_num = 1;
  a.active_width = kWidth8x;
  a.active_speed = kSpeed25G;
  a.phys_state = kLinkUp;
  a.link_layer = IBV_LINK_LAYER_ETHERNET;
  a.flags = IBV_QPF_GRH_REQUIRED;
  return a;
}

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr, std::size_t size) {
  return int_ret("ibv_query_port", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context, attr); !ok) return ok;
    if (port != 1) return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadPort, port);
    copy_out(attr, size, port_attributes());
    return {};
  });
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t size) {
  return int_ret("ibv_query_device_ex", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context, attr); !ok) return ok;
    if ((input != nullptr && input->comp_mask != 0) || size < sizeof(ibv_device_attr)) {
      return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadAttribute,
                     input != nullptr ? input->comp_mask : 0, size);
    }
    ibv_device_attr_ex all{};
    all.orig_attr = device_attributes();
    all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
    all.phys_port_cnt_ex = all.orig_attr.phys_port_cnt;
    copy_out(attr, size, all);
    return {};
  });
}

int find_gid(const union ibv_gid& gid) {
  const auto& gids = engine::port_facts().gids;
  const auto found = std::find_if(gids.begin(), gids.end(), [&](const engine::GidEntry& entry) {
    return std::memcmp(entry.gid.data(), gid.raw, sizeof gid.raw) == 0;
  });
  return found != gids.end() ? static_cast<int>(found - gids.begin()) : -1;
}

}  // namespace vrb::verbs

using namespace vrb;
using namespace vrb::verbs;

int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  return int_ret("ibv_query_device", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context, attr); !ok) return ok;
    *attr = device_attributes();
    return {};
  });
}

// The struct of programs older than port_cap_flags2 ends before it.
int(ibv_query_port)(ibv_context* context, uint8_t port, _compat_ibv_port_attr* attr) {
  return verbs::query_port(context, port, reinterpret_cast<ibv_port_attr*>(attr),
                           offsetof(ibv_port_attr, port_cap_flags2));
}

VRB_EXPORT int ibv_query_port_speed(ibv_context* context, uint32_t port, uint64_t* speed) {
  return int_ret("ibv_query_port_speed", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context, speed); !ok) return ok;
    if (port != 1) return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadPort, port);
    *speed = 8 * 250;  // in units of 100 Mb/s
    return {};
  });
}
