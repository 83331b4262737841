#!/usr/bin/env python3
# Runs one module of Debian's pyverbs suite inside the program that `verbena run` starts, and writes what became of
# each test as JSON. Usage: suite.py TESTS_FOLDER MODULE RESULT_FILE. check.py starts it.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import sys
import unittest


class Recorder(unittest.TextTestResult):
    """Remembers (outcome, words) of each test; what goes wrong in a fixture counts too."""

    def __init__(self, *args):
        super().__init__(*args)
        self.outcomes = {}

    def note(self, test, outcome, words=""):
        # An error in tearDown comes after a success: the worse word stays.
        if self.outcomes.get(test.id(), ["passed"])[0] in ("passed", "skipped"):
            self.outcomes[test.id()] = [outcome, words]

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped", reason)

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "error", self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "failed", self._exc_info_to_string(err, test))


def main():
    folder, module, result_file = sys.argv[1:]
    sys.argv[1:] = ["-v"]
    sys.path[:0] = [folder, os.path.dirname(folder)]  # as run_tests.py has it, and as `import tests` needs it
    import args_parser

    args_parser.parser.parse_args()
    suite = unittest.defaultTestLoader.loadTestsFromName(f"tests.{module}")
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Recorder)
    outcome = runner.run(suite)
    with open(result_file, "w", encoding="utf-8") as file:
        json.dump({"ran": outcome.testsRun, "outcomes": outcome.outcomes}, file)


if __name__ == "__main__":
    main()
