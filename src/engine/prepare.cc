// The local checks of a WQE: its SGEs against our own keys (IBTA 10.6.3.1, 11.4.1.1), and the list
// of segments.
// SPDX-License-Identifier: Apache-2.0
#include "engine/requester.h"
#include "nic/grh.h"

namespace vrb::engine {
namespace {

void fill_grh(Qp& qp, const queue::SendWqe& wqe) VRB_REQUIRES(qp.sq_lock) {
  const auto& ah = *static_cast<const Ah*>(wqe.request.ah);
  const PortFacts& port = port_facts();
  nic::GrhFields fields;
  const std::uint8_t index = ah.av.has_grh ? ah.av.sgid_index : 0;
  fields.sgid = port.gids[index].gid;
  fields.dgid = ah.av.has_grh ? ah.av.dgid : port.gids[index].gid;
  fields.traffic_class = ah.av.traffic_class;
  fields.hop_limit = ah.av.hop_limit != 0 ? ah.av.hop_limit : 64;
  fields.flow_label = ah.av.flow_label;
  fields.payload = wqe.length;
  fields.imm = wqe.request.opcode == ib::Opcode::SendWithImm;
  nic::write_grh(qp.flight.grh.data(), fields);
}

}  // namespace

Verdict prepare(Qp& qp, const queue::SendWqe& wqe) {
  InFlight& flight = qp.flight;
  flight.locals = 0;
  flight.length = wqe.length;
  if (qp.type == ib::QpType::Ud) {
    fill_grh(qp, wqe);
    flight.local[flight.locals++] = {reinterpret_cast<std::uint64_t>(flight.grh.data()),
                                     ib::kGrhBytes};
    flight.length += ib::kGrhBytes;
  }
  if (wqe.is_inline) {
    const auto bytes = qp.sq.inline_bytes(wqe);
    if (!bytes.empty()) {
      flight.local[flight.locals++] = {reinterpret_cast<std::uint64_t>(bytes.data()), bytes.size()};
    }
  } else {
    const memory::KeyView keys = qp.engine().key_view();
    const std::uint32_t need = ib::fetches(wqe.request.opcode) ? ib::kLocalWrite : 0;
    for (const ib::Sge& sge : wqe.request.sges) {
      if (sge.length == 0) continue;
      const auto check = keys.check(sge.lkey, qp.pd.number, need, sge.addr, sge.length);
      if (!check.ok) return Verdict::fail(ib::WcStatus::LocProtErr, check.cause);
      flight.local[flight.locals++] = {check.resolved.va, sge.length};
    }
  }
  if (ib::is_atomic(wqe.request.opcode) && wqe.length < 8) {
    return Verdict::fail(ib::WcStatus::LocLenErr,
                         ib::cause(ib::CauseCode::MessageTooLong, 8, wqe.length));
  }
  flight.rnr_left = qp.attr.rnr_retry;
  flight.started = true;
  return Verdict::go();
}

}  // namespace vrb::engine
