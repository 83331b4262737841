// SPDX-License-Identifier: Apache-2.0
#include "local/serve.h"

#include <unistd.h>

#include "base/points.h"
#include "local/own_memory.h"
#include "local/transfer.h"

namespace vrb::local {
namespace {

// A private copy of a request, so that the peer cannot change it after the checks.
struct Request {
  AssistOp op;
  std::uint32_t key, need, pd, length;
  std::uint64_t addr, compare_add, swap;
};

Request copy_of(const AssistEntry& entry) {
  return {static_cast<AssistOp>(entry.op),
          entry.key,
          entry.need,
          entry.pd,
          entry.length,
          entry.addr,
          entry.compare_add,
          entry.swap};
}

bool is_atomic(AssistOp op) { return op == AssistOp::CompareSwap || op == AssistOp::FetchAdd; }

// What the operation needs at least, whatever the peer says.
std::uint32_t needed(const Request& request) {
  constexpr std::uint32_t kWrites = ib::kLocalWrite | ib::kRemoteWrite;
  switch (request.op) {
    case AssistOp::Put:
      return (request.need & kWrites) != 0 ? request.need : ib::kRemoteWrite;
    case AssistOp::Get:
      return request.need | ib::kRemoteRead;
    case AssistOp::CompareSwap:
    case AssistOp::FetchAdd:
      return request.need | ib::kRemoteAtomic;
  }
  return request.need;
}

// Returns the value before.
std::uint64_t do_atomic(const Request& request, std::uint64_t va) {
  if (request.op == AssistOp::FetchAdd) return fetch_add(va, request.compare_add);
  return compare_swap(va, request.compare_add, request.swap);
}

ib::CauseCode execute(NicMemory& memory, const Request& request, const Staging& slab,
                      std::uint64_t& result) {
  const std::uint32_t length = is_atomic(request.op) ? 8 : request.length;
  if (length > kAssistSlab) return ib::CauseCode::MessageTooLong;
  const memory::KeyView keys(memory.tables().keys, kKeys);
  const memory::KeyCheck check =
      keys.check(request.key, ib::Pdn{request.pd}, needed(request), request.addr, length);
  if (!check.ok) return check.cause.code;
  const std::uint64_t va = check.resolved.va;
  bool there = false;
  switch (request.op) {
    case AssistOp::Put:
      there = write_own(va, slab, length);
      break;
    case AssistOp::Get:
      there = read_own(slab, va, length);
      break;
    case AssistOp::CompareSwap:
    case AssistOp::FetchAdd:
      if (va % 8 != 0) return ib::CauseCode::AtomicMisaligned;
      there = mapped(va, length) && range_mapped(va, length, true);
      if (there) result = do_atomic(request, va);
      break;
    default:
      return ib::CauseCode::BadOpcode;
  }
  return there ? ib::CauseCode::None : ib::CauseCode::MemoryGone;
}

}  // namespace

void serve_requests(NicMemory& memory, Peer& self, std::uint32_t index, int doorbell) {
  AssistArea& area = memory.shared().assist[index];
  bool served = false;
  for (std::uint32_t i = 0; i < kAssistEntries; ++i) {
    AssistEntry& entry = area.entry[i];
    std::uint32_t state = AssistEntry::kRequested;
    if (!entry.state.compare_exchange_strong(state, AssistEntry::kServing)) continue;
    VRB_POINT("assist.serving");
    const auto offset = static_cast<std::uint64_t>(area.slab[i] - memory.shared_at(0));
    std::uint64_t result = 0;
    {
      const InsideLane inside(self);
      const ib::CauseCode status =
          execute(memory, copy_of(entry), {area.slab[i], memory.shared_fd(), offset}, result);
      entry.status = static_cast<std::uint32_t>(status);
    }
    entry.result = result;
    VRB_POINT("assist.executed");
    entry.state.store(AssistEntry::kDone, std::memory_order_release);
    VRB_POINT("assist.done");
    served = true;
  }
  const std::uint64_t one = 1;
  if (served && doorbell >= 0 && write(doorbell, &one, sizeof one) < 0) return;
}

}  // namespace vrb::local
