// The verbs within one process: every operation, its completions and its errors, by the engine's
// own API.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "engine/test_nic.h"
#include "ib/gid.h"

namespace vrb::engine {
namespace {

using ib::Opcode;
using ib::WcStatus;

struct Loopback : ::testing::Test {
  TestNic nic;
  TestQp a{nic, ib::QpType::Rc}, b{nic, ib::QpType::Rc};
  char* bytes() { return reinterpret_cast<char*>(nic.memory.data()); }
};

TEST_F(Loopback, WriteMovesBytesAndTellsOnlyTheSender) {
  connect(a, b);
  std::memcpy(bytes(), "seven steps", 12);
  ASSERT_TRUE(a.send(Opcode::Write, {nic.sge(0, 12)}, nic.at(4096), nic.mr.rkey));
  const auto wc = poll_one(a.cq);
  EXPECT_EQ(wc.status, WcStatus::Success);
  EXPECT_EQ(wc.opcode, ib::WcOpcode::RdmaWrite);
  EXPECT_EQ(wc.wr_id, 100u);
  EXPECT_EQ(wc.qpn, qpn(a.qp).value);
  EXPECT_STREQ(bytes() + 4096, "seven steps");
  EXPECT_TRUE(empty(b.cq));
}

TEST_F(Loopback, WriteWithImmTakesAReceiveAndTellsBoth) {
  connect(a, b);
  ASSERT_TRUE(b.recv({}, 7));
  ASSERT_TRUE(a.send(Opcode::WriteWithImm, {nic.sge(0, 64)}, nic.at(4096), nic.mr.rkey));
  EXPECT_EQ(poll_one(a.cq).status, WcStatus::Success);
  const auto wc = poll_one(b.cq);
  EXPECT_EQ(wc.opcode, ib::WcOpcode::RecvRdmaWithImm);
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.byte_len, 64u);
  EXPECT_EQ(wc.imm, 0x01020304u);
  EXPECT_EQ(wc.wc_flags & ib::kWcWithImm, ib::kWcWithImm);
}

TEST_F(Loopback, SendScattersOverSges) {
  connect(a, b);
  std::memcpy(bytes(), "abcdefghij", 10);
  ASSERT_TRUE(b.recv({nic.sge(4096, 3), nic.sge(8192, 20)}, 8));
  ASSERT_TRUE(a.send(Opcode::Send, {nic.sge(0, 4), nic.sge(4, 6)}));
  EXPECT_EQ(poll_one(a.cq).status, WcStatus::Success);
  EXPECT_EQ(poll_one(b.cq).byte_len, 10u);
  EXPECT_EQ(std::memcmp(bytes() + 4096, "abc", 3), 0);
  EXPECT_EQ(std::memcmp(bytes() + 8192, "defghij", 7), 0);
}

TEST_F(Loopback, ReadAndAtomics) {
  connect(a, b);
  std::memcpy(bytes() + 4096, "remote!!", 8);
  ASSERT_TRUE(a.send(Opcode::Read, {nic.sge(0, 8)}, nic.at(4096), nic.mr.rkey));
  EXPECT_EQ(poll_one(a.cq).opcode, ib::WcOpcode::RdmaRead);
  EXPECT_EQ(std::memcmp(bytes(), "remote!!", 8), 0);
  std::uint64_t value = 40;
  std::memcpy(bytes() + 8192, &value, 8);
  ASSERT_TRUE(
      a.send(Opcode::FetchAdd, {nic.sge(0, 8)}, nic.at(8192), nic.mr.rkey, ib::kSendSignaled, 2));
  EXPECT_EQ(poll_one(a.cq).opcode, ib::WcOpcode::FetchAdd);
  ASSERT_TRUE(a.send(Opcode::CompareSwap, {nic.sge(8, 8)}, nic.at(8192), nic.mr.rkey,
                     ib::kSendSignaled, 42, 7));
  EXPECT_EQ(poll_one(a.cq).byte_len, 8u);
  std::uint64_t before[2];
  std::memcpy(before, bytes(), 16);
  std::memcpy(&value, bytes() + 8192, 8);
  EXPECT_EQ(before[0], 40u);
  EXPECT_EQ(before[1], 42u);
  EXPECT_EQ(value, 7u);
}

TEST_F(Loopback, ReceiverNotReadyWaitsForThePost) {
  connect(a, b);
  ASSERT_TRUE(a.send(Opcode::Send, {nic.sge(0, 16)}));
  EXPECT_TRUE(empty(a.cq));
  ASSERT_TRUE(b.recv({nic.sge(4096, 16)}, 1));
  EXPECT_EQ(poll_one(a.cq).status, WcStatus::Success);
  EXPECT_EQ(poll_one(b.cq).wr_id, 1u);
}

TEST_F(Loopback, ReceiverNotReadyEndsWhenTheRetriesAreUsedUp) {
  connect(a, b, 2);
  ASSERT_TRUE(a.send(Opcode::Send, {nic.sge(0, 16)}));
  EXPECT_EQ(poll_one(a.cq).status, WcStatus::RnrRetryExcErr);
  EXPECT_EQ(qp_state(a.qp), ib::QpState::Err);
}

TEST_F(Loopback, WrongKeyHurtsBothSides) {
  connect(a, b);
  ASSERT_TRUE(b.recv({nic.sge(4096, 16)}, 1));
  ASSERT_TRUE(a.send(Opcode::Write, {nic.sge(0, 16)}, nic.at(4096), nic.mr.rkey + 1));
  const auto wc = poll_one(a.cq);
  EXPECT_EQ(wc.status, WcStatus::RemAccessErr);
  EXPECT_EQ(wc.vendor_err, static_cast<std::uint32_t>(ib::CauseCode::KeyUnknown));
  EXPECT_EQ(qp_state(a.qp), ib::QpState::Err);
  EXPECT_EQ(poll_one(b.cq).status, WcStatus::WrFlushErr);
  const auto event = get_async_event(nic.context);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, ib::EventType::QpAccessErr);
  EXPECT_EQ(event->element, &b);
  ack_async_event(*event);
}

