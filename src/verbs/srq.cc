// Shared receive queues: ibv_create_srq(3), ibv_modify_srq(3), ibv_query_srq(3).
// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "verbs/adapt.h"
#include "verbs/context_table.h"
#include "verbs/objects.h"

namespace vrb::verbs {
namespace {

ib::Result<ibv_srq*> create_srq(const char* verb, ibv_pd* pd, ibv_srq_init_attr* attr) {
  if (auto ok = all_set(verb, pd, attr); !ok) return base::Unexpected{ok.error()};
  auto srq = std::make_unique<VerbsSrq>(pd->context);
  engine::SrqAttr granted{.max_wr = attr->attr.max_wr, .max_sge = attr->attr.max_sge};
  const auto made = engine::create_srq(ours(pd).impl, granted, static_cast<ibv_srq*>(srq.get()));
  if (!made) return base::Unexpected{made.error()};
  srq->impl = *made;
  srq->pd = pd;
  srq->srq_context = attr->srq_context;
  attr->attr.max_wr = granted.max_wr;
  attr->attr.max_sge = granted.max_sge;
  return srq.release();
}

}  // namespace

// verbs.h sends the basic type straight to ibv_create_srq.
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  return ptr_ret("ibv_create_srq_ex", [&](const char* verb) -> ib::Result<ibv_srq*> {
    if (auto ok = all_set(verb, context, attr); !ok) return base::Unexpected{ok.error()};
    const bool basic =
        (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || raw(attr->srq_type) == IBV_SRQT_BASIC;
    const std::uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    if (!basic || (attr->comp_mask & ~known) != 0) return not_built(verb);
    ibv_pd* pd = (attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) != 0 ? attr->pd : nullptr;
    return create_srq(verb, pd, reinterpret_cast<ibv_srq_init_attr*>(attr));
  });
}

}  // namespace vrb::verbs

using namespace vrb;
using namespace vrb::verbs;

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  return ptr_ret("ibv_create_srq",
                 [&](const char* verb) { return verbs::create_srq(verb, pd, attr); });
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  return int_ret("ibv_modify_srq", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, srq, attr); !ok) return ok;
    engine::SrqAttr wanted;
    if ((mask & IBV_SRQ_MAX_WR) != 0) wanted.max_wr = attr->max_wr;
    if ((mask & IBV_SRQ_LIMIT) != 0) wanted.limit = attr->srq_limit;
    return engine::modify_srq(ours(srq).impl, wanted, mask);
  });
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  return int_ret("ibv_query_srq", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, srq, attr); !ok) return ok;
    const auto found = engine::query_srq(ours(srq).impl);
    if (!found) return base::Unexpected{found.error()};
    *attr = {.max_wr = found->max_wr, .max_sge = found->max_sge, .srq_limit = found->limit};
    return {};
  });
}

int ibv_destroy_srq(ibv_srq* srq) {
  return int_ret("ibv_destroy_srq", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, srq); !ok) return ok;
    if (auto ok = engine::destroy_srq(ours(srq).impl); !ok) return ok;
    delete &ours(srq);
    return {};
  });
}
