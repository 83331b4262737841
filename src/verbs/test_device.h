// What the tests of the skin share: an open device with a PD, a CQ and memory, and QPs that are
// connected to themselves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "verbs/abi.h"

namespace vrb::verbs {

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    ibv_device** list = ibv_get_device_list(nullptr);
    ASSERT_NE(list, nullptr);
    context_ = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    ASSERT_NE(pd_, nullptr);
    cq_ = ibv_create_cq(context_, 64, this, nullptr, 0);
    ASSERT_NE(cq_, nullptr);
    mr_ = ibv_reg_mr(pd_, memory_, sizeof memory_, kAll);
    ASSERT_NE(mr_, nullptr);
  }

  void TearDown() override {
    EXPECT_TRUE(mr_ == nullptr || ibv_dereg_mr(mr_) == 0);
    EXPECT_TRUE(cq_ == nullptr || ibv_destroy_cq(cq_) == 0);
    EXPECT_TRUE(pd_ == nullptr || ibv_dealloc_pd(pd_) == 0);
    EXPECT_TRUE(context_ == nullptr || ibv_close_device(context_) == 0);
  }

  ibv_qp_init_attr init_attr(ibv_qp_type type) {
    return {.qp_context = this,
            .send_cq = cq_,
            .recv_cq = cq_,
            .srq = nullptr,
            .cap = {.max_send_wr = 8,
                    .max_recv_wr = 8,
                    .max_send_sge = 4,
                    .max_recv_sge = 4,
                    .max_inline_data = 64},
            .qp_type = type,
            .sq_sig_all = 1};
  }

  // In RTS, its own peer. No GRH and no LID: this host.
  ibv_qp* self_connected_rc() {
    ibv_qp_init_attr init = init_attr(IBV_QPT_RC);
    ibv_qp* qp = ibv_create_qp(pd_, &init);
    if (qp == nullptr) return nullptr;
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = kAll;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, kInit), 0);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = qp->qp_num;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 12;
    attr.ah_attr.port_num = 1;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, kRtr), 0);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 1;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, kRts), 0);
    return qp;
  }

  ibv_sge sge(std::size_t offset, std::uint32_t length) {
    return {reinterpret_cast<std::uint64_t>(memory_ + offset), length, mr_->lkey};
  }

  // At least one completion, for at most ten seconds.
  std::vector<ibv_wc> poll(std::size_t wanted = 1) {
    std::vector<ibv_wc> got;
    const timespec pause{0, 100000};
    for (int turn = 0; turn < 100000 && got.size() < wanted; ++turn) {
      ibv_wc wc;
      const int n = ibv_poll_cq(cq_, 1, &wc);
      EXPECT_GE(n, 0);
      if (n == 1) {
        got.push_back(wc);
      } else {
        nanosleep(&pause, nullptr);
      }
    }
    return got;
  }

  static constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  static constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  static constexpr int kRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  static constexpr int kRts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  alignas(4096) char memory_[8192] = {};
};

}  // namespace vrb::verbs
