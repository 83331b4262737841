// The transition table against the specification's, written out again attribute by attribute (IBTA
// 11.2.5.2), and the value checks and timers at their edges.
// SPDX-License-Identifier: Apache-2.0
#include "nic/qp_state.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <sstream>
#include <string>
#include <tuple>

#include "ib/limits.h"

namespace vrb::nic {
namespace {

using ib::CauseCode;
using ib::Errc;
using ib::QpState;
using ib::QpType;

// transport, from, to: attributes that are needed / attributes that may be given besides.
constexpr const char* kSpecification = R"(
RC RESET INIT  : pkey port access / -
RC INIT  INIT  : - / pkey port access
RC INIT  RTR   : av mtu dest_qpn rq_psn dest_rd_atomic rnr_timer / alt access pkey
RC RTR   RTS   : timeout retry rnr_retry sq_psn rd_atomic / cur alt access rnr_timer mig
RC RTS   RTS   : - / cur access alt mig rnr_timer
RC RTS   SQD   : - / notify
RC SQD   RTS   : - / cur alt access rnr_timer mig
RC SQD   SQD   : - / port av timeout retry rnr_retry rd_atomic dest_rd_atomic alt access pkey rnr_timer mig
RC SQE   RTS   : - / -
UC RESET INIT  : pkey port access / -
UC INIT  INIT  : - / pkey port access
UC INIT  RTR   : av mtu dest_qpn rq_psn / alt access pkey
UC RTR   RTS   : sq_psn / cur alt access mig
UC RTS   RTS   : - / cur access alt mig
UC RTS   SQD   : - / notify
UC SQD   RTS   : - / cur alt access mig
UC SQD   SQD   : - / av alt access pkey mig
UC SQE   RTS   : - / cur access
UD RESET INIT  : pkey port qkey / -
UD INIT  INIT  : - / pkey port qkey
UD INIT  RTR   : - / pkey qkey
UD RTR   RTS   : sq_psn / cur qkey
UD RTS   RTS   : - / cur qkey
UD RTS   SQD   : - / notify
UD SQD   RTS   : - / cur qkey
UD SQD   SQD   : - / pkey qkey
UD SQE   RTS   : - / cur qkey
)";

const std::map<std::string, std::uint32_t> kBits = {
    {"-", 0},
    {"cur", 1U << 1},
    {"notify", 1U << 2},
    {"access", 1U << 3},
    {"pkey", 1U << 4},
    {"port", 1U << 5},
    {"qkey", 1U << 6},
    {"av", 1U << 7},
    {"mtu", 1U << 8},
    {"timeout", 1U << 9},
    {"retry", 1U << 10},
    {"rnr_retry", 1U << 11},
    {"rq_psn", 1U << 12},
    {"rd_atomic", 1U << 13},
    {"alt", 1U << 14},
    {"rnr_timer", 1U << 15},
    {"sq_psn", 1U << 16},
    {"dest_rd_atomic", 1U << 17},
    {"mig", 1U << 18},
    {"dest_qpn", 1U << 20},
};
const std::map<std::string, QpType> kTypes = {
    {"RC", QpType::Rc}, {"UC", QpType::Uc}, {"UD", QpType::Ud}};
const std::map<std::string, QpState> kStates = {{"RESET", QpState::Reset}, {"INIT", QpState::Init},
                                                {"RTR", QpState::Rtr},     {"RTS", QpState::Rts},
                                                {"SQD", QpState::Sqd},     {"SQE", QpState::Sqe},
                                                {"ERR", QpState::Err}};
constexpr std::uint32_t kStateBit = 1;
constexpr std::uint32_t kCurBit = 2;

struct Expected {
  std::uint32_t needed = 0, optional = 0;
};
using Key = std::tuple<QpType, QpState, QpState>;

std::map<Key, Expected> specification() {
  std::map<Key, Expected> table;
  std::istringstream lines(kSpecification);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string type, from, to, word;
    if (!(words >> type >> from >> to >> word)) continue;
    Expected e;
    while (words >> word && word != "/") e.needed |= kBits.at(word);
    while (words >> word) e.optional |= kBits.at(word);
    table[{kTypes.at(type), kStates.at(from), kStates.at(to)}] = e;
  }
  for (const auto& [name, type] : kTypes) {
    for (const auto& [from_name, from] : kStates) {
      table[{type, from, QpState::Reset}] = {0, kCurBit};
      table[{type, from, QpState::Err}] = {0, kCurBit};
    }
  }
  return table;
}

template <class F>
void for_each_transition(F f) {
  for (const auto& [name, type] : kTypes) {
    for (const auto& [from_name, from] : kStates) {
      for (const auto& [to_name, to] : kStates) {
        SCOPED_TRACE(name + " " + from_name + " -> " + to_name);
        f(type, from, to);
      }
    }
  }
}

