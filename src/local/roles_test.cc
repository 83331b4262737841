// The helper processes of the tests of local, and the main() that starts them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstring>
#include <sstream>

#include "local/test_support.h"

extern char** environ;

namespace vrb::local::testing {
namespace {

constexpr int kCommandFd = 3;
constexpr std::size_t kLongestMessage = 4096;

struct Options {
  unsigned uid = 0;
  bool change_uid = false;
  bool dumpable = true;
  bool vm_calls = true;
  TrustPolicy policy;
  std::uint64_t first_slot = random_number();
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--uid=", 0) == 0) {
      options.change_uid = true;
      options.uid = static_cast<unsigned>(std::stoul(argument.substr(6)));
    }
    if (argument.rfind("--trust=", 0) == 0) {
      options.policy.trusted_uids.push_back(static_cast<unsigned>(std::stoul(argument.substr(8))));
    }
    if (argument.rfind("--slot=", 0) == 0) options.first_slot = std::stoul(argument.substr(7));
    if (argument == "--undumpable") options.dumpable = false;
    if (argument == "--no-vm-calls") options.vm_calls = false;
    if (argument == "--wire") options.policy.wire_only = true;
  }
  return options;
}

// From now on process_vm_readv and process_vm_writev answer EPERM, as under a container's filter.
bool forbid_vm_calls() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof code / sizeof code[0], code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// One node that does what it is told.
class Role {
 public:
  explicit Role(const Options& options) : node_(options.policy, options.first_slot) {}

  int run() {
    answer(std::to_string(node_.slot));
    for (;;) {
      node_.turn(100'000'000, kCommandFd);
      char text[kLongestMessage];
      const ssize_t n = recv(kCommandFd, text, sizeof text, MSG_DONTWAIT);
      if (n == 0) return 0;
      if (n < 0) continue;
      std::istringstream command(std::string(text, static_cast<std::size_t>(n)));
      if (!obey(command)) return 0;
    }
  }

 private:
  void answer(const std::string& text) {
    if (send(kCommandFd, text.data(), text.size(), MSG_NOSIGNAL) < 0) _exit(3);
  }

  bool obey(std::istringstream& command) {
    std::string verb;
    command >> verb >> std::hex;
    if (verb == "exit") return false;
    if (verb == "region") return region(command), true;
    if (verb == "unmap") return unmap(command), true;
    if (verb == "read") return read_word(command), true;
    if (verb == "invalidate") return invalidate(command), true;
    if (verb == "grace") return grace(command), true;
    if (verb == "find") return find(command), true;
    if (verb == "enter") return enter(), true;
    if (verb == "leave") return leave(), true;
    if (verb == "write-tables") return write_tables(), true;
    if (verb == "fork") return fork_child(), true;
    if (verb == "stats") {
      answer(std::to_string(node_.deaths));
      return true;
    }
    if (verb == "rings") {
      answer(std::to_string(node_.rings));
      return true;
    }
    answer("unknown");
    return true;
  }

