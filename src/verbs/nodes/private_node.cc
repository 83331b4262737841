// The private nodes: what rdma-core's providers (libmlx5, libefa ...) import from libibverbs. Half
// of the RDMA tools load some of them with BIND_NOW, so that every name must be there, though no
// provider ever drives our device. The names are those of the newest release; older ones have a
// part of them. All fail politely but the few that programs call (docs/abi.md).
// SPDX-License-Identifier: Apache-2.0
#include "verbs/private_node.h"

#include "verbs/adapt.h"

// Binds one of our functions to a name in all private nodes. The first is Debian 12's.
#define VRB_BIND(ours, name, node) asm(".symver " #ours ", " #name node)
#define VRB_PRIVATE(ours, name)                 \
  VRB_BIND(ours, name, "@@IBVERBS_PRIVATE_34"); \
  VRB_BIND(ours, name, "@IBVERBS_PRIVATE_57");  \
  VRB_BIND(ours, name, "@IBVERBS_PRIVATE_59");  \
  VRB_BIND(ours, name, "@IBVERBS_PRIVATE_64");  \
  VRB_BIND(ours, name, "@IBVERBS_PRIVATE_65");
#define VRB_VARIABLE __attribute__((used, visibility("default")))
#define VRB_STUB extern "C" VRB_VARIABLE

namespace {
int no() { return vrb::verbs::errno_of(vrb::verbs::not_built("a private function").error); }
}  // namespace

VRB_STUB int vrb_private_int() { return no(); }
VRB_PRIVATE(vrb_private_int, execute_ioctl)
VRB_PRIVATE(vrb_private_int, ibv_cmd_advise_mr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_alloc_dm)
VRB_PRIVATE(vrb_private_int, ibv_cmd_alloc_dmah)
VRB_PRIVATE(vrb_private_int, ibv_cmd_alloc_mw)
VRB_PRIVATE(vrb_private_int, ibv_cmd_alloc_pd)
VRB_PRIVATE(vrb_private_int, ibv_cmd_attach_mcast)
VRB_PRIVATE(vrb_private_int, ibv_cmd_close_xrcd)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_ah)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_comp_cntr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_counters)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_cq)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_cq_ex)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_cq_ex2)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_flow)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_flow_action_esp)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_qp)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_qp_ex)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_qp_ex2)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_rwq_ind_table)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_srq)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_srq_ex)
VRB_PRIVATE(vrb_private_int, ibv_cmd_create_wq)
VRB_PRIVATE(vrb_private_int, ibv_cmd_dealloc_mw)
VRB_PRIVATE(vrb_private_int, ibv_cmd_dealloc_pd)
VRB_PRIVATE(vrb_private_int, ibv_cmd_dereg_mr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_destroy_ah)
VRB_PRIVATE(vrb_private_int, ibv_cmd_destroy_comp_cntr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_destroy_counters)
VRB_PRIVATE(vrb_private_int, ibv_cmd_destroy_cq)
VRB_PRIVATE(vrb_private_int, ibv_cmd_destroy_flow)
VRB_PRIVATE(vrb_private_int, ibv_cmd_destroy_flow_action)
VRB_PRIVATE(vrb_private_int, ibv_cmd_destroy_qp)
VRB_PRIVATE(vrb_private_int, ibv_cmd_destroy_rwq_ind_table)
VRB_PRIVATE(vrb_private_int, ibv_cmd_destroy_srq)
VRB_PRIVATE(vrb_private_int, ibv_cmd_destroy_wq)
VRB_PRIVATE(vrb_private_int, ibv_cmd_detach_mcast)
VRB_PRIVATE(vrb_private_int, ibv_cmd_free_dm)
VRB_PRIVATE(vrb_private_int, ibv_cmd_free_dmah)
VRB_PRIVATE(vrb_private_int, ibv_cmd_get_context)
VRB_PRIVATE(vrb_private_int, ibv_cmd_inc_comp_cntr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_inc_err_comp_cntr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_modify_cq)
VRB_PRIVATE(vrb_private_int, ibv_cmd_modify_flow_action_esp)
VRB_PRIVATE(vrb_private_int, ibv_cmd_modify_qp)
VRB_PRIVATE(vrb_private_int, ibv_cmd_modify_qp_ex)
VRB_PRIVATE(vrb_private_int, ibv_cmd_modify_srq)
VRB_PRIVATE(vrb_private_int, ibv_cmd_modify_wq)
VRB_PRIVATE(vrb_private_int, ibv_cmd_open_qp)
VRB_PRIVATE(vrb_private_int, ibv_cmd_open_xrcd)
VRB_PRIVATE(vrb_private_int, ibv_cmd_post_recv)
VRB_PRIVATE(vrb_private_int, ibv_cmd_post_send)
VRB_PRIVATE(vrb_private_int, ibv_cmd_post_srq_recv)
VRB_PRIVATE(vrb_private_int, ibv_cmd_qp_attach_comp_cntr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_query_comp_cntr_caps)
VRB_PRIVATE(vrb_private_int, ibv_cmd_query_context)
VRB_PRIVATE(vrb_private_int, ibv_cmd_query_device_any)
VRB_PRIVATE(vrb_private_int, ibv_cmd_query_mr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_query_port)
VRB_PRIVATE(vrb_private_int, ibv_cmd_query_port_speed)
VRB_PRIVATE(vrb_private_int, ibv_cmd_query_qp)
VRB_PRIVATE(vrb_private_int, ibv_cmd_query_srq)
VRB_PRIVATE(vrb_private_int, ibv_cmd_read_comp_cntr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_read_counters)
VRB_PRIVATE(vrb_private_int, ibv_cmd_read_err_comp_cntr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_reg_dm_mr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_reg_dmabuf_mr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_reg_mr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_reg_mr_ex)
VRB_PRIVATE(vrb_private_int, ibv_cmd_req_notify_cq)
VRB_PRIVATE(vrb_private_int, ibv_cmd_rereg_mr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_resize_cq)
VRB_PRIVATE(vrb_private_int, ibv_cmd_set_comp_cntr)
VRB_PRIVATE(vrb_private_int, ibv_cmd_set_err_comp_cntr)

