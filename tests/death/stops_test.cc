// A process that is stopped: as a target while others write and read its memory, at connect, with a
// claim on queues that others use, and inside a lane while the owner takes the memory away.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <iostream>

#include "cases.h"
#include "ib/cause.h"
#include "leaks.h"
#include "session.h"
#include "stage.h"

namespace vrb::death {
namespace {

struct Stops : ::testing::Test {
  Process& open(const std::string& name, bool polling = false, std::uint32_t cq_entries = 0) {
    Process& process = stage.start(name);
    open_node(stage, process, polling, cq_entries);
    return process;
  }
  // A node that stops when it passes a point for the n-th time.
  Process& open_with_point(const std::string& name, const std::string& point) {
    SpawnOptions options;
    options.name = name;
    options.environment = {{"VERBENA_POINT", point}};
    Process& process = stage.start(options);
    open_node(stage, process);
    return process;
  }
  void wait_until_ran(const Session& session) {
    sessions.run_until([&] { return session.ran(); }, session.from().name() + "'s work");
  }
  View look(Process& process, const Session& session, std::uint32_t round) {
    Message order;
    order.tag = Tag::Look;
    order.session = session.id();
    order.number = round;
    const auto looked = stage.ask(process, order, Tag::Looked);
    return looked ? looked->view : View{};
  }
  void stop(Process& process) {
    process.signal(SIGSTOP);
    stage.wait_for_stop(process);
  }

  Stage stage;
  Sessions sessions{stage};
};

TEST_F(Stops, OneSidedOperationsGoOnWhileTheTargetIsStopped) {
  constexpr std::uint32_t kRounds = 200, kMessages = 20, kAtomicRounds = 5;
  Process& target = open("target");
  Process& initiator = open("initiator", true);
  Process& third = open("third");
  Session& session = sessions.add(initiator, target, {{1, kAllOps, 0}, {}, true});
  wait_until_ran(session);
  stop(target);
  session.again({kRounds, kWrite | kRead | kLong, 0});
  wait_until_ran(session);
  EXPECT_EQ(session.sender().rounds, kRounds);
  session.again({kMessages, kWrite | kSend, 0});
  wait_until_ran(session);
  EXPECT_EQ(session.sender().rounds, kMessages);
  EXPECT_EQ(target.state(), Process::State::Stopped);
  session.again({kAtomicRounds, kAtomics, 0});
  sessions.complete(initiator, third, {{20, kAllOps, 0}, {}});
  target.signal(SIGCONT);
  wait_until_ran(session);
  EXPECT_EQ(session.sender().rounds, kAtomicRounds);
  const View view = look(target, session, kRounds + kMessages);
  EXPECT_TRUE(view.last_write);
  EXPECT_EQ(view.fetch_add, 3 * (kAtomicRounds + 1));
  EXPECT_EQ(view.compare_swap, kAtomicRounds + 1);
  session.halt();
  sessions.finish(session);
  session.expect_clean();
  for (Process* process : {&initiator, &third, &target}) stage.quit(*process);
}

// Connections that say nothing, until the listener of a stopped process takes no more.
class FullBacklog {
 public:
  explicit FullBacklog(std::uint32_t slot) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "verbena/" + std::to_string(slot);
    name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    for (;;) {
      const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      sockets_.push_back(fd);
      if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) return;
    }
  }
  ~FullBacklog() {
    for (const int fd : sockets_) close(fd);
  }
  FullBacklog(const FullBacklog&) = delete;
  FullBacklog& operator=(const FullBacklog&) = delete;
  std::size_t taken() const { return sockets_.size() - 1; }

 private:
  std::vector<int> sockets_;
};

constexpr std::uint32_t kByHand = 1000;  // a session that Sessions does not know

struct StoppedAtConnect : Stops {
  // Pairs both, links the target, stops it, and links the initiator: modify_qp must not wait.
  void link_to_stopped(Process& initiator, Process& target, const Clocks& clocks) {
    Message order;
    order.session = kByHand;
    order.clocks = clocks;
    order.tag = Tag::Pair;
    const auto ours = stage.ask(initiator, order, Tag::Paired);
    const auto theirs = stage.ask(target, order, Tag::Paired);
    ASSERT_TRUE(ours && theirs);
    order.tag = Tag::Link;
    order.end = ours->end;
    ASSERT_TRUE(stage.ask(target, order, Tag::Linked));
    stop(target);
    order.end = theirs->end;
    ASSERT_TRUE(stage.ask(initiator, order, Tag::Linked));
  }
  Message run_order() {
    Message order;
    order.tag = Tag::Run;
    order.session = kByHand;
    order.work = {3, kAllOps & ~static_cast<std::uint32_t>(kUd), 0};
    return order;
  }
};

