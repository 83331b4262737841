// Protection domains and memory regions (ibv_alloc_pd(3), ibv_reg_mr(3), ibv_rereg_mr(3);
// IBTA 10.6).
// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"
#include "engine/refusals.h"

namespace vrb::engine {
namespace {

constexpr std::uint32_t kKnownAccess = ib::kLocalWrite | ib::kRemoteAccess | ib::kMwBind |
                                       ib::kZeroBased | ib::kOnDemand | ib::kHugetlb |
                                       ib::kOptionalAccess;
constexpr int kRetranslate = 1, kRepd = 2, kReaccess = 4;

ib::Result<void> check_region(const char* verb, std::uint64_t addr, std::uint64_t length,
                              std::uint64_t iova, std::uint32_t access) {
  if ((access & ~kKnownAccess) != 0)
    return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadAccessFlags, access);
  if ((access & ib::kOnDemand) != 0)
    return refused(verb, ib::Errc::NotSupported, ib::CauseCode::NotBuilt);
  if ((access & (ib::kRemoteWrite | ib::kRemoteAtomic)) != 0 && (access & ib::kLocalWrite) == 0) {
    return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadAccessFlags, access);
  }
  if (length == 0 || addr + length < addr || iova + length < iova) {
    return refused(verb, ib::Errc::Invalid, ib::CauseCode::MemoryNotMapped, addr, length);
  }
  if (!local::range_mapped(addr, length, (access & ib::kLocalWrite) != 0)) {
    return refused(verb, ib::Errc::Fault, ib::CauseCode::MemoryNotMapped, addr, length);
  }
  return {};
}

memory::KeyTable::Region region_of(const Mr& mr) {
  return {mr.iova, mr.length, mr.addr, mr.pd->number, mr.access & 0xffff};
}

ib::Result<std::uint32_t> publish(Engine& engine, const Mr& mr) {
  const std::lock_guard guard(engine.mr_lock);
  return engine.keys->publish(region_of(mr));
}

// Takes a key away: invalid at once. True after the grace period: nobody uses it any more (A21,
// A22).
bool withdraw(Engine& engine, std::uint32_t key) {
  {
    const std::lock_guard guard(engine.mr_lock);
    engine.keys->invalidate(key);
  }
  return engine.memory_if_made()->grace();
}

}  // namespace

ib::Result<Pd*> alloc_pd(Context* context) {
  if (context->engine.forked()) return refused_forked("ibv_alloc_pd");
  std::uint32_t number = 0;
  if (!context->engine.pds.take(number)) {
    return refused("ibv_alloc_pd", ib::Errc::NoMemory, ib::CauseCode::LimitExceeded, ib::kMaxPd + 1,
                   ib::kMaxPd);
  }
  return new Pd(*context, ib::Pdn{number});
}

ib::Result<void> dealloc_pd(Pd* pd) {
  if (pd->context.engine.forked()) return refused_forked("ibv_dealloc_pd");
  if (const std::uint32_t uses = pd->uses.load(); uses != 0) {
    return refused("ibv_dealloc_pd", ib::Errc::Busy, ib::CauseCode::ObjectBusy, uses);
  }
  pd->context.engine.pds.release(pd->number.value);
  delete pd;
  return {};
}

ib::Result<MrInfo> reg_mr(Pd* pd, void* addr, std::size_t length, std::uint64_t iova,
                          std::uint32_t access) {
  Engine& engine = pd->context.engine;
  if (engine.forked()) return refused_forked("ibv_reg_mr");
  const auto va = reinterpret_cast<std::uint64_t>(addr);
  if (const auto ok = check_region("ibv_reg_mr", va, length, iova, access); !ok)
    return base::Unexpected{ok.error()};
  if (const auto memory = engine.memory(); !memory) return refused("ibv_reg_mr", memory.error());
  auto mr = std::make_unique<Mr>(Mr{pd, va, length, iova, access, 0});
  const auto key = publish(engine, *mr);
  if (!key) return refused("ibv_reg_mr", key.error());
  mr->key = *key;
  ++pd->uses;
  return MrInfo{mr.release(), *key, *key};
}

ib::Result<MrInfo> rereg_mr(Mr* mr, int flags, Pd* pd, void* addr, std::size_t length,
                            std::uint32_t access) {
  Engine& engine = mr->pd->context.engine;
  if (engine.forked()) return refused_forked("ibv_rereg_mr");
  if ((flags & ~(kRetranslate | kRepd | kReaccess)) != 0 || flags == 0) {
    return refused("ibv_rereg_mr", ib::Errc::Invalid, ib::CauseCode::BadAttribute, flags, flags);
  }
  if ((flags & kRepd) != 0 && pd == nullptr) {
    return refused("ibv_rereg_mr", ib::Errc::Invalid, ib::CauseCode::NullArgument);
  }
  Mr next = *mr;
  if ((flags & kRetranslate) != 0) {
    next.addr = next.iova = reinterpret_cast<std::uint64_t>(addr);
    next.length = length;
  }
  if ((flags & kReaccess) != 0) next.access = access;
  if ((flags & kRepd) != 0) next.pd = pd;
  if (const auto ok = check_region("ibv_rereg_mr", next.addr, next.length, next.iova, next.access);
      !ok) {
    return base::Unexpected{ok.error()};
  }
  // Programs hold on to the keys, so they stay, unless a stopped peer may still use the old
  // meaning: then new ones.
  const bool quiet = withdraw(engine, mr->key);
  bool same = false;
  if (quiet) {
    const std::lock_guard guard(engine.mr_lock);
    same = engine.keys->republish(mr->key, region_of(next));
  }
  if (!same) {
    const auto key = publish(engine, next);
    if (!key) return refused("ibv_rereg_mr", key.error());
    next.key = *key;
  }
  ++next.pd->uses;
  --mr->pd->uses;
  *mr = next;
  return MrInfo{mr, mr->key, mr->key};
}

ib::Result<void> dereg_mr(Mr* mr) {
  Engine& engine = mr->pd->context.engine;
  if (engine.forked()) return refused_forked("ibv_dereg_mr");
  if (withdraw(engine, mr->key)) {
    const std::lock_guard guard(engine.mr_lock);
    engine.keys->release(mr->key);
  }
  --mr->pd->uses;
  delete mr;
  return {};
}

}  // namespace vrb::engine
