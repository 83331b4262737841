// ibv_post_send(3) and ibv_post_recv(3): the checks that refuse a work request at once
// (IBTA 11.4.1), then the queue.
// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"
#include "engine/recv_queue.h"
#include "engine/refusals.h"

namespace vrb::engine {
namespace {

constexpr const char* kSend = "ibv_post_send";

bool opcode_fits(ib::QpType type, ib::Opcode opcode) {
  switch (type) {
    case ib::QpType::Rc:
      return opcode <= ib::Opcode::FetchAdd;
    case ib::QpType::Uc:
      return opcode <= ib::Opcode::SendWithImm;
    case ib::QpType::Ud:
      return ib::is_send(opcode);
  }
  return false;
}

// What no state of the queue changes; gives the length of the message.
ib::Result<std::uint32_t> check_request(const Qp& qp, const queue::SendRequest& r) {
  if (!opcode_fits(qp.type, r.opcode)) {
    return refused(kSend, ib::Errc::Invalid, ib::CauseCode::BadOpcode, r.opcode, qp.type);
  }
  if (r.sges.size() > qp.init.cap.max_send_sge) {
    return refused(kSend, ib::Errc::Invalid, ib::CauseCode::TooManySges, r.sges.size(),
                   qp.init.cap.max_send_sge);
  }
  std::uint64_t length = 0;
  for (const ib::Sge& sge : r.sges) length += sge.length;
  if (length > ib::kMaxMessage) {
    return refused(kSend, ib::Errc::Invalid, ib::CauseCode::MessageTooLong, length,
                   ib::kMaxMessage);
  }
  if ((r.flags & ib::kSendInline) != 0) {
    if (ib::fetches(r.opcode))
      return refused(kSend, ib::Errc::Invalid, ib::CauseCode::BadOpcode, r.opcode, qp.type);
    if (length > qp.init.cap.max_inline) {
      return refused(kSend, ib::Errc::Invalid, ib::CauseCode::InlineTooLong, length,
                     qp.init.cap.max_inline);
    }
  }
  if (qp.type == ib::QpType::Ud) {
    const auto* ah = static_cast<const Ah*>(r.ah);
    if (ah == nullptr || ah->pd != &qp.pd)
      return refused(kSend, ib::Errc::Invalid, ib::CauseCode::BadAddressHandle);
    if (length > port_facts().active_mtu) {
      return refused(kSend, ib::Errc::Invalid, ib::CauseCode::UdTooLong, length,
                     port_facts().active_mtu);
    }
  }
  return static_cast<std::uint32_t>(length);
}

}  // namespace

ib::Result<void> post_send(Qp* qp, const queue::SendRequest& request) {
  if (qp->engine().forked()) return refused_forked(kSend);
  const auto length = check_request(*qp, request);
  if (!length) return base::Unexpected{length.error()};
  const base::SpinGuard guard(qp->sq_lock);
  const ib::QpState state = qp->state.load(std::memory_order_relaxed);
  if (state < ib::QpState::Rts) {
    return refused(kSend, ib::Errc::Invalid, ib::CauseCode::WrongQpState, state);
  }
  if (qp->sq.full()) {
    return refused(kSend, ib::Errc::NoMemory, ib::CauseCode::QueueFull, qp->sq.capacity(),
                   qp->sq.capacity());
  }
  const bool idle = qp->sq.idle();
  qp->sq.push(request, *length);
  if (request.ah != nullptr) static_cast<const Ah*>(request.ah)->hold();
  if (state == ib::QpState::Rts) {
    if (idle) run_send_queue(*qp);
  } else if (state == ib::QpState::Err || state == ib::QpState::Sqe) {
    flush_send_queue(*qp);
  }
  return {};
}

ib::Result<void> post_recv(Qp* qp, const RecvRequest& request) {
  Engine& engine = qp->engine();
  if (engine.forked()) return refused_forked("ibv_post_recv");
  if (qp->init.srq != nullptr)
    return refused("ibv_post_recv", ib::Errc::Invalid, ib::CauseCode::SrqHasOwn);
  const ib::QpState state = qp->state.load(std::memory_order_acquire);
  if (state == ib::QpState::Reset) {
    return refused("ibv_post_recv", ib::Errc::Invalid, ib::CauseCode::WrongQpState, state);
  }
  const auto posted = post_to(engine, "ibv_post_recv", qp->own_rq, request);
  if (!posted) return base::Unexpected{posted.error()};
  if (!*posted) flush_receive(*qp, request.wr_id);
  return {};
}

}  // namespace vrb::engine
