// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace vrb::base {
namespace {

using Text = Result<std::string, int>;

TEST(Result, HoldsAValue) {
  Text r = std::string("abc");
  ASSERT_TRUE(r.has_value());
  EXPECT_TRUE(static_cast<bool>(r));
  EXPECT_EQ(*r, "abc");
  EXPECT_EQ(r->size(), 3U);
  *r = "d";
  const Text& seen = r;
  EXPECT_EQ(*seen, "d");
  EXPECT_EQ(seen->size(), 1U);
}

TEST(Result, HoldsAnError) {
  const Text r = Unexpected{5};
  EXPECT_FALSE(r.has_value());
  EXPECT_FALSE(r);
  EXPECT_EQ(r.error(), 5);
}

TEST(Result, TellsValueAndErrorOfOneTypeApart) {
  const Result<int, int> value = 3;
  const Result<int, int> error = Unexpected{3};
  EXPECT_TRUE(value);
  EXPECT_FALSE(error);
  EXPECT_EQ(error.error(), 3);
}

TEST(Result, CarriesWhatCanOnlyMove) {
  Result<std::unique_ptr<int>, int> r = std::make_unique<int>(4);
  const std::unique_ptr<int> out = std::move(*r);
  EXPECT_EQ(*out, 4);
}

TEST(Result, OfNothing) {
  const Result<void, std::string> good;
  EXPECT_TRUE(good);
  const Result<void, std::string> bad = Unexpected{std::string("why")};
  EXPECT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error(), "why");
}

}  // namespace
}  // namespace vrb::base
