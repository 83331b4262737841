// Memory regions, completion queues, channels and shared receive queues through the C ABI.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include "verbs/test_device.h"

namespace vrb::verbs {
namespace {

using Objects = DeviceTest;

TEST_F(Objects, RegisteredMemorySaysWhatItIs) {
  EXPECT_EQ(mr_->addr, memory_);
  EXPECT_EQ(mr_->length, sizeof memory_);
  EXPECT_EQ(mr_->pd, pd_);
  EXPECT_EQ(mr_->context, context_);
  EXPECT_NE(mr_->lkey, 0U);
  EXPECT_EQ((ibv_reg_mr)(pd_, memory_, 16, IBV_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ((ibv_reg_mr)(nullptr, memory_, 16, 0), nullptr);
  EXPECT_EQ(ibv_dereg_mr(nullptr), EINVAL);
}

TEST_F(Objects, Reregistration) {
  ibv_pd* other = ibv_alloc_pd(context_);
  ASSERT_NE(other, nullptr);
  const int what = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD;
  ASSERT_EQ(ibv_rereg_mr(mr_, what, other, memory_ + 64, 128, 0), 0);
  EXPECT_EQ(mr_->addr, memory_ + 64);
  EXPECT_EQ(mr_->length, 128U);
  EXPECT_EQ(mr_->pd, other);
  EXPECT_EQ(ibv_rereg_mr(mr_, 64, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(ibv_rereg_mr(mr_, IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0),
            IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(ibv_dealloc_pd(other), EBUSY);
  EXPECT_EQ(ibv_rereg_mr(mr_, IBV_REREG_MR_CHANGE_PD, pd_, nullptr, 0, 0), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(Objects, CompletionQueues) {
  EXPECT_GE(cq_->cqe, 64);
  EXPECT_EQ(ibv_resize_cq(cq_, 256), 0);
  EXPECT_GE(cq_->cqe, 256);
  EXPECT_EQ(ibv_resize_cq(cq_, 0), EINVAL);
  EXPECT_EQ(ibv_create_cq(context_, 0, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_create_cq(context_, 1, nullptr, nullptr, context_->num_comp_vectors), nullptr);
  EXPECT_EQ(ibv_create_cq(context_, 1, nullptr, nullptr, -1), nullptr);
  EXPECT_EQ(ibv_create_cq(context_, 0x7fffffff, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(cq_, 0, &wc), 0);
  EXPECT_EQ(ibv_poll_cq(cq_, 1, &wc), 0);
}

TEST_F(Objects, AnEventNamesItsCq) {
  ibv_comp_channel* channel = ibv_create_comp_channel(context_);
  ASSERT_NE(channel, nullptr);
  int mark = 0;
  ibv_cq* cq = ibv_create_cq(context_, 8, &mark, channel, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), EBUSY);
  ASSERT_EQ(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
  ibv_cq* from = nullptr;
  void* cq_context = nullptr;
  EXPECT_EQ(ibv_get_cq_event(channel, &from, &cq_context), -1);
  EXPECT_EQ(errno, EAGAIN);

  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  std::swap(cq, cq_);
  ibv_qp* qp = self_connected_rc();
  std::swap(cq, cq_);
  ASSERT_NE(qp, nullptr);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
  ASSERT_EQ(fcntl(channel->fd, F_SETFL, 0), 0);
  ASSERT_EQ(ibv_get_cq_event(channel, &from, &cq_context), 0);
  EXPECT_EQ(from, cq);
  EXPECT_EQ(cq_context, &mark);
  ibv_ack_cq_events(cq, 1);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

TEST_F(Objects, SharedReceiveQueues) {
  ibv_srq_init_attr init{.srq_context = this, .attr = {.max_wr = 10, .max_sge = 2, .srq_limit = 0}};
  ibv_srq* srq = ibv_create_srq(pd_, &init);
  ASSERT_NE(srq, nullptr);
  EXPECT_GE(init.attr.max_wr, 10U);
  EXPECT_EQ(srq->srq_context, this);
  ibv_srq_attr attr{};
  attr.srq_limit = 3;
  EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
  ASSERT_EQ(ibv_query_srq(srq, &attr), 0);
  EXPECT_EQ(attr.srq_limit, 3U);
  EXPECT_EQ(attr.max_wr, init.attr.max_wr);
  ibv_recv_wr wr{};
  wr.wr_id = 1;
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);

  ibv_srq_init_attr_ex extended{};
  extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  extended.srq_type = IBV_SRQT_TM;
  extended.pd = pd_;
  EXPECT_EQ(ibv_create_srq_ex(context_, &extended), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

// A QP that meets its error tells the program, and is destroyed only after the acknowledgement.
TEST_F(Objects, AsynchronousEvents) {
  ASSERT_EQ(fcntl(context_->async_fd, F_SETFL, O_NONBLOCK), 0);
  ibv_async_event event;
  EXPECT_EQ(ibv_get_async_event(context_, &event), -1);
  EXPECT_EQ(errno, EAGAIN);
  ibv_srq_init_attr init{.srq_context = nullptr,
                         .attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0}};
  ibv_srq* srq = ibv_create_srq(pd_, &init);
  ASSERT_NE(srq, nullptr);
  ibv_qp_init_attr qp_init = init_attr(IBV_QPT_RC);
  qp_init.srq = srq;
  ibv_qp* qp = ibv_create_qp(pd_, &qp_init);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
  ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, qp);
  ibv_ack_async_event(&event);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

}  // namespace
}  // namespace vrb::verbs
