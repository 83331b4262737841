// Hostile conversation with a live switchboard, from both sides: seeded random messages and
// descriptors.
// SPDX-License-Identifier: Apache-2.0
#include "local/control.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

#include <cstring>
#include <random>

#include "local/party.h"
#include "local/slot.h"
#include "local/test_support.h"

namespace vrb::local::testing {
namespace {

Fd connect_to(std::uint32_t slot) {
  Fd fd = Fd::adopt(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const SlotName name = slot_name(slot);
  if (connect(fd.get(), name.get(), name.length) != 0) return {};
  return fd;
}

// Any bytes with any descriptors, straight to sendmsg.
bool send_raw(int socket, const void* data, std::size_t size, const std::vector<int>& fds) {
  iovec bytes{const_cast<void*>(data), size};
  std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
  }
  return sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

// Descriptors of many kinds, to be sent where others are expected.
class Zoo {
 public:
  Zoo() {
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) std::abort();
    add(pipe_ends[0]);
    add(pipe_ends[1]);
    add(eventfd(0, EFD_CLOEXEC));  // a blocking one
    add(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    add(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
    add(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    add(open("/dev/zero", O_RDWR | O_CLOEXEC));
    add(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    for (const std::uint64_t bytes : {std::uint64_t{0}, kTablesBytes, kSharedBytes}) {
      for (const int seals :
           {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE}) {
        auto file = make_file("zoo", bytes);
        if (!file) std::abort();
        add_seals(file->get(), static_cast<unsigned>(seals));
        animals_.push_back(std::move(*file));
      }
    }
  }
  int any(std::mt19937_64& random) const { return animals_[random() % animals_.size()].get(); }

 private:
  void add(int fd) { animals_.push_back(Fd::adopt(fd)); }
  std::vector<Fd> animals_;
};

// A message that is right but for a few random bytes, or all random, or of a random size.
std::vector<std::byte> any_message(std::mt19937_64& random, ControlMessage right) {
  std::vector<std::byte> bytes(sizeof right);
  std::memcpy(bytes.data(), &right, sizeof right);
  const unsigned how = static_cast<unsigned>(random() % 8);
  if (how == 0) {
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  } else if (how < 5) {
    for (unsigned i = 0; i < how; ++i)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
  } else if (how == 5) {
    bytes.resize(random() % 300);
  }
  return bytes;
}

std::vector<int> any_fds(std::mt19937_64& random, const Zoo& zoo, std::vector<int> right) {
  switch (random() % 4) {
    case 0:
      return right;
    case 1:
      return {};
    case 2:
      if (!right.empty()) right[random() % right.size()] = zoo.any(random);
      return right;
    default: {
      std::vector<int> fds(random() % 12);
      for (int& fd : fds) fd = zoo.any(random);
      return fds;
    }
  }
}

TEST(ControlFuzz, StrangersThatConnect) {
  Node node;
  Node other;
  const Zoo zoo;
  const Party party{*other.memory, {}, ourselves({}), other.doorbell(), -1};
  const unsigned before = open_fds();
  std::mt19937_64 random(20240501);
  std::vector<Fd> connections;
  for (int i = 0; i < 5000; ++i) {
    if (connections.size() < 100) {
      Fd fd = connect_to(node.slot);
      if (fd) connections.push_back(std::move(fd));
    }
    if (!connections.empty()) {
      const int to = connections[random() % connections.size()].get();
      const auto type = static_cast<MessageType>(1 + random() % 4);
      const auto message = any_message(random, party.message(type, party.us()));
      send_raw(to, message.data(), message.size(), any_fds(random, zoo, {other.doorbell()}));
      if (random() % 3 == 0)
        connections.erase(connections.begin() +
                          static_cast<std::ptrdiff_t>(random() % connections.size()));
    }
    if (random() % 2 == 0) node.turn();
  }
  connections.clear();
  node.until([&] { return open_fds() == before; }, 5'000'000'000);
  EXPECT_EQ(open_fds(), before);
  // It still serves an honest peer.
  const auto peer = other.board->find(node.slot);
  EXPECT_TRUE(other.until([&] {
    node.turn();
    return peer->state() == PeerState::Ready;
  }));
}

TEST(ControlFuzz, ListenersThatAnswerNonsense) {
  std::uint32_t slot = 0;
  const Fd listener = squat(slot);
  Node node;
  Node other;
  const Zoo zoo;
  const Party party{*other.memory, {}, ourselves({}), other.doorbell(), -1};
  const unsigned before = open_fds();
  std::mt19937_64 random(77);
  unsigned ready = 0, refused = 0;
  for (int i = 0; i < 1500; ++i) {
    auto peer = node.board->find(slot);
    node.turn();
    Fd connection =
        Fd::adopt(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection) {
      ControlMessage welcome =
          party.message(static_cast<MessageType>(2 + random() % 2), party.us());
      welcome.index = static_cast<std::uint32_t>(1 + random() % 2000);
      welcome.header_at =
          random() % 2 == 0 ? random() : reinterpret_cast<std::uint64_t>(&other.memory->tables());
      welcome.cause = static_cast<std::uint32_t>(random() % 64);
      const auto message = any_message(random, welcome);
      const auto fds = any_fds(
          random, zoo, {other.memory->tables_fd(), other.memory->shared_fd(), other.doorbell()});
      send_raw(connection.get(), message.data(), message.size(), fds);
    }
    node.turn();
    ready += peer->state() == PeerState::Ready ? 1 : 0;
    refused += peer->state() == PeerState::Refused ? 1 : 0;
    const bool explained = peer->why().code != ib::CauseCode::None;
    EXPECT_TRUE(explained || peer->state() == PeerState::Ready);
    connection.reset();
    peer.reset();
    node.turn();
  }
  EXPECT_GT(ready, 0U);
  EXPECT_GT(refused, 0U);
  node.until([&] { return open_fds() == before; }, 5'000'000'000);
  EXPECT_EQ(open_fds(), before);
}

TEST(Control, SilentConnectionsAreDroppedAndNeverMany) {
  Node node;
  const unsigned before = open_fds();
  std::vector<Fd> silent;
  for (int i = 0; i < 300; ++i) {
    Fd fd = connect_to(node.slot);
    if (fd) silent.push_back(std::move(fd));
    node.turn();
  }
  EXPECT_LE(open_fds(), before + silent.size() + 64);
  Helper helper;
  helper.tell("find " + std::to_string(node.slot));
  EXPECT_TRUE(node.until([&] { return helper.has_answer(); }));
  EXPECT_EQ(helper.hear(), "1 0");
  const std::uint64_t start = now_ns();
  const std::size_t members = 4;  // the helper's, with room
  EXPECT_TRUE(node.until([&] { return open_fds() <= before + silent.size() + members + 1; }));
  EXPECT_LT(now_ns() - start, 10'000'000'000U);
  EXPECT_TRUE(node.until([&] { return node.board->deadline_ns() == ~0ULL; }));
}

TEST(Control, ASquatterThatNeverAnswersHoldsNobodyUp) {
  std::uint32_t slot = 0;
  const Fd squatter = squat(slot);
  Node node;
  const auto peer = node.board->find(slot);
  node.turn();
  node.turn();
  EXPECT_EQ(peer->state(), PeerState::Connecting);
  EXPECT_EQ(peer->why().code, ib::CauseCode::PeerSilent);
  Helper helper;
  EXPECT_EQ(node.reach_slot(helper.slot)->state(), PeerState::Ready);
}

TEST(Control, ATightDescriptorLimitIsSurvived) {
  Node node;
  Helper helper;
  rlimit old{};
  getrlimit(RLIMIT_NOFILE, &old);
  int highest = 0;
  for (int fd = 0; fd < 4096; ++fd) highest = fcntl(fd, F_GETFD) >= 0 ? fd : highest;
  std::vector<Fd> fill;
  const rlimit tight{static_cast<rlim_t>(highest) + 3, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  for (int fd = dup(0); fd >= 0; fd = dup(0)) fill.push_back(Fd::adopt(fd));
  helper.tell("find " + std::to_string(node.slot));
  for (int i = 0; i < 20; ++i) node.turn(1'000'000);
  const auto peer = node.board->find(helper.slot);
  node.turn();
  node.turn();
  EXPECT_EQ(peer->state(), PeerState::Connecting);
  EXPECT_EQ(peer->why().code, ib::CauseCode::SystemRefused);
  EXPECT_FALSE(helper.has_answer());
  fill.clear();
  setrlimit(RLIMIT_NOFILE, &old);
  EXPECT_TRUE(node.until([&] { return helper.has_answer(); }));
  EXPECT_EQ(helper.hear(), "1 0");
  EXPECT_TRUE(node.until([&] { return peer->state() == PeerState::Ready; }));
}

TEST(Control, IsDoorbell) {
  const Fd right = Fd::adopt(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const Fd blocking = Fd::adopt(eventfd(0, EFD_CLOEXEC));
  const Fd timer = Fd::adopt(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  const Fd file = Fd::adopt(open("/dev/null", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  EXPECT_TRUE(is_doorbell(right.get()));
  EXPECT_FALSE(is_doorbell(blocking.get()));
  EXPECT_FALSE(is_doorbell(timer.get()));
  EXPECT_FALSE(is_doorbell(file.get()));
  EXPECT_FALSE(is_doorbell(-1));
}

}  // namespace
}  // namespace vrb::local::testing
