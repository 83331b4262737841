// Two connected RC QPs, so that the programs of this folder show just their point. Plain verbs; an
// error that none of them is about ends the program with status 2. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace pair {

inline void must(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "cannot go on: %s\n", what);
  std::exit(2);
}

// Prints what was claimed and remembers if it was not so; the program's status is result().
inline int failures = 0;
inline void observe(bool truth, const std::string& text) {
  std::printf("%s %s\n", truth ? "seen:    " : "NOT SEEN:", text.c_str());
  if (!truth) ++failures;
}
inline int result() { return failures == 0 ? 0 : 1; }

// What one end must know of the other.
struct Address {
  ibv_gid gid = {};
  uint32_t qpn = 0, rkey = 0;
  uint64_t buffer = 0;
};

struct Options {
  std::size_t bytes = 4096;
  uint32_t send_wrs = 16;
  uint8_t rnr_retry = 7;  // 7 = for ever
};

class End {
 public:
  explicit End(const Options& options = {}) : options_(options), memory_(options.bytes) {
    ibv_device** devices = ibv_get_device_list(nullptr);
    must(devices != nullptr && devices[0] != nullptr, "there is no RDMA device");
    context_ = ibv_open_device(devices[0]);
    must(context_ != nullptr, "ibv_open_device");
    ibv_free_device_list(devices);
    pd_ = ibv_alloc_pd(context_);
    cq_ = ibv_create_cq(context_, 256, nullptr, nullptr, 0);
    mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(),
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    must(cq_ != nullptr && mr_ != nullptr, "ibv_create_cq, ibv_reg_mr");
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = cq_;
    init.qp_type = IBV_QPT_RC;
    init.cap.max_send_wr = options.send_wrs;
    init.cap.max_recv_wr = 16;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    init.cap.max_inline_data = 64;
    qp_ = ibv_create_qp(pd_, &init);
    must(qp_ != nullptr, "ibv_create_qp");
    send_wrs_ = init.cap.max_send_wr;
    must(ibv_query_gid(context_, 1, 0, &address_.gid) == 0, "ibv_query_gid");
    address_.qpn = qp_->qp_num;
    address_.rkey = mr_->rkey;
    address_.buffer = reinterpret_cast<uint64_t>(memory_.data());
  }
  ~End() {
    ibv_destroy_qp(qp_);
    ibv_dereg_mr(mr_);
    ibv_destroy_cq(cq_);
    ibv_dealloc_pd(pd_);
    ibv_close_device(context_);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  const Address& address() const { return address_; }
  uint32_t send_wrs() const { return send_wrs_; }  // as granted
  char* memory(std::size_t offset = 0) { return memory_.data() + offset; }
  std::string text(std::size_t offset = 0) const { return memory_.data() + offset; }
  void set_text(const std::string& text, std::size_t offset = 0) {
    must(offset + text.size() < memory_.size(), "the text does not fit");
    std::memcpy(memory(offset), text.c_str(), text.size() + 1);
  }

  void connect(const Address& remote) {
    remote_ = remote;
    ibv_qp_attr a = {};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    modify(a, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = remote.qpn;
    a.ah_attr.is_global = 1;
    a.ah_attr.grh.dgid = remote.gid;
    a.ah_attr.grh.hop_limit = 64;
    a.ah_attr.port_num = 1;
    a.min_rnr_timer = 1;
    modify(a, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = 7;
    a.rnr_retry = options_.rnr_retry;
    modify(a, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                  IBV_QP_MAX_QP_RD_ATOMIC);
  }

  void post_recv(uint64_t wr_id, std::size_t offset, uint32_t length) {
    ibv_sge sge = {reinterpret_cast<uint64_t>(memory(offset)), length, mr_->lkey};
    ibv_recv_wr wr = {}, *bad = nullptr;
    wr.wr_id = wr_id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    must(ibv_post_recv(qp_, &wr, &bad) == 0, "ibv_post_recv");
  }

  // Sends `length` bytes from `offset`; WRITEs go to the same offset at the other end. Returns what
  // ibv_post_send returned.
  int post(ibv_wr_opcode opcode, uint64_t wr_id, uint32_t length,
           unsigned flags = IBV_SEND_SIGNALED, std::size_t offset = 0) {
    ibv_sge sge = {reinterpret_cast<uint64_t>(memory(offset)), length, mr_->lkey};
    ibv_send_wr wr = {}, *bad = nullptr;
    wr.wr_id = wr_id;
    wr.opcode = opcode;
    wr.send_flags = flags;
    wr.imm_data = htobe32(static_cast<uint32_t>(wr_id));
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = remote_.buffer + offset;
    wr.wr.rdma.rkey = remote_.rkey;
    return ibv_post_send(qp_, &wr, &bad);
  }

  bool poll(ibv_wc& wc) {
    const int n = ibv_poll_cq(cq_, 1, &wc);
    must(n >= 0, "ibv_poll_cq");
    return n == 1;
  }
  // The next completion of this end, whichever it is.
  ibv_wc wait() {
    ibv_wc wc = {};
    while (!poll(wc)) {
    }
    return wc;
  }

 private:
  void modify(ibv_qp_attr& attr, int mask) {
    must(ibv_modify_qp(qp_, &attr, mask | IBV_QP_STATE) == 0, "ibv_modify_qp");
  }

  Options options_;
  std::vector<char> memory_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qp_ = nullptr;
  uint32_t send_wrs_ = 0;
  Address address_, remote_;
};

inline void connect(End& a, End& b) {
  a.connect(b.address());
  b.connect(a.address());
}

inline bool completed(const ibv_wc& wc, uint64_t wr_id, ibv_wc_opcode opcode) {
  return wc.status == IBV_WC_SUCCESS && wc.wr_id == wr_id && wc.opcode == opcode;
}

}  // namespace pair
