// For the tests of local: a node (NIC memory, doorbell, switchboard) and helper processes that are
// nodes, too. A helper is the test program itself, started with --role; it answers one command a
// message on a socketpair and ends with its parent. Test code only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "local/slot.h"
#include "local/switchboard.h"
#include "local/transfer.h"

namespace vrb::local::testing {

inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

inline std::uint64_t random_number() {
  std::uint64_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) std::abort();
  return value | 1;
}

// For what must happen: long enough for a loaded machine, ctest's limit is the real one.
constexpr std::uint64_t kPatienceNs = 60'000'000'000;

class Node {
 public:
  explicit Node(TrustPolicy policy = {}, std::uint64_t first_slot = random_number())
      : doorbell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    auto made = NicMemory::create(random_number());
    if (!made) std::abort();
    memory = std::move(*made);
    auto switchboard = Switchboard::create(*memory, std::move(policy), doorbell_);
    if (!switchboard) std::abort();
    board = std::move(*switchboard);
    const auto ordinal = board->take_slot(first_slot);
    if (!ordinal) std::abort();
    slot = board->slot(*ordinal);
    keys = std::make_unique<memory::KeyTable>(std::span(memory->tables().keys));
  }
  ~Node() {
    board.reset();
    close(doorbell_);
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // What a service thread does in one turn, waiting at most `wait_ns`; `extra` wakes it, too.
  void turn(std::uint64_t wait_ns = 0, int extra = -1) {
    const std::uint64_t now = now_ns();
    const std::uint64_t deadline = std::min(board->deadline_ns(), now + wait_ns);
    const std::uint64_t ns = deadline > now ? deadline - now : 0;
    const timespec wait{static_cast<time_t>(ns / 1'000'000'000),
                        static_cast<long>(ns % 1'000'000'000)};
    pollfd p[3] = {{board->poll_fd(), POLLIN, 0}, {doorbell_, POLLIN, 0}, {extra, POLLIN, 0}};
    ppoll(p, 3, &wait, nullptr);
    std::uint64_t count = 0;
    if (read(doorbell_, &count, sizeof count) > 0) rings += count;
    board->dispatch(now_ns());
    auto& due = memory->shared().due[static_cast<std::size_t>(DueKind::Peer)];
    take_due(due, [&](std::uint32_t index) { board->serve_assist(index); });
    for (const std::uint32_t index : board->take_dead()) {
      ++deaths;
      board->release_index(index);
    }
  }
  // Turns until it holds; false when patience ends.
  template <class Predicate>
  bool until(Predicate holds, std::uint64_t patience_ns = kPatienceNs) {
    const std::uint64_t end = now_ns() + patience_ns;
    while (!holds()) {
      if (now_ns() >= end) return false;
      turn(10'000'000);
    }
    return true;
  }
  std::shared_ptr<Peer> reach_slot(std::uint32_t to, std::uint64_t patience_ns = kPatienceNs) {
    std::shared_ptr<Peer> peer = board->find(to);
    until([&] { return peer->state() != PeerState::Connecting; }, patience_ns);
    return peer;
  }

  std::unique_ptr<NicMemory> memory;
  std::unique_ptr<Switchboard> board;
  std::unique_ptr<memory::KeyTable> keys;
  std::uint32_t slot = kNoSlot;
  std::uint64_t rings = 0;
  unsigned deaths = 0;
  int doorbell() const { return doorbell_; }

 private:
  int doorbell_;
};

// A helper process. Its commands are in roles_test.cc.
class Helper {
 public:
  explicit Helper(const std::vector<std::string>& options = {});
  ~Helper();  // SIGKILL, if still there
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // Sends a command and returns the answer.
  std::string ask(const std::string& command);
  void tell(const std::string& command);
  std::string hear();
  bool has_answer() const;
  std::uint64_t number(const std::string& command) {
    return std::strtoull(ask(command).c_str(), nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  void kill(int signal);  // and waits until it is dead, stopped or going on
  std::uint32_t slot = kNoSlot;

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
  bool reaped_ = false;
};

// A listener without a verbena process behind it, at a slot that nobody holds.
inline Fd squat(std::uint32_t& slot) {
  for (;;) {
    slot = static_cast<std::uint32_t>(random_number() % ib::kSlots);
    Fd fd = Fd::adopt(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const SlotName name = slot_name(slot);
    if (bind(fd.get(), name.get(), name.length) == 0 && listen(fd.get(), 16) == 0) return fd;
  }
}

inline unsigned open_fds() {
  unsigned count = 0;
  for (int fd = 0; fd < 4096; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

}  // namespace vrb::local::testing