TEST_F(Loopback, ReceiveBufferTooSmall) {
  connect(a, b);
  ASSERT_TRUE(b.recv({nic.sge(4096, 8)}, 1));
  ASSERT_TRUE(b.recv({nic.sge(4096, 8)}, 2));
  ASSERT_TRUE(a.send(Opcode::Send, {nic.sge(0, 16)}));
  EXPECT_EQ(poll_one(a.cq).status, WcStatus::RemInvReqErr);
  const auto received = poll_until(b.cq, 2);
  EXPECT_EQ(received[0].status, WcStatus::LocLenErr);
  EXPECT_EQ(received[0].wr_id, 1u);
  EXPECT_EQ(received[1].status, WcStatus::WrFlushErr);
  EXPECT_EQ(received[1].wr_id, 2u);
}

TEST_F(Loopback, UnsignalledSendsKeepTheirSlots) {
  connect(a, b);
  for (int i = 0; i < 16; ++i)
    ASSERT_TRUE(a.send(Opcode::Write, {nic.sge(0, 8)}, nic.at(4096), nic.mr.rkey, 0));
  const auto full = a.send(Opcode::Write, {nic.sge(0, 8)}, nic.at(4096), nic.mr.rkey);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().errc, ib::Errc::NoMemory);
  EXPECT_TRUE(empty(a.cq));
}

TEST_F(Loopback, EventsFollowTheArming) {
  connect(a, b);
  ASSERT_TRUE(req_notify(b.cq, true));
  ASSERT_TRUE(b.recv({nic.sge(4096, 16)}, 1));
  ASSERT_TRUE(b.recv({nic.sge(4096, 16)}, 2));
  ASSERT_TRUE(a.send(Opcode::Send, {nic.sge(0, 16)}));
  EXPECT_EQ(poll_one(a.cq).status, WcStatus::Success);
  EXPECT_FALSE(b.event_waiting());
  ASSERT_TRUE(a.send(Opcode::Send, {nic.sge(0, 16)}, 0, 0, ib::kSendSignaled | ib::kSendSolicited));
  const auto handle = get_cq_event(b.channel);
  ASSERT_TRUE(handle);
  EXPECT_EQ(*handle, &b);
  ack_cq_events(b.cq, 1);
  EXPECT_EQ(poll_until(b.cq, 2)[1].wr_id, 2u);
}

