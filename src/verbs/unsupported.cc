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

#define VRB_OLD_INTS(X)                                                                         \
  X(dealloc_pd)                                                                                 \
  X(rereg_mr)                                                                                   \
  X(dereg_mr)                                                                                   \
  X(resize_cq) X(destroy_cq) X(modify_srq) X(query_srq) X(destroy_srq) X(query_qp) X(modify_qp) \
      X(destroy_qp) X(destroy_ah) X(attach_mcast) X(detach_mcast)
#define VRB_OLD_OTHERS(X) \
  X(query_device)         \
  X(query_port)           \
  X(alloc_pd)             \
  X(reg_mr) X(create_cq) X(cq_event) X(create_srq) X(create_qp) X(create_ah) X(async_event)
#define VRB_ENTRIES(X)                                                                           \
  X(query_port)                                                                                  \
  X(advise_mr)                                                                                   \
  X(alloc_null_mr)                                                                               \
  X(read_counters) X(attach_counters_point_flow) X(create_counters) X(destroy_counters)          \
      X(reg_dm_mr) X(alloc_dm) X(free_dm) X(modify_flow_action_esp) X(destroy_flow_action)       \
          X(create_flow_action_esp) X(modify_qp_rate_limit) X(alloc_parent_domain) X(dealloc_td) \
              X(alloc_td) X(modify_cq) X(destroy_rwq_ind_table) X(create_rwq_ind_table)          \
                  X(destroy_wq) X(modify_wq) X(create_wq) X(query_rt_values) X(create_cq_ex)     \
                      X(query_device_ex) X(ABI_placeholder2)                 \
                          X(ABI_placeholder1) X(open_qp) X(create_qp_ex)      \
                              X(get_srq_num) X(create_srq_ex) X(open_xrcd) X(close_xrcd)

void fill_ops(ibv_context_ops& ops) {
#define VRB_X(entry) ops._compat_##entry = refuse_old_int;
  VRB_OLD_INTS(VRB_X)
#undef VRB_X
#define VRB_X(entry) refuse<"ibv_" #entry>(ops._compat_##entry);
  VRB_OLD_OTHERS(VRB_X)
#undef VRB_X
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
  fill_ops(context.context.ops);
#define VRB_X(entry) refuse<"ibv_" #entry>(context.entry);
  VRB_ENTRIES(VRB_X)
#undef VRB_X
  refuse<"ibv_create_flow">(context.ibv_create_flow);
  refuse<"ibv_destroy_flow">(context.ibv_destroy_flow);
  context.post_srq_ops = refuse_post<"ibv_post_srq_ops", ibv_srq, ibv_ops_wr>;
}

}  // namespace vrb::verbs
