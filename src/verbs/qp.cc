// Queue pairs: ibv_create_qp(3), ibv_modify_qp(3), ibv_query_qp(3), ibv_attach_mcast(3).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "verbs/adapt.h"
#include "verbs/context_table.h"
#include "verbs/objects.h"
#include "verbs/qp_attr.h"

namespace vrb::verbs {
namespace {

ib::Result<ib::QpType> to_type(const char* verb, std::uint32_t type) {
  switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
      return static_cast<ib::QpType>(type);
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
    case IBV_QPT_DRIVER:
      return not_built(verb);
    default:
      return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadAttribute, 0, type);
  }
}

ib::Result<ibv_qp*> create_qp(const char* verb, ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (auto ok = all_set(verb, pd, attr); !ok) return base::Unexpected{ok.error()};
  const auto type = to_type(verb, raw(attr->qp_type));
  if (!type) return base::Unexpected{type.error()};
  if (auto ok = all_set(verb, attr->send_cq, attr->recv_cq); !ok) {
    return base::Unexpected{ok.error()};
  }
  auto qp = std::make_unique<VerbsQp>(pd->context);
  engine::QpInit init{.type = *type,
                      .send_cq = ours(attr->send_cq).impl,
                      .recv_cq = ours(attr->recv_cq).impl,
                      .srq = attr->srq != nullptr ? ours(attr->srq).impl : nullptr,
                      .cap = to_cap(attr->cap),
                      .sq_sig_all = attr->sq_sig_all != 0,
                      .handle = static_cast<ibv_qp*>(qp.get())};
  const auto made = engine::create_qp(ours(pd).impl, init);
  if (!made) return base::Unexpected{made.error()};
  attr->cap = from_cap(init.cap);
  qp->impl = *made;
  qp->sq_sig_all = init.sq_sig_all;
  qp->qp_context = attr->qp_context;
  qp->pd = pd;
  qp->send_cq = attr->send_cq;
  qp->recv_cq = attr->recv_cq;
  qp->srq = attr->srq;
  qp->qp_num = engine::qpn(*made).value;
  qp->qp_type = static_cast<ibv_qp_type>(*type);
  return qp.release();
}

void fill_init_attr(const VerbsQp& qp, const nic::QpCap& cap, ibv_qp_init_attr& to) {
  to = {.qp_context = qp.qp_context,
        .send_cq = qp.send_cq,
        .recv_cq = qp.recv_cq,
        .srq = qp.srq,
        .cap = from_cap(cap),
        .qp_type = qp.qp_type,
        .sq_sig_all = qp.sq_sig_all ? 1 : 0};
}

ib::Gid to_gid(const union ibv_gid& from) {
  ib::Gid to;
  std::copy_n(from.raw, to.size(), to.begin());
  return to;
}

}  // namespace

// A mask of PD alone goes from verbs.h straight to ibv_create_qp. Creation flags must be zero.
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  return ptr_ret("ibv_create_qp_ex", [&](const char* verb) -> ib::Result<ibv_qp*> {
    if (auto ok = all_set(verb, context, attr); !ok) return base::Unexpected{ok.error()};
    const std::uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    const bool flags =
        (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attr->create_flags != 0;
    if ((attr->comp_mask & ~known) != 0 || flags) return not_built(verb);
    ibv_pd* pd = (attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0 ? attr->pd : nullptr;
    return create_qp(verb, pd, reinterpret_cast<ibv_qp_init_attr*>(attr));
  });
}

}  // namespace vrb::verbs

using namespace vrb;
using namespace vrb::verbs;

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  return ptr_ret("ibv_create_qp",
                 [&](const char* verb) { return verbs::create_qp(verb, pd, attr); });
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  return int_ret("ibv_modify_qp", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, qp, attr); !ok) return ok;
    const auto bits = static_cast<std::uint32_t>(mask);
    if (auto ok = engine::modify_qp(ours(qp).impl, to_qp_attr(*attr, bits), bits); !ok) return ok;
    qp->state = static_cast<ibv_qp_state>(engine::qp_state(ours(qp).impl));
    return {};
  });
}

// Answers everything, whatever the mask asks for.
int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int, ibv_qp_init_attr* init_attr) {
  return int_ret("ibv_query_qp", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, qp, attr, init_attr); !ok) return ok;
    nic::QpAttr found;
    engine::QpInit init;
    engine::query_qp(ours(qp).impl, found, init);
    found.cap = init.cap;
    *attr = from_qp_attr(found);
    fill_init_attr(ours(qp), init.cap, *init_attr);
    qp->state = attr->qp_state;
    return {};
  });
}

// 0: no promise, since not every tier writes the bytes of a message in ascending order.
int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t) { return 0; }

int ibv_destroy_qp(ibv_qp* qp) {
  return int_ret("ibv_destroy_qp", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, qp); !ok) return ok;
    if (auto ok = engine::destroy_qp(ours(qp).impl); !ok) return ok;
    delete &ours(qp);
    return {};
  });
}

int ibv_attach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t) {
  return int_ret("ibv_attach_mcast", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, qp, gid); !ok) return ok;
    return engine::attach_mcast(ours(qp).impl, to_gid(*gid));
  });
}

int ibv_detach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t) {
  return int_ret("ibv_detach_mcast", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, qp, gid); !ok) return ok;
    return engine::detach_mcast(ours(qp).impl, to_gid(*gid));
  });
}