TEST_F(Loopback, ErrorStateFlushesInOrder) {
  connect(a, b);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(b.recv({nic.sge(4096, 16)}, i));
  ASSERT_TRUE(a.send(Opcode::Send, {nic.sge(0, 16)}));
  EXPECT_EQ(poll_one(a.cq).status, WcStatus::Success);
  nic::QpAttr attr;
  attr.state = ib::QpState::Err;
  ASSERT_TRUE(modify_qp(b.qp, attr, nic::kMaskState));
  ASSERT_TRUE(b.recv({nic.sge(4096, 16)}, 4));
  const auto all = poll_until(b.cq, 5);
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(all[i].wr_id, i);
    EXPECT_EQ(all[i].status, i == 0 ? WcStatus::Success : WcStatus::WrFlushErr);
  }
}

// A30: the error state comes with the completion that tells of it, and RESET ends it.
TEST_F(Loopback, AnErrorIsThereWithItsCompletionAndGoneWithReset) {
  connect(a, b);
  for (int round = 0; round < 200; ++round) {
    ASSERT_TRUE(b.recv({nic.sge(0, 4)}, 1));
    ASSERT_TRUE(a.send(Opcode::Send, {nic.sge(64, 8)}));  // too long
    EXPECT_EQ(poll_one(b.cq).status, WcStatus::LocLenErr);
    EXPECT_EQ(state_of(b), ib::QpState::Err);
    EXPECT_EQ(poll_one(a.cq).status, WcStatus::RemInvReqErr);
    EXPECT_EQ(state_of(a), ib::QpState::Err);
    nic::QpAttr attr;
    attr.state = ib::QpState::Reset;
    ASSERT_TRUE(modify_qp(a.qp, attr, nic::kMaskState));
    ASSERT_TRUE(modify_qp(b.qp, attr, nic::kMaskState));
    connect(a, b);
    ASSERT_TRUE(b.recv({nic.sge(0, 8)}, 2));
    ASSERT_TRUE(a.send(Opcode::Send, {nic.sge(64, 8)}));
    ASSERT_EQ(poll_one(b.cq).status, WcStatus::Success);
    ASSERT_EQ(poll_one(a.cq).status, WcStatus::Success);
    ASSERT_EQ(state_of(b), ib::QpState::Rts);
  }
}

TEST_F(Loopback, PeerThatIsNotThereEndsInRetryExceeded) {
  a.to_init();
  a.to_rtr(ib::Qpn{(qpn(a.qp).value & ~0x3fffU) | ((qpn(a.qp).value + 77) & 0x3fff)});
  a.to_rts(7, 10, 1);
  ASSERT_TRUE(a.send(Opcode::Write, {nic.sge(0, 16)}, nic.at(4096), nic.mr.rkey));
  EXPECT_EQ(poll_one(a.cq).status, WcStatus::RetryExcErr);
}

TEST_F(Loopback, LongMessagesGoInSlices) {
  connect(a, b);
  std::vector<char> large(8 << 20);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7);
  std::vector<char> target(large.size());
  const auto from =
      *reg_mr(nic.pd, large.data(), large.size(), reinterpret_cast<std::uint64_t>(large.data()), 1);
  const auto to = *reg_mr(nic.pd, target.data(), target.size(),
                          reinterpret_cast<std::uint64_t>(target.data()), 3);
  ASSERT_TRUE(a.send(Opcode::Write,
                     {{reinterpret_cast<std::uint64_t>(large.data()), 8 << 20, from.lkey}},
                     reinterpret_cast<std::uint64_t>(target.data()), to.rkey));
  EXPECT_EQ(poll_one(a.cq).status, WcStatus::Success);
  EXPECT_EQ(large, target);
  ASSERT_TRUE(dereg_mr(from.mr));
  ASSERT_TRUE(dereg_mr(to.mr));
}

TEST_F(Loopback, ReregistrationKeepsTheKeysAndChangesTheirMeaning) {
  connect(a, b);
  std::vector<char> other(64, 'o');
  const auto addr = reinterpret_cast<std::uint64_t>(other.data());
  const auto mr = *reg_mr(nic.pd, other.data(), 64, addr, 3);
  const auto again = *rereg_mr(mr.mr, 4, nullptr, nullptr, 0, 1);
  EXPECT_EQ(again.rkey, mr.rkey);
  ASSERT_TRUE(a.send(Opcode::Write, {nic.sge(0, 8)}, addr, mr.rkey));
  const auto wc = poll_one(a.cq);
  EXPECT_EQ(wc.status, WcStatus::RemAccessErr);
  EXPECT_EQ(wc.vendor_err, static_cast<std::uint32_t>(ib::CauseCode::KeyAccess));
  EXPECT_EQ(other[0], 'o');
  ASSERT_TRUE(dereg_mr(mr.mr));
}

