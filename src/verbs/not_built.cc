// Functions that answer EOPNOTSUPP, each in its own convention: sharing of objects between
// processes, dma-buf, ECE, extended QPs, and what came with IBVERBS_1.15 to 1.18, for which the
// system's header may be too old: these are declared here.
// SPDX-License-Identifier: Apache-2.0
#include "verbs/abi.h"
#include "verbs/adapt.h"

namespace vrb::verbs {
namespace {

int no(const char* verb) { return errno_of(not_built(verb).error); }
int no_descriptor(const char* verb) { return no(verb), -1; }
std::nullptr_t no_object(const char* verb) { return no(verb), nullptr; }

}  // namespace
}  // namespace vrb::verbs

using namespace vrb::verbs;

ibv_context* ibv_import_device(int) { return no_object("ibv_import_device"); }
ibv_pd* ibv_import_pd(ibv_context*, uint32_t) { return no_object("ibv_import_pd"); }
ibv_mr* ibv_import_mr(ibv_pd*, uint32_t) { return no_object("ibv_import_mr"); }
ibv_dm* ibv_import_dm(ibv_context*, uint32_t) { return no_object("ibv_import_dm"); }
void ibv_unimport_pd(ibv_pd*) {}
void ibv_unimport_mr(ibv_mr*) {}
void ibv_unimport_dm(ibv_dm*) {}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) {
  return no_object("ibv_reg_dmabuf_mr");
}

// No QP of ours has the extended posting functions: create_qp_ex refuses them.
ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp*) { return nullptr; }

int ibv_set_ece(ibv_qp*, ibv_ece*) { return no("ibv_set_ece"); }
int ibv_query_ece(ibv_qp*, ibv_ece*) { return no("ibv_query_ece"); }

struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;
struct ibv_buf;
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

VRB_EXPORT ibv_dmah* ibv_alloc_dmah(ibv_context*, ibv_dmah_init_attr*) {
  return no_object("ibv_alloc_dmah");
}
VRB_EXPORT int ibv_dealloc_dmah(ibv_dmah*) { return no("ibv_dealloc_dmah"); }
VRB_EXPORT ibv_mr* ibv_reg_mr_ex(ibv_pd*, ibv_mr_init_attr*) { return no_object("ibv_reg_mr_ex"); }
VRB_EXPORT int ibv_dm_export_dmabuf_fd(ibv_dm*) { return no_descriptor("ibv_dm_export_dmabuf_fd"); }

VRB_EXPORT void* ibv_alloc_buf(ibv_pd*, size_t, ibv_buf**) { return no_object("ibv_alloc_buf"); }
VRB_EXPORT void ibv_free_buf(ibv_buf*) {}
VRB_EXPORT ibv_mr* ibv_reg_buf_mr(ibv_pd*, ibv_buf*, void*, size_t, int) {
  return no_object("ibv_reg_buf_mr");
}
VRB_EXPORT int ibv_export_buf_dmabuf_fd(ibv_buf*) {
  return no_descriptor("ibv_export_buf_dmabuf_fd");
}

VRB_EXPORT int _ibv_query_comp_cntr_caps(ibv_context*, ibv_comp_cntr_caps*, size_t) {
  return no("ibv_query_comp_cntr_caps");
}
VRB_EXPORT ibv_comp_cntr* ibv_create_comp_cntr(ibv_context*, ibv_comp_cntr_init_attr*) {
  return no_object("ibv_create_comp_cntr");
}
VRB_EXPORT int ibv_destroy_comp_cntr(ibv_comp_cntr*) { return no("ibv_destroy_comp_cntr"); }
VRB_EXPORT int ibv_set_comp_cntr(ibv_comp_cntr*, uint64_t) { return no("ibv_set_comp_cntr"); }
VRB_EXPORT int ibv_set_err_comp_cntr(ibv_comp_cntr*, uint64_t) {
  return no("ibv_set_err_comp_cntr");
}
VRB_EXPORT int ibv_inc_comp_cntr(ibv_comp_cntr*, uint64_t) { return no("ibv_inc_comp_cntr"); }
VRB_EXPORT int ibv_inc_err_comp_cntr(ibv_comp_cntr*, uint64_t) {
  return no("ibv_inc_err_comp_cntr");
}
VRB_EXPORT int ibv_read_comp_cntr(ibv_comp_cntr*, uint64_t*) { return no("ibv_read_comp_cntr"); }
VRB_EXPORT int ibv_read_err_comp_cntr(ibv_comp_cntr*, uint64_t*) {
  return no("ibv_read_err_comp_cntr");
}
VRB_EXPORT int ibv_qp_attach_comp_cntr(ibv_qp*, ibv_comp_cntr*, ibv_qp_attach_comp_cntr_attr*) {
  return no("ibv_qp_attach_comp_cntr");
}
