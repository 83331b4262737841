// The tables through which the inline functions of verbs.h call us, and what works in them.
// Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verbs/abi.h"

namespace vrb::verbs {

// Every entry: "not supported" first, then what is built.
void fill_tables(verbs_context& context);

// Entries of struct ibv_context_ops (post.cc, cq.cc).
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad);
int poll_cq(ibv_cq* cq, int entries, ibv_wc* wc);
int req_notify_cq(ibv_cq* cq, int solicited_only);

// Entries of struct verbs_context (qp.cc, srq.cc; see port.h for the others).
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr);

}  // namespace vrb::verbs
