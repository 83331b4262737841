// SPDX-License-Identifier: Apache-2.0
#include "coordinator.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>

extern char** environ;

namespace vrb::model {
namespace {

void must(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string(what) + " failed");
}

}  // namespace

Coordinator::Coordinator(const Layout& layout) : layout_(layout), links_(layout.process_of.size()) {
  for (std::size_t i = 0; i < links_.size(); ++i) open_link(links_[i], i);
  const std::uint32_t processes = *std::ranges::max_element(layout.process_of) + 1;
  for (std::uint32_t p = 0; p < processes; ++p) spawn(p);
}

Coordinator::~Coordinator() {
  for (const Link& link : links_) {
    close(link.socket);
    close(link.memfd);
    munmap(const_cast<std::byte*>(link.memory.data()), kArenaBytes);
  }
  for (const pid_t child : children_) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

void Coordinator::open_link(Link& link, std::size_t rank) {
  int pair[2] = {};
  must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
  link.socket = pair[0];
  link.their_socket = pair[1];
  link.shares = rank % 4 == 0 || rank % 4 == 3;
  link.memfd = memfd_create("verbena-model", MFD_CLOEXEC);
  must(link.memfd >= 0 && ftruncate(link.memfd, kArenaBytes) == 0, "memfd_create");
  void* const at = mmap(nullptr, kArenaBytes, PROT_READ, MAP_SHARED, link.memfd, 0);
  must(at != MAP_FAILED, "mmap");
  link.memory = {static_cast<const std::byte*>(at), kArenaBytes};
}

void Coordinator::spawn(std::uint32_t process) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  std::vector<std::string> words = {"model_rank", "--role=rank", std::to_string(getpid()),
                                    layout_.cma ? "0" : "1"};
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (layout_.process_of[i] != process) continue;
    const Link& link = links_[i];
    for (const int fd : {link.their_socket, link.memfd}) {
      posix_spawn_file_actions_adddup2(&actions, fd, fd);  // clears close-on-exec
      words.push_back(std::to_string(fd));
    }
    words.push_back(link.shares ? "1" : "0");
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  must(error == 0, "posix_spawn");
  children_.push_back(child);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (layout_.process_of[i] == process) close(links_[i].their_socket);
  }
}

// Sends all their orders, then hears what came of them.
void Coordinator::carry(Orders Node::*orders, bool judges) {
  for (Node& node : model_->nodes()) {
    const Message& message = (node.*orders).message;
    if (!message.at_end()) send_message(links_[node.index].socket, message);
  }
  std::vector<Message> replies;
  for (Node& node : model_->nodes()) {
    Message& reply = replies.emplace_back();
    if (!(node.*orders).message.at_end()) reply = receive_message(links_[node.index].socket);
    for (const Orders::Expected& e : (node.*orders).expected) {
      const auto outcome = reply.take<Outcome>();
      if (outcome.error != e.error) {
        throw Mismatch("rank " + std::to_string(node.index) + ": " + e.what + " ended with errno " +
                       std::to_string(outcome.error) + ", expected " + std::to_string(e.error));
      }
      for (int i = 0; i < 2; ++i) {
        if (e.values[i] != nullptr) *e.values[i] = outcome.values[i];
      }
    }
    node.*orders = {};
  }
  if (!judges) return;
  look();
  std::vector<std::span<const std::byte>> memories;
  for (const Link& link : links_) memories.push_back(link.memory);
  for (Node& node : model_->nodes()) {
    model_->judge(node, replies[node.index], links_[node.index].memory);
  }
  model_->settle(memories);
}

// All traffic is over: their private memory is shown.
void Coordinator::look() {
  for (const Link& link : links_) {
    Message show;
    show.put(Verb::Show);
    if (!link.shares) send_message(link.socket, show);
  }
  for (const Link& link : links_) {
    if (!link.shares) receive_message(link.socket);
  }
}

void Coordinator::round() {
  ++rounds_;
  model_->change();
  carry(&Node::prepare, false);
  model_->plan();
  carry(&Node::prepare, false);
  carry(&Node::go, true);
}

// All leave, with nothing left in their queues, and end well.
void Coordinator::part() {
  for (const Link& link : links_) {
    Message leave;
    leave.put(Verb::Leave);
    send_message(link.socket, leave);
  }
  for (const Link& link : links_) {
    Message rest = receive_message(link.socket);
    if (!rest.take_list<Harvested>().empty()) throw Mismatch("a completion came too late");
    rest.take_list<std::uint32_t>();
    if (!rest.take_list<AsyncHarvested>().empty()) throw Mismatch("an event came too late");
  }
  for (const pid_t child : std::exchange(children_, {})) {
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) throw Mismatch("a rank ended with wait status " + std::to_string(status));
  }
}

std::string Coordinator::run(std::uint64_t seed, std::uint64_t operations) {
  try {
    std::vector<Greeting> greetings;
    for (const Link& link : links_) {
      greetings.push_back(receive_message(link.socket).take<Greeting>());
    }
    model_ = std::make_unique<Model>(seed, greetings);
    model_->set_up();
    carry(&Node::prepare, false);
    while (model_->operations() < operations) round();
    part();
  } catch (const std::exception& error) {
    throw Mismatch("round " + std::to_string(rounds_) + ": " + error.what());
  }
  std::string text = std::to_string(model_->operations()) + " operations in " +
                     std::to_string(rounds_) + " rounds";
  for (const auto& [what, count] : model_->tally()) {
    text += ", " + what + ": " + std::to_string(count);
  }
  return text;
}

}  // namespace vrb::model
