// SPDX-License-Identifier: Apache-2.0
#include "nic/qp_state.h"

#include "ib/limits.h"

namespace vrb::nic {
namespace {

using ib::CauseCode;
using ib::Errc;
using ib::QpState;
using ib::QpType;

constexpr std::uint32_t kMaxTimer = 31;  // five bits
constexpr std::uint32_t kMaxRetries = 7;
constexpr std::uint32_t kMaxQpn = 0xffffff;
constexpr std::uint32_t kPsnBits = 0xffffff;
constexpr std::uint32_t kMaxMigState = 2;  // ibv_mig_state: migrated, rearm, armed
constexpr std::uint8_t kMtu256 = 1;
constexpr std::uint8_t kMtu4096 = 5;
constexpr std::uint32_t kQpAccess = ib::kLocalWrite | ib::kRemoteAccess | ib::kMwBind |
                                    ib::kZeroBased | ib::kOnDemand | ib::kHugetlb |
                                    ib::kOptionalAccess;

struct Masks {
  std::uint32_t needed = 0;
  std::uint32_t allowed = 0;  // besides the needed ones
};

struct Row {
  QpState from;
  QpState to;
  Masks rc, uc, ud;
};

constexpr std::uint32_t kInitConnected = kMaskPkeyIndex | kMaskPort | kMaskAccess;
constexpr std::uint32_t kInitUd = kMaskPkeyIndex | kMaskPort | kMaskQkey;
constexpr std::uint32_t kRtrUc = kMaskAv | kMaskPathMtu | kMaskDestQpn | kMaskRqPsn;
constexpr std::uint32_t kRtrRc = kRtrUc | kMaskMaxDestRdAtomic | kMaskMinRnrTimer;
constexpr std::uint32_t kRtrAllowed = kMaskAltPath | kMaskAccess | kMaskPkeyIndex;
constexpr std::uint32_t kRtsRc =
    kMaskTimeout | kMaskRetryCnt | kMaskRnrRetry | kMaskSqPsn | kMaskMaxRdAtomic;
// What a QP that may already send takes on its way to (or within) RTS.
constexpr std::uint32_t kLiveUc = kMaskCurState | kMaskAltPath | kMaskAccess | kMaskPathMigState;
constexpr std::uint32_t kLiveRc = kLiveUc | kMaskMinRnrTimer;
constexpr std::uint32_t kLiveUd = kMaskCurState | kMaskQkey;
constexpr std::uint32_t kDrainedUc =
    kMaskAv | kMaskAltPath | kMaskAccess | kMaskPkeyIndex | kMaskPathMigState;
constexpr std::uint32_t kDrainedRc = kDrainedUc | kMaskPort | kMaskTimeout | kMaskRetryCnt |
                                     kMaskRnrRetry | kMaskMaxRdAtomic | kMaskMaxDestRdAtomic |
                                     kMaskMinRnrTimer;

// IBTA 11.2.5.2, table of QP state transition properties. Transitions to RESET and ERR are not in
// it: they exist from any state and take nothing.
constexpr Row kRows[] = {
    {QpState::Reset,
     QpState::Init,
     {.needed = kInitConnected},
     {.needed = kInitConnected},
     {.needed = kInitUd}},
    {QpState::Init,
     QpState::Init,
     {.allowed = kInitConnected},
     {.allowed = kInitConnected},
     {.allowed = kInitUd}},
    {QpState::Init,
     QpState::Rtr,
     {.needed = kRtrRc, .allowed = kRtrAllowed},
     {.needed = kRtrUc, .allowed = kRtrAllowed},
     {.allowed = kMaskPkeyIndex | kMaskQkey}},
    {QpState::Rtr,
     QpState::Rts,
     {.needed = kRtsRc, .allowed = kLiveRc},
     {.needed = kMaskSqPsn, .allowed = kLiveUc},
     {.needed = kMaskSqPsn, .allowed = kLiveUd}},
    {QpState::Rts, QpState::Rts, {.allowed = kLiveRc}, {.allowed = kLiveUc}, {.allowed = kLiveUd}},
    {QpState::Rts,
     QpState::Sqd,
     {.allowed = kMaskSqdNotify},
     {.allowed = kMaskSqdNotify},
     {.allowed = kMaskSqdNotify}},
    {QpState::Sqd, QpState::Rts, {.allowed = kLiveRc}, {.allowed = kLiveUc}, {.allowed = kLiveUd}},
    {QpState::Sqd,
     QpState::Sqd,
     {.allowed = kDrainedRc},
     {.allowed = kDrainedUc},
     {.allowed = kMaskPkeyIndex | kMaskQkey}},
    {QpState::Sqe,
     QpState::Rts,
     {},
     {.allowed = kMaskCurState | kMaskAccess},
     {.allowed = kMaskCurState | kMaskQkey}},
};

const Masks* masks_of(const Row& row, QpType type) {
  switch (type) {
    case QpType::Rc:
      return &row.rc;
    case QpType::Uc:
      return &row.uc;
    case QpType::Ud:
      return &row.ud;
  }
  return nullptr;
}

// The masks of a transition; null: there is no such transition.
const Masks* find(QpType type, QpState from, QpState to) {
  static constexpr Masks kNothing{.allowed = kMaskCurState};
  if (from > QpState::Err || to > QpState::Err) return nullptr;
  if (to == QpState::Reset || to == QpState::Err) return &kNothing;
  for (const Row& row : kRows) {
    if (row.from == from && row.to == to) return masks_of(row, type);
  }
  return nullptr;
}

base::Unexpected<ib::Refusal> bad(QpMask bit, std::uint64_t value) {
  return ib::refuse(Errc::Invalid, CauseCode::BadAttribute, bit, value);
}

ib::Result<void> check_port(std::uint8_t port) {
  if (port != 1) return ib::refuse(Errc::Invalid, CauseCode::BadPort, port);
  return {};
}

ib::Result<void> check_av(const AddressVector& av) {
  if (auto ok = check_port(av.port); !ok) return ok;
  if (av.has_grh && av.sgid_index >= ib::kGidTableLength) {
    return ib::refuse(Errc::Invalid, CauseCode::BadGidIndex, av.sgid_index, ib::kGidTableLength);
  }
  return {};
}

struct Bound {
  QpMask bit;
  std::uint64_t value, least, most;
};

ib::Result<void> check_bounds(const QpAttr& a, std::uint32_t mask) {
  const Bound bounds[] = {
      {kMaskPathMtu, a.path_mtu, kMtu256, kMtu4096},
      {kMaskTimeout, a.timeout, 0, kMaxTimer},
      {kMaskMinRnrTimer, a.min_rnr_timer, 0, kMaxTimer},
      {kMaskRetryCnt, a.retry_cnt, 0, kMaxRetries},
      {kMaskRnrRetry, a.rnr_retry, 0, kMaxRetries},
      {kMaskMaxRdAtomic, a.max_rd_atomic, 0, ib::kMaxQpRdAtom},
      {kMaskMaxDestRdAtomic, a.max_dest_rd_atomic, 0, ib::kMaxQpRdAtom},
      {kMaskDestQpn, a.dest_qpn.value, 0, kMaxQpn},
      {kMaskPathMigState, a.path_mig_state, 0, kMaxMigState},
  };
  for (const Bound& b : bounds) {
    if ((mask & b.bit) != 0 && (b.value < b.least || b.value > b.most)) return bad(b.bit, b.value);
  }
  return {};
}

}  // namespace

ib::Result<void> check_transition(QpType type, QpState from, QpState to, std::uint32_t mask) {
  const Masks* masks = find(type, from, to);
  if (masks == nullptr) return ib::refuse(Errc::Invalid, CauseCode::BadTransition, from, to);
  const std::uint32_t given = mask & ~std::uint32_t{kMaskState};
  if ((given & masks->needed) != masks->needed) {
    return ib::refuse(Errc::Invalid, CauseCode::MissingAttributes, from, to, masks->needed, given);
  }
  const std::uint32_t extra = given & ~(masks->needed | masks->allowed);
  if (extra != 0) return ib::refuse(Errc::Invalid, CauseCode::ForbiddenAttributes, from, to, extra);
  return {};
}

ib::Result<void> check_values(const QpAttr& attr, std::uint32_t mask) {
  if ((mask & kMaskPort) != 0) {
    if (auto ok = check_port(attr.port); !ok) return ok;
  }
  if ((mask & kMaskPkeyIndex) != 0 && attr.pkey_index >= ib::kPkeyTableLength) {
    return ib::refuse(Errc::Invalid, CauseCode::BadPkeyIndex, attr.pkey_index);
  }
  if ((mask & kMaskAv) != 0) {
    if (auto ok = check_av(attr.av); !ok) return ok;
  }
  // The device does not announce automatic path migration: an alternate path would never be used.
  if ((mask & kMaskAltPath) != 0) {
    return ib::refuse(Errc::NotSupported, CauseCode::BadAttribute, kMaskAltPath, attr.alt_port);
  }
  if ((mask & kMaskAccess) != 0 && (attr.access & ~kQpAccess) != 0) {
    return bad(kMaskAccess, attr.access);
  }
  return check_bounds(attr, mask);
}

void assign(QpAttr& into, const QpAttr& from, std::uint32_t mask) {
  const auto copy = [mask](QpMask bit, auto& to, const auto& value) {
    if ((mask & bit) != 0) to = value;
  };
  copy(kMaskSqdNotify, into.sqd_notify, from.sqd_notify);
  copy(kMaskAccess, into.access, from.access);
  copy(kMaskPkeyIndex, into.pkey_index, from.pkey_index);
  copy(kMaskPort, into.port, from.port);
  copy(kMaskQkey, into.qkey, from.qkey);
  copy(kMaskAv, into.av, from.av);
  copy(kMaskPathMtu, into.path_mtu, from.path_mtu);
  copy(kMaskTimeout, into.timeout, from.timeout);
  copy(kMaskRetryCnt, into.retry_cnt, from.retry_cnt);
  copy(kMaskRnrRetry, into.rnr_retry, from.rnr_retry);
  copy(kMaskRqPsn, into.rq_psn, from.rq_psn & kPsnBits);
  copy(kMaskMaxRdAtomic, into.max_rd_atomic, from.max_rd_atomic);
  copy(kMaskAltPath, into.alt_av, from.alt_av);
  copy(kMaskAltPath, into.alt_pkey_index, from.alt_pkey_index);
  copy(kMaskAltPath, into.alt_port, from.alt_port);
  copy(kMaskAltPath, into.alt_timeout, from.alt_timeout);
  copy(kMaskMinRnrTimer, into.min_rnr_timer, from.min_rnr_timer);
  copy(kMaskSqPsn, into.sq_psn, from.sq_psn & kPsnBits);
  copy(kMaskMaxDestRdAtomic, into.max_dest_rd_atomic, from.max_dest_rd_atomic);
  copy(kMaskPathMigState, into.path_mig_state, from.path_mig_state);
  copy(kMaskCap, into.cap, from.cap);
  copy(kMaskDestQpn, into.dest_qpn, from.dest_qpn);
  copy(kMaskRateLimit, into.rate_limit, from.rate_limit);
}

std::uint64_t rnr_timer_ns(std::uint8_t field) {
  // In units of 10 us; the first field value stands for the longest time.
  static constexpr std::uint32_t kTens[kMaxTimer + 1] = {
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return std::uint64_t{kTens[field & kMaxTimer]} * 10'000;
}

std::uint64_t ack_timeout_ns(std::uint8_t timeout) {
  return timeout == 0 ? 0 : std::uint64_t{4096} << (timeout & kMaxTimer);
}

}  // namespace vrb::nic