TEST_F(StoppedAtConnect, EndsInRetryExceeded) {
  Process& target = open("target");
  Process& initiator = open("initiator");
  ASSERT_NO_FATAL_FAILURE(link_to_stopped(initiator, target, {10, 7, 7}));
  const auto ran = stage.ask(initiator, run_order(), Tag::Ran);
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->outcome.rounds, 0u);
  EXPECT_EQ(ran->outcome.status, static_cast<std::uint32_t>(ib::WcStatus::RetryExcErr));
  EXPECT_EQ(ran->outcome.cause, static_cast<std::uint32_t>(ib::CauseCode::PeerSilent));
  target.signal(SIGCONT);
  stage.quit(initiator);
  stage.quit(target);
}

TEST_F(StoppedAtConnect, SucceedsWhenItGoesOnInTime) {
  Process& target = open("target");
  Process& initiator = open("initiator");
  ASSERT_NO_FATAL_FAILURE(link_to_stopped(initiator, target, {20, 7, 7}));
  initiator.send(run_order());
  target.signal(SIGCONT);
  Event event;
  do event = stage.next("the work");
  while (event.kind != Event::Kind::Said || event.message.tag != Tag::Ran);
  EXPECT_EQ(event.message.outcome.rounds, 3u);
  EXPECT_EQ(event.message.outcome.failed, 0u);
  stage.quit(initiator);
  stage.quit(target);
}

TEST_F(StoppedAtConnect, AFullBacklogIsTriedAgain) {
  Process& target = open("target");
  Process& initiator = open("initiator");
  Process& third = open("third");
  Message order;
  order.session = kByHand;
  order.tag = Tag::Pair;
  const auto paired = stage.ask(target, order, Tag::Paired);
  ASSERT_TRUE(paired);
  stop(target);
  auto backlog = std::make_unique<FullBacklog>(paired->end.srq_qpn >> 14);
  EXPECT_GT(backlog->taken(), 1u);
  order.clocks = {20, 7, 7};
  const auto ours = stage.ask(initiator, order, Tag::Paired);
  ASSERT_TRUE(ours);
  order.tag = Tag::Link;
  order.end = paired->end;
  ASSERT_TRUE(stage.ask(initiator, order, Tag::Linked));
  initiator.send(run_order());
  sessions.complete(initiator, third, {{20, kAllOps, 0}, {}});
  target.signal(SIGCONT);
  order.end = ours->end;
  target.send(order);
  Event event;
  do event = stage.next("the work");
  while (event.kind != Event::Kind::Said || event.message.tag != Tag::Ran);
  EXPECT_EQ(event.message.outcome.rounds, 3u);
  backlog.reset();
  for (Process* process : {&initiator, &third, &target}) stage.quit(*process);
}

#if defined(VERBENA_POINTS)

// Names of points differ in dots and underscores alone.
std::string name_of(const ::testing::TestParamInfo<const char*>& point) {
  std::string name;
  for (const char c : std::string(point.param))
    name += c == '.' ? std::string("__") : std::string(1, c);
  return name;
}

struct WithClaim : Stops, ::testing::WithParamInterface<const char*> {};

// A27: steps over what is claimed and not published, for as long as it takes.
TEST_P(WithClaim, TwoOthersGoOn) {
  const std::uint32_t operations = sample_divisor() == 1 ? 100'000 : 10'000;
  const std::uint32_t rounds = operations / 9 / 2 + 1;
  // Larger than all their receives: the claim uses the ring up.
  Process& target = open("target", false, 2 * operations);
  Process& first = open("first", true);
  Process& second = open("second");
  Process& third = open_with_point("third", std::string(GetParam()) + ":stop:5");
  Session& stuck = sessions.add(third, target, {{50, kAllOps, 0}, {}});
  sessions.run_until([&] { return third.state() == Process::State::Stopped; }, "the stop");
  Session& one = sessions.add(first, target, {{rounds, kAllOps, 0}, {}});
  Session& two = sessions.add(second, target, {{rounds, kAllOps, 0}, {}});
  sessions.finish(one);
  sessions.finish(two);
  one.expect_complete();
  two.expect_complete();
  EXPECT_EQ(third.state(), Process::State::Stopped);
  third.signal(SIGCONT);
  sessions.finish(stuck);
  stuck.expect_complete();
  expect_all_receives(stage, sessions, first, target);
  for (Process* process : {&first, &second, &third, &target}) stage.quit(*process);
}

