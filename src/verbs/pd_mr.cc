// Protection domains and memory regions: ibv_alloc_pd(3), ibv_reg_mr(3), ibv_rereg_mr(3).
// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "verbs/adapt.h"
#include "verbs/objects.h"

namespace vrb::verbs {
namespace {

ib::Result<ibv_mr*> reg_mr(const char* verb, ibv_pd* pd, void* addr, std::size_t length,
                           std::uint64_t iova, unsigned access) {
  if (auto ok = all_set(verb, pd); !ok) return base::Unexpected{ok.error()};
  if ((access & IBV_ACCESS_ZERO_BASED) != 0) iova = 0;
  auto mr = std::make_unique<VerbsMr>(pd->context);
  const auto info = engine::reg_mr(ours(pd).impl, addr, length, iova, access);
  if (!info) return base::Unexpected{info.error()};
  mr->impl = info->mr;
  mr->pd = pd;
  mr->addr = addr;
  mr->length = length;
  mr->lkey = info->lkey;
  mr->rkey = info->rkey;
  return mr.release();
}

ib::Result<void> rereg_mr(const char* verb, ibv_mr* mr, int flags, ibv_pd* pd, void* addr,
                          std::size_t length, int access) {
  if (auto ok = all_set(verb, mr); !ok) return ok;
  const auto info = engine::rereg_mr(ours(mr).impl, flags, pd != nullptr ? ours(pd).impl : nullptr,
                                     addr, length, static_cast<std::uint32_t>(access));
  if (!info) return base::Unexpected{info.error()};
  ours(mr).impl = info->mr;
  mr->lkey = info->lkey;
  mr->rkey = info->rkey;
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0) mr->pd = pd;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    mr->addr = addr;
    mr->length = length;
  }
  return {};
}

}  // namespace
}  // namespace vrb::verbs

using namespace vrb;
using namespace vrb::verbs;

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return ptr_ret("ibv_alloc_pd", [&](const char* verb) -> ib::Result<ibv_pd*> {
    if (auto ok = all_set(verb, context); !ok) return base::Unexpected{ok.error()};
    auto pd = std::make_unique<VerbsPd>(context);
    const auto made = engine::alloc_pd(ours(context).engine);
    if (!made) return base::Unexpected{made.error()};
    pd->impl = *made;
    return pd.release();
  });
}

int ibv_dealloc_pd(ibv_pd* pd) {
  return int_ret("ibv_dealloc_pd", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, pd); !ok) return ok;
    if (auto ok = engine::dealloc_pd(ours(pd).impl); !ok) return ok;
    delete &ours(pd);
    return {};
  });
}

ibv_mr*(ibv_reg_mr)(ibv_pd* pd, void* addr, size_t length, int access) {
  return ptr_ret("ibv_reg_mr", [&](const char* verb) {
    return verbs::reg_mr(verb, pd, addr, length, reinterpret_cast<std::uint64_t>(addr),
                         static_cast<unsigned>(access));
  });
}

ibv_mr*(ibv_reg_mr_iova)(ibv_pd* pd, void* addr, size_t length, uint64_t iova, int access) {
  return ptr_ret("ibv_reg_mr_iova", [&](const char* verb) {
    return verbs::reg_mr(verb, pd, addr, length, iova, static_cast<unsigned>(access));
  });
}

// Where programs with access flags that the compiler cannot see end up, too.
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned access) {
  return ptr_ret("ibv_reg_mr", [&](const char* verb) {
    return verbs::reg_mr(verb, pd, addr, length, iova, access);
  });
}

// The engine refuses before it changes anything, so the old region stays valid.
int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, size_t length, int access) {
  const int error = int_ret("ibv_rereg_mr", [&](const char* verb) {
    return verbs::rereg_mr(verb, mr, flags, pd, addr, length, access);
  });
  return error == 0 ? 0 : IBV_REREG_MR_ERR_INPUT;
}

int ibv_dereg_mr(ibv_mr* mr) {
  return int_ret("ibv_dereg_mr", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, mr); !ok) return ok;
    if (auto ok = engine::dereg_mr(ours(mr).impl); !ok) return ok;
    delete &ours(mr);
    return {};
  });
}
