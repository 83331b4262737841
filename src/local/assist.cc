// The assist tier, initiator's side.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "base/points.h"
#include "local/cursor.h"
#include "local/nic_memory.h"
#include "local/own_memory.h"
#include "local/transfer.h"

namespace vrb::local {

// Which entries of our area at the peer are ours to use; kept on our side, for the area is
// unchecked.
class AssistEntries {
 public:
  explicit AssistEntries(Peer& peer) : peer_(peer) {}

  int take() {
    reclaim();
    std::uint32_t busy = peer_.assist_busy_.load(std::memory_order_relaxed);
    for (;;) {
      const auto entry = static_cast<std::uint32_t>(std::countr_one(busy));
      if (entry >= kAssistEntries) return -1;
      if (peer_.assist_busy_.compare_exchange_weak(busy, busy | 1U << entry)) {
        return static_cast<int>(entry);
      }
    }
  }
  void free(std::uint32_t entry) { peer_.assist_busy_.fetch_and(~(1U << entry)); }
  void give_up(std::uint32_t entry) { peer_.assist_dropped_.fetch_or(1U << entry); }

 private:
  // Given-up entries that the target is done with.
  void reclaim() {
    std::uint32_t dropped = peer_.assist_dropped_.load(std::memory_order_relaxed);
    for (; dropped != 0; dropped &= dropped - 1) {
      const auto entry = static_cast<std::uint32_t>(std::countr_zero(dropped));
      const std::uint32_t bit = 1U << entry;
      const auto& state = peer_.shared->assist[peer_.index].entry[entry].state;
      if (state.load(std::memory_order_acquire) != AssistEntry::kDone) continue;
      if ((peer_.assist_dropped_.fetch_and(~bit) & bit) != 0) free(entry);
    }
  }

  Peer& peer_;
};

namespace {

bool is_entry(int entry) { return entry >= 0 && entry < static_cast<int>(kAssistEntries); }

AssistArea& area(const Peer& peer) { return peer.shared->assist[peer.index]; }

// Between the slab and a list of our own memory.
bool gather(std::byte* slab, Cursor from, std::uint64_t length) {
  for (std::uint64_t done = 0; done < length;) {
    const Segment run = from.run();
    const std::uint64_t n = std::min(run.length, length - done);
    if (n == 0 || !read_own({slab + done}, run.addr, n)) return false;
    from.advance(n);
    done += n;
  }
  return true;
}

bool scatter(Cursor to, std::byte* slab, std::uint64_t length) {
  for (std::uint64_t done = 0; done < length;) {
    const Segment run = to.run();
    const std::uint64_t n = std::min(run.length, length - done);
    if (n == 0 || !write_own(run.addr, {slab + done}, n)) return false;
    to.advance(n);
    done += n;
  }
  return true;
}

ib::CauseCode checked_code(std::uint32_t status) {
  const auto code = static_cast<ib::CauseCode>(status);
  const bool known = status <= 0xffff &&
                     (status == 0 || ib::cause_text(code) != ib::cause_text(ib::CauseCode::None));
  return known ? code : ib::CauseCode::RemoteFoundError;
}

}  // namespace

int submit_assist(Peer& peer, const AssistRequest& request, std::span<const Segment> local,
                  std::uint64_t skip) {
  if (request.length > kAssistSlab) return -2;
  AssistEntries entries(peer);
  const int taken = entries.take();
  if (taken < 0) return -1;
  const auto index = static_cast<std::uint32_t>(taken);
  if (request.op == AssistOp::Put &&
      !gather(area(peer).slab[index], Cursor(local, skip), request.length)) {
    entries.free(index);
    return -2;
  }
  AssistEntry& entry = area(peer).entry[index];
  entry.op = static_cast<std::uint32_t>(request.op);
  entry.key = request.key;
  entry.need = request.need;
  entry.pd = request.pd;
  entry.length = request.length;
  entry.addr = request.addr;
  entry.compare_add = request.compare_add;
  entry.swap = request.swap;
  VRB_POINT("assist.filled");
  entry.state.store(AssistEntry::kRequested);
  VRB_POINT("assist.requested");
  set_due(peer.shared->due[static_cast<std::size_t>(DueKind::Peer)], peer.index);
  peer.ring();
  return taken;
}

bool assist_done(const Peer& peer, int entry) {
  return is_entry(entry) &&
         area(peer).entry[entry].state.load(std::memory_order_acquire) == AssistEntry::kDone;
}

AssistResult take_assist(Peer& peer, int entry, std::span<const Segment> local, std::uint64_t skip,
                         std::uint32_t length) {
  AssistResult result;
  if (!is_entry(entry)) return result;
  AssistEntry& done = area(peer).entry[entry];
  result.status = checked_code(done.status);
  result.before = done.result;
  const bool brings_data = done.op == static_cast<std::uint32_t>(AssistOp::Get);
  if (result.status == ib::CauseCode::None && brings_data && length <= kAssistSlab &&
      !scatter(Cursor(local, skip), area(peer).slab[entry], length)) {
    result.status = ib::CauseCode::LocalMemoryGone;
  }
  VRB_POINT("assist.taken");
  done.state.store(AssistEntry::kFree, std::memory_order_release);
  AssistEntries(peer).free(static_cast<std::uint32_t>(entry));
  return result;
}

void drop_assist(Peer& peer, int entry) {
  if (!is_entry(entry)) return;
  AssistEntries entries(peer);
  std::uint32_t state = AssistEntry::kRequested;
  if (area(peer).entry[entry].state.compare_exchange_strong(state, AssistEntry::kFree)) {
    entries.free(static_cast<std::uint32_t>(entry));  // withdrawn before the target took it
  } else {
    entries.give_up(static_cast<std::uint32_t>(entry));
  }
}

}  // namespace vrb::local
