// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <stdexcept>

#include "node.h"

namespace vrb::death {
namespace {

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& added, bool filtered) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  // A child of a fork makes threads of its own, which TSan refuses unless told.
  std::string& tsan = all["TSAN_OPTIONS"];
  tsan += (tsan.empty() ? "" : ":") + std::string("die_after_fork=0");
  // LeakSanitizer's tracer needs ptrace, and waits for ever where a filter refuses it.
  std::string& asan = all["ASAN_OPTIONS"];
  if (filtered) asan += (asan.empty() ? "" : ":") + std::string("detect_leaks=0");
  for (const auto& [name, value] : added) all[name] = value;
  std::vector<std::string> lines;
  for (const auto& [name, value] : all) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t spawn(std::vector<std::string> arguments, std::vector<std::string> environment, int control,
            int spare) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, control, kControlFd);
  posix_spawn_file_actions_adddup2(&actions, spare, kSpareFd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes,
                                pointers_to(arguments).data(), pointers_to(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(std::string("posix_spawn: ") + std::strerror(error));
  return pid;
}

// A pair above the numbers that the child uses.
void make_pair(int& ours, int& theirs) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error("socketpair");
  }
  ours = fcntl(ends[0], F_DUPFD_CLOEXEC, 10);
  theirs = fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace

Process::Process(const SpawnOptions& options) : name_(options.name) {
  int control = -1, spare = -1;
  make_pair(socket_, control);
  make_pair(spare_, spare);
  std::vector<std::string> arguments = {"death-" + options.name, "--role", options.role};
  if (!options.filter.empty()) arguments.insert(arguments.end(), {"--filter", options.filter});
  if (options.uid >= 0) arguments.insert(arguments.end(), {"--uid", std::to_string(options.uid)});
  pid_ = spawn(arguments, environment_with(options.environment, !options.filter.empty()), control,
               spare);
  close(control);
  close(spare);
}

Process::Process(std::string name, int socket, pid_t pid)
    : name_(std::move(name)), pid_(pid), socket_(socket), child_(false) {}

Process::~Process() {
  if (alive() && child_) {
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {socket_, spare_}) {
    if (fd >= 0) close(fd);
  }
}

void Process::send(const Message& message) {
  if (socket_ >= 0) death::send(socket_, message);
}

// Only its parent keeps a pid from being used again; that of a forked grandchild is not signalled
// after its socket has closed.
void Process::signal(int number) {
  if (alive() && pid_ > 0) kill(pid_, number);
}

int Process::take_spare() { return std::exchange(spare_, -1); }

bool Process::look() {
  if (!child_ || !alive()) return false;
  siginfo_t info{};
  constexpr int kAny = WEXITED | WSTOPPED | WCONTINUED | WNOHANG;
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, kAny) != 0 || info.si_pid == 0) return false;
  switch (info.si_code) {
    case CLD_STOPPED:
      state_ = State::Stopped;
      return true;
    case CLD_CONTINUED:
      state_ = State::Running;
      return true;
    default:
      state_ = State::Dead;
      status_ = info.si_status;
      killed_ = info.si_code != CLD_EXITED;
      return true;
  }
}

}  // namespace vrb::death
