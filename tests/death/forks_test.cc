// A process with live sessions forks: the child goes on, ends, becomes another program, or opens
// the device anew and connects to its parent, and the parent's sessions do not notice.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>

#include "holdings.h"
#include "leaks.h"
#include "session.h"
#include "stage.h"

namespace vrb::death {
namespace {

constexpr std::uint32_t kForever = 1'000'000'000;

struct Forks : ::testing::Test {
  Forks() {
    parent = &stage.start("parent");
    other = &stage.start("other");
    bases = {*open_node(stage, *parent, true), *open_node(stage, *other)};
    outward = &sessions.add(*parent, *other, {{kForever, kAllOps, 1}, {}});
    inward = &sessions.add(*other, *parent, {{kForever, kAllOps, 1}, {}});
    go_on();
  }
  // Both directions make some rounds from now on.
  void go_on() {
    constexpr std::uint32_t kRounds = 10;
    const std::uint32_t out = outward->progress() + kRounds, in = inward->progress() + kRounds;
    sessions.run_until([&] { return outward->progress() >= out && inward->progress() >= in; },
                       "both directions");
  }
  pid_t fork_once(ForkKind kind) {
    Message order;
    order.tag = Tag::Fork;
    order.fork = kind;
    const auto forked = stage.ask(*parent, order, Tag::Forked);
    return forked ? static_cast<pid_t>(forked->number) : 0;
  }
  void end() {
    for (Session* session : {outward, inward}) {
      session->halt();
      sessions.finish(*session);
      session->expect_clean();
    }
    expect_held(stage, *parent, bases[0], 1);
    stage.quit(*parent);
    expect_held(stage, *other, bases[1], 0);
    stage.quit(*other);
  }
  void hush(Process& child) {
    Message order;
    order.tag = Tag::Quit;
    child.send(order);
    while (child.alive()) {
      const Event event = stage.next(child.name());
      if (stage.on_event) stage.on_event(event);
    }
  }

  Stage stage;
  Sessions sessions{stage};
  Process* parent;
  Process* other;
  std::array<Held, 2> bases;
  Session* outward;
  Session* inward;
};

TEST_F(Forks, ChildrenThatEnd) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_NE(fork_once(ForkKind::Exit), 0);
    go_on();
  }
  end();
}

TEST_F(Forks, ChildThatBecomesAnotherProgram) {
  const pid_t pid = fork_once(ForkKind::Exec);
  ASSERT_NE(pid, 0);
  Process& child = stage.adopt(*parent, "child", pid);
  go_on();
  hush(child);
  end();
}

TEST_F(Forks, ChildThatHoldsNothing) {
  const pid_t pid = fork_once(ForkKind::Hold);
  ASSERT_NE(pid, 0);
  Process& child = stage.adopt(*parent, "child", pid);
  stage.hear(child, Tag::Ready);
  go_on();
  for (const std::string& name : descriptor_names(pid)) {
    EXPECT_EQ(name.find("memfd:verbena"), std::string::npos) << name;
  }
  EXPECT_TRUE(bound_inodes(socket_inodes(pid)).empty());
  hush(child);
  end();
}

TEST_F(Forks, ChildThatConnectsToItsParent) {
  const pid_t pid = fork_once(ForkKind::Serve);
  ASSERT_NE(pid, 0);
  Process& child = stage.adopt(*parent, "child", pid);
  ASSERT_TRUE(open_node(stage, child));
  sessions.complete(child, *parent, {{20, kAllOps, 0}, {}});
  sessions.complete(*parent, child, {{20, kAllOps, 0}, {}});
  sessions.complete(child, *other, {{20, kAllOps, 0}, {}});
  sessions.complete(*other, child, {{20, kAllOps, 0}, {}});
  go_on();
  hush(child);
  end();
}

}  // namespace
}  // namespace vrb::death
