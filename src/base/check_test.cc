// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace vrb::base {
namespace {

void report_and_exit(const char* file, int line, const char* what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
  std::_Exit(3);
}

TEST(CheckDeathTest, AHookLearnsWhatBroke) {
  EXPECT_EXIT(
      {
        set_check_hook(report_and_exit);
        VRB_CHECK(1 + 1 == 3);
      },
      ::testing::ExitedWithCode(3), "check_test.cc:[0-9]+: 1 \\+ 1 == 3");
}

TEST(CheckDeathTest, EndsTheProcessWithoutAHook) { EXPECT_DEATH(VRB_CHECK(false), ""); }

TEST(CheckDeathTest, EndsTheProcessWhenTheHookReturns) {
  EXPECT_DEATH(
      {
        set_check_hook([](const char*, int, const char*) {});
        VRB_CHECK(false);
      },
      "");
}

TEST(Check, EvaluatesItsConditionOnce) {
  int calls = 0;
  VRB_CHECK(++calls == 1);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace vrb::base
