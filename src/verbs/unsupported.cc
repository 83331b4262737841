// SPDX-License-Identifier: Apache-2.0
#include "verbs/unsupported.h"

#include <algorithm>
#include <type_traits>

#include "verbs/adapt.h"

namespace vrb::verbs {
namespace {

// The name of an entry, as a template argument.
template <std::size_t N>
struct Name {
  char text[N];
  consteval Name(const char (&from)[N]) { std::copy_n(from, N, text); }  // NOLINT: from a literal
};

template <Name kName, class R, class... A>
R unsupported(A...) {
  if constexpr (!std::is_void_v<R>) {
    const int error = errno_of(not_built(kName.text).error);
    if constexpr (std::is_pointer_v<R>) {
      return nullptr;
    } else {
      return error;
    }
  }
}

template <Name kName, class R, class... A>
void refuse(R (*&entry)(A...)) {
  entry = &unsupported<kName, R, A...>;
}

int refuse_poll(ibv_cq*, int, ibv_wc*) { return -errno_of(not_built("ibv_poll_cq").error); }

template <Name kName, class Object, class Wr>
int refuse_post(Object*, Wr* wr, Wr** bad) {
  if (bad != nullptr) *bad = wr;
  return errno_of(not_built(kName.text).error);
}

// Entries of programs older than the library functions of the same names; all are declared as
// void*(*)(void) and stand for functions that return an int, a pointer or nothing.
void* refuse_old_int() {
  return reinterpret_cast<void*>(std::intptr_t{errno_of(not_built("an old entry").error)});
}

void fill_old_ops(ibv_context_ops& ops) {
#define VRB_REFUSE(entry) refuse<"ibv_" #entry>(ops._compat_##entry)
  VRB_REFUSE(query_device);
  VRB_REFUSE(query_port);
  VRB_REFUSE(alloc_pd);
  VRB_REFUSE(reg_mr);
  VRB_REFUSE(create_cq);
  VRB_REFUSE(cq_event);
  VRB_REFUSE(create_srq);
  VRB_REFUSE(create_qp);
  VRB_REFUSE(create_ah);
  VRB_REFUSE(async_event);
#undef VRB_REFUSE
#define VRB_REFUSE(entry) ops._compat_##entry = refuse_old_int
  VRB_REFUSE(dealloc_pd);
  VRB_REFUSE(rereg_mr);
  VRB_REFUSE(dereg_mr);
  VRB_REFUSE(resize_cq);
  VRB_REFUSE(destroy_cq);
  VRB_REFUSE(modify_srq);
  VRB_REFUSE(query_srq);
  VRB_REFUSE(destroy_srq);
  VRB_REFUSE(query_qp);
  VRB_REFUSE(modify_qp);
  VRB_REFUSE(destroy_qp);
  VRB_REFUSE(destroy_ah);
  VRB_REFUSE(attach_mcast);
  VRB_REFUSE(detach_mcast);
#undef VRB_REFUSE
}

void fill_ops(ibv_context_ops& ops) {
  refuse<"ibv_alloc_mw">(ops.alloc_mw);
  refuse<"ibv_bind_mw">(ops.bind_mw);
  refuse<"ibv_dealloc_mw">(ops.dealloc_mw);
  refuse<"ibv_req_notify_cq">(ops.req_notify_cq);
  ops.poll_cq = refuse_poll;
  ops.post_srq_recv = refuse_post<"ibv_post_srq_recv", ibv_srq, ibv_recv_wr>;
  ops.post_send = refuse_post<"ibv_post_send", ibv_qp, ibv_send_wr>;
  ops.post_recv = refuse_post<"ibv_post_recv", ibv_qp, ibv_recv_wr>;
}

}  // namespace

void fill_unsupported(verbs_context& context) {
  fill_old_ops(context.context.ops);
  fill_ops(context.context.ops);
#define VRB_REFUSE(entry) refuse<"ibv_" #entry>(context.entry)
  VRB_REFUSE(query_port);
  VRB_REFUSE(advise_mr);
  VRB_REFUSE(alloc_null_mr);
  VRB_REFUSE(read_counters);
  VRB_REFUSE(attach_counters_point_flow);
  VRB_REFUSE(create_counters);
  VRB_REFUSE(destroy_counters);
  VRB_REFUSE(reg_dm_mr);
  VRB_REFUSE(alloc_dm);
  VRB_REFUSE(free_dm);
  VRB_REFUSE(modify_flow_action_esp);
  VRB_REFUSE(destroy_flow_action);
  VRB_REFUSE(create_flow_action_esp);
  VRB_REFUSE(modify_qp_rate_limit);
  VRB_REFUSE(alloc_parent_domain);
  VRB_REFUSE(dealloc_td);
  VRB_REFUSE(alloc_td);
  VRB_REFUSE(modify_cq);
  VRB_REFUSE(destroy_rwq_ind_table);
  VRB_REFUSE(create_rwq_ind_table);
  VRB_REFUSE(destroy_wq);
  VRB_REFUSE(modify_wq);
  VRB_REFUSE(create_wq);
  VRB_REFUSE(query_rt_values);
  VRB_REFUSE(create_cq_ex);
  VRB_REFUSE(query_device_ex);
  VRB_REFUSE(ABI_placeholder2);
  VRB_REFUSE(ABI_placeholder1);
  VRB_REFUSE(open_qp);
  VRB_REFUSE(create_qp_ex);
  VRB_REFUSE(get_srq_num);
  VRB_REFUSE(create_srq_ex);
  VRB_REFUSE(open_xrcd);
  VRB_REFUSE(close_xrcd);
#undef VRB_REFUSE
  refuse<"ibv_create_flow">(context.ibv_create_flow);
  refuse<"ibv_destroy_flow">(context.ibv_destroy_flow);
  context.post_srq_ops = refuse_post<"ibv_post_srq_ops", ibv_srq, ibv_ops_wr>;
}

}  // namespace vrb::verbs
