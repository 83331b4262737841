// The attributes of a QP (ibv_qp_attr, ibv_qp_init_attr) in our own types, and the mask bits that
// name them. Values and bit positions are those of verbs.h. Plain values; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ib/types.h"

namespace vrb::nic {

// ibv_qp_attr_mask
enum QpMask : std::uint32_t {
  kMaskState = 1 << 0,
  kMaskCurState = 1 << 1,
  kMaskSqdNotify = 1 << 2,
  kMaskAccess = 1 << 3,
  kMaskPkeyIndex = 1 << 4,
  kMaskPort = 1 << 5,
  kMaskQkey = 1 << 6,
  kMaskAv = 1 << 7,
  kMaskPathMtu = 1 << 8,
  kMaskTimeout = 1 << 9,
  kMaskRetryCnt = 1 << 10,
  kMaskRnrRetry = 1 << 11,
  kMaskRqPsn = 1 << 12,
  kMaskMaxRdAtomic = 1 << 13,
  kMaskAltPath = 1 << 14,
  kMaskMinRnrTimer = 1 << 15,
  kMaskSqPsn = 1 << 16,
  kMaskMaxDestRdAtomic = 1 << 17,
  kMaskPathMigState = 1 << 18,
  kMaskCap = 1 << 19,
  kMaskDestQpn = 1 << 20,
  kMaskRateLimit = 1 << 25,
};

// Where a message goes (ibv_ah_attr). Without GRH and LID: this host.
struct AddressVector {
  ib::Gid dgid{};
  bool has_grh = false;
  std::uint32_t flow_label = 0;
  std::uint8_t sgid_index = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  std::uint16_t dlid = 0;
  std::uint8_t sl = 0;
  std::uint8_t src_path_bits = 0;
  std::uint8_t static_rate = 0;
  std::uint8_t port = 0;
};

struct QpCap {
  std::uint32_t max_send_wr = 0, max_recv_wr = 0, max_send_sge = 0, max_recv_sge = 0,
                max_inline = 0;
};

struct QpAttr {
  ib::QpState state = ib::QpState::Reset;
  ib::QpState cur_state = ib::QpState::Reset;
  std::uint8_t path_mtu = 0;  // ibv_mtu: 1 = 256 .. 5 = 4096
  std::uint8_t path_mig_state = 0;
  std::uint32_t qkey = 0, rq_psn = 0, sq_psn = 0;
  ib::Qpn dest_qpn;
  std::uint32_t access = 0;
  QpCap cap;
  AddressVector av, alt_av;
  std::uint16_t pkey_index = 0, alt_pkey_index = 0;
  std::uint8_t sqd_notify = 0, sq_draining = 0;
  std::uint8_t max_rd_atomic = 0, max_dest_rd_atomic = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint8_t port = 0, timeout = 0, retry_cnt = 0, rnr_retry = 0;
  std::uint8_t alt_port = 0, alt_timeout = 0;
  std::uint32_t rate_limit = 0;
};

}  // namespace vrb::nic