  // region BYTES ACCESS: a registered region of zeros, between two inaccessible pages. Answers "KEY
  // ADDRESS".
  void region(std::istringstream& command) {
    std::uint64_t bytes = 0;
    unsigned access = 0;
    command >> bytes >> access;
    const std::uint64_t pages = (bytes + 4095) & ~4095ULL;
    auto* base = static_cast<std::byte*>(
        mmap(nullptr, pages + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base + 4096, pages, PROT_READ | PROT_WRITE);
    const auto at = reinterpret_cast<std::uint64_t>(base + 4096);
    const auto key = node_.keys->publish({at, bytes, at, ib::Pdn{7}, access});
    std::ostringstream out;
    out << *key << ' ' << at;
    answer(out.str());
  }
  void unmap(std::istringstream& command) {
    std::uint64_t at = 0, bytes = 0;
    command >> at >> bytes;
    munmap(reinterpret_cast<void*>(at), bytes);
    answer("done");
  }
  void read_word(std::istringstream& command) {
    std::uint64_t at = 0;
    command >> at;
    answer(std::to_string(*reinterpret_cast<volatile std::uint64_t*>(at)));
  }
  void invalidate(std::istringstream& command) {
    std::uint32_t key = 0;
    command >> key;
    node_.keys->invalidate(key);
    answer("done");
  }
  // grace LIMIT_MS: answers "RESULT MILLISECONDS OVER".
  void grace(std::istringstream& command) {
    unsigned limit = 0;
    command >> std::dec >> limit;
    const std::uint64_t start = now_ns();
    const bool done = node_.memory->grace(limit);
    const std::uint64_t ms = (now_ns() - start) / 1'000'000;
    answer(std::to_string(done) + " " + std::to_string(ms) + " " +
           std::to_string(node_.memory->quarantine_over()));
  }
  void find(std::istringstream& command) {
    std::uint32_t to = 0;
    command >> std::dec >> to;
    peer_ = node_.reach_slot(to);
    answer(std::to_string(static_cast<unsigned>(peer_->state())) + " " +
           std::to_string(static_cast<unsigned>(peer_->why().code)));
  }
  void enter() {
    lane_ = std::make_unique<InsideLane>(*peer_);
    answer("inside");
  }
  void leave() {
    lane_.reset();
    answer("outside");
  }
  // Tries every way to write into the tables of the peer; answers how many succeeded.
  void write_tables() {
    unsigned ways = 0;
    auto* tables = const_cast<Tables*>(peer_->tables);
    if (mprotect(tables, 4096, PROT_READ | PROT_WRITE) == 0) ++ways;
    const long page = sysconf(_SC_PAGESIZE);
    if (madvise(tables, static_cast<std::size_t>(page), MADV_REMOVE) == 0) ++ways;
    answer(std::to_string(ways));
  }
  // A child that keeps every descriptor and sleeps until it is killed. Answers its pid.
  void fork_child() {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, 0);
      for (;;) pause();
    }
    answer(std::to_string(child));
  }

  Node node_;
  std::shared_ptr<Peer> peer_;
  std::unique_ptr<InsideLane> lane_;
};

int role_main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Options options = parse(argc, argv);
  if (options.change_uid && setresuid(options.uid, options.uid, options.uid) != 0) return 4;
  prctl(PR_SET_DUMPABLE, options.dumpable ? 1 : 0);
  if (!options.vm_calls && !forbid_vm_calls()) return 5;
  return Role(options).run();
}

}  // namespace

Helper::Helper(const std::vector<std::string>& options) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) std::abort();
  std::vector<std::string> words = {"helper", "--role"};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pair[1], kCommandFd);
  if (posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ) != 0)
    std::abort();
  posix_spawn_file_actions_destroy(&actions);
  close(pair[1]);
  socket_ = pair[0];
  slot = static_cast<std::uint32_t>(std::strtoul(hear().c_str(), nullptr, 10));
}

Helper::~Helper() {
  if (!reaped_) kill(SIGKILL);
  close(socket_);
}

void Helper::kill(int signal) {
  ::kill(pid_, signal);
  int status = 0;
  if (signal == SIGKILL) {
    waitpid(pid_, &status, 0);
    reaped_ = true;
  }
  if (signal == SIGSTOP) waitpid(pid_, &status, WUNTRACED);
  if (signal == SIGCONT) waitpid(pid_, &status, WCONTINUED);
}

void Helper::tell(const std::string& command) {
  if (send(socket_, command.data(), command.size(), MSG_NOSIGNAL) < 0) ADD_FAILURE() << command;
}

std::string Helper::hear() {
  char text[kLongestMessage];
  const ssize_t n = recv(socket_, text, sizeof text, 0);
  if (n <= 0) ADD_FAILURE() << "the helper has gone";
  return std::string(text, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
}

bool Helper::has_answer() const {
  pollfd p{socket_, POLLIN, 0};
  return poll(&p, 1, 0) > 0;
}

std::string Helper::ask(const std::string& command) {
  tell(command);
  return hear();
}

}  // namespace vrb::local::testing

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--role") == 0) return vrb::local::testing::role_main(argc, argv);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
