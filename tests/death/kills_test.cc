// Kills at random moments: one target lives on while one initiator after the other is killed in the
// middle of its work, forks first, or becomes another program, and the next one comes at once,
// often into the same slot. A third process keeps its own session with the target all the time.
// VERBENA_KILLS says how many, VERBENA_POINTS_SEED which.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>

#include <iostream>
#include <random>

#include "cases.h"
#include "holdings.h"
#include "leaks.h"
#include "network.h"
#include "session.h"
#include "stage.h"

namespace vrb::death {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint32_t kUsualKills = 40;
#else
constexpr std::uint32_t kUsualKills = 200;
#endif
constexpr std::uint32_t kForever = 1'000'000'000;
constexpr std::uint32_t kFreeSlots = 6;
constexpr std::uint32_t kMostProgress = 12;  // rounds that a victim lives at most
constexpr std::uint32_t kKillsBetweenCounts = 20;

std::uint32_t kills() {
  const char* given = std::getenv("VERBENA_KILLS");
  return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                          : kUsualKills;
}

enum class End { Kill, ForkThenKill, Exec };

struct Kills : ::testing::Test {
  Kills() : network(kFreeSlots) {
    target = &stage.start("target");
    other = &stage.start("other");
  }

  Session& begin(Process& victim) {
    open_node(stage, victim);
    return sessions.add(victim, *target, {{kForever, kAllOps, 1}, {}});
  }
  void wait_for_moment(const Session& session, std::uint32_t moment) {
    sessions.run_until(
        [&] {
          switch (moment) {
            case 0:
              return true;
            case 1:
              return session.paired_at(session.from());
            case 2:
              return session.linked();
            default:
              return session.progress() + 2 >= moment;
          }
        },
        "progress of " + session.from().name());
  }
  Process& end_by_kill(Process& victim, bool with_child) {
    Process* child = nullptr;
    if (with_child) child = fork_of(victim);
    const SlotWatch slot(victim);
    victim.signal(SIGKILL);
    Process& next = stage.start("victim" + std::to_string(++count));
    stage.wait_for_death(victim);
    slot.expect_free(stage.title() + (with_child ? " with a child" : ""));
    if (child != nullptr) {
      for (const std::string& name : descriptor_names(child->pid())) {
        EXPECT_EQ(name.find("memfd:verbena"), std::string::npos) << name;
      }
      stage.forget(*child);
    }
    return next;
  }
  Process* fork_of(Process& victim) {
    Message order;
    order.tag = Tag::Fork;
    order.fork = ForkKind::Hold;
    const auto forked = stage.ask(victim, order, Tag::Forked);
    if (!forked) return nullptr;
    Process& child = stage.adopt(victim, "child", static_cast<pid_t>(forked->number));
    stage.hear(child, Tag::Ready);
    return &child;
  }
  Process& end_by_exec(Process& victim, Session& session) {
    const SlotWatch slot(victim);
    Message order;
    order.tag = Tag::Exec;
    victim.send(order);
    session.abandon(victim);
    Message count_order;
    count_order.tag = Tag::Count;
    while (!slot.is_free()) stage.ask(*target, count_order, Tag::Counted);
    Process& next = stage.start("victim" + std::to_string(++count));
    stage.quit(victim);
    return next;
  }

  PrivateNetwork network;
  Stage stage;
  Sessions sessions{stage};
  Process* target;
  Process* other;
  std::uint32_t count = 0;
};

TEST_F(Kills, AtRandomMomentsHarmNobodyElse) {
  std::mt19937_64 random(points_seed());
  std::cout << "VERBENA_POINTS_SEED=" << points_seed() << ", " << kills() << " kills, "
            << (network.made() ? "few" : "all") << " slots free" << std::endl;
  const auto base = open_node(stage, *target);
  const auto other_base = open_node(stage, *other, true);
  ASSERT_TRUE(base && other_base);
  Session& steady = sessions.add(*other, *target, {{kForever, kAllOps, 0}, {}});
  Process* victim = &stage.start("victim0");
  std::uint32_t same_slot = 0, last_slot = ~0U;
  while (count < kills() && !HasFailure()) {
    stage.set_title("kill " + std::to_string(count));
    Session& session = begin(*victim);
    const auto end = static_cast<End>(std::uniform_int_distribution(0, 2)(random));
    const auto moment = static_cast<std::uint32_t>(random() % kMostProgress);
    wait_for_moment(session, moment);
    const std::uint32_t slot = session.endpoint(*victim).srq_qpn >> 14;
    same_slot += slot == last_slot ? 1 : 0;
    last_slot = slot;
    victim = end == End::Exec ? &end_by_exec(*victim, session)
                              : &end_by_kill(*victim, end == End::ForkThenKill);
    sessions.finish(session);
    EXPECT_EQ(session.receiver().wrong, 0u);
    if (count % kKillsBetweenCounts == 0) expect_held(stage, *target, *base, 1);
  }
  std::cout << count << " kills, " << same_slot << " times the slot of the one before" << std::endl;
  steady.halt();
  sessions.finish(steady);
  steady.expect_clean();
  std::cout << steady.sender().rounds << " rounds of the other meanwhile" << std::endl;
  open_node(stage, *victim);
  expect_all_receives(stage, sessions, *victim, *target);
  stage.quit(*victim);
  expect_held(stage, *other, *other_base, 1);
  stage.quit(*other);
  expect_held(stage, *target, *base, 0);
  stage.quit(*target);
}

}  // namespace
}  // namespace vrb::death
