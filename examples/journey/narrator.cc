// SPDX-License-Identifier: Apache-2.0
#include "narrator.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace journey {
namespace {

constexpr char kBold[] = "\033[1m";
constexpr char kDim[] = "\033[2m";
constexpr char kRed[] = "\033[31m";
constexpr char kPlain[] = "\033[0m";
constexpr std::size_t kWidth = 100;
constexpr std::size_t kTextWidth = 50;
constexpr std::size_t kTextAt = 36;

const char* actor_name(Actor actor) {
  switch (actor) {
    case Actor::SenderCpu:
      return "sender CPU";
    case Actor::SenderNic:
      return "sender NIC";
    case Actor::Network:
      return "network";
    case Actor::ReceiverNic:
      return "receiver NIC";
    case Actor::ReceiverCpu:
      return "receiver CPU";
  }
  return "";
}

const char* step_title(int step) {
  static const char* const kTitles[] = {
      "",
      "Prepare: register memory, create and connect the queue pairs",
      "A receive, posted beforehand",
      "The sender submits the work request",
      "The sender's NIC reads the data",
      "The way to the receiver",
      "The receiver's NIC checks the key and writes",
      "Completion",
  };
  return kTitles[step];
}

const char* journey_title(Kind kind) {
  switch (kind) {
    case Kind::Write:
      return "RDMA WRITE";
    case Kind::WriteWithImm:
      return "RDMA WRITE WITH IMMEDIATE";
    case Kind::WrongKey:
      return "RDMA WRITE with a wrong R_Key";
  }
  return "";
}

// 1234567 -> "1,234,567".
std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::int64_t first_of(const std::vector<Record>& records, Type type) {
  const auto found = std::find_if(records.begin(), records.end(),
                                  [type](const Record& r) { return r.type == type; });
  return found == records.end() ? 0 : found->ns;
}

const Record* at_step(const std::vector<Record>& records, int step, Time time) {
  const auto found = std::find_if(records.begin(), records.end(), [=](const Record& r) {
    return r.type == Type::Line && r.step == step && r.time == time;
  });
  return found == records.end() ? nullptr : &*found;
}

std::vector<Record> lines_in_order(const std::vector<Record>& records) {
  std::vector<Record> lines;
  std::copy_if(records.begin(), records.end(), std::back_inserter(lines),
               [](const Record& r) { return r.type == Type::Line; });
  std::stable_sort(lines.begin(), lines.end(), [](const Record& a, const Record& b) {
    return a.step != b.step ? a.step < b.step : a.actor < b.actor;
  });
  return lines;
}

std::string time_text(const std::vector<Record>& lines, std::size_t index, std::int64_t posted) {
  const Record& r = lines[index];
  switch (r.time) {
    case Time::None:
      return "";
    case Time::Took:
      return grouped(r.ns) + " ns";
    case Time::At:
      return "+" + grouped(r.ns - posted) + " ns";
    case Time::Before:
      break;
  }
  const auto next = std::find_if(lines.begin() + static_cast<std::ptrdiff_t>(index), lines.end(),
                                 [](const Record& l) { return l.time == Time::At; });
  return next == lines.end() ? "" : "<" + grouped(next->ns - posted) + " ns";
}

// Takes the words that fit into `width` off the front of `rest`.
std::string_view take_line(std::string_view& rest, std::size_t width) {
  std::size_t length = rest.size();
  if (length > width) {
    length = rest.rfind(' ', width);
    if (length == std::string_view::npos || length == 0) length = width;
  }
  const std::string_view line = rest.substr(0, length);
  rest.remove_prefix(length);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return line;
}

void print_wrapped(std::string_view text, std::size_t indent, std::size_t width = kWidth) {
  while (!text.empty()) {
    const std::string_view line = take_line(text, width - indent);
    std::printf("%*s%.*s\n", static_cast<int>(indent), "", static_cast<int>(line.size()),
                line.data());
  }
}

}  // namespace

