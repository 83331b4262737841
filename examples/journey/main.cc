// The journey of an RDMA WRITE, step by step, between two real processes, on plain verbs. This
// process opens no device: it starts the sender and the receiver, collects what they report and
// prints it. `verbena journey` runs it.
// SPDX-License-Identifier: Apache-2.0
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "narrator.h"
#include "side.h"

namespace {

using journey::Record;

void must(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::exit(1);
}

constexpr char kSender[] = "sender";
constexpr char kReceiver[] = "receiver";

// This program again, in a process of its own, with the two sockets as arguments.
pid_t start(const char* role, int records, int peer, int close_too) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  must(child >= 0, "fork");
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  close(close_too);
  execl("/proc/self/exe", "verbena-journey", role, std::to_string(records).c_str(),
        std::to_string(peer).c_str(), nullptr);
  _exit(1);
}

int play(const std::string& role, int records, int peer) {
  const bool sender = role == kSender;
  journey::Reporter reporter(records,
                             sender ? journey::Actor::SenderCpu : journey::Actor::ReceiverCpu);
  reporter.capture_stderr();
  (sender ? journey::run_sender : journey::run_receiver)(reporter, peer);
  return 0;
}

// Prints each journey when both processes have finished it; true when all were told.
bool narrate(const journey::Narrator& narrator, int records) {
  std::vector<Record> collected[std::size(journey::kKinds)];
  int ends[std::size(journey::kKinds)] = {};
  int told = 0;
  Record r;
  while (recv(records, &r, sizeof r, 0) == sizeof r) {
    if (r.type == journey::Type::Failure) {
      std::printf("\nverbena journey: the %s cannot go on: %s\n",
                  r.actor == journey::Actor::SenderCpu ? "sender" : "receiver", r.text);
      return false;
    }
    const auto kind = static_cast<std::size_t>(r.kind);
    collected[kind].push_back(r);
    if (r.type == journey::Type::End && ++ends[kind] == 2) {
      narrator.tell(r.kind, collected[kind]);
      ++told;
    }
  }
  return told == std::ssize(journey::kKinds);
}

bool ended_well(pid_t child) {
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4) return play(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
  must(setenv("VERBENA_EXPLAIN", "1", 1) == 0, "setenv");
  int records[2], peers[2];
  must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, records) == 0, "socketpair");
  must(socketpair(AF_UNIX, SOCK_STREAM, 0, peers) == 0, "socketpair");
  const pid_t receiver = start(kReceiver, records[1], peers[0], peers[1]);
  const pid_t sender = start(kSender, records[1], peers[1], peers[0]);
  close(records[1]);
  close(peers[0]);
  close(peers[1]);

  const journey::Narrator narrator(isatty(STDOUT_FILENO) == 1 && getenv("NO_COLOR") == nullptr);
  narrator.introduce(sender, receiver);
  std::fflush(stdout);
  const bool told = narrate(narrator, records[0]);
  if (!told) {
    kill(sender, SIGKILL);
    kill(receiver, SIGKILL);
  }
  const bool sender_well = ended_well(sender);
  const bool receiver_well = ended_well(receiver);
  std::puts("");
  return told && sender_well && receiver_well ? 0 : 1;
}