void expect_refused(const ib::Result<void>& result, CauseCode code) {
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().errc, Errc::Invalid);
  EXPECT_EQ(result.error().cause.code, code);
}

TEST(QpTransition, ExactlyThoseOfTheSpecificationExist) {
  const auto table = specification();
  EXPECT_EQ(table.size(), 3 * (9 + 14));
  for_each_transition([&](QpType type, QpState from, QpState to) {
    const auto row = table.find({type, from, to});
    if (row != table.end()) {
      const Expected& e = row->second;
      EXPECT_TRUE(check_transition(type, from, to, e.needed));
      EXPECT_TRUE(check_transition(type, from, to, e.needed | kStateBit));
      EXPECT_TRUE(check_transition(type, from, to, e.needed | e.optional | kStateBit));
    } else {
      const auto result = check_transition(type, from, to, kStateBit);
      expect_refused(result, CauseCode::BadTransition);
      EXPECT_EQ(result.error().cause.args[0], static_cast<std::uint64_t>(from));
      EXPECT_EQ(result.error().cause.args[1], static_cast<std::uint64_t>(to));
    }
  });
}

TEST(QpTransition, EachNeededAttributeIsMissed) {
  for (const auto& [key, e] : specification()) {
    const auto [type, from, to] = key;
    for (std::uint32_t bit = 1; bit != 0; bit <<= 1) {
      if ((e.needed & bit) == 0) continue;
      const std::uint32_t given = (e.needed | e.optional) & ~bit;
      const auto result = check_transition(type, from, to, given | kStateBit);
      expect_refused(result, CauseCode::MissingAttributes);
      EXPECT_EQ(result.error().cause.args[0], static_cast<std::uint64_t>(from));
      EXPECT_EQ(result.error().cause.args[1], static_cast<std::uint64_t>(to));
      EXPECT_EQ(result.error().cause.args[2], e.needed);
      EXPECT_EQ(result.error().cause.args[3], given);
    }
  }
}

TEST(QpTransition, EachForbiddenAttributeIsNamed) {
  for (const auto& [key, e] : specification()) {
    const auto [type, from, to] = key;
    for (std::uint32_t bit = 2; bit != 0; bit <<= 1) {
      const auto result = check_transition(type, from, to, e.needed | kStateBit | bit);
      if (((e.needed | e.optional) & bit) != 0) {
        EXPECT_TRUE(result);
        continue;
      }
      expect_refused(result, CauseCode::ForbiddenAttributes);
      EXPECT_EQ(result.error().cause.args[2], bit) << std::countr_zero(bit);
    }
  }
}

TEST(QpTransition, StatesThatDoNotExist) {
  const auto seven = static_cast<QpState>(7);
  expect_refused(check_transition(QpType::Rc, QpState::Init, seven, kStateBit),
                 CauseCode::BadTransition);
  expect_refused(check_transition(QpType::Rc, seven, QpState::Err, kStateBit),
                 CauseCode::BadTransition);
  expect_refused(check_transition(static_cast<QpType>(8), QpState::Reset, QpState::Init, kStateBit),
                 CauseCode::BadTransition);
}

// An attribute with its largest (or only) allowed value and the first value beyond it.
struct Edge {
  std::uint32_t bit;
  void (*set)(QpAttr&, std::uint32_t);
  std::uint32_t good, bad;
  CauseCode cause;
};

constexpr auto kBad = CauseCode::BadAttribute;
const Edge kEdges[] = {
    {kMaskPort, [](QpAttr& a, auto v) { a.port = std::uint8_t(v); }, 1, 2, CauseCode::BadPort},
    {kMaskPort, [](QpAttr& a, auto v) { a.port = std::uint8_t(v); }, 1, 0, CauseCode::BadPort},
    {kMaskPkeyIndex, [](QpAttr& a, auto v) { a.pkey_index = std::uint16_t(v); }, 0, 1,
     CauseCode::BadPkeyIndex},
    {kMaskPathMtu, [](QpAttr& a, auto v) { a.path_mtu = std::uint8_t(v); }, 5, 6, kBad},
    {kMaskPathMtu, [](QpAttr& a, auto v) { a.path_mtu = std::uint8_t(v); }, 1, 0, kBad},
    {kMaskTimeout, [](QpAttr& a, auto v) { a.timeout = std::uint8_t(v); }, 31, 32, kBad},
    {kMaskMinRnrTimer, [](QpAttr& a, auto v) { a.min_rnr_timer = std::uint8_t(v); }, 31, 32, kBad},
    {kMaskRetryCnt, [](QpAttr& a, auto v) { a.retry_cnt = std::uint8_t(v); }, 7, 8, kBad},
    {kMaskRnrRetry, [](QpAttr& a, auto v) { a.rnr_retry = std::uint8_t(v); }, 7, 8, kBad},
    {kMaskMaxRdAtomic, [](QpAttr& a, auto v) { a.max_rd_atomic = std::uint8_t(v); }, 128, 129,
     kBad},
    {kMaskMaxDestRdAtomic, [](QpAttr& a, auto v) { a.max_dest_rd_atomic = std::uint8_t(v); }, 128,
     129, kBad},
    {kMaskDestQpn, [](QpAttr& a, auto v) { a.dest_qpn = ib::Qpn{v}; }, 0xffffff, 0x1000000, kBad},
    {kMaskPathMigState, [](QpAttr& a, auto v) { a.path_mig_state = std::uint8_t(v); }, 2, 3, kBad},
    {kMaskAccess, [](QpAttr& a, auto v) { a.access = v; }, 0x3ff000ff, 0x100, kBad},
};

