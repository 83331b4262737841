// Queue pairs and posting through the C ABI: what is written back, which request is the bad one,
// what a completion says.
// SPDX-License-Identifier: Apache-2.0
#include "verbs/test_device.h"

namespace vrb::verbs {
namespace {

using Qp = DeviceTest;

TEST_F(Qp, CreateWritesBackWhatWasGranted) {
  ibv_qp_init_attr init = init_attr(IBV_QPT_RC);
  ibv_qp* qp = ibv_create_qp(pd_, &init);
  ASSERT_NE(qp, nullptr);
  EXPECT_GE(init.cap.max_send_wr, 8U);
  EXPECT_GE(init.cap.max_inline_data, 64U);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  EXPECT_EQ(qp->qp_type, IBV_QPT_RC);
  EXPECT_EQ(qp->qp_context, this);
  EXPECT_EQ(qp->pd, pd_);
  EXPECT_EQ(qp->send_cq, cq_);
  EXPECT_GT(qp->qp_num, 1U);
  ibv_qp_attr attr;
  ibv_qp_init_attr found;
  ASSERT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &found), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RESET);
  EXPECT_EQ(std::memcmp(&found.cap, &init.cap, sizeof init.cap), 0);
  EXPECT_EQ(found.sq_sig_all, 1);
  EXPECT_EQ(found.qp_context, this);
  EXPECT_EQ(ibv_query_qp(qp, &attr, 0, nullptr), EINVAL);
  EXPECT_EQ(ibv_destroy_cq(cq_), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(Qp, Refusals) {
  ibv_qp_init_attr init = init_attr(IBV_QPT_RAW_PACKET);
  EXPECT_EQ(ibv_create_qp(pd_, &init), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  init = init_attr(static_cast<ibv_qp_type>(7));
  EXPECT_EQ(ibv_create_qp(pd_, &init), nullptr);
  EXPECT_EQ(errno, EINVAL);
  init = init_attr(IBV_QPT_UD);
  init.cap.max_send_wr = 0xffffffff;
  EXPECT_EQ(ibv_create_qp(pd_, &init), nullptr);
  EXPECT_EQ(errno, EINVAL);
  init = init_attr(IBV_QPT_RC);
  init.recv_cq = nullptr;
  EXPECT_EQ(ibv_create_qp(pd_, &init), nullptr);
  EXPECT_EQ(ibv_create_qp(nullptr, &init), nullptr);
  EXPECT_EQ(ibv_destroy_qp(nullptr), EINVAL);
}

TEST_F(Qp, CreateExtendedTakesWhatIsPlain) {
  ibv_qp_init_attr_ex init{};
  const ibv_qp_init_attr plain = init_attr(IBV_QPT_UD);
  std::memcpy(static_cast<void*>(&init), &plain, offsetof(ibv_qp_init_attr_ex, comp_mask));
  init.pd = pd_;
  for (const int mask : {0, int{IBV_QP_INIT_ATTR_CREATE_FLAGS}}) {
    init.comp_mask = static_cast<std::uint32_t>(IBV_QP_INIT_ATTR_PD | mask);
    ibv_qp* qp = ibv_create_qp_ex(context_, &init);
    ASSERT_NE(qp, nullptr) << mask;
    EXPECT_EQ(ibv_qp_to_qp_ex(qp), nullptr);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  }
  init.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
  EXPECT_EQ(ibv_create_qp_ex(context_, &init), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  EXPECT_EQ(ibv_create_qp_ex(context_, &init), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(Qp, QueryGivesBackWhatModifyTook) {
  ibv_qp* qp = self_connected_rc();
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(qp->state, IBV_QPS_RTS);
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(qp, &attr, 0x1ffffff, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(attr.dest_qp_num, qp->qp_num);
  EXPECT_EQ(attr.min_rnr_timer, 12);
  EXPECT_EQ(attr.timeout, 14);
  EXPECT_EQ(attr.retry_cnt, 7);
  EXPECT_EQ(attr.qp_access_flags, static_cast<unsigned>(kAll));
  EXPECT_EQ(attr.ah_attr.port_num, 1);
  attr = {};
  attr.qp_state = IBV_QPS_RESET;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

// Numbers too large for our fields must not come out as small, good ones.
TEST_F(Qp, LargeValuesAreNotCutOff) {
  ibv_qp_init_attr init = init_attr(IBV_QPT_RC);
  ibv_qp* qp = ibv_create_qp(pd_, &init);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr attr{};
  const std::uint32_t state = 0x100 + IBV_QPS_INIT;
  std::memcpy(&attr.qp_state, &state, sizeof state);
  attr.port_num = 1;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, kInit), EINVAL);
  EXPECT_EQ(ibv_modify_qp(qp, nullptr, kInit), EINVAL);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(Qp, PostingStopsAtTheBadRequest) {
  ibv_qp* qp = self_connected_rc();
  ASSERT_NE(qp, nullptr);
  ibv_sge list[] = {sge(0, 8)};
  ibv_send_wr wr[3] = {};
  for (std::size_t i = 0; i < 3; ++i) {
    wr[i].wr_id = i;
    wr[i].next = i < 2 ? &wr[i + 1] : nullptr;
    wr[i].sg_list = list;
    wr[i].num_sge = 1;
    wr[i].opcode = IBV_WR_RDMA_WRITE;
    wr[i].wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(memory_ + 4096);
    wr[i].wr.rdma.rkey = mr_->rkey;
  }
  wr[1].num_sge = 1000;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(qp, wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wr[1]);
  const auto done = poll();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].wr_id, 0U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[0].opcode, IBV_WC_RDMA_WRITE);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(cq_, 1, &wc), 0) << "nothing behind the bad request is posted";
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(Qp, PostRefusals) {
  ibv_qp* qp = self_connected_rc();
  ASSERT_NE(qp, nullptr);
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  const auto post = [&](std::uint32_t opcode) {
    std::memcpy(&wr.opcode, &opcode, sizeof opcode);
    bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  };
  EXPECT_EQ(post(IBV_WR_BIND_MW), EOPNOTSUPP);
  EXPECT_EQ(bad, &wr);
  EXPECT_EQ(post(4711), EINVAL);
  wr.num_sge = 1;  // and no list
  EXPECT_EQ(post(IBV_WR_SEND), EINVAL);
  wr.num_sge = -1;
  EXPECT_EQ(post(IBV_WR_SEND), EINVAL);
  EXPECT_EQ(ibv_post_send(qp, &wr, nullptr), EINVAL) << "bad_wr is optional with us";
  ibv_recv_wr recv{};
  recv.num_sge = -1;
  ibv_recv_wr* bad_recv = nullptr;
  EXPECT_EQ(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);
  EXPECT_EQ(bad_recv, &recv);
  EXPECT_EQ(ibv_post_send(qp, nullptr, &bad), 0) << "an empty list";
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(Qp, CompletionsSayWhatHappened) {
  ibv_qp* qp = self_connected_rc();
  ASSERT_NE(qp, nullptr);
  std::strcpy(memory_, "verbena");
  ibv_recv_wr recv{};
  recv.wr_id = 77;
  ibv_recv_wr* bad_recv = nullptr;
  ASSERT_EQ(ibv_post_recv(qp, &recv, &bad_recv), 0);
  ibv_sge from = sge(0, 8);
  ibv_send_wr wr{};
  wr.wr_id = 78;
  wr.sg_list = &from;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.imm_data = 0x11223344;
  wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(memory_ + 4096);
  wr.wr.rdma.rkey = mr_->rkey;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
  const auto done = poll(2);
  ASSERT_EQ(done.size(), 2U);
  for (const ibv_wc& wc : done) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.qp_num, qp->qp_num);
    EXPECT_EQ(wc.slid, 0);
    EXPECT_EQ(wc.pkey_index, 0);
    if (wc.wr_id != 77) continue;
    EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
    EXPECT_EQ(wc.imm_data, 0x11223344U);
    EXPECT_EQ(wc.byte_len, 8U);
  }
  EXPECT_STREQ(memory_ + 4096, "verbena");
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(Qp, MulticastRefusals) {
  ibv_qp_init_attr init = init_attr(IBV_QPT_UD);
  ibv_qp* qp = ibv_create_qp(pd_, &init);
  ASSERT_NE(qp, nullptr);
  union ibv_gid group {};
  EXPECT_EQ(ibv_attach_mcast(qp, nullptr, 0), EINVAL);
  EXPECT_EQ(ibv_attach_mcast(qp, &group, 0), EINVAL) << "not a group";
  group.raw[0] = 0xff;
  EXPECT_EQ(ibv_attach_mcast(qp, &group, 0), 0);
  EXPECT_EQ(ibv_detach_mcast(qp, &group, 0), 0);
  EXPECT_NE(ibv_detach_mcast(qp, &group, 0), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

}  // namespace
}  // namespace vrb::verbs
