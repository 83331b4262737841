// SPDX-License-Identifier: Apache-2.0
#include "stage.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace vrb::death {
namespace {

constexpr int kSilenceMs = 30'000;

}  // namespace

Stage::Stage() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  signals_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

Stage::~Stage() {
  processes_.clear();
  close(signals_);
}

Process& Stage::start(const SpawnOptions& options) {
  processes_.push_back(std::make_unique<Process>(options));
  return *processes_.back();
}

Process& Stage::start(const std::string& name) {
  SpawnOptions options;
  options.name = name;
  return start(options);
}

Process& Stage::adopt(Process& parent, const std::string& name, pid_t pid) {
  processes_.push_back(std::make_unique<Process>(name, parent.take_spare(), pid));
  return *processes_.back();
}

void Stage::forget(Process& process) {
  std::erase_if(events_, [&](const Event& e) { return e.who == &process; });
  std::erase(doomed_, &process);
  std::erase_if(processes_, [&](const auto& p) { return p.get() == &process; });
}

void Stage::say_waiting(const std::string& waiting_for) const {
  std::cerr << "\nstill waiting for " << waiting_for << " [" << title_ << "]:";
  for (const auto& p : processes_) {
    const char* state = !p->alive()                             ? "dead"
                        : p->state() == Process::State::Stopped ? "stopped"
                                                                : "running";
    std::cerr << ' ' << p->name() << '(' << p->pid() << ") " << state;
  }
  std::cerr << std::endl;
}

void Stage::read_socket(Process& process) {
  for (Message message; process.socket_ >= 0;) {
    const Got got = receive(process.socket_, message);
    if (got == Got::Nothing) return;
    if (got == Got::Message) {
      events_.push_back({Event::Kind::Said, &process, message});
      continue;
    }
    close(process.socket_);
    process.socket_ = -1;
    if (process.child_) return;
    process.state_ = Process::State::Dead;
    events_.push_back({Event::Kind::Hushed, &process, {}});
  }
}

// What it said comes before what became of it.
void Stage::note_state(Process& process) {
  const auto before = process.state();
  if (!process.look()) return;
  read_socket(process);
  const auto kind = process.state() == Process::State::Dead      ? Event::Kind::Died
                    : process.state() == Process::State::Stopped ? Event::Kind::Stopped
                                                                 : Event::Kind::Continued;
  if (process.state() != before) events_.push_back({kind, &process, {}});
}

void Stage::gather(const std::string& waiting_for) {
  while (events_.empty()) {
    std::vector<pollfd> fds = {{signals_, POLLIN, 0}};
    for (const auto& p : processes_) fds.push_back({p->socket_, POLLIN, 0});
    if (poll(fds.data(), fds.size(), kSilenceMs) == 0) say_waiting(waiting_for);
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) == sizeof info) {
    }
    for (const auto& p : processes_) read_socket(*p);
    for (const auto& p : processes_) note_state(*p);
  }
}

void Stage::judge(const Event& event) {
  if (event.kind == Event::Kind::Said && event.message.tag == Tag::Failed) {
    throw Failure(title_ + ": " + event.who->name() + ": " + event.message.text.data());
  }
  if (event.kind != Event::Kind::Died) return;
  if (std::find(doomed_.begin(), doomed_.end(), event.who) != doomed_.end()) return;
  throw Failure(title_ + ": " + event.who->name() + " ended with " +
                (event.who->killed() ? "signal " : "status ") +
                std::to_string(event.who->status()));
}

Event Stage::next(const std::string& waiting_for) {
  for (;;) {
    gather(waiting_for);
    Event event = events_.front();
    events_.pop_front();
    if (event.kind == Event::Kind::Stopped && on_stop && on_stop(*event.who)) continue;
    judge(event);
    return event;
  }
}

std::optional<Message> Stage::ask(Process& process, const Message& order, Tag answer) {
  if (!process.alive()) return std::nullopt;
  process.send(order);
  return hear(process, answer);
}

std::optional<Message> Stage::hear(Process& process, Tag what) {
  for (;;) {
    const Event event = next("an answer of " + process.name());
    if (event.who == &process) {
      if (event.kind == Event::Kind::Said && event.message.tag == what) return event.message;
      if (event.kind == Event::Kind::Died || event.kind == Event::Kind::Hushed ||
          event.kind == Event::Kind::Stopped) {
        if (on_event) on_event(event);
        return std::nullopt;
      }
    }
    if (on_event) on_event(event);
  }
}

void Stage::wait_for(Process& process, Process::State state, const char* what) {
  while (process.state() != state && process.alive()) {
    const Event event = next(process.name() + what);
    if (on_event) on_event(event);
  }
}

void Stage::wait_for_death(Process& process) {
  expect_death(process);
  wait_for(process, Process::State::Dead, "'s end");
}

void Stage::wait_for_stop(Process& process) {
  wait_for(process, Process::State::Stopped, "'s stop");
}

void Stage::quit(Process& process) {
  if (!process.alive()) return;
  Message order;
  order.tag = Tag::Quit;
  process.send(order);
  wait_for_death(process);
  EXPECT_FALSE(process.killed()) << title_ << ": " << process.name() << " by signal "
                                 << process.status();
  if (!process.killed()) {
    EXPECT_EQ(process.status(), 0) << title_ << ": " << process.name();
  }
}

}  // namespace vrb::death