TEST(QpValues, EachAtItsEdge) {
  for (const Edge& e : kEdges) {
    SCOPED_TRACE(std::countr_zero(e.bit));
    QpAttr attr;
    e.set(attr, e.good);
    EXPECT_TRUE(check_values(attr, e.bit));
    e.set(attr, e.bad);
    const auto result = check_values(attr, e.bit);
    expect_refused(result, e.cause);
    EXPECT_TRUE(check_values(attr, 0)) << "only what the mask names is looked at";
    if (e.cause == kBad) {
      EXPECT_EQ(result.error().cause.args[0], e.bit);
      EXPECT_EQ(result.error().cause.args[1], e.bad);
    }
  }
}

TEST(QpValues, AddressVector) {
  QpAttr attr;
  attr.av.port = 1;
  attr.av.sgid_index = 200;
  EXPECT_TRUE(check_values(attr, kMaskAv)) << "without a GRH the index means nothing";
  attr.av.has_grh = true;
  expect_refused(check_values(attr, kMaskAv), CauseCode::BadGidIndex);
  attr.av.sgid_index = ib::kGidTableLength - 1;
  EXPECT_TRUE(check_values(attr, kMaskAv));
  attr.av.port = 2;
  expect_refused(check_values(attr, kMaskAv), CauseCode::BadPort);
}

TEST(QpValues, AnAlternatePathIsNotSupported) {
  QpAttr attr;
  attr.alt_port = 1;
  const auto result = check_values(attr, kMaskAltPath);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().errc, Errc::NotSupported);
}

TEST(QpValues, PsnsAreCutTo24BitsAndNotRefused) {
  QpAttr from, into;
  from.rq_psn = 0xff123456;
  from.sq_psn = 0x01abcdef;
  EXPECT_TRUE(check_values(from, kMaskRqPsn | kMaskSqPsn));
  assign(into, from, kMaskRqPsn | kMaskSqPsn);
  EXPECT_EQ(into.rq_psn, 0x123456U);
  EXPECT_EQ(into.sq_psn, 0xabcdefU);
}

TEST(QpValues, AssignTakesJustWhatTheMaskNames) {
  QpAttr from, into;
  from.state = QpState::Rts;
  from.timeout = 14;
  from.retry_cnt = 7;
  from.port = 1;
  from.dest_qpn = ib::Qpn{0x1234};
  from.av.hop_limit = 64;
  assign(into, from, kMaskState | kMaskTimeout | kMaskAv);
  EXPECT_EQ(into.state, QpState::Reset);
  EXPECT_EQ(into.timeout, 14);
  EXPECT_EQ(into.av.hop_limit, 64);
  EXPECT_EQ(into.retry_cnt, 0);
  EXPECT_EQ(into.port, 0);
  EXPECT_EQ(into.dest_qpn, ib::Qpn{});
}

TEST(QpTimers, RnrTable) {
  // Each second value doubles; 0 stands for the longest.
  EXPECT_EQ(rnr_timer_ns(0), 655'360'000U);
  EXPECT_EQ(rnr_timer_ns(1), 10'000U);
  EXPECT_EQ(rnr_timer_ns(2), 20'000U);
  EXPECT_EQ(rnr_timer_ns(3), 30'000U);
  EXPECT_EQ(rnr_timer_ns(12), 640'000U);
  EXPECT_EQ(rnr_timer_ns(31), 491'520'000U);
  for (std::uint8_t field = 2; field + 2 <= 31; ++field) {
    EXPECT_EQ(rnr_timer_ns(std::uint8_t(field + 2)), 2 * rnr_timer_ns(field)) << int{field};
  }
}

TEST(QpTimers, AckTimeout) {
  EXPECT_EQ(ack_timeout_ns(0), 0U);
  EXPECT_EQ(ack_timeout_ns(1), 8'192U);
  EXPECT_EQ(ack_timeout_ns(14), 67'108'864U);
  EXPECT_EQ(ack_timeout_ns(31), 4'096ULL << 31);
}

}  // namespace
}  // namespace vrb::nic
