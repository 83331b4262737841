// Causes in plain words: VERBENA_EXPLAIN=1 prints one line a refusal or a completion in error on
// stderr.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "engine/engine.h"

namespace vrb::engine {
namespace {

void print_line(const char* text, int length) {
  // One write a line, so that lines of several processes do not mix; errno stays the caller's.
  const int saved = errno;
  if (length > 0 && write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) errno = saved;
  errno = saved;
}

const char* status_name(ib::WcStatus status) {
  static constexpr const char* kNames[] = {"success",
                                           "local length error",
                                           "local QP operation error",
                                           "local EE context operation error",
                                           "local protection error",
                                           "work request flushed",
                                           "memory window bind error",
                                           "bad response",
                                           "local access error",
                                           "remote invalid request",
                                           "remote access error",
                                           "remote operation error",
                                           "retry count exceeded",
                                           "RNR retry count exceeded",
                                           "local RDD violation",
                                           "remote invalid RD request",
                                           "remote abort",
                                           "invalid EE context number",
                                           "invalid EE context state",
                                           "fatal error",
                                           "response timeout",
                                           "general error"};
  const auto i = static_cast<std::size_t>(status);
  return i < std::size(kNames) ? kNames[i] : "unknown status";
}

}  // namespace

ib::Refusal explain(const char* verb, ib::Refusal refusal) {
  if (!config().explain) return refusal;
  char sentence[256];
  ib::format_cause(refusal.cause, sentence, sizeof sentence);
  char line[400];
  const int n =
      std::snprintf(line, sizeof line, "verbena: %s refused with errno %d: %s [%s]\n", verb,
                    static_cast<int>(refusal.errc), sentence, ib::cause_name(refusal.cause.code));
  print_line(line, n < static_cast<int>(sizeof line) ? n : static_cast<int>(sizeof line) - 1);
  return refusal;
}

void explain_completion(const Qp& qp, std::uint64_t wr_id, ib::WcStatus status,
                        const ib::Cause& cause) {
  if (!config().explain || status == ib::WcStatus::Success || status == ib::WcStatus::WrFlushErr)
    return;
  char sentence[256];
  ib::format_cause(cause, sentence, sizeof sentence);
  char line[400];
  const int n = std::snprintf(line, sizeof line, "verbena: QP 0x%06x, wr_id 0x%llx: %s: %s [%s]\n",
                              qp.qpn.value, static_cast<unsigned long long>(wr_id),
                              status_name(status), sentence, ib::cause_name(cause.code));
  print_line(line, n < static_cast<int>(sizeof line) ? n : static_cast<int>(sizeof line) - 1);
}

}  // namespace vrb::engine