TEST_F(Loopback, QpConnectedToItself) {
  a.to_init();
  a.to_rtr(qpn(a.qp));
  a.to_rts();
  ASSERT_TRUE(a.recv({nic.sge(4096, 16)}, 1));
  ASSERT_TRUE(a.send(Opcode::Send, {nic.sge(0, 16)}));
  const auto both = poll_until(a.cq, 2);
  EXPECT_EQ(both[0].status, WcStatus::Success);
  EXPECT_EQ(both[1].status, WcStatus::Success);
}

TEST_F(Loopback, ResizeKeepsCompletions) {
  connect(a, b);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(b.recv({nic.sge(4096, 16)}, i));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(a.send(Opcode::Send, {nic.sge(0, 16)}));
  ASSERT_TRUE(resize_cq(b.cq, 1000));
  EXPECT_EQ(cq_capacity(b.cq), 1000u);
  EXPECT_EQ(poll_until(b.cq, 3)[2].wr_id, 2u);
  EXPECT_FALSE(resize_cq(b.cq, 0));
}

// IBTA 11.6.3.1: the CQ is in error, and so is every QP whose completions may be lost.
TEST(LoopbackOverrun, OfACqEndsTheQpsThatUseIt) {
  TestNic nic;
  TestQp sender(nic, ib::QpType::Rc, 16, nullptr, 4);
  TestQp receiver(nic, ib::QpType::Rc);
  connect(sender, receiver);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(sender.send(ib::Opcode::Write, {nic.sge(0, 8)}, nic.at(64), nic.mr.rkey));
  }
  const auto first = get_async_event(nic.context);  // the device's fd blocks
  ASSERT_TRUE(first);
  EXPECT_EQ(first->type, ib::EventType::CqErr);
  ack_async_event(*first);
  const auto second = get_async_event(nic.context);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->type, ib::EventType::QpFatal);
  ack_async_event(*second);
  nic::QpAttr attr;
  QpInit init;
  query_qp(sender.qp, attr, init);
  EXPECT_EQ(attr.state, ib::QpState::Err);
  EXPECT_EQ(poll_until(sender.cq, 4).size(), 4u);
  EXPECT_TRUE(empty(sender.cq));
}

TEST(LoopbackUd, DatagramBringsItsHeader) {
  TestNic nic;
  TestQp a(nic, ib::QpType::Ud), b(nic, ib::QpType::Ud);
  for (TestQp* q : {&a, &b}) {
    q->to_init();
    q->to_rtr({});
    q->to_rts();
  }
  nic::AddressVector av;
  av.port = 1;
  EXPECT_FALSE(create_ah(nic.pd, av));
  av.has_grh = true;
  av.dgid = port_facts().gids[0].gid;
  Ah* ah = *create_ah(nic.pd, av);
  ASSERT_TRUE(b.recv({nic.sge(4096, 100)}, 5));
  std::memcpy(nic.memory.data(), "datagram", 8);
  queue::SendRequest r;
  const ib::Sge sge = nic.sge(0, 8);
  r.opcode = Opcode::Send;
  r.flags = ib::kSendSignaled;
  r.ah = ah;
  r.remote_qpn = qpn(b.qp).value;
  r.remote_qkey = 0x1234;
  r.sges = {&sge, 1};
  ASSERT_TRUE(post_send(a.qp, r));
  EXPECT_EQ(poll_one(a.cq).status, WcStatus::Success);
  const auto wc = poll_one(b.cq);
  EXPECT_EQ(wc.byte_len, 48u);
  EXPECT_EQ(wc.src_qp, qpn(a.qp).value);
  const bool ipv4 = ib::is_v4_mapped(av.dgid);
  EXPECT_EQ(wc.wc_flags, ib::kWcGrh);
  EXPECT_EQ(wc.sl, ipv4 ? 10 : 9);
  EXPECT_EQ(std::memcmp(nic.memory.data() + 4096 + 40, "datagram", 8), 0);
  r.remote_qkey = 0x9999;  // a wrong Q_Key: dropped without a word
  ASSERT_TRUE(b.recv({nic.sge(4096, 100)}, 6));
  ASSERT_TRUE(post_send(a.qp, r));
  EXPECT_EQ(poll_one(a.cq).status, WcStatus::Success);
  EXPECT_TRUE(empty(b.cq));
  ASSERT_TRUE(destroy_ah(ah));
}

