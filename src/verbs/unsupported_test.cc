// Every entry of the two tables refuses in its own convention before anything is built into them,
// and none is left empty.
// SPDX-License-Identifier: Apache-2.0
#include "verbs/unsupported.h"

#include <gtest/gtest.h>

#include <span>
#include <type_traits>

#include "verbs/context_table.h"
#include "verbs/port.h"

namespace vrb::verbs {
namespace {

template <class R, class... A>
void expect_refused(const char* name, R (*entry)(A...)) {
  SCOPED_TRACE(name);
  ASSERT_NE(entry, nullptr);
  errno = 0;
  if constexpr (std::is_void_v<R>) {
    entry(A{}...);
  } else if constexpr (std::is_pointer_v<R>) {
    EXPECT_EQ(entry(A{}...), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  } else {
    EXPECT_EQ(entry(A{}...), EOPNOTSUPP);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
}

// An old entry that stands for a function which returns an int.
void expect_refused_int(const char* name, void* (*entry)()) {
  SCOPED_TRACE(name);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(reinterpret_cast<std::intptr_t>(entry()), EOPNOTSUPP);
}

class Tables : public testing::Test {
 protected:
  Tables() { fill_unsupported(table_); }
  verbs_context table_{};
};

TEST_F(Tables, OpsOfOldPrograms) {
  const ibv_context_ops& ops = table_.context.ops;
#define VRB_X(entry) expect_refused(#entry, ops._compat_##entry);
  VRB_X(query_device)
  VRB_X(query_port)
  VRB_X(alloc_pd)
  VRB_X(reg_mr)
  VRB_X(create_cq)
  VRB_X(cq_event)
  VRB_X(create_srq)
  VRB_X(create_qp)
  VRB_X(create_ah)
  VRB_X(async_event)
#undef VRB_X
#define VRB_X(entry) expect_refused_int(#entry, ops._compat_##entry);
  VRB_X(dealloc_pd)
  VRB_X(rereg_mr)
  VRB_X(dereg_mr)
  VRB_X(resize_cq)
  VRB_X(destroy_cq)
  VRB_X(modify_srq)
  VRB_X(query_srq)
  VRB_X(destroy_srq)
  VRB_X(query_qp)
  VRB_X(modify_qp)
  VRB_X(destroy_qp)
  VRB_X(destroy_ah)
  VRB_X(attach_mcast)
  VRB_X(detach_mcast)
#undef VRB_X
}

TEST_F(Tables, Ops) {
  const ibv_context_ops& ops = table_.context.ops;
  expect_refused("alloc_mw", ops.alloc_mw);
  expect_refused("bind_mw", ops.bind_mw);
  expect_refused("dealloc_mw", ops.dealloc_mw);
  expect_refused("req_notify_cq", ops.req_notify_cq);
  expect_refused("post_send", ops.post_send);
  expect_refused("post_recv", ops.post_recv);
  expect_refused("post_srq_recv", ops.post_srq_recv);
  EXPECT_EQ(ops.poll_cq(nullptr, 1, nullptr), -EOPNOTSUPP) << "never a number of completions";
}

TEST_F(Tables, VerbsContext) {
#define VRB_X(entry) expect_refused(#entry, table_.entry);
  VRB_X(query_port)
  VRB_X(advise_mr)
  VRB_X(alloc_null_mr)
  VRB_X(read_counters)
  VRB_X(attach_counters_point_flow)
  VRB_X(create_counters)
  VRB_X(destroy_counters)
  VRB_X(reg_dm_mr)
  VRB_X(alloc_dm)
  VRB_X(free_dm)
  VRB_X(modify_flow_action_esp)
  VRB_X(destroy_flow_action)
  VRB_X(create_flow_action_esp)
  VRB_X(modify_qp_rate_limit)
  VRB_X(alloc_parent_domain)
  VRB_X(dealloc_td)
  VRB_X(alloc_td)
  VRB_X(modify_cq)
  VRB_X(post_srq_ops)
  VRB_X(destroy_rwq_ind_table)
  VRB_X(create_rwq_ind_table)
  VRB_X(destroy_wq)
  VRB_X(modify_wq)
  VRB_X(create_wq)
  VRB_X(query_rt_values)
  VRB_X(create_cq_ex)
  VRB_X(query_device_ex)
  VRB_X(ibv_destroy_flow)
  VRB_X(ABI_placeholder2)
  VRB_X(ibv_create_flow)
  VRB_X(ABI_placeholder1)
  VRB_X(open_qp)
  VRB_X(create_qp_ex)
  VRB_X(get_srq_num)
  VRB_X(create_srq_ex)
  VRB_X(open_xrcd)
  VRB_X(close_xrcd)
#undef VRB_X
}

TEST_F(Tables, ARefusedListNamesItsFirstRequest) {
  ibv_send_wr send{};
  ibv_send_wr* bad_send = nullptr;
  EXPECT_EQ(table_.context.ops.post_send(nullptr, &send, &bad_send), EOPNOTSUPP);
  EXPECT_EQ(bad_send, &send);
  ibv_recv_wr recv{};
  ibv_recv_wr* bad_recv = nullptr;
  EXPECT_EQ(table_.context.ops.post_recv(nullptr, &recv, &bad_recv), EOPNOTSUPP);
  EXPECT_EQ(bad_recv, &recv);
}

// Word by word, so that an entry that the lists above miss is seen.
TEST_F(Tables, NoEntryIsEmpty) {
  fill_tables(table_);
  const auto words = [](const void* from, std::size_t bytes) {
    return std::span(static_cast<void* const*>(from), bytes / sizeof(void*));
  };
  for (void* entry : words(&table_.context.ops, sizeof table_.context.ops)) {
    EXPECT_NE(entry, nullptr);
  }
  const auto all = words(&table_, offsetof(verbs_context, _ABI_placeholder3));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i * sizeof(void*) == offsetof(verbs_context, priv)) continue;  // rdma-core's own
    EXPECT_NE(all[i], nullptr) << "entry " << i;
  }
}

TEST_F(Tables, WhatIsBuiltReplacesTheRefusal) {
  const verbs_context refusing = table_;
  fill_tables(table_);
  EXPECT_EQ(table_.query_port, query_port);
  EXPECT_EQ(table_.query_device_ex, query_device_ex);
  EXPECT_EQ(table_.context.ops.poll_cq, poll_cq);
  EXPECT_NE(table_.context.ops.post_send, refusing.context.ops.post_send);
  EXPECT_NE(table_.create_qp_ex, refusing.create_qp_ex);
  EXPECT_EQ(table_.open_xrcd, refusing.open_xrcd);
}

}  // namespace
}  // namespace vrb::verbs
