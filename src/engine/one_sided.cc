// One-sided operations, executed entirely by the initiator (IBTA 9.4.3 to 9.4.5; docs/local.md).
// SPDX-License-Identifier: Apache-2.0
#include "engine/requester.h"

namespace vrb::engine {
namespace {

constexpr std::uint32_t need_of(ib::Opcode opcode) {
  if (opcode == ib::Opcode::Read) return ib::kRemoteRead;
  return ib::is_atomic(opcode) ? ib::kRemoteAtomic : ib::kRemoteWrite;
}

// UC loses what the responder refuses, without a word (IBTA 9.8.2).
Verdict refused_by_responder(const Qp& qp, const Target& target, ib::WcStatus status,
                             std::uint64_t event, const ib::Cause& cause) {
  if (qp.type != ib::QpType::Rc) return {Verdict::Kind::Done, ib::WcStatus::Success, {}, cause};
  report(target, local::kReportError | event, cause.code);
  return Verdict::fail(status, cause);
}

Verdict start_atomic_assist(Qp& qp, const queue::SendWqe& wqe, const Target& target)
    VRB_REQUIRES(qp.sq_lock) {
  InFlight& flight = qp.flight;
  local::AssistRequest request;
  request.op = wqe.request.opcode == ib::Opcode::CompareSwap ? local::AssistOp::CompareSwap
                                                             : local::AssistOp::FetchAdd;
  request.key = wqe.request.rkey;
  request.need = ib::kRemoteAtomic;
  request.pd = target.entry->pd;
  request.addr = wqe.request.remote_addr;
  request.length = 8;
  request.compare_add = wqe.request.compare_add;
  request.swap = wqe.request.swap;
  flight.assist_length = 8;
  flight.assist = local::submit_assist(*target.peer, request, {}, 0);
  return Verdict::wait_for(flight.assist < 0 ? InFlight::Wait::Room : InFlight::Wait::Assist);
}

// The value before goes to the first 8 bytes of our list.
Verdict return_value(Qp& qp, std::uint64_t before) VRB_REQUIRES(qp.sq_lock) {
  const local::Segment value{reinterpret_cast<std::uint64_t>(&before), 8};
  const std::span<const local::Segment> list(qp.flight.local.data(), qp.flight.locals);
  const auto self = (*qp.engine().switchboard())->self();
  const auto copied = local::get(*self, list, {&value, 1}, 0, 8);
  if (copied.bytes < 8) {
    return Verdict::fail(ib::WcStatus::LocProtErr,
                         ib::cause(ib::CauseCode::LocalMemoryGone, qp.flight.local[0].addr));
  }
  return Verdict::done();
}

Verdict atomic(Qp& qp, const queue::SendWqe& wqe, const Target& target, std::uint64_t va)
    VRB_REQUIRES(qp.sq_lock) {
  InFlight& flight = qp.flight;
  if (target.peer->self) {
    const bool swap = wqe.request.opcode == ib::Opcode::CompareSwap;
    return return_value(qp, swap
                                ? local::compare_swap(va, wqe.request.compare_add, wqe.request.swap)
                                : local::fetch_add(va, wqe.request.compare_add));
  }
  if (flight.assist < 0) return start_atomic_assist(qp, wqe, target);
  if (!local::assist_done(*target.peer, flight.assist))
    return Verdict::wait_for(InFlight::Wait::Assist);
  const auto result = local::take_assist(*target.peer, flight.assist, {}, 0, 0);
  flight.assist = -1;
  if (result.status != ib::CauseCode::None) {
    return refused_by_responder(qp, target, ib::WcStatus::RemAccessErr, local::kReportAccessErr,
                                ib::cause(result.status, wqe.request.rkey));
  }
  return return_value(qp, result.before);
}

}  // namespace

Verdict one_sided(Qp& qp, const queue::SendWqe& wqe, const Target& target) {
  const queue::SendRequest& r = wqe.request;
  const std::uint32_t need = need_of(r.opcode);
  const std::uint64_t length = ib::is_atomic(r.opcode) ? 8 : wqe.length;
  const std::uint32_t remote = qp.attr.dest_qpn.value;
  if ((target.tag.access & need) == 0) {
    return refused_by_responder(
        qp, target, ib::WcStatus::RemAccessErr, local::kReportAccessErr,
        ib::cause(ib::CauseCode::QpAccess, remote, target.tag.access, need));
  }
  if (length == 0) return Verdict::done();  // no R_Key check (IBTA 9.7.4.1.6)
  if (ib::is_atomic(r.opcode) && r.remote_addr % 8 != 0) {
    return refused_by_responder(qp, target, ib::WcStatus::RemInvReqErr, local::kReportReqErr,
                                ib::cause(ib::CauseCode::AtomicMisaligned, r.remote_addr));
  }
  const auto check =
      target.peer->keys().check(r.rkey, ib::Pdn{target.entry->pd}, need, r.remote_addr, length);
  if (!check.ok) {
    return refused_by_responder(qp, target, ib::WcStatus::RemAccessErr, local::kReportAccessErr,
                                check.cause);
  }
  if (ib::is_atomic(r.opcode)) return atomic(qp, wqe, target, check.resolved.va);
  const RemotePart part{r.rkey, r.remote_addr, {check.resolved.va, length}, check.resolved.entry};
  const Verdict moved =
      move_bytes(qp, target, {&part, 1}, need, r.opcode == ib::Opcode::Read, true);
  if (moved.kind == Verdict::Kind::Fail && moved.status == ib::WcStatus::RemAccessErr) {
    return refused_by_responder(qp, target, moved.status, local::kReportAccessErr, moved.cause);
  }
  return moved.kind == Verdict::Kind::Go ? Verdict::done() : moved;
}

}  // namespace vrb::engine
