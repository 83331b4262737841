// Who may meet whom, as a table (A41, A42, W26, W27).
// SPDX-License-Identifier: Apache-2.0
#include "local/trust.h"

#include <gtest/gtest.h>

#include "local/layout.h"

namespace vrb::local {
namespace {

using ib::CauseCode;

Ourselves we() {
  Ourselves us;
  us.uid = 1000;
  us.pid = 100;
  us.user_ns = 1;
  us.pid_ns = 2;
  us.net_ns = 3;
  us.dumpable = true;
  us.layout_version = kLayoutVersion;
  us.initial_user_ns = true;
  return us;
}

Identity they() {
  Identity peer = we();
  peer.pid = 101;
  return peer;
}

CauseCode meet(const Ourselves& us, const Identity& peer, const TrustPolicy& policy = {}) {
  return judge(us, policy, peer).code;
}

template <class T>
T with(T value, auto member, auto to) {
  value.*member = to;
  return value;
}

TEST(Trust, SameUserSameNamespacesDumpable) { EXPECT_EQ(meet(we(), they()), CauseCode::None); }

TEST(Trust, OneThingDifferent) {
  struct Row {
    const char* what;
    Identity peer;
    CauseCode expected;
    CauseCode when_trusted;
  };
  const Row rows[] = {
      {"user", with(they(), &Identity::uid, 1001), CauseCode::OtherUser, CauseCode::None},
      {"root", with(they(), &Identity::uid, 0), CauseCode::OtherUser, CauseCode::None},
      {"user namespace", with(they(), &Identity::user_ns, 9), CauseCode::OtherNamespace,
       CauseCode::None},
      {"pid namespace", with(they(), &Identity::pid_ns, 9), CauseCode::OtherNamespace,
       CauseCode::None},
      {"pid not visible", with(they(), &Identity::pid, 0), CauseCode::OtherNamespace,
       CauseCode::None},
      {"namespace not known", with(they(), &Identity::user_ns, 0), CauseCode::OtherNamespace,
       CauseCode::None},
      {"network namespace", with(they(), &Identity::net_ns, 9), CauseCode::OtherNamespace,
       CauseCode::OtherNamespace},
      {"not dumpable", with(they(), &Identity::dumpable, false), CauseCode::NotDumpable,
       CauseCode::NotDumpable},
      {"wire", with(they(), &Identity::wire_only, true), CauseCode::PeerWantsWire,
       CauseCode::PeerWantsWire},
      {"layout", with(they(), &Identity::layout_version, 77), CauseCode::OtherLayout,
       CauseCode::OtherLayout},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(meet(we(), row.peer), row.expected) << row.what;
    TrustPolicy policy;
    policy.trusted_uids = {row.peer.uid};
    EXPECT_EQ(meet(we(), row.peer, policy), row.when_trusted) << row.what;
    policy.trusted_uids = {4242};
    EXPECT_EQ(meet(we(), row.peer, policy), row.expected) << row.what;
  }
}

TEST(Trust, OurOwnSide) {
  EXPECT_EQ(meet(with(we(), &Ourselves::dumpable, false), they()), CauseCode::NotDumpable);
  EXPECT_EQ(meet(with(we(), &Ourselves::wire_only, true), they()), CauseCode::WireForced);
  // Two processes that know nothing of their namespaces are not in the same.
  Ourselves us = we();
  Identity peer = they();
  us.user_ns = peer.user_ns = 0;
  EXPECT_EQ(meet(us, peer), CauseCode::OtherNamespace);
}

TEST(Trust, TheOverflowUidIsNobody) {
  Ourselves us = we();
  Identity peer = they();
  us.uid = peer.uid = 65534;
  EXPECT_EQ(meet(us, peer), CauseCode::None);  // the user "nobody" of the host
  us.initial_user_ns = false;
  EXPECT_EQ(meet(us, peer), CauseCode::OtherUser);
  TrustPolicy policy;
  policy.trusted_uids = {65534};
  EXPECT_EQ(meet(us, peer, policy), CauseCode::OtherUser);
  us.overflow_uid = 1000;
  us.uid = peer.uid = 1000;
  EXPECT_EQ(meet(us, peer), CauseCode::OtherUser);
}

TEST(Trust, TheUserIsNamed) {
  const ib::Cause cause = judge_user(we(), {}, 1001);
  EXPECT_EQ(cause.args[1], 1001U);
  EXPECT_EQ(cause.args[2], 1000U);
}

TEST(Trust, OurselvesIsKnown) {
  const Ourselves us = ourselves({});
  EXPECT_NE(us.user_ns, 0U);
  EXPECT_NE(us.pid_ns, 0U);
  EXPECT_NE(us.net_ns, 0U);
  EXPECT_EQ(us.layout_version, kLayoutVersion);
}

}  // namespace
}  // namespace vrb::local
