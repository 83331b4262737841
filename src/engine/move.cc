// The data of a message, between flight.local and ranges of the peer, in address order and in
// slices. Which tier reaches a range is decided by local::reach() alone (docs/local.md).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>

#include "base/points.h"
#include "engine/requester.h"

namespace vrb::engine {
namespace {

std::span<const local::Segment> locals(const Qp& qp) VRB_REQUIRES(qp.sq_lock) {
  return {qp.flight.local.data(), qp.flight.locals};
}

bool assisted(const Target& target, const RemotePart& part) {
  return !target.peer->self && local::reach(*target.peer, *part.entry, part.segment.addr,
                                            part.segment.length) == local::Tier::Assist;
}

// The answer to an assist request that is under way, if there is one.
Verdict finish_assist(Qp& qp, const Target& target) VRB_REQUIRES(qp.sq_lock) {
  InFlight& flight = qp.flight;
  if (flight.assist < 0) return Verdict::go();
  if (!local::assist_done(*target.peer, flight.assist))
    return Verdict::wait_for(InFlight::Wait::Assist);
  const auto result = local::take_assist(*target.peer, flight.assist, locals(qp), flight.offset,
                                         flight.assist_length);
  flight.assist = -1;
  if (result.status == ib::CauseCode::LocalMemoryGone) {
    return Verdict::fail(ib::WcStatus::LocProtErr, ib::cause(result.status, flight.local[0].addr));
  }
  if (result.status != ib::CauseCode::None) {
    return Verdict::fail(ib::WcStatus::RemAccessErr,
                         ib::cause(result.status, qp.attr.dest_qpn.value));
  }
  flight.offset += flight.assist_length;
  return Verdict::go();
}

Verdict start_assist(Qp& qp, const Target& target, const RemotePart& part, std::uint64_t into,
                     std::uint32_t need, bool fetch) VRB_REQUIRES(qp.sq_lock) {
  InFlight& flight = qp.flight;
  local::AssistRequest request;
  request.op = fetch ? local::AssistOp::Get : local::AssistOp::Put;
  request.key = part.key;
  request.need = need;
  request.pd = part.entry->pd;  // of the QP, or of the SRQ whose receive it is
  request.addr = part.addr + into;
  request.length = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(part.segment.length - into, local::kAssistSlab));
  flight.assist_length = request.length;
  const int entry = local::submit_assist(*target.peer, request, locals(qp), flight.offset);
  if (entry == -2) {
    return Verdict::fail(ib::WcStatus::LocProtErr,
                         ib::cause(ib::CauseCode::LocalMemoryGone, flight.local[0].addr));
  }
  flight.assist = entry;
  return Verdict::wait_for(entry < 0 ? InFlight::Wait::Room : InFlight::Wait::Assist);
}

// The last bytes of a WRITE go in a copy of their own, behind all others (A32).
constexpr std::uint64_t kTail = 8;

// Does the key still name this range? Looked at again before each further copy, for a process that
// was stopped in between finds its peer's memory perhaps taken away (A22).
bool stands(const Target& target, const RemotePart& part) {
  const auto check = target.peer->keys().check(part.key, memory::KeyView::kAnyPd, 0, part.addr,
                                               part.segment.length);
  return check.ok && check.resolved.va == part.segment.addr;
}

Verdict failed_copy(Qp& qp, const Target& target, const local::Copied& copied,
                    const RemotePart& part) VRB_REQUIRES(qp.sq_lock) {
  const std::uint32_t remote = qp.attr.dest_qpn.value;
  switch (copied.error) {
    case EFAULT:
      if (copied.local_fault) {
        return Verdict::fail(ib::WcStatus::LocProtErr,
                             ib::cause(ib::CauseCode::LocalMemoryGone, qp.flight.local[0].addr));
      }
      return Verdict::fail(ib::WcStatus::RemAccessErr,
                           ib::cause(ib::CauseCode::MemoryGone, part.segment.addr));
    case ESRCH:
      return Verdict::fail(ib::WcStatus::RetryExcErr, ib::cause(ib::CauseCode::PeerDied, remote));
    case EPERM:
    case ENOSYS:
      target.peer->cma.store(false, std::memory_order_relaxed);
      return Verdict::wait_for(InFlight::Wait::Slice,
                               ib::cause(ib::CauseCode::CmaRefused, remote, copied.error));
    default:
      return Verdict::fail(ib::WcStatus::RemOpErr,
                           ib::cause(ib::CauseCode::CmaRefused, remote, copied.error));
  }
}

}  // namespace

Verdict move_bytes(Qp& qp, const Target& target, std::span<const RemotePart> parts,
                   std::uint32_t need, bool fetch, bool last_last) {
  InFlight& flight = qp.flight;
  if (const Verdict v = finish_assist(qp, target); v.kind != Verdict::Kind::Go) return v;
  std::array<local::Segment, ib::kMaxSge> remote;
  for (std::size_t i = 0; i < parts.size(); ++i) remote[i] = parts[i].segment;
  const std::span<const local::Segment> remotes(remote.data(), parts.size());
  const bool apart = last_last && !fetch && !target.peer->self && flight.length > kTail;
  const std::uint64_t tail = apart ? kTail : 0;
  std::uint64_t budget = kSliceBytes;
  std::uint64_t start = 0;  // of the part within the message
  for (const RemotePart& part : parts) {
    const std::uint64_t end = start + part.segment.length;
    while (flight.offset < end) {
      if (budget == 0) return Verdict::wait_for(InFlight::Wait::Slice);
      if (assisted(target, part))
        return start_assist(qp, target, part, flight.offset - start, need, fetch);
      if (budget != kSliceBytes) {
        VRB_POINT("data.copied");
        // The next look at the message checks everything anew.
        if (!stands(target, part)) return Verdict::wait_for(InFlight::Wait::Slice);
      }
      std::uint64_t room = std::min(budget, end - flight.offset);
      if (flight.offset + room == flight.length && room > tail) room -= tail;
      const local::Copied copied =
          fetch ? local::get(*target.peer, locals(qp), remotes, flight.offset, room)
                : local::put(*target.peer, locals(qp), remotes, flight.offset, room);
      flight.offset += copied.bytes;
      budget -= std::min(budget, copied.bytes);
      if (copied.error != 0) return failed_copy(qp, target, copied, part);
      if (copied.bytes == 0) return Verdict::wait_for(InFlight::Wait::Slice);
    }
    start = end;
  }
  return Verdict::go();
}

}  // namespace vrb::engine
