// SPDX-License-Identifier: Apache-2.0
#include "verbs/context_table.h"

#include "verbs/objects.h"
#include "verbs/port.h"
#include "verbs/unsupported.h"

namespace vrb::verbs {
namespace {

// Programs that are older than ibv_port_attr's last fields come here.
int old_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attr) {
  return (ibv_query_port)(context, port, attr);
}

}  // namespace

void fill_tables(verbs_context& table) {
  fill_unsupported(table);
  table.query_port = query_port;
  table.query_device_ex = query_device_ex;
  table.create_qp_ex = create_qp_ex;
  table.create_srq_ex = create_srq_ex;

  ibv_context_ops& ops = table.context.ops;
  ops._compat_query_device = ibv_query_device;
  ops._compat_query_port = old_query_port;
  ops.post_send = post_send;
  ops.post_recv = post_recv;
  ops.post_srq_recv = post_srq_recv;
  ops.poll_cq = poll_cq;
  ops.req_notify_cq = req_notify_cq;
}

VerbsContext::VerbsContext() : verbs_context{} {
  fill_tables(*this);
  sz = sizeof(verbs_context);
  context.device = &the_device();
  context.cmd_fd = -1;
  context.num_comp_vectors = 1;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
}

}  // namespace vrb::verbs
