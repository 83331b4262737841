// SPDX-License-Identifier: Apache-2.0
#include "ib/gid.h"

#include <charconv>
#include <string_view>

namespace vrb::ib {
namespace {

constexpr int kGroups = 8;

std::uint32_t group(const Gid& gid, int i) { return gid[2 * i] * 256U + gid[2 * i + 1]; }

struct Run {
  int first = 0, length = 0;
};

// The groups that "::" stands for: the longest run of zeros, the first of equals, never just one.
Run longest_zeros(const Gid& gid) {
  Run best;
  for (int i = 0; i < kGroups;) {
    int end = i;
    while (end < kGroups && group(gid, end) == 0) ++end;
    if (end - i > best.length) best = {i, end - i};
    i = end + 1;
  }
  return best.length > 1 ? best : Run{};
}

void put(std::string& out, std::uint32_t value, int base) {
  char digits[10];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, base);
  out += std::string_view(digits, static_cast<std::size_t>(end.ptr - digits));
}

}  // namespace

std::string format_gid(const Gid& gid) {
  std::string out;
  if (is_v4_mapped(gid)) {
    out = "::ffff";
    for (int i = 12; i < 16; ++i) {
      out += i == 12 ? ':' : '.';
      put(out, gid[i], 10);
    }
    return out;
  }
  const Run zeros = longest_zeros(gid);
  for (int i = 0; i < kGroups; ++i) {
    if (zeros.length != 0 && i == zeros.first) {
      out += "::";
      i += zeros.length - 1;
      continue;
    }
    if (!out.empty() && out.back() != ':') out += ':';
    put(out, group(gid, i), 16);
  }
  return out;
}

}  // namespace vrb::ib