// Nobody acknowledges a datagram: a hundred to a process that is not there would not end in time,
// if each of them held the queue up.
TEST(LoopbackUd, NobodyThereHoldsNothingUp) {
  TestNic nic;
  TestQp a(nic, ib::QpType::Ud);
  a.to_init();
  a.to_rtr(ib::Qpn{0});
  a.to_rts();
  nic::AddressVector av;
  av.port = 1;
  av.has_grh = true;
  av.dgid = port_facts().gids[0].gid;
  av.sgid_index = 31;
  EXPECT_FALSE(create_ah(nic.pd, av));  // no such address
  av.sgid_index = 0;
  Ah* ah = *create_ah(nic.pd, av);
  const ib::Sge sge = nic.sge(0, 8);
  queue::SendRequest r;
  r.opcode = Opcode::Send;
  r.flags = ib::kSendSignaled;
  r.ah = ah;
  r.remote_qpn = 1023U << 14 | 77;
  r.remote_qkey = 0x1234;
  r.sges = {&sge, 1};
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(post_send(a.qp, r));
    EXPECT_EQ(poll_one(a.cq).status, WcStatus::Success);
  }
  ASSERT_TRUE(destroy_ah(ah));
}

// As many as the device says, then a refusal (ibv_create_qp(3)).
TEST(LoopbackLimits, AllQpsOfTheDevice) {
  TestNic nic;
  Cq* cq = *create_cq(nic.context, 16, nullptr, nullptr);
  std::vector<Qp*> qps;
  QpInit init;
  init.type = ib::QpType::Rc;
  init.send_cq = init.recv_cq = cq;
  init.cap = {1, 1, 1, 1, 0};
  for (;;) {
    const auto made = create_qp(nic.pd, init);
    if (!made) {
      EXPECT_EQ(made.error().errc, ib::Errc::NoMemory);
      break;
    }
    qps.push_back(*made);
  }
  EXPECT_GE(qps.size(), ib::kMaxQp - 3);  // who holds the first or the last slot has less
  EXPECT_LE(qps.size(), ib::kMaxQp);
  for (Qp* qp : qps) ASSERT_TRUE(destroy_qp(qp));
  ASSERT_TRUE(destroy_cq(cq));
}

TEST(LoopbackSrq, TwoQpsShareOneQueueAndTheLimitIsTold) {
  TestNic nic;
  SrqAttr attr{8, 2, 0};
  Srq* srq = *create_srq(nic.pd, attr, &nic);
  {
    TestQp a(nic, ib::QpType::Rc), b(nic, ib::QpType::Rc), c(nic, ib::QpType::Rc, 16, srq),
        d(nic, ib::QpType::Rc, 16, srq);
    connect(a, c);
    connect(b, d);
    for (std::uint64_t i = 0; i < 4; ++i) {
      const ib::Sge sge = nic.sge(4096 + 64 * i, 64);
      ASSERT_TRUE(post_srq_recv(srq, {i, {&sge, 1}}));
    }
    ASSERT_TRUE(modify_srq(srq, {0, 0, 3}, 2));
    ASSERT_TRUE(a.send(Opcode::Send, {nic.sge(0, 8)}));
    ASSERT_TRUE(b.send(Opcode::Send, {nic.sge(0, 8)}));
    EXPECT_EQ(poll_one(c.cq).wr_id, 0u);
    EXPECT_EQ(poll_one(d.cq).wr_id, 1u);
    const auto event = get_async_event(nic.context);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->type, ib::EventType::SrqLimitReached);
    EXPECT_EQ(event->element, &nic);
    ack_async_event(*event);
    EXPECT_FALSE(destroy_srq(srq));
  }
  ASSERT_TRUE(destroy_srq(srq));
}

}  // namespace
}  // namespace vrb::engine
