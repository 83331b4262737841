// IBVERBS_1.0: the names that exist in 1.1 too. Their objects and work requests had other layouts,
// the list of devices first of all, so that nothing of 1.1 can serve them; no program built since
// 2008 binds them. All fail in the convention of their call, so that a program of that age sees a
// host on which libibverbs does not work rather than memory that it misreads (docs/abi.md).
// SPDX-License-Identifier: Apache-2.0
#include "verbs/abi.h"
#include "verbs/adapt.h"

#define VRB_OLD(ours, name) asm(".symver " #ours ", " #name "@IBVERBS_1.0");
#define VRB_STUB extern "C" __attribute__((used, visibility("default")))

namespace {
int no() { return vrb::verbs::errno_of(vrb::verbs::not_built("a call of IBVERBS_1.0").error); }
}  // namespace

VRB_STUB int vrb_old_int() { return no(); }
VRB_OLD(vrb_old_int, ibv_query_device)
VRB_OLD(vrb_old_int, ibv_query_port)
VRB_OLD(vrb_old_int, ibv_dealloc_pd)
VRB_OLD(vrb_old_int, ibv_dereg_mr)
VRB_OLD(vrb_old_int, ibv_resize_cq)
VRB_OLD(vrb_old_int, ibv_destroy_cq)
VRB_OLD(vrb_old_int, ibv_modify_srq)
VRB_OLD(vrb_old_int, ibv_query_srq)
VRB_OLD(vrb_old_int, ibv_destroy_srq)
VRB_OLD(vrb_old_int, ibv_modify_qp)
VRB_OLD(vrb_old_int, ibv_query_qp)
VRB_OLD(vrb_old_int, ibv_destroy_qp)
VRB_OLD(vrb_old_int, ibv_destroy_ah)
VRB_OLD(vrb_old_int, ibv_attach_mcast)
VRB_OLD(vrb_old_int, ibv_detach_mcast)

VRB_STUB int vrb_old_minus_one() { return no(), -1; }
VRB_OLD(vrb_old_minus_one, ibv_close_device)
VRB_OLD(vrb_old_minus_one, ibv_query_gid)
VRB_OLD(vrb_old_minus_one, ibv_query_pkey)
VRB_OLD(vrb_old_minus_one, ibv_get_async_event)
VRB_OLD(vrb_old_minus_one, ibv_get_cq_event)

VRB_STUB void* vrb_old_pointer() { return no(), nullptr; }
VRB_OLD(vrb_old_pointer, ibv_get_device_list)
VRB_OLD(vrb_old_pointer, ibv_get_device_name)
VRB_OLD(vrb_old_pointer, ibv_open_device)
VRB_OLD(vrb_old_pointer, ibv_alloc_pd)
VRB_OLD(vrb_old_pointer, ibv_reg_mr)
VRB_OLD(vrb_old_pointer, ibv_create_cq)
VRB_OLD(vrb_old_pointer, ibv_create_srq)
VRB_OLD(vrb_old_pointer, ibv_create_qp)
VRB_OLD(vrb_old_pointer, ibv_create_ah)

VRB_STUB uint64_t vrb_old_guid() { return 0; }
VRB_OLD(vrb_old_guid, ibv_get_device_guid)

VRB_STUB void vrb_old_nothing() {}
VRB_OLD(vrb_old_nothing, ibv_free_device_list)
VRB_OLD(vrb_old_nothing, ibv_ack_async_event)
VRB_OLD(vrb_old_nothing, ibv_ack_cq_events)
