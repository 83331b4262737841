// SPDX-License-Identifier: Apache-2.0
#include "engine/points.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "base/points.h"

namespace vrb::engine {

#if defined(VERBENA_POINTS)
namespace {

struct Armed {
  std::string name;
  int signal = 0;
  std::atomic<long> passes_left{0};
  std::string log;
};
Armed* g_armed = nullptr;

void log_point(const char* name) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  const std::lock_guard guard(mutex);
  if (!seen.insert(name).second) return;
  const int fd = open(g_armed->log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const std::string line = std::string(name) + "\n";
  if (write(fd, line.data(), line.size()) < 0) std::abort();
  close(fd);
}

void point_hook(const char* name) {
  if (!g_armed->log.empty()) log_point(name);
  if (g_armed->signal == 0 || g_armed->name != name) return;
  // To this thread: with a stop for the process another one might take it, and this one run on.
  if (g_armed->passes_left.fetch_sub(1) == 1) tgkill(getpid(), gettid(), g_armed->signal);
}

void parse(const char* text, Armed& armed) {
  const std::string s = text;
  const std::size_t colon = s.find(':');
  armed.name = s.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "kill" : s.substr(colon + 1);
  armed.signal = rest.rfind("stop", 0) == 0 ? SIGSTOP : SIGKILL;
  const std::size_t second = rest.find(':');
  armed.passes_left = second == std::string::npos ? 1 : std::atol(rest.c_str() + second + 1);
}

}  // namespace

void install_point_hook() {
  const char* point = std::getenv("VERBENA_POINT");
  const char* log = std::getenv("VERBENA_POINT_LOG");
  if ((point == nullptr && log == nullptr) || g_armed != nullptr) return;
  g_armed = new Armed;
  if (point != nullptr) parse(point, *g_armed);
  if (log != nullptr) g_armed->log = log;
  base::set_point_hook(point_hook);
}
#else
void install_point_hook() {}
#endif

}  // namespace vrb::engine
