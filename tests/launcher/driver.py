#!/usr/bin/env python3
# Runs the launcher's tests: driver.py BUILD_DIR [CLASS[.test] ...]. Each class is one entry of ctest. With
# --list it prints the classes. Status 77: every test was skipped (some need root).
# SPDX-License-Identifier: Apache-2.0
import importlib
import os
import sys
import unittest

MODULES = ("run_cases", "other_cases", "install_cases", "preload_cases")


def cases():
    found = {}
    for name in MODULES:
        module = importlib.import_module(name)
        for key, value in vars(module).items():
            if isinstance(value, type) and value.__module__ == name:
                found[key] = value
    return found


def main(arguments):
    sys.dont_write_bytecode = True
    if arguments[:1] == ["--list"]:
        print("\n".join(cases()))
        return 0
    if not arguments:
        print("usage: driver.py BUILD_DIR [CLASS[.test] ...]", file=sys.stderr)
        return 2
    os.environ["VERBENA_BUILD"] = os.path.abspath(arguments[0])
    classes = cases()
    suite = unittest.TestSuite()
    for wanted in arguments[1:] or classes:
        name, _, test = wanted.partition(".")
        loader = unittest.defaultTestLoader
        suite.addTest(classes[name](test) if test else loader.loadTestsFromTestCase(classes[name]))
    count = suite.countTestCases()
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if not result.wasSuccessful():
        return 1
    return 77 if len(result.skipped) == count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
