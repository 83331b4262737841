// SPDX-License-Identifier: Apache-2.0
#include "side.h"

#include <arpa/inet.h>
#include <unistd.h>

namespace journey {

Side::Side(Reporter& reporter, int peer) : report_(reporter), peer_(peer), memory_(kBytes) {}

Side::~Side() {
  ibv_destroy_qp(qp_);
  ibv_dereg_mr(mr_);
  ibv_destroy_cq(cq_);
  ibv_dealloc_pd(pd_);
  ibv_close_device(context_);
}

void Side::open() {
  ibv_device** devices = ibv_get_device_list(nullptr);
  report_.must(devices != nullptr && devices[0] != nullptr, "there is no RDMA device");
  const std::int64_t start = now_ns();
  context_ = ibv_open_device(devices[0]);
  const std::int64_t took = now_ns() - start;
  ibv_free_device_list(devices);
  report_.must(context_ != nullptr, "ibv_open_device");
  report_.must(ibv_query_gid(context_, 1, 0, &own_.gid) == 0, "ibv_query_gid");
  char gid[INET6_ADDRSTRLEN];
  inet_ntop(AF_INET6, own_.gid.raw, gid, sizeof gid);
  report_.call(1, "ibv_open_device", took, "%s, GID %s", ibv_get_device_name(context_->device),
               gid);
  pd_ = ibv_alloc_pd(context_);
  report_.must(pd_ != nullptr, "ibv_alloc_pd");
  cq_ = ibv_create_cq(context_, 8, nullptr, nullptr, 0);
  report_.must(cq_ != nullptr, "ibv_create_cq");
}

void Side::prepare() {
  open();
  std::int64_t start = now_ns();
  mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(),
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  report_.must(mr_ != nullptr, "ibv_reg_mr");
  report_.call(1, "ibv_reg_mr", now_ns() - start, "%zu B at %p: L_Key 0x%x, R_Key 0x%x", kBytes,
               static_cast<void*>(memory_.data()), mr_->lkey, mr_->rkey);

  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = init.cap.max_recv_wr = 4;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  start = now_ns();
  qp_ = ibv_create_qp(pd_, &init);
  report_.must(qp_ != nullptr, "ibv_create_qp");
  report_.call(1, "ibv_create_qp", now_ns() - start, "RC QP 0x%06x", qp_->qp_num);

  own_.qpn = qp_->qp_num;
  own_.rkey = mr_->rkey;
  own_.buffer = reinterpret_cast<std::uint64_t>(memory_.data());
  remote_ = exchange(own_);
  start = now_ns();
  connect();
  report_.call(1, "ibv_modify_qp", now_ns() - start, "RESET -> INIT -> RTR -> RTS, to QP 0x%06x",
               remote_.qpn);
}

void Side::modify(ibv_qp_attr& attr, ibv_qp_state state, int mask) {
  attr.qp_state = state;
  report_.must(ibv_modify_qp(qp_, &attr, mask | IBV_QP_STATE) == 0, "ibv_modify_qp");
}

void Side::connect() {
  ibv_qp_attr a = {};
  a.port_num = a.ah_attr.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  modify(a, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = remote_.qpn;
  a.ah_attr.is_global = 1;
  a.ah_attr.grh.dgid = remote_.gid;
  a.ah_attr.grh.hop_limit = 64;
  a.min_rnr_timer = 12;
  modify(a, IBV_QPS_RTR,
         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER);
  a.timeout = 14;
  a.retry_cnt = a.rnr_retry = 7;
  modify(a, IBV_QPS_RTS,
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC);
}

Address Side::exchange(const Address& own) {
  Address remote = {};
  report_.must(write(peer_, &own, sizeof own) == sizeof own, "write");
  report_.must(read(peer_, &remote, sizeof remote) == sizeof remote, "the other process ended");
  return remote;
}

void Side::meet() { exchange(own_); }

ibv_wc Side::wait(std::int64_t& at) {
  ibv_wc wc = {};
  int found = 0;
  while ((found = ibv_poll_cq(cq_, 1, &wc)) == 0) {
  }
  at = now_ns();
  report_.must(found == 1, "ibv_poll_cq");
  return wc;
}

ibv_qp_state Side::state() {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  report_.must(ibv_query_qp(qp_, &attr, IBV_QP_STATE, &init) == 0, "ibv_query_qp");
  return attr.qp_state;
}

const char* state_name(ibv_qp_state state) {
  static const char* const kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return state <= IBV_QPS_ERR ? kNames[state] : "unknown";
}

}  // namespace journey
