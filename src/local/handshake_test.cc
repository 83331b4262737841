// The handshake between two processes: who becomes whose peer, death, stopping, trust, and that
// nothing leaks.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include "local/party.h"
#include "local/slot.h"
#include "local/test_support.h"

namespace vrb::local::testing {
namespace {

using ib::CauseCode;

std::string state_and_cause(PeerState state, CauseCode code) {
  return std::to_string(static_cast<unsigned>(state)) + " " +
         std::to_string(static_cast<unsigned>(code));
}

// Lets the helper look for the node's slot, with the node serving.
std::string helper_finds(Node& node, Helper& helper) {
  helper.tell("find " + std::to_string(node.slot));
  node.until([&] { return helper.has_answer(); });
  return helper.hear();
}

// A stranger's connections to a slot, without a handshake. Empty: the backlog is full.
Fd raw_connect(std::uint32_t slot) {
  Fd fd = Fd::adopt(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const SlotName name = slot_name(slot);
  if (connect(fd.get(), name.get(), name.length) != 0) return {};
  return fd;
}

bool may_change_user() { return geteuid() == 0 && ourselves({}).initial_user_ns; }

TEST(Handshake, TwoProcessesMeet) {
  Node node;
  Helper helper;
  const auto peer = node.reach_slot(helper.slot);
  ASSERT_EQ(peer->state(), PeerState::Ready);
  EXPECT_EQ(peer->pid, helper.pid());
  EXPECT_TRUE(peer->cma);
  EXPECT_TRUE(peer->alive());
  EXPECT_EQ(peer->tables->header.incarnation, peer->incarnation);
  EXPECT_GT(peer->index, 0U);
  EXPECT_EQ(node.board->find(helper.slot), peer);
  EXPECT_EQ(peer->qp_index(ib::Qpn{helper.slot << 14 | 77}), 77U);
  EXPECT_EQ(peer->qp_index(ib::Qpn{((helper.slot + 1) % ib::kSlots) << 14 | 77}), kQps);
  EXPECT_EQ(helper_finds(node, helper), state_and_cause(PeerState::Ready, CauseCode::None));
}

TEST(Handshake, OurOwnSlotIsSelf) {
  Node node;
  const auto peer = node.board->find(node.slot);
  EXPECT_EQ(peer, node.board->self());
  EXPECT_TRUE(peer->self);
  EXPECT_EQ(peer->state(), PeerState::Ready);
  EXPECT_EQ(peer->index, 0U);
  EXPECT_EQ(peer->tables, &node.memory->tables());
  EXPECT_EQ(peer->qp_index(ib::Qpn{node.slot << 14 | 5}), 5U);
}

TEST(Handshake, ADeadPeerIsNoticedAndItsSlotReached) {
  Node node;
  auto first = std::make_unique<Helper>();
  const std::uint32_t slot = first->slot;
  const auto peer = node.reach_slot(slot);
  ASSERT_EQ(peer->state(), PeerState::Ready);
  ASSERT_EQ(helper_finds(node, *first), state_and_cause(PeerState::Ready, CauseCode::None));
  first->kill(SIGKILL);
  EXPECT_FALSE(peer->alive());
  EXPECT_TRUE(node.until([&] { return peer->state() == PeerState::Dead && node.deaths == 1; }));
  EXPECT_EQ(peer->why().code, CauseCode::PeerDied);
  EXPECT_EQ(peer->tables->header.magic, kMagic);  // still mapped
  Helper second({"--slot=" + std::to_string(slot)});
  ASSERT_EQ(second.slot, slot);
  const auto next = node.reach_slot(slot);
  ASSERT_EQ(next->state(), PeerState::Ready);
  EXPECT_NE(next, peer);
  EXPECT_NE(next->incarnation, peer->incarnation);
}

TEST(Handshake, DeathIsSeenThoughAChildHoldsTheSockets) {
  Node node;
  Helper helper;
  const auto peer = node.reach_slot(helper.slot);
  ASSERT_EQ(peer->state(), PeerState::Ready);
  ASSERT_EQ(helper_finds(node, helper), state_and_cause(PeerState::Ready, CauseCode::None));
  const auto child = static_cast<pid_t>(helper.number("fork"));
  helper.kill(SIGKILL);
  EXPECT_FALSE(peer->alive());
  EXPECT_TRUE(node.until([&] { return peer->state() == PeerState::Dead && node.deaths == 1; }));
  // The listener lives on in the child: nobody answers there, and nobody waits for it for ever.
  const auto again = node.board->find(helper.slot);
  for (int i = 0; i < 5; ++i) node.turn(5'000'000);
  EXPECT_EQ(again->state(), PeerState::Connecting);
  EXPECT_EQ(again->why().code, CauseCode::PeerAbsent);
  kill(child, SIGKILL);
}

TEST(Handshake, DeathIsSeenOnOlderKernels) {
  kernel_mask().peer_pidfd = false;
  kernel_mask().noexec_seal = false;
  {
    Node node;
    Helper helper;
    const auto peer = node.reach_slot(helper.slot);
    ASSERT_EQ(peer->state(), PeerState::Ready);
    const auto child = static_cast<pid_t>(helper.number("fork"));
    helper.kill(SIGKILL);
    EXPECT_FALSE(peer->alive());
    EXPECT_TRUE(node.until([&] { return peer->state() == PeerState::Dead; }));
    const auto again = node.board->find(helper.slot);
    EXPECT_TRUE(node.until([&] { return again->why().code == CauseCode::PeerAbsent; }));
    kill(child, SIGKILL);
  }
  kernel_mask() = {};
}

TEST(Handshake, AbsentUntilItComes) {
  // The port keeps others from the slot; nobody listens at its name.
  SlotSockets reserved;
  std::uint32_t slot = 0;
  do {
    slot = static_cast<std::uint32_t>(random_number() % ib::kSlots);
  } while (bind_slot(slot, reserved) != 0);
  reserved.listener.reset();
  Node node;
  const auto peer = node.board->find(slot);
  node.turn();
  node.turn();
  EXPECT_EQ(peer->state(), PeerState::Connecting);
  EXPECT_EQ(peer->why().code, CauseCode::PeerAbsent);
  EXPECT_LT(node.board->deadline_ns(), now_ns() + 200'000'000);
  reserved = {};
  Helper helper({"--slot=" + std::to_string(slot)});
  ASSERT_EQ(helper.slot, slot);
  EXPECT_TRUE(node.until([&] { return peer->state() == PeerState::Ready; }));
}

TEST(Handshake, AStoppedProcessAnswersWhenItGoesOn) {
  Node node;
  Helper helper;
  helper.kill(SIGSTOP);
  const auto peer = node.board->find(helper.slot);
  node.turn();
  node.turn();
  EXPECT_EQ(peer->state(), PeerState::Connecting);
  EXPECT_EQ(peer->why().code, CauseCode::PeerSilent);
  helper.kill(SIGCONT);
  EXPECT_TRUE(node.until([&] { return peer->state() == PeerState::Ready; }));
}

TEST(Handshake, FullBacklogOfAStoppedProcess) {
  Node node;
  Helper helper;
  helper.kill(SIGSTOP);
  std::vector<Fd> crowd;
  for (Fd fd = raw_connect(helper.slot); fd; fd = raw_connect(helper.slot)) {
    crowd.push_back(std::move(fd));
    ASSERT_LT(crowd.size(), 10'000U);
  }
  const auto peer = node.board->find(helper.slot);
  node.turn();
  node.turn();
  EXPECT_EQ(peer->state(), PeerState::Connecting);
  EXPECT_EQ(peer->why().code, CauseCode::PeerSilent);
  helper.kill(SIGCONT);
  EXPECT_TRUE(node.until([&] { return peer->state() == PeerState::Ready; }));
}

TEST(Handshake, NobodyWaitsForAPeerThatNobodyWants) {
  Node node;
  Helper helper;
  helper.kill(SIGSTOP);
  const unsigned before = open_fds();
  auto peer = node.board->find(helper.slot);
  node.turn();
  node.turn();
  EXPECT_GT(open_fds(), before);
  peer.reset();
  node.turn();
  EXPECT_EQ(open_fds(), before);
  EXPECT_EQ(node.board->deadline_ns(), ~0ULL);
}

TEST(Handshake, WireOnlyIsRefused) {
  Node node;
  Helper helper({"--wire"});
  EXPECT_EQ(node.reach_slot(helper.slot)->why().code, CauseCode::PeerWantsWire);
  EXPECT_EQ(helper_finds(node, helper), state_and_cause(PeerState::Refused, CauseCode::WireForced));
}

TEST(Handshake, UndumpableIsRefused) {
  Node node;
  Helper helper({"--undumpable"});
  const auto peer = node.reach_slot(helper.slot);
  EXPECT_EQ(peer->state(), PeerState::Refused);
  EXPECT_EQ(peer->why().code, CauseCode::NotDumpable);
  EXPECT_EQ(helper_finds(node, helper),
            state_and_cause(PeerState::Refused, CauseCode::NotDumpable));
}

TEST(Handshake, OtherUserIsRefused) {
  if (!may_change_user()) GTEST_SKIP() << "needs root of the host";
  Node node;
  Helper helper({"--uid=1001"});
  const auto peer = node.reach_slot(helper.slot);
  EXPECT_EQ(peer->state(), PeerState::Refused);
  EXPECT_EQ(peer->why().code, CauseCode::OtherUser);
  EXPECT_EQ(peer->why().args[1], 1001U);
  EXPECT_EQ(helper_finds(node, helper), state_and_cause(PeerState::Refused, CauseCode::OtherUser));
}

TEST(Handshake, ATrustedUserIsMet) {
  if (!may_change_user()) GTEST_SKIP() << "needs root of the host";
  TrustPolicy policy;
  policy.trusted_uids = {1001};
  Node node(policy);
  Helper helper({"--uid=1001", "--trust=0"});
  const auto peer = node.reach_slot(helper.slot);
  EXPECT_EQ(peer->state(), PeerState::Ready);
  EXPECT_EQ(helper_finds(node, helper), state_and_cause(PeerState::Ready, CauseCode::None));
  Helper stranger({"--uid=1002"});
  EXPECT_EQ(node.reach_slot(stranger.slot)->why().code, CauseCode::OtherUser);
}

TEST(Handshake, WithoutCma) {
  TrustPolicy policy;
  policy.no_cma = true;
  Node node(policy);
  Helper helper;
  const auto peer = node.reach_slot(helper.slot);
  ASSERT_EQ(peer->state(), PeerState::Ready);
  EXPECT_FALSE(peer->cma);
  EXPECT_EQ(reach(*peer, peer->tables->keys[1], 0, 1), Tier::Assist);
}

TEST(Handshake, PeersCannotWriteTables) {
  Node node;
  Helper helper;
  ASSERT_EQ(helper_finds(node, helper), state_and_cause(PeerState::Ready, CauseCode::None));
  EXPECT_EQ(helper.ask("write-tables"), "0");
  // Nor can whoever opens the file again.
  const std::string path = "/proc/self/fd/" + std::to_string(node.memory->tables_fd());
  const Fd again = Fd::adopt(open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(again);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0), MAP_FAILED);
  EXPECT_EQ(pwrite(again.get(), "x", 1, 0), -1);
  EXPECT_FALSE(punch(again.get(), 0, 4096));
  EXPECT_NE(ftruncate(again.get(), 4096), 0);
  EXPECT_NE(ftruncate(node.memory->shared_fd(), 4096), 0);
  EXPECT_EQ(node.memory->tables().header.magic, kMagic);
}

TEST(Handshake, ManyConnectionsLeakNothing) {
  Node node;
  Node other;
  const auto peer = other.board->find(node.slot);
  ASSERT_TRUE(other.until([&] {
    node.turn();
    return peer->state() == PeerState::Ready;
  }));
  const unsigned before = open_fds();
  for (int i = 0; i < 1000; ++i) {
    // Every third one hangs up without a word.
    Fd fd = raw_connect(node.slot);
    ASSERT_TRUE(fd);
    ControlMessage hello = Party{*other.memory, {}, ourselves({}), other.doorbell(), -1}.message(
        MessageType::Hello, ourselves({}));
    if (i % 3 != 0) {
      ASSERT_TRUE(send_message(fd.get(), hello, {other.doorbell()}));
    }
    if (i % 2 == 0) node.turn();
    fd.reset();
    node.turn();
  }
  node.until([&] { return open_fds() == before; }, 5'000'000'000);
  EXPECT_EQ(open_fds(), before);
  EXPECT_EQ(peer->state(), PeerState::Ready);
}

TEST(Handshake, ManyPeersLeakNothing) {
  Node node;
  const unsigned before = open_fds();
  for (int i = 0; i < 100; ++i) {
    auto other = std::make_unique<Node>();
    const auto peer = node.board->find(other->slot);
    ASSERT_TRUE(node.until([&] {
      other->turn();
      return peer->state() == PeerState::Ready;
    }));
    other.reset();
    ASSERT_TRUE(node.until([&] { return peer->state() == PeerState::Dead; }));
  }
  EXPECT_EQ(open_fds(), before);
}

}  // namespace
}  // namespace vrb::local::testing
