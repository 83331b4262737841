// SPDX-License-Identifier: Apache-2.0
#include "record.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace journey {
namespace {

void copy_call(Record& record, const char* call) {
  std::snprintf(record.call, sizeof record.call, "%s", call);
}

}  // namespace

std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

void Reporter::call(int step, const char* call, std::int64_t took, const char* format, ...) {
  Record record{.step = static_cast<std::uint8_t>(step), .actor = cpu_, .time = Time::Took};
  record.ns = took;
  copy_call(record, call);
  va_list args;
  va_start(args, format);
  std::vsnprintf(record.text, sizeof record.text, format, args);
  va_end(args);
  send(record);
}

void Reporter::line(int step, Actor actor, const char* call, Time time, std::int64_t ns,
                    const char* format, ...) {
  Record record{.step = static_cast<std::uint8_t>(step), .actor = actor, .time = time};
  record.ns = ns;
  copy_call(record, call);
  va_list args;
  va_start(args, format);
  std::vsnprintf(record.text, sizeof record.text, format, args);
  va_end(args);
  send(record);
}

void Reporter::note(Type type, std::int64_t ns, const char* text) {
  Record record{.type = type, .actor = cpu_};
  record.ns = ns;
  std::snprintf(record.text, sizeof record.text, "%s", text);
  send(record);
}

void Reporter::must(bool ok, const char* what) {
  if (!ok) fail(std::string(what) + ": " + std::strerror(errno));
}

void Reporter::expect(bool ok, const char* what) {
  if (!ok) fail(what);
}

void Reporter::fail(const std::string& why) {
  const std::string printed = captured();
  note(Type::Failure, 0, (printed.empty() ? why : why + "\n" + printed).c_str());
  _exit(1);
}

void Reporter::capture_stderr() {
  int ends[2];
  must(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0, "pipe2");
  must(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO, "dup2");
  close(ends[1]);
  captured_ = ends[0];
}

std::string Reporter::captured() {
  char bytes[4096];
  const ssize_t n = read(captured_, bytes, sizeof bytes);
  return {bytes, static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

void Reporter::send(const Record& record) {
  Record r = record;
  r.kind = kind_;
  if (::send(socket_, &r, sizeof r, MSG_NOSIGNAL) != sizeof r) _exit(1);
}

}  // namespace journey
