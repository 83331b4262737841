// SPDX-License-Identifier: Apache-2.0
#include "ib/cause.h"

#include <charconv>
#include <string_view>

namespace vrb::ib {
namespace {

struct Row {
  CauseCode code;
  const char* name;
  const char* text;
};
constexpr Row kRows[] = {
#define VRB_X(code, name, text) {CauseCode::name, #name, text},
    VRB_CAUSES(VRB_X)
#undef VRB_X
};

const Row& row(CauseCode code) {
  for (const Row& r : kRows) {
    if (r.code == code) return r;
  }
  return kRows[0];
}

// Bounded output: keeps one byte for the NUL.
class Line {
 public:
  Line(char* out, std::size_t size) : out_(out), room_(size == 0 ? 0 : size - 1) {}
  void put(std::string_view s) {
    for (char c : s) {
      if (used_ < room_) out_[used_++] = c;
    }
  }
  void put_number(std::uint64_t v, int base) {
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof digits, v, base);
    if (base == 16) put("0x");
    put({digits, static_cast<std::size_t>(end.ptr - digits)});
  }
  std::size_t end(std::size_t size) {
    if (size != 0) out_[used_] = '\0';
    return used_;
  }

 private:
  char* out_;
  std::size_t room_;
  std::size_t used_ = 0;
};

}  // namespace

const char* cause_name(CauseCode code) { return row(code).name; }
const char* cause_text(CauseCode code) { return row(code).text; }

std::size_t format_cause(const Cause& cause, char* out, std::size_t size) {
  Line line(out, size);
  std::string_view text = cause_text(cause.code);
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    line.put(text.substr(0, open));
    if (open == std::string_view::npos) break;
    text.remove_prefix(open + 1);
    const bool hex = text.front() == 'x';
    if (hex) text.remove_prefix(1);
    line.put_number(cause.args[(text.front() - '0') & 3], hex ? 16 : 10);
    text.remove_prefix(2);
  }
  return line.end(size);
}

}  // namespace vrb::ib
