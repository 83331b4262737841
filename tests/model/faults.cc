// Work requests that must fail, each in a known way: what the sender and the other side are told
// (IBTA 9.7.5.2, 10.8.2, 11.6.2), and what becomes of their queues. Also those that are refused at
// once.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "model.h"

namespace vrb::model {
namespace {

using ib::CauseCode;
using ib::Opcode;
using ib::WcStatus;

constexpr std::uint32_t kNoKey = 0x00ffff00;  // an index that the ranks never reach

std::uint32_t need_of(Opcode opcode) {
  if (opcode == Opcode::Read) return ib::kRemoteRead;
  return ib::is_atomic(opcode) ? ib::kRemoteAtomic : ib::kRemoteWrite;
}

}  // namespace

// The queue ends in an error: RC in ERR with its receives, UC and UD only the send queue.
void Model::fail(Endpoint& e) {
  e.failed = true;
  if (e.type != ib::QpType::Rc) {
    e.send_error = true;
    return;
  }
  fail_target(e, std::nullopt);
  if (e.peer != nullptr) e.peer->broken = true;
}

void Model::fail_target(Endpoint& t, std::optional<ib::EventType> event) {
  Node& node = nodes_[t.node];
  t.broken = t.flushes = true;
  if (t.srq) node.events.push_back({ib::EventType::QpLastWqeReached, t.id});
  if (event) node.events.push_back({*event, t.id});
}

bool Model::post_fault(Endpoint& e) {
  Draft d;
  if (e.posted == e.cap.max_send_wr) return false;
  if (e.orphan) {
    d.order.opcode = Opcode::Send;
    d.status = WcStatus::RetryExcErr;
    post(e, d);
    fail(e);
    return true;
  }
  if (random_.chance(30)) return local_fault(e, d);
  if (e.type == ib::QpType::Ud) return datagram_fault(e, d);
  return random_.chance(30) ? message_fault(e, d) : remote_fault(e, d);
}

// A one-sided operation that the other side's keys do not grant. UC loses it without a word.
bool Model::remote_fault(Endpoint& e, Draft& d) {
  Endpoint& t = *e.peer;
  const bool rc = e.type == ib::QpType::Rc;
  constexpr Opcode kOpcodes[] = {Opcode::Write, Opcode::WriteWithImm, Opcode::Read,
                                 Opcode::CompareSwap, Opcode::FetchAdd};
  d.order.opcode = kOpcodes[random_.below(rc ? std::size(kOpcodes) : 2)];
  const bool atomic = ib::is_atomic(d.order.opcode);
  const bool fetches = ib::fetches(d.order.opcode);
  const std::uint64_t length = atomic ? 8 : random_.between(1, 3000);
  if (!fill_list(e, d, length, fetches ? Shadow::Use::Fetch : Shadow::Use::Gather)) return false;
  d.status = WcStatus::RemAccessErr;
  const std::uint32_t need = need_of(d.order.opcode);
  if ((t.access & need) == 0) {
    d.cause = CauseCode::QpAccess;
  } else if (!break_remote(t, d, need)) {
    return false;
  }
  const bool misaligned = d.cause == CauseCode::AtomicMisaligned;
  if (misaligned) d.status = WcStatus::RemInvReqErr;
  if (!rc) {
    d.status = WcStatus::Success;
    d.cause = CauseCode::None;
  }
  post(e, d);
  if (!rc) return true;
  fail(e);
  fail_target(t, misaligned ? ib::EventType::QpReqErr : ib::EventType::QpAccessErr);
  return true;
}

// An address and key that break exactly one rule; false: no region offers that.
bool Model::break_remote(Endpoint& t, Draft& d, std::uint32_t need) {
  Node& target = nodes_[t.node];
  const Region& r = random_.one_of(target.regions);
  const bool fits = r.live && !r.frozen && r.pd == t.pd && (need & ~r.access) == 0;
  d.order.rkey = r.rkey;
  d.order.remote_addr = (r.iova + random_.below(r.length) + 7) & ~7ULL;
  if (ib::is_atomic(d.order.opcode) && random_.chance(30)) {
    d.order.remote_addr += random_.between(1, 7);
    d.cause = CauseCode::AtomicMisaligned;
    return true;
  }
  if (random_.chance(20)) {
    const bool old = !target.old_keys.empty() && random_.chance(70);
    d.order.rkey = old ? random_.one_of(target.old_keys) : kNoKey;
    d.cause = CauseCode::KeyUnknown;
    const auto alive = [&](const Region& other) { return other.rkey == d.order.rkey; };
    // A region that changes in this round may keep its key, which is not known yet.
    return std::ranges::none_of(target.regions, alive) &&
           std::ranges::find(target.retired_keys, d.order.rkey) == target.retired_keys.end();
  }
  if (!r.live || r.frozen) return false;
  if (fits) {
    d.cause = CauseCode::KeyRange;
    const std::uint64_t end = r.iova + r.length;
    d.order.remote_addr = random_.chance(50) ? end - random_.below(d.length) : r.iova - 1;
    if (ib::is_atomic(d.order.opcode)) d.order.remote_addr = end & ~7ULL;
    return true;
  }
  if (d.order.remote_addr + d.length > r.iova + r.length) return false;
  d.cause = r.pd != t.pd ? CauseCode::KeyOtherPd : CauseCode::KeyAccess;
  return true;
}

// A SEND that its receive cannot take, or that finds none.
bool Model::message_fault(Endpoint& e, Draft& d) {
  Endpoint& t = *e.peer;
  if (random_.chance(40)) return receive_fault(e, d);
  const bool rc = e.type == ib::QpType::Rc;
  const bool none_left = !t.srq && t.owed() == t.rq.size();
  d.order.opcode = random_.chance(50) ? Opcode::Send : Opcode::SendWithImm;
  if (rc && none_left && e.rnr_retry != 7) {
    d.status = WcStatus::RnrRetryExcErr;
    d.cause = CauseCode::RnrRetriesExceeded;
    post(e, d);
    fail(e);
    return true;
  }
  if (!rc && t.srq) return false;
  const Recv* recv = next_receive(t, random_.below(1000));
  if (recv == nullptr || recv->capacity > 100'000) return false;
  const std::uint64_t room = t.srq ? shared_capacity() + 64 : recv->capacity;
  if (!fill_list(e, d, room + random_.between(1, 64), Shadow::Use::Gather)) return false;
  if (rc) {
    d.status = WcStatus::RemInvReqErr;
    d.cause = CauseCode::RecvTooSmall;
  }
  post(e, d);
  if (!rc) return true;
  Inbound message;
  message.status = WcStatus::LocLenErr;
  expect_message(e, t, d, std::move(message));
  fail(e);
  fail_target(t, std::nullopt);
  return true;
}

// The receive names a key that does not let the NIC write there.
bool Model::receive_fault(Endpoint& e, Draft& d) {
  Endpoint& t = *e.peer;
  Node& node = nodes_[t.node];
  if (e.type != ib::QpType::Rc || t.srq || t.owed() != t.rq.size()) return false;
  if (t.rq.size() >= t.cap.max_recv_wr) return false;
  const Region& r = random_.one_of(node.regions);
  if (!r.live || r.frozen || (r.pd == t.pd && (r.access & ib::kLocalWrite) != 0)) return false;
  d.cause = r.pd != t.pd ? CauseCode::KeyOtherPd : CauseCode::KeyAccess;
  Recv recv;
  recv.id = node.next_id++ | kReceive;
  recv.capacity = r.length;
  const std::uint64_t length = random_.between(1, std::min<std::uint64_t>(r.length, 5000));
  if (!fill_list(e, d, length, Shadow::Use::Gather)) return false;
  const std::vector<ib::Sge> sges = {{r.iova, static_cast<std::uint32_t>(r.length), r.lkey}};
  Orders& orders = t.late ? node.go : node.prepare;
  orders.add(Verb::PostRecv, RecvOrder{recv.id, t.id, false});
  orders.message.put_list(sges);
  t.rq.push_back(std::move(recv));
  d.order.opcode = Opcode::Send;
  d.status = WcStatus::RemOpErr;
  post(e, d);
  Inbound message;
  message.status = WcStatus::LocProtErr;
  expect_message(e, t, d, std::move(message));
  fail(e);
  fail_target(t, std::nullopt);
  return true;
}

// Our own list breaks a rule: nobody else learns of it.
bool Model::local_fault(Endpoint& e, Draft& d) {
  Node& node = nodes_[e.node];
  const Region& r = random_.one_of(node.regions);
  if (!r.live || r.frozen) return false;
  const bool rc = e.type == ib::QpType::Rc;
  if (e.type == ib::QpType::Ud) {
    d.order.remote_qpn = e.qpn;
    d.order.ah = 2 * e.pd;
  }
  d.order.opcode = rc && random_.chance(50) ? Opcode::Read : Opcode::Send;
  d.status = WcStatus::LocProtErr;
  d.length = random_.between(1, std::min<std::uint64_t>(r.length, 200));
  const auto length = static_cast<std::uint32_t>(d.length);
  d.sges = {{r.iova, length, r.lkey}};
  if (rc && random_.chance(20) && r.pd == e.pd && (r.access & ib::kLocalWrite) != 0) {
    d.order.opcode = Opcode::FetchAdd;
    d.sges[0].length = std::min(length, 7U);
    d.status = WcStatus::LocLenErr;
  } else if (random_.chance(30)) {
    d.sges[0].lkey = kNoKey;
    d.cause = CauseCode::KeyUnknown;
  } else if (r.pd != e.pd) {
    d.cause = CauseCode::KeyOtherPd;
  } else if (d.order.opcode == Opcode::Read && (r.access & ib::kLocalWrite) == 0) {
    d.cause = CauseCode::KeyAccess;
  } else {
    d.sges[0].addr = r.iova + r.length - length + 1;
    d.cause = CauseCode::KeyRange;
  }
  post(e, d);
  fail(e);
  return true;
}

// Datagrams that nobody may get; the sender never learns.
bool Model::datagram_fault(Endpoint& e, Draft& d) {
  Endpoint& t = endpoints_[random_.below(endpoints_.size())];
  if (!t.exists) return false;
  d.order.remote_qpn = t.qpn;
  d.order.remote_qkey = t.qkey;
  d.order.ah = 2 * e.pd;
  if (t.type == ib::QpType::Ud) d.order.remote_qkey ^= 1;
  return fill_list(e, d, random_.between(0, 256), Shadow::Use::Gather) ? (post(e, d), true) : false;
}

// Behind a failure, whatever it is.
void Model::post_flushed(Endpoint& e) {
  if (e.posted == e.cap.max_send_wr) return;
  Draft d;
  d.order.opcode = e.type == ib::QpType::Ud ? Opcode::Send : Opcode::Write;
  if (e.type == ib::QpType::Ud) {
    d.order.remote_qpn = e.qpn;
    d.order.ah = 2 * e.pd;
  }
  d.order.rkey = kNoKey;
  d.status = WcStatus::WrFlushErr;
  d.cause = CauseCode::Flushed;
  post(e, d);
}

// What ibv_post_send refuses, and nothing comes of it.
void Model::post_refused(Endpoint& e) {
  Node& node = nodes_[e.node];
  SendOrder order;
  order.qp = e.id;
  order.opcode = Opcode::Send;
  const ib::Sge some{address(node, 0), 1, 0};
  std::vector<ib::Sge> sges;
  auto error = ib::Errc::Invalid;
  if (e.type == ib::QpType::Ud) {
    order.remote_qpn = e.qpn;
    order.ah = 2 * e.pd;
  }
  if (e.posted == e.cap.max_send_wr) {
    error = ib::Errc::NoMemory;
  } else if (random_.chance(30)) {
    sges.assign(e.cap.max_send_sge + 1, some);
  } else if (e.type == ib::QpType::Ud && random_.chance(50)) {
    order.ah = 2 * (1 - e.pd);
  } else if (random_.chance(50)) {
    order.flags = ib::kSendInline;
    sges = {{address(node, 0), e.cap.max_inline + 1, 0}};
  } else if (e.type == ib::QpType::Rc) {
    order.opcode = Opcode::Read;
    order.flags = ib::kSendInline;
  } else {
    order.opcode = e.type == ib::QpType::Uc ? Opcode::Read : Opcode::Write;
  }
  auto& expected = node.go.add(Verb::PostSend, order);
  expected.error = static_cast<int>(error);
  expected.what = "a work request to be refused by " + describe(e);
  node.go.message.put_list(sges);
  ++operations_;
  ++tally_["refused"];
}

}  // namespace vrb::model