INSTANTIATE_TEST_SUITE_P(Point, WithClaim,
                         ::testing::Values("recv_claimed", "recv.claimed", "data.moved",
                                           "cq_claimed", "cqe.claimed", "cq_body_written",
                                           "cqe.published", "recv_done", "arm.seen", "event.due"),
                         name_of);

// A claim that has used up a small ring holds the others back, and is no overrun (A27).
TEST_F(Stops, ASmallRingIsUsedUpUntilItGoesOn) {
  Process& target = open("target", false, 64);
  Process& first = open("first", true);
  Process& third = open_with_point("third", "cqe.claimed:stop:5");
  Session& stuck = sessions.add(third, target, {{50, kAllOps, 0}, {}});
  sessions.run_until([&] { return third.state() == Process::State::Stopped; }, "the stop");
  Session& one = sessions.add(first, target, {{200, kAllOps, 1}, {}});
  sessions.run_until([&] { return one.progress() >= 8; }, "progress");
  third.signal(SIGCONT);
  sessions.finish(one);
  one.expect_complete();
  sessions.finish(stuck);
  stuck.expect_complete();
  for (Process* process : {&first, &third, &target}) stage.quit(*process);
}

struct Sleepers : Stops, ::testing::WithParamInterface<const char*> {};

// A29: the sender publishes a completion and dies before the sleeping target has been told.
TEST_P(Sleepers, WakeWhenTheSenderDies) {
  SpawnOptions options;
  options.name = "sender";
  options.environment = {{"VERBENA_POINT", std::string(GetParam()) + ":kill:20"}};
  Process& sender = stage.start(options);
  open_node(stage, sender);
  Process& target = stage.start("target");
  Message order;
  order.tag = Tag::Open;
  order.tell_arrivals = true;
  ASSERT_TRUE(stage.ask(target, order, Tag::Opened));
  stage.expect_death(sender);
  Session& session = sessions.add(sender, target, {{1000, kSend, 1}, {}, true});
  // Nobody orders anything from the target after the end, so that only its event can wake it.
  for (std::uint32_t arrived = 0; sender.alive() || arrived < session.progress() + 1;) {
    const Event event = stage.next("the last message");
    if (event.message.tag == Tag::Arrived) arrived = event.message.number;
    session.on_event(event);
    session.step();
  }
  session.give_up();
  sessions.finish(session);
  EXPECT_EQ(session.receiver().received[0], session.progress() + 1);
  EXPECT_EQ(session.receiver().wrong, 0u);
  stage.quit(target);
}

INSTANTIATE_TEST_SUITE_P(Point, Sleepers,
                         ::testing::Values("cqe.published", "recv_done", "recv.finished",
                                           "arm.seen", "due.word", "due.summary", "event.due"),
                         name_of);

struct InsideALane : Stops, ::testing::WithParamInterface<const char*> {};

TEST_P(InsideALane, DeregReturnsAndTheMemoryStaysAsItIs) {
  Process& target = open("target");
  Process& third = open_with_point("third", std::string(GetParam()) + ":stop:2");
  Session& session = sessions.add(third, target, {{50, kWrite | kRead | kLong, 0}, {}, true});
  sessions.run_until([&] { return third.state() == Process::State::Stopped; }, "the stop");
  Message order;
  order.tag = Tag::Dereg;
  order.session = session.id();
  const auto done = stage.ask(target, order, Tag::Deregistered);
  ASSERT_TRUE(done);
  std::cout << "dereg took " << done->view.took_us << " us" << std::endl;
  EXPECT_EQ(third.state(), Process::State::Stopped);
  third.signal(SIGCONT);
  wait_until_ran(session);
  EXPECT_GT(session.sender().failed, 0u);
  EXPECT_TRUE(look(target, session, 0).untouched);
  session.halt();
  sessions.finish(session);
  Process& fresh = open("fresh");
  sessions.complete(fresh, target, {{5, kAllOps, 0}, {}});
  for (Process* process : {&fresh, &third, &target}) stage.quit(*process);
}

INSTANTIATE_TEST_SUITE_P(Point, InsideALane,
                         ::testing::Values("lane.entered", "data.copied", "lane.leaving"), name_of);

#endif

}  // namespace
}  // namespace vrb::death
