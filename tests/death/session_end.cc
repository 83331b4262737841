// SPDX-License-Identifier: Apache-2.0
#include "session_end.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace vrb::death {
namespace {

constexpr std::uint32_t kOwnReceives = 1;  // so that the second SEND of a round meets "not ready"
constexpr std::uint32_t kUdReceives = 4;
constexpr std::uint64_t kUdWrId = 1ULL << 32;
constexpr std::uint32_t kSends = 8;
constexpr std::byte kMark{0xa5};

}  // namespace

SessionEnd::SessionEnd(std::uint32_t id, Nic& nic) : id_(id), nic_(nic) {
  region_ = std::make_unique<Region>(nic.pd(), kRegionBytes);
  inbox_ = std::make_unique<Region>(nic.pd(), (kOwnReceives + kUdReceives) * kMessageBytes);
  qps_.srq = make_qp(ib::QpType::Rc, true, 0);
  qps_.own = make_qp(ib::QpType::Rc, false, kOwnReceives);
  qps_.ud = make_qp(ib::QpType::Ud, false, kUdReceives);
  initiator_ = std::make_unique<Initiator>(id, nic, *region_, qps_);
  to_init(qps_.srq, false);
  to_init(qps_.own, false);
  to_init(qps_.ud, true);
  for (std::uint32_t i = 0; i < kOwnReceives; ++i) post_own(i);
  for (std::uint32_t i = 0; i < kUdReceives; ++i) post_ud(i);
  datagram_to_rts();
}

SessionEnd::~SessionEnd() {
  for (engine::Qp* qp : {qps_.srq, qps_.own, qps_.ud}) need(engine::destroy_qp(qp), "destroy_qp");
}

engine::Qp* SessionEnd::make_qp(ib::QpType type, bool with_srq, std::uint32_t receives) {
  engine::QpInit init;
  init.type = type;
  init.send_cq = init.recv_cq = nic_.cq();
  init.srq = with_srq ? nic_.srq() : nullptr;
  init.cap = {kSends, receives, 1, 1, 64};
  init.handle = this;
  return need(engine::create_qp(nic_.pd(), init), "create_qp");
}

void SessionEnd::to_init(engine::Qp* qp, bool datagram) {
  nic::QpAttr attr;
  attr.state = ib::QpState::Init;
  attr.port = 1;
  attr.access = ib::kRemoteAccess;
  attr.qkey = kQkey;
  const std::uint32_t last = datagram ? nic::kMaskQkey : nic::kMaskAccess;
  need(engine::modify_qp(qp, attr, nic::kMaskState | nic::kMaskPkeyIndex | nic::kMaskPort | last),
       "modify_qp to INIT");
}

void SessionEnd::datagram_to_rts() {
  nic::QpAttr attr;
  attr.state = ib::QpState::Rtr;
  need(engine::modify_qp(qps_.ud, attr, nic::kMaskState), "modify_qp (UD) to RTR");
  attr.state = ib::QpState::Rts;
  need(engine::modify_qp(qps_.ud, attr, nic::kMaskState | nic::kMaskSqPsn),
       "modify_qp (UD) to RTS");
}

void SessionEnd::to_rts(engine::Qp* qp, ib::Qpn remote, const Clocks& clocks) {
  nic::QpAttr attr;
  attr.state = ib::QpState::Rtr;
  attr.path_mtu = 3;
  attr.dest_qpn = remote;
  attr.min_rnr_timer = 1;
  attr.max_dest_rd_atomic = 16;
  attr.av.port = 1;
  need(engine::modify_qp(qp, attr,
                         nic::kMaskState | nic::kMaskAv | nic::kMaskPathMtu | nic::kMaskDestQpn |
                             nic::kMaskRqPsn | nic::kMaskMaxDestRdAtomic | nic::kMaskMinRnrTimer),
       "modify_qp to RTR");
  attr = {};
  attr.state = ib::QpState::Rts;
  attr.timeout = clocks.timeout;
  attr.retry_cnt = clocks.retry_cnt;
  attr.rnr_retry = clocks.rnr_retry;
  attr.max_rd_atomic = 16;
  need(engine::modify_qp(qp, attr,
                         nic::kMaskState | nic::kMaskSqPsn | nic::kMaskTimeout |
                             nic::kMaskRetryCnt | nic::kMaskRnrRetry | nic::kMaskMaxRdAtomic),
       "modify_qp to RTS");
}

void SessionEnd::link(const Endpoint& remote, const Clocks& clocks) {
  remote_ = remote;
  to_rts(qps_.srq, ib::Qpn{remote.srq_qpn}, clocks);
  to_rts(qps_.own, ib::Qpn{remote.own_qpn}, clocks);
}

