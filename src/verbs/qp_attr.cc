// SPDX-License-Identifier: Apache-2.0
#include "verbs/qp_attr.h"

#include <algorithm>

namespace vrb::verbs {
namespace {

template <class E>
std::uint8_t small(const E& value) {
  return static_cast<std::uint8_t>(std::min(raw(value), std::uint32_t{0xff}));
}

void read_states(nic::QpAttr& to, const ibv_qp_attr& from, std::uint32_t mask) {
  if (mask & IBV_QP_STATE) to.state = static_cast<ib::QpState>(small(from.qp_state));
  if (mask & IBV_QP_CUR_STATE) to.cur_state = static_cast<ib::QpState>(small(from.cur_qp_state));
  if (mask & IBV_QP_PATH_MIG_STATE) to.path_mig_state = small(from.path_mig_state);
  if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) to.sqd_notify = from.en_sqd_async_notify;
}

void read_path(nic::QpAttr& to, const ibv_qp_attr& from, std::uint32_t mask) {
  if (mask & IBV_QP_PKEY_INDEX) to.pkey_index = from.pkey_index;
  if (mask & IBV_QP_PORT) to.port = from.port_num;
  if (mask & IBV_QP_AV) to.av = to_address_vector(from.ah_attr);
  if (mask & IBV_QP_PATH_MTU) to.path_mtu = small(from.path_mtu);
  if (mask & IBV_QP_DEST_QPN) to.dest_qpn = ib::Qpn{from.dest_qp_num};
  if (mask & IBV_QP_ALT_PATH) {
    to.alt_av = to_address_vector(from.alt_ah_attr);
    to.alt_pkey_index = from.alt_pkey_index;
    to.alt_port = from.alt_port_num;
    to.alt_timeout = from.alt_timeout;
  }
}

void read_numbers(nic::QpAttr& to, const ibv_qp_attr& from, std::uint32_t mask) {
  if (mask & IBV_QP_ACCESS_FLAGS) to.access = from.qp_access_flags;
  if (mask & IBV_QP_QKEY) to.qkey = from.qkey;
  if (mask & IBV_QP_RQ_PSN) to.rq_psn = from.rq_psn;
  if (mask & IBV_QP_SQ_PSN) to.sq_psn = from.sq_psn;
  if (mask & IBV_QP_CAP) to.cap = to_cap(from.cap);
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) to.max_rd_atomic = from.max_rd_atomic;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  if (mask & IBV_QP_MIN_RNR_TIMER) to.min_rnr_timer = from.min_rnr_timer;
  if (mask & IBV_QP_TIMEOUT) to.timeout = from.timeout;
  if (mask & IBV_QP_RETRY_CNT) to.retry_cnt = from.retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) to.rnr_retry = from.rnr_retry;
  if (mask & IBV_QP_RATE_LIMIT) to.rate_limit = from.rate_limit;
}

}  // namespace

nic::AddressVector to_address_vector(const ibv_ah_attr& from) {
  nic::AddressVector to{.has_grh = from.is_global != 0,
                        .dlid = from.dlid,
                        .sl = from.sl,
                        .src_path_bits = from.src_path_bits,
                        .static_rate = from.static_rate,
                        .port = from.port_num};
  if (!to.has_grh) return to;
  std::copy_n(from.grh.dgid.raw, to.dgid.size(), to.dgid.begin());
  to.flow_label = from.grh.flow_label;
  to.sgid_index = from.grh.sgid_index;
  to.hop_limit = from.grh.hop_limit;
  to.traffic_class = from.grh.traffic_class;
  return to;
}

ibv_ah_attr from_address_vector(const nic::AddressVector& from) {
  ibv_ah_attr to{};
  std::copy(from.dgid.begin(), from.dgid.end(), to.grh.dgid.raw);
  to.grh.flow_label = from.flow_label;
  to.grh.sgid_index = from.sgid_index;
  to.grh.hop_limit = from.hop_limit;
  to.grh.traffic_class = from.traffic_class;
  to.dlid = from.dlid;
  to.sl = from.sl;
  to.src_path_bits = from.src_path_bits;
  to.static_rate = from.static_rate;
  to.is_global = from.has_grh ? 1 : 0;
  to.port_num = from.port;
  return to;
}

nic::QpCap to_cap(const ibv_qp_cap& from) {
  return {.max_send_wr = from.max_send_wr,
          .max_recv_wr = from.max_recv_wr,
          .max_send_sge = from.max_send_sge,
          .max_recv_sge = from.max_recv_sge,
          .max_inline = from.max_inline_data};
}

ibv_qp_cap from_cap(const nic::QpCap& from) {
  return {.max_send_wr = from.max_send_wr,
          .max_recv_wr = from.max_recv_wr,
          .max_send_sge = from.max_send_sge,
          .max_recv_sge = from.max_recv_sge,
          .max_inline_data = from.max_inline};
}

nic::QpAttr to_qp_attr(const ibv_qp_attr& from, std::uint32_t mask) {
  nic::QpAttr to;
  read_states(to, from, mask);
  read_path(to, from, mask);
  read_numbers(to, from, mask);
  return to;
}

ibv_qp_attr from_qp_attr(const nic::QpAttr& from) {
  ibv_qp_attr to{};
  to.qp_state = static_cast<ibv_qp_state>(from.state);
  to.cur_qp_state = static_cast<ibv_qp_state>(from.state);
  to.path_mtu = static_cast<ibv_mtu>(from.path_mtu);
  to.path_mig_state = static_cast<ibv_mig_state>(from.path_mig_state);
  to.qkey = from.qkey;
  to.rq_psn = from.rq_psn;
  to.sq_psn = from.sq_psn;
  to.dest_qp_num = from.dest_qpn.value;
  to.qp_access_flags = from.access;
  to.cap = from_cap(from.cap);
  to.ah_attr = from_address_vector(from.av);
  to.alt_ah_attr = from_address_vector(from.alt_av);
  to.pkey_index = from.pkey_index;
  to.alt_pkey_index = from.alt_pkey_index;
  to.en_sqd_async_notify = from.sqd_notify;
  to.sq_draining = from.sq_draining;
  to.max_rd_atomic = from.max_rd_atomic;
  to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  to.min_rnr_timer = from.min_rnr_timer;
  to.port_num = from.port;
  to.timeout = from.timeout;
  to.retry_cnt = from.retry_cnt;
  to.rnr_retry = from.rnr_retry;
  to.alt_port_num = from.alt_port;
  to.alt_timeout = from.alt_timeout;
  to.rate_limit = from.rate_limit;
  return to;
}

}  // namespace vrb::verbs
