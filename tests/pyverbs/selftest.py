#!/usr/bin/env python3
# check.py can fail: it sees failures, errors, unknown skips and an empty run.
# SPDX-License-Identifier: Apache-2.0
import unittest

import check


class Judge(unittest.TestCase):
    SKIPS = {"test_a.T.one": "why", "test_a.M.*": "why"}

    def problems(self, **outcomes):
        named = {f"tests.test_a.{name.replace('_', '.')}": outcome for name, outcome in outcomes.items()}
        return check.judge({"outcomes": named}, self.SKIPS)[0]

    def test_good(self):
        self.assertEqual(self.problems(T_one=["skipped", ""], M_x=["skipped", ""], T_two=["passed", ""]), [])

    def test_unknown_skip(self):
        self.assertEqual(len(self.problems(T_two=["skipped", ""], T_one=["passed", ""])), 1)

    def test_failure_and_error(self):
        self.assertEqual(len(self.problems(T_two=["failed", ""], T_one=["error", ""], T_x=["passed", ""])), 2)

    def test_nothing_ran(self):
        self.assertEqual(self.problems(), ["no test passed"])

    def test_every_skip_has_a_reason(self):
        for name, reason in check.allowed_skips().items():
            self.assertTrue(reason, name)


if __name__ == "__main__":
    unittest.main()
