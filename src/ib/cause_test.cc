// SPDX-License-Identifier: Apache-2.0
#include "ib/cause.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

namespace vrb::ib {
namespace {

struct Row {
  unsigned code;
  const char* name;
  const char* text;
};
constexpr Row kRows[] = {
#define VRB_X(code, name, text) {code, #name, text},
    VRB_CAUSES(VRB_X)
#undef VRB_X
};

std::string sentence(const Cause& c) {
  char line[512];
  const std::size_t length = format_cause(c, line, sizeof line);
  EXPECT_EQ(length, std::strlen(line));
  return line;
}

TEST(Cause, CodesAndNamesAreUnique) {
  std::set<unsigned> codes;
  std::set<std::string> names;
  for (const Row& row : kRows) {
    EXPECT_TRUE(codes.insert(row.code).second) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_STREQ(cause_name(static_cast<CauseCode>(row.code)), row.name);
    EXPECT_STREQ(cause_text(static_cast<CauseCode>(row.code)), row.text);
  }
  EXPECT_EQ(*codes.begin(), 0U);
}

// Every brace of the table opens an argument that exists: {0}..{3} or {x0}..{x3}.
TEST(Cause, TextsAreWellFormed) {
  for (const Row& row : kRows) {
    std::string_view text = row.text;
    EXPECT_FALSE(text.empty());
    for (auto at = text.find_first_of("{}"); at != std::string_view::npos;
         at = text.find_first_of("{}")) {
      ASSERT_EQ(text[at], '{') << row.name;
      text.remove_prefix(at + 1);
      if (text.starts_with('x')) text.remove_prefix(1);
      ASSERT_GE(text.size(), 2U) << row.name;
      ASSERT_TRUE(text[0] >= '0' && text[0] <= '3') << row.name;
      ASSERT_EQ(text[1], '}') << row.name;
      text.remove_prefix(2);
    }
  }
}

TEST(Cause, FormatsDecimalAndHexadecimal) {
  EXPECT_EQ(sentence(cause(CauseCode::LimitExceeded, 18446744073709551615ULL, 7)),
            "18446744073709551615 was asked for, the device's limit is 7");
  EXPECT_EQ(sentence(cause(CauseCode::KeyOtherPd, 0x1f0a, 2, 3)),
            "key 0x1f0a belongs to PD 2, the QP to PD 3");
  EXPECT_EQ(sentence(cause(CauseCode::KeyRange, 0x101, ~0ULL, 0)),
            "address 0xffffffffffffffff with 0 bytes is outside the region of key 0x101");
  EXPECT_EQ(sentence(Cause{}), "no cause was recorded");
}

TEST(Cause, AnUnknownCodeIsNoCause) {
  const auto strange = static_cast<CauseCode>(65535);
  EXPECT_STREQ(cause_name(strange), "None");
  EXPECT_EQ(sentence(cause(strange, 1, 2, 3, 4)), "no cause was recorded");
}

TEST(Cause, NeverWritesBeyondItsRoom) {
  for (const Row& row : kRows) {
    const Cause c = cause(static_cast<CauseCode>(row.code), ~0ULL, ~0ULL, ~0ULL, ~0ULL);
    const std::string whole = sentence(c);
    for (std::size_t size = 0; size <= whole.size() + 1; ++size) {
      std::string room(size + 8, '#');
      const std::size_t length = format_cause(c, room.data(), size);
      EXPECT_EQ(room.substr(size), "########");
      EXPECT_EQ(length, size == 0 ? 0 : size - 1);
      EXPECT_EQ(room.substr(0, length), whole.substr(0, length));
      if (size != 0) {
        EXPECT_EQ(room[length], '\0');
      }
    }
  }
}

TEST(Cause, ARefusalCarriesErrnoAndCause) {
  const Result<int> result = refuse(Errc::NoMemory, CauseCode::QueueFull, 5, 6);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().errc, Errc::NoMemory);
  EXPECT_EQ(result.error().cause.code, CauseCode::QueueFull);
  EXPECT_EQ(result.error().cause.args[1], 6U);
  EXPECT_EQ(result.error().cause.args[2], 0U);
  const Result<void> nothing = refuse(Errc::Busy, CauseCode::ObjectBusy, 1);
  EXPECT_EQ(nothing.error().errc, Errc::Busy);
  EXPECT_TRUE(Result<void>());
}

}  // namespace
}  // namespace vrb::ib
