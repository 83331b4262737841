// What the engine's tests share: a device, a PD, CQs and connected QPs of one process, made by
// api.h alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <vector>

#include "engine/api.h"

namespace vrb::engine {

// Completions come by the poller, or by the service thread at the latest: polls until `count` are
// there. ctest's limit is the only one.
inline std::vector<nic::Completion> poll_until(Cq* cq, std::size_t count) {
  std::vector<nic::Completion> all;
  while (all.size() < count) {
    nic::Completion one;
    const int n = poll_cq(cq, {&one, 1});
    if (n < 0) break;
    if (n == 1) all.push_back(one);
  }
  return all;
}
inline nic::Completion poll_one(Cq* cq) { return poll_until(cq, 1).front(); }
inline bool empty(Cq* cq) {
  nic::Completion one;
  return poll_cq(cq, {&one, 1}) == 0;
}

struct TestNic {
  Context* context = *open_device(nullptr);
  Pd* pd = *alloc_pd(context);
  std::vector<std::byte> memory = std::vector<std::byte>(1 << 20);
  MrInfo mr =
      *reg_mr(pd, memory.data(), memory.size(), reinterpret_cast<std::uint64_t>(memory.data()), 15);

  std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(memory.data()) + offset;
  }
  ib::Sge sge(std::size_t offset, std::uint32_t length) const {
    return {at(offset), length, mr.lkey};
  }
  ~TestNic() {
    EXPECT_TRUE(dereg_mr(mr.mr));
    EXPECT_TRUE(dealloc_pd(pd));
    EXPECT_TRUE(close_device(context));
    free_context(context);
  }
};

struct TestQp {
  TestNic& nic;
  Channel* channel;
  Cq* cq;
  Qp* qp;

  TestQp(TestNic& n, ib::QpType type, std::uint32_t depth = 16, Srq* srq = nullptr,
         std::uint32_t cq_entries = 0)
      : nic(n) {
    channel = *create_channel(n.context);
    cq = *create_cq(n.context, cq_entries == 0 ? 4 * depth : cq_entries, channel, this);
    QpInit init;
    init.type = type;
    init.send_cq = init.recv_cq = cq;
    init.srq = srq;
    init.cap = {depth, depth, 4, 4, 256};
    init.handle = this;
    qp = *create_qp(n.pd, init);
  }
  ~TestQp() {
    EXPECT_TRUE(destroy_qp(qp));
    EXPECT_TRUE(destroy_cq(cq));
    EXPECT_TRUE(destroy_channel(channel));
  }
  TestQp(const TestQp&) = delete;
  TestQp& operator=(const TestQp&) = delete;

  void to_init(std::uint32_t access = 14) {
    nic::QpAttr attr;
    attr.state = ib::QpState::Init;
    attr.port = 1;
    attr.access = access;
    attr.qkey = 0x1234;
    const std::uint32_t last = type() == ib::QpType::Ud ? nic::kMaskQkey : nic::kMaskAccess;
    ASSERT_TRUE(modify_qp(qp, attr, nic::kMaskState | nic::kMaskPkeyIndex | nic::kMaskPort | last));
  }
  void to_rtr(ib::Qpn remote, std::uint8_t min_rnr_timer = 1) {
    nic::QpAttr attr;
    attr.state = ib::QpState::Rtr;
    attr.path_mtu = 3;
    attr.dest_qpn = remote;
    attr.min_rnr_timer = min_rnr_timer;
    attr.max_dest_rd_atomic = 16;
    attr.av.port = 1;
    std::uint32_t mask = nic::kMaskState;
    if (type() != ib::QpType::Ud)
      mask |= nic::kMaskAv | nic::kMaskPathMtu | nic::kMaskDestQpn | nic::kMaskRqPsn;
    if (type() == ib::QpType::Rc) mask |= nic::kMaskMaxDestRdAtomic | nic::kMaskMinRnrTimer;
    ASSERT_TRUE(modify_qp(qp, attr, mask));
  }
  void to_rts(std::uint8_t rnr_retry = 7, std::uint8_t timeout = 14, std::uint8_t retry_cnt = 7) {
    nic::QpAttr attr;
    attr.state = ib::QpState::Rts;
    attr.timeout = timeout;
    attr.retry_cnt = retry_cnt;
    attr.rnr_retry = rnr_retry;
    attr.max_rd_atomic = 16;
    std::uint32_t mask = nic::kMaskState | nic::kMaskSqPsn;
    if (type() == ib::QpType::Rc) {
      mask |= nic::kMaskTimeout | nic::kMaskRetryCnt | nic::kMaskRnrRetry | nic::kMaskMaxRdAtomic;
    }
    ASSERT_TRUE(modify_qp(qp, attr, mask));
  }
  ib::QpType type() const {
    nic::QpAttr attr;
    QpInit init;
    query_qp(qp, attr, init);
    return init.type;
  }

  ib::Result<void> send(ib::Opcode opcode, std::vector<ib::Sge> sges, std::uint64_t remote = 0,
                        std::uint32_t rkey = 0, std::uint8_t flags = ib::kSendSignaled,
                        std::uint64_t compare = 0, std::uint64_t swap = 0) {
    queue::SendRequest r;
    r.wr_id = next_id++;
    r.opcode = opcode;
    r.flags = flags;
    r.imm = 0x01020304;
    r.remote_addr = remote;
    r.rkey = rkey;
    r.compare_add = compare;
    r.swap = swap;
    r.sges = sges;
    return post_send(qp, r);
  }
  ib::Result<void> recv(std::vector<ib::Sge> sges, std::uint64_t wr_id) {
    return post_recv(qp, {wr_id, sges});
  }
  bool event_waiting() const {
    pollfd p{channel_fd(channel), POLLIN, 0};
    return poll(&p, 1, 0) == 1;
  }

  std::uint64_t next_id = 100;
};

inline ib::QpState state_of(const TestQp& a) {
  nic::QpAttr attr;
  QpInit init;
  query_qp(a.qp, attr, init);
  return attr.state;
}

inline void connect(TestQp& a, TestQp& b, std::uint8_t rnr_retry = 7, std::uint32_t access = 14) {
  a.to_init(access);
  b.to_init(access);
  a.to_rtr(qpn(b.qp));
  b.to_rtr(qpn(a.qp));
  a.to_rts(rnr_retry);
  b.to_rts(rnr_retry);
}

}  // namespace vrb::engine