Endpoint SessionEnd::endpoint() const {
  return {engine::qpn(qps_.srq).value, engine::qpn(qps_.own).value, engine::qpn(qps_.ud).value,
          region_->rkey(), region_->address()};
}

void SessionEnd::withdraw_memory() {
  region_->withdraw();
  std::fill_n(region_->at(0), kRegionBytes, kMark);
  marked_ = true;
}

namespace {

// As the NIC writes it, for nothing but the coordinator's messages orders the two.
std::uint64_t load_word(std::byte* at) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at)).load(std::memory_order_relaxed);
}

}  // namespace

View SessionEnd::look(std::uint32_t round) const {
  View view;
  const std::uint64_t seed = std::uint64_t{id_} << 32 | round;
  view.last_write = has_pattern({region_->at(0), write_bytes(round, false)}, seed);
  const std::byte expected = marked_ ? kMark : std::byte{0};
  view.untouched = std::all_of(region_->at(0), region_->at(kRegionBytes),
                               [=](std::byte byte) { return byte == expected; });
  view.fetch_add = load_word(region_->at(kFetchAddWord));
  view.compare_swap = load_word(region_->at(kCompareSwapWord));
  return view;
}

bool SessionEnd::take_progress(std::uint32_t every) {
  if (initiator_->outcome().rounds < told_ + every) return false;
  told_ += every;
  return true;
}

bool SessionEnd::owns(std::uint32_t qpn) const {
  const Endpoint mine = endpoint();
  return qpn == mine.srq_qpn || qpn == mine.own_qpn || qpn == mine.ud_qpn;
}

void SessionEnd::post_own(std::uint32_t place) {
  const ib::Sge sge = inbox_->sge(place * kMessageBytes, kMessageBytes);
  need(engine::post_recv(qps_.own, {place, {&sge, 1}}), "post_recv");
}

void SessionEnd::post_ud(std::uint32_t place) {
  const ib::Sge sge = inbox_->sge((kOwnReceives + place) * kMessageBytes, kMessageBytes);
  need(engine::post_recv(qps_.ud, {kUdWrId | place, {&sge, 1}}), "post_recv (UD)");
}

void SessionEnd::close() {
  nic::QpAttr attr;
  attr.state = ib::QpState::Err;
  for (engine::Qp* qp : {qps_.srq, qps_.own, qps_.ud}) {
    need(engine::modify_qp(qp, attr, nic::kMaskState), "modify_qp to ERR");
  }
}

void SessionEnd::completed(const nic::Completion& completion) {
  if ((completion.wr_id & kSendWrId) != 0) return initiator_->completed(completion);
  // A receive of a QP that went to the error state comes back empty, and is not posted again.
  if (completion.status == ib::WcStatus::WrFlushErr) return;
  if (completion.status != ib::WcStatus::Success) {
    ++wrong_;
    return;
  }
  arrived(completion);
}

void SessionEnd::arrived(const nic::Completion& completion) {
  if (completion.opcode == ib::WcOpcode::RecvRdmaWithImm) return arrived_imm(completion.imm);
  const std::uint32_t qpn = completion.qpn;
  std::uint64_t number = 0;
  if (qpn == engine::qpn(qps_.srq).value) {
    const bool whole = read_message(nic_.srq_buffer(completion.wr_id), id_, Stream::Srq, number);
    count(Stream::Srq, number, whole);
  } else if (qpn == engine::qpn(qps_.own).value) {
    const auto place = static_cast<std::uint32_t>(completion.wr_id);
    const bool whole = read_message(inbox_->at(place * kMessageBytes), id_, Stream::Own, number);
    count(Stream::Own, number, whole);
    post_own(place);
  } else {
    const auto place = static_cast<std::uint32_t>(completion.wr_id);
    const std::byte* at = inbox_->at((kOwnReceives + place) * kMessageBytes) + ib::kGrhBytes;
    const bool whole = read_message(at, id_, Stream::Ud, number);
    count(Stream::Ud, number, whole);
    post_ud(place);
  }
}

void SessionEnd::arrived_imm(std::uint32_t number) {
  count(Stream::Srq, number, has_pattern({region_->at(imm_place(number)), kImmBytes}, number));
}

// RC streams are whole and in order; datagrams may be lost, never doubled or overtaken.
void SessionEnd::count(Stream stream, std::uint64_t number, bool whole) {
  const auto which = static_cast<std::size_t>(stream);
  const bool in_order =
      stream == Stream::Ud ? number >= expected_[which] : number == expected_[which];
  if (!whole || !in_order) ++wrong_;
  expected_[which] = number + 1;
  ++received_[which];
}

Outcome SessionEnd::outcome() const {
  Outcome outcome = initiator_->outcome();
  outcome.received = received_;
  outcome.wrong += wrong_;
  return outcome;
}

}  // namespace vrb::death
