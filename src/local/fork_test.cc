// The child of a fork lets go of everything, and may start anew.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "local/slot.h"
#include "local/test_support.h"

namespace vrb::local::testing {
namespace {

// What the child finds; 0 = all is well.
int child_finds(std::unique_ptr<Node>& node, std::shared_ptr<Peer>& peer,
                const std::vector<int>& fds) {
  node->board->abandon();
  node->memory->abandon();
  for (const int fd : fds) {
    if (fcntl(fd, F_GETFD) >= 0) return 1;
  }
  // New ones take the same numbers; the end of the old objects must not close them.
  Node fresh;
  const unsigned before = open_fds();
  peer.reset();
  node->board.reset();
  node->memory.reset();
  if (open_fds() != before) return 2;
  if (fresh.memory->tables().header.magic != kMagic) return 3;
  Helper helper;
  return fresh.reach_slot(helper.slot)->state() == PeerState::Ready ? 0 : 4;
}

TEST(Fork, TheChildLetsGo) {
  auto node = std::make_unique<Node>();
  auto helper = std::make_unique<Helper>();
  auto peer = node->reach_slot(helper->slot);
  ASSERT_EQ(peer->state(), PeerState::Ready);
  std::vector<int> fds;
  for (int fd = 512; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) fds.push_back(fd);
  }
  ASSERT_GE(fds.size(), 8U);
  int wait_pipe[2];
  ASSERT_EQ(pipe2(wait_pipe, O_CLOEXEC), 0);
  node->board->hold();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int found = child_finds(node, peer, fds);
    if (write(wait_pipe[1], &found, sizeof found) < 0) _exit(9);
    for (;;) pause();
  }
  node->board->let_go();
  int found = -1;
  ASSERT_EQ(read(wait_pipe[0], &found, sizeof found), static_cast<ssize_t>(sizeof found));
  EXPECT_EQ(found, 0);
  // The parent is unharmed ...
  EXPECT_TRUE(peer->alive());
  node->turn();
  EXPECT_EQ(peer->state(), PeerState::Ready);
  // ... and its slot is free when it goes, though the child lives on.
  const std::uint32_t slot = node->slot;
  peer.reset();
  node.reset();
  SlotSockets sockets;
  EXPECT_EQ(bind_slot(slot, sockets), 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(wait_pipe[0]);
  close(wait_pipe[1]);
}

}  // namespace
}  // namespace vrb::local::testing
