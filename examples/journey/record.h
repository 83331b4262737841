// What the two processes of the journey tell the narrator: one record a line, over a SEQPACKET
// socket. Plain values; a Reporter belongs to one process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace journey {

enum class Kind : std::uint8_t { Write, WriteWithImm, WrongKey };
constexpr Kind kKinds[] = {Kind::Write, Kind::WriteWithImm, Kind::WrongKey};

enum class Actor : std::uint8_t { SenderCpu, SenderNic, Network, ReceiverNic, ReceiverCpu };

// What the number of a record says: nothing; how long the call took; when it was seen; that it was
// over by the next record that was seen.
enum class Time : std::uint8_t { None, Took, At, Before };

enum class Type : std::uint8_t {
  Line,
  Posted,   // ns: when ibv_post_send was called
  Cause,    // text: a line that the library wrote to stderr
  Warm,     // ns: of one of many more
  End,      // this process has finished the journey
  Failure,  // text: why it cannot go on
};

struct Record {
  Type type = Type::Line;
  Kind kind = Kind::Write;
  std::uint8_t step = 0;
  Actor actor = Actor::SenderCpu;
  Time time = Time::None;
  std::int64_t ns = 0;
  char call[24] = {};
  char text[480] = {};
};

std::int64_t now_ns();  // CLOCK_MONOTONIC, the same in both processes

class Reporter {
 public:
  Reporter(int socket, Actor cpu) : socket_(socket), cpu_(cpu) {}

  void begin(Kind kind) { kind_ = kind; }
  // A call of this process's CPU that took so long.
  void call(int step, const char* call, std::int64_t took, const char* format, ...)
      __attribute__((format(printf, 5, 6)));
  void line(int step, Actor actor, const char* call, Time time, std::int64_t ns, const char* format,
            ...) __attribute__((format(printf, 7, 8)));
  void note(Type type, std::int64_t ns, const char* text = "");
  // The end of the process when a call failed (errno says why), or something else was seen than
  // the journey promises.
  void must(bool ok, const char* what);
  void expect(bool ok, const char* what);

  // From now on what this process writes to stderr is kept, so that the causes which the library
  // prints there can be shown in their place.
  void capture_stderr();
  std::string captured();

 private:
  [[noreturn]] void fail(const std::string& why);
  void send(const Record& record);

  int socket_;
  int captured_ = -1;
  Actor cpu_;
  Kind kind_ = Kind::Write;
};

}  // namespace journey
