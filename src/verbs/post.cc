// Posting work requests: ibv_post_send(3), ibv_post_recv(3), ibv_post_srq_recv(3). The hot path:
// each request becomes one on the stack that points to the caller's SGEs.
// SPDX-License-Identifier: Apache-2.0
#include "verbs/adapt.h"
#include "verbs/context_table.h"
#include "verbs/objects.h"

namespace vrb::verbs {
namespace {

static_assert(sizeof(ibv_sge) == sizeof(ib::Sge) && offsetof(ibv_sge, addr) == 0 &&
                  offsetof(ibv_sge, length) == offsetof(ib::Sge, length) &&
                  offsetof(ibv_sge, lkey) == offsetof(ib::Sge, lkey),
              "SGEs are passed on as they are");

ib::Result<std::span<const ib::Sge>> to_sges(const char* verb, const ibv_sge* list, int count) {
  if (count < 0) {
    return refused(verb, ib::Errc::Invalid, ib::CauseCode::TooManySges, count, ib::kMaxSge);
  }
  if (count > 0 && list == nullptr) {
    return refused(verb, ib::Errc::Invalid, ib::CauseCode::NullArgument);
  }
  return std::span(reinterpret_cast<const ib::Sge*>(list), static_cast<std::size_t>(count));
}

// Opcodes of memory windows, invalidation, TSO and the like exist, but are not built.
base::Unexpected<ib::Refusal> refuse_opcode(const char* verb, std::uint32_t opcode,
                                            const ibv_qp& qp) {
  if (opcode <= IBV_WR_DRIVER1 || opcode == IBV_WR_ATOMIC_WRITE) return not_built(verb);
  return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadOpcode, opcode, qp.qp_type);
}

ib::Result<void> set_ud(const char* verb, const ibv_send_wr& wr, queue::SendRequest& to) {
  if (wr.wr.ud.ah == nullptr) {
    return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadAddressHandle);
  }
  to.ah = ours(wr.wr.ud.ah).impl;
  to.remote_qpn = wr.wr.ud.remote_qpn;
  to.remote_qkey = wr.wr.ud.remote_qkey;
  return {};
}

void set_remote(const ibv_send_wr& wr, queue::SendRequest& to) {
  if (ib::is_atomic(to.opcode)) {
    to.remote_addr = wr.wr.atomic.remote_addr;
    to.rkey = wr.wr.atomic.rkey;
    to.compare_add = wr.wr.atomic.compare_add;
    to.swap = wr.wr.atomic.swap;
  } else if (!ib::is_send(to.opcode)) {
    to.remote_addr = wr.wr.rdma.remote_addr;
    to.rkey = wr.wr.rdma.rkey;
  }
}

ib::Result<void> convert(const char* verb, const ibv_qp& qp, const ibv_send_wr& wr,
                         queue::SendRequest& to) {
  const std::uint32_t opcode = raw(wr.opcode);
  if (opcode > IBV_WR_ATOMIC_FETCH_AND_ADD) return refuse_opcode(verb, opcode, qp);
  if ((wr.send_flags & IBV_SEND_IP_CSUM) != 0) return not_built(verb);
  const auto sges = to_sges(verb, wr.sg_list, wr.num_sge);
  if (!sges) return base::Unexpected{sges.error()};
  to.wr_id = wr.wr_id;
  to.opcode = static_cast<ib::Opcode>(opcode);
  to.flags = static_cast<std::uint8_t>(wr.send_flags & 0xf);
  to.sges = *sges;
  if (ib::has_imm(to.opcode)) to.imm = wr.imm_data;
  if (qp.qp_type == IBV_QPT_UD) return set_ud(verb, wr, to);
  set_remote(wr, to);
  return {};
}

// Posts one after the other; the first that is refused is the bad one, and those behind it are not
// posted.
template <class Wr, class Post>
int post_list(const char* verb, Wr* wr, Wr** bad, Post post) {
  const int error = int_ret(verb, [&](const char*) -> ib::Result<void> {
    for (; wr != nullptr; wr = wr->next) {
      if (auto ok = post(*wr); !ok) return ok;
    }
    return {};
  });
  if (error != 0 && bad != nullptr) *bad = wr;
  return error;
}

template <class Queue>
int post_recv_list(const char* verb, Queue* queue, ibv_recv_wr* list, ibv_recv_wr** bad,
                   ib::Result<void> (*post)(Queue*, const engine::RecvRequest&)) {
  return post_list(verb, list, bad, [=](const ibv_recv_wr& wr) -> ib::Result<void> {
    const auto sges = to_sges(verb, wr.sg_list, wr.num_sge);
    if (!sges) return base::Unexpected{sges.error()};
    return post(queue, {.wr_id = wr.wr_id, .sges = *sges});
  });
}

}  // namespace

int post_send(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad) {
  static constexpr const char* kVerb = "ibv_post_send";
  return post_list(kVerb, list, bad, [qp](const ibv_send_wr& wr) -> ib::Result<void> {
    queue::SendRequest request;
    if (auto ok = convert(kVerb, *qp, wr, request); !ok) return ok;
    return engine::post_send(ours(qp).impl, request);
  });
}

int post_recv(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad) {
  return post_recv_list("ibv_post_recv", ours(qp).impl, list, bad, engine::post_recv);
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr** bad) {
  return post_recv_list("ibv_post_srq_recv", ours(srq).impl, list, bad, engine::post_srq_recv);
}

}  // namespace vrb::verbs