void Narrator::introduce(pid_t sender, pid_t receiver) const {
  std::printf("\n%sThe journey of an RDMA WRITE%s\n", style(kBold), style(kPlain));
  std::printf("Two processes of this host: the sender (pid %d) and the receiver (pid %d).\n",
              sender, receiver);
  print_wrapped(
      "On the right, \"N ns\" is how long a call took; \"+N ns\" is when something was seen, and "
      "\"<N ns\" by when it was over, both counted from the call of ibv_post_send.",
      0);
}

void Narrator::print_title(const char* title) const {
  std::printf("\n%s== %s %s%s\n", style(kBold), title,
              std::string(kWidth - 4 - std::strlen(title), '=').c_str(), style(kPlain));
}

void Narrator::print_line(const Record& r, const std::string& time) const {
  std::string_view rest = r.text;
  const std::string_view line = take_line(rest, kTextWidth);
  std::printf("   %-12s %s%-19s%s %.*s", actor_name(r.actor), style(kBold), r.call, style(kPlain),
              static_cast<int>(line.size()), line.data());
  if (!time.empty()) {
    const auto gap = static_cast<int>(kTextWidth - line.size());
    std::printf("%*s %s%13s%s", gap, "", style(kDim), time.c_str(), style(kPlain));
  }
  std::puts("");
  print_wrapped(rest, kTextAt, kTextAt + kTextWidth);
}

void Narrator::print_causes(const std::vector<Record>& records) const {
  for (const Record& r : records) {
    if (r.type != Type::Cause || r.text[0] == '\0') continue;
    std::printf("  %sThe cause, as the library told the %s:%s%s\n", style(kBold),
                r.actor == Actor::SenderCpu ? "sender" : "receiver", style(kPlain), style(kRed));
    std::string_view text = r.text;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      print_wrapped(text.substr(0, end), 4);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    std::printf("%s", style(kPlain));
  }
}

void Narrator::print_times(const std::vector<Record>& records, std::int64_t posted) const {
  const Record* call = at_step(records, 3, Time::Took);
  const Record* written = at_step(records, 6, Time::At);
  const Record* completed = at_step(records, 7, Time::At);
  if (call == nullptr || written == nullptr || completed == nullptr) return;
  if (completed->ns < written->ns) {
    print_wrapped(
        "The bytes were there before the sender's completion, which came first here: the receiver, "
        "which shares the cores of this machine, got to look at them only later. The NIC did not "
        "wait for it.",
        2);
  } else if (written->ns <= posted + call->ns) {
    print_wrapped(
        "Steps 4 to 6 happened inside ibv_post_send: with the local carrier the core that posts is "
        "the NIC's DMA engine.",
        2);
  }
}

void Narrator::print_moral(Kind kind, std::int64_t warm) const {
  switch (kind) {
    case Kind::Write:
      print_wrapped(
          "No receive was posted and the receiver's CQ stayed empty: a plain WRITE needs none and "
          "tells nobody. The receiver knows of the bytes only because it looked at its memory.",
          2);
      print_wrapped("1,000 more of the same, one after the other: " + grouped(warm) +
                        " ns each from post to completion (median). The first one also had to meet "
                        "the other process.",
                    2);
      break;
    case Kind::WriteWithImm:
      print_wrapped(
          "The immediate data took the posted receive and gave the receiver a completion. The "
          "bytes "
          "themselves went where the address and the R_Key say, as before.",
          2);
      break;
    case Kind::WrongKey:
      print_wrapped(
          "A wrong key costs the connection: both QPs are in the error state and must be connected "
          "anew.",
          2);
      break;
  }
}

void Narrator::tell(Kind kind, const std::vector<Record>& records) const {
  print_title(journey_title(kind));
  const std::int64_t posted = first_of(records, Type::Posted);
  const std::vector<Record> lines = lines_in_order(records);
  int step = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].step != step) {
      step = lines[i].step;
      std::printf("%s%d  %s%s\n", style(kBold), step, step_title(step), style(kPlain));
    }
    print_line(lines[i], time_text(lines, i, posted));
  }
  std::puts("");
  print_causes(records);
  print_times(records, posted);
  print_moral(kind, first_of(records, Type::Warm));
  std::fflush(stdout);
}

}  // namespace journey