VRB_STUB int vrb_private_negative() { return -no(); }
VRB_PRIVATE(vrb_private_negative, ibv_cmd_poll_cq)

VRB_STUB int vrb_private_minus_one() { return no(), -1; }
VRB_PRIVATE(vrb_private_minus_one, ibv_cmd_export_dmabuf_fd)
VRB_PRIVATE(vrb_private_minus_one, ibv_read_ibdev_sysfs_file)

VRB_STUB void* vrb_private_object() { return no(), nullptr; }
VRB_PRIVATE(vrb_private_object, _verbs_init_and_alloc_context)
VRB_PRIVATE(vrb_private_object, verbs_open_device)
VRB_PRIVATE(vrb_private_object, ibv_dmabuf_heap_alloc)
VRB_PRIVATE(vrb_private_object, ibv_dmabuf_heap_cc_shared_init)

VRB_STUB unsigned vrb_private_zero() { return 0; }
VRB_PRIVATE(vrb_private_zero, __ioctl_final_num_attrs)

VRB_STUB void vrb_private_nothing() {}
VRB_PRIVATE(vrb_private_nothing, __verbs_log)
VRB_PRIVATE(vrb_private_nothing, verbs_init_cq)
VRB_PRIVATE(vrb_private_nothing, verbs_set_ops)
VRB_PRIVATE(vrb_private_nothing, verbs_uninit_context)
VRB_PRIVATE(vrb_private_nothing, ibv_dmabuf_heap_destroy)
VRB_PRIVATE(vrb_private_nothing, ibv_dmabuf_heap_free)

VRB_STUB const char* vrb_private_text() { return "unknown"; }
VRB_PRIVATE(vrb_private_text, ibv_wr_opcode_str)

// The constructors of the providers call it: each release's under its own name.
VRB_STUB void vrb_register_driver(const void*) {}
asm(".symver vrb_register_driver, verbs_register_driver_34@@IBVERBS_PRIVATE_34\n"
    ".symver vrb_register_driver, verbs_register_driver_57@@IBVERBS_PRIVATE_57\n"
    ".symver vrb_register_driver, verbs_register_driver_59@@IBVERBS_PRIVATE_59\n"
    ".symver vrb_register_driver, verbs_register_driver_64@@IBVERBS_PRIVATE_64\n"
    ".symver vrb_register_driver, verbs_register_driver_65@@IBVERBS_PRIVATE_65\n"
    ".symver vrb_register_driver, ibv_register_driver@IBVERBS_1.1");

VRB_STUB int vrb_query_gid_type(ibv_context* context, uint8_t port, unsigned index, int* type) {
  return vrb::verbs::query_gid_type(context, port, index, type);
}
VRB_PRIVATE(vrb_query_gid_type, ibv_query_gid_type)

// A variable of one byte, not a function.
extern "C" {
VRB_VARIABLE bool vrb_disassociate = false;
}
VRB_PRIVATE(vrb_disassociate, verbs_allow_disassociate_destroy)
