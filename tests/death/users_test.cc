// Users without rights, two users on one host, and processes under system call filters. The users
// 1001 and 1002 need root to become them; without it those tests count as skipped.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "ib/cause.h"
#include "leaks.h"
#include "session.h"
#include "stage.h"

namespace vrb::death {
namespace {

constexpr long kFirstUser = 1001, kSecondUser = 1002;

struct Users : ::testing::Test {
  Process& open(const std::string& name, long uid, const std::string& filter = "") {
    SpawnOptions options;
    options.name = name;
    options.uid = uid;
    options.filter = filter;
    Process& process = stage.start(options);
    open_node(stage, process);
    return process;
  }
  // Data, messages and atomics in both directions, and the end of one is noticed by the other.
  void expect_working(Process& a, Process& b) {
    constexpr std::uint32_t kRounds = 40;
    sessions.complete(a, b, {{kRounds, kAllOps, 0}, {}});
    sessions.complete(b, a, {{kRounds, kAllOps, 0}, {}});
    Session& cut = sessions.add(a, b, {{1'000'000, kAllOps, 1}, {}});
    sessions.run_until([&] { return cut.progress() > 3; }, "progress");
    b.signal(SIGKILL);
    stage.wait_for_death(b);
    sessions.finish(cut);
    cut.expect_error_or_complete();
    stage.quit(a);
  }
  // The initiator's WRs end in error and the target's memory stays as it is.
  void expect_strangers(Process& from, Process& to) {
    SessionPlan plan{{1, kAllOps & ~static_cast<std::uint32_t>(kUd), 0}, {}, true};
    Session& session = sessions.add(from, to, plan);
    sessions.run_until([&] { return session.ran(); }, "the refusal");
    const Outcome& outcome = session.sender();
    EXPECT_EQ(outcome.completed, 0u);
    EXPECT_EQ(outcome.status, static_cast<std::uint32_t>(ib::WcStatus::RetryExcErr));
    EXPECT_EQ(outcome.cause, static_cast<std::uint32_t>(ib::CauseCode::OtherUser));
    Message order;
    order.tag = Tag::Look;
    order.session = session.id();
    const auto looked = stage.ask(to, order, Tag::Looked);
    EXPECT_TRUE(looked && looked->view.untouched);
    session.halt();
    sessions.finish(session);
  }

  Stage stage;
  Sessions sessions{stage};
};

bool is_root() { return geteuid() == 0; }

TEST_F(Users, OneUserWithoutRights) {
  const long uid = is_root() ? kFirstUser : -1;
  expect_working(open("a", uid), open("b", uid));
}

TEST_F(Users, TwoUsersDoNotMeet) {
  if (!is_root()) GTEST_SKIP() << "needs root, to become the users 1001 and 1002";
  Process& first = open("first", kFirstUser);
  Process& second = open("second", kSecondUser);
  Process& root = open("root", -1);
  Process& friendly = open("friendly", kFirstUser);
  expect_strangers(first, second);
  expect_strangers(second, first);
  expect_strangers(root, first);
  expect_strangers(first, root);
  sessions.complete(first, friendly, {{20, kAllOps, 0}, {}});
  for (Process* process : {&first, &second, &root, &friendly}) stage.quit(*process);
}

TEST_F(Users, WithoutCma) { expect_working(open("a", -1, "no-cma"), open("b", -1, "no-cma")); }

TEST_F(Users, WithoutCmaAtTheInitiator) { expect_working(open("a", -1, "no-cma"), open("b", -1)); }

TEST_F(Users, WithoutCmaAtTheTarget) { expect_working(open("a", -1), open("b", -1, "no-cma")); }

TEST_F(Users, UnderTheFilterOfAService) {
  const long uid = is_root() ? kFirstUser : -1;
  expect_working(open("a", uid, "service"), open("b", uid, "service"));
}

TEST_F(Users, ForkUnderTheFilterOfAService) {
  Process& a = open("a", -1, "service");
  Process& b = open("b", -1, "service");
  Message order;
  order.tag = Tag::Fork;
  order.fork = ForkKind::Serve;
  const auto forked = stage.ask(a, order, Tag::Forked);
  ASSERT_TRUE(forked);
  Process& child = stage.adopt(a, "child", static_cast<pid_t>(forked->number));
  ASSERT_TRUE(open_node(stage, child));
  sessions.complete(child, b, {{20, kAllOps, 0}, {}});
  order.tag = Tag::Quit;
  child.send(order);
  expect_working(a, b);
}

}  // namespace
}  // namespace vrb::death
