// The death tests' program. Without arguments of its own it is a GoogleTest program; with --role it
// is one of the processes that the tests start, kill and stop:
//   --role node|idle [--filter NAME] [--uid N]
// SPDX-License-Identifier: Apache-2.0
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "filters.h"
#include "node.h"
#include "passes.h"

namespace vrb::death {
namespace {

struct Arguments {
  std::string role, filter;
  long uid = -1;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--role") == 0) arguments.role = argv[i + 1];
    if (std::strcmp(argv[i], "--filter") == 0) arguments.filter = argv[i + 1];
    if (std::strcmp(argv[i], "--uid") == 0) arguments.uid = std::atol(argv[i + 1]);
  }
  return arguments;
}

// Becomes another user for good, and a new program, because a process that has changed its user is
// not dumpable until it execs.
int become(const Arguments& arguments, char* self) {
  const auto id = static_cast<uid_t>(arguments.uid);
  if (setgroups(0, nullptr) != 0 || setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0) {
    return 5;
  }
  std::vector<std::string> words = {self, "--role", arguments.role};
  if (!arguments.filter.empty()) words.insert(words.end(), {"--filter", arguments.filter});
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv("/proc/self/exe", pointers.data());
  return 6;
}

int run_role(const Arguments& arguments, char* self) {
  if (arguments.uid >= 0) return become(arguments, self);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!arguments.filter.empty() && !install_filter(arguments.filter)) return 7;
  if (arguments.role == "node") {
    count_passes();
    return Node(kControlFd).run();
  }
  return arguments.role == "idle" ? run_idle(kControlFd) : 2;
}

}  // namespace
}  // namespace vrb::death

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "--role") == 0) {
    return vrb::death::run_role(vrb::death::parse(argc, argv), argv[0]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
