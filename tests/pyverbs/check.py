#!/usr/bin/env python3
# Runs one module of Debian's pyverbs suite on Verbena. It fails when a test fails or errors, when the program dies,
# and when a test is skipped that skips.txt does not name.
# Usage: check.py --verbena build/bin/verbena --scratch FOLDER MODULE
# SPDX-License-Identifier: Apache-2.0
import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SUITE = os.environ.get("VERBENA_PYVERBS_TESTS", "/usr/share/doc/rdma-core/tests")
PYTHON = "/usr/bin/python3"  # the one that python3-pyverbs is for
SUPPORT = ("args_parser", "base", "utils", "efa_base", "mlx5_base", "mlx5_prm_structs", "cuda_utils")


def unpack(module, into):
    """A copy of the module and what it imports as package `tests`; Debian compresses the larger files."""
    package = os.path.join(into, "tests")
    os.makedirs(package)
    open(os.path.join(package, "__init__.py"), "w", encoding="utf-8").close()
    for name in (module, *SUPPORT):
        source = os.path.join(SUITE, name + ".py")
        target = os.path.join(package, name + ".py")
        if os.path.exists(source):
            shutil.copy(source, target)
        elif os.path.exists(source + ".gz"):
            with gzip.open(source + ".gz") as packed, open(target, "wb") as plain:
                shutil.copyfileobj(packed, plain)
        else:
            raise SystemExit(f"{source} is not there: scripts/deps brings python3-pyverbs")
    return package


def allowed_skips(path=os.path.join(HERE, "skips.txt")):
    """{test: reason}; a name that ends in * stands for all that begin so."""
    skips = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, reason = line.split(None, 1)
                skips[name] = reason.strip()
    return skips


def may_skip(test, skips):
    return any(test == name or (name.endswith("*") and test.startswith(name[:-1])) for name in skips)


def judge(result, skips):
    """(problems, count of each outcome)."""
    problems, count = [], {"passed": 0, "skipped": 0, "failed": 0, "error": 0}
    for test, (outcome, words) in sorted(result["outcomes"].items()):
        name = test.removeprefix("tests.")
        count[outcome] += 1
        if outcome in ("failed", "error"):
            problems.append(f"{name}: {outcome}\n{words}")
        elif outcome == "skipped" and not may_skip(name, skips):
            problems.append(f"{name}: skipped and not in skips.txt: {words}")
    if not count["passed"]:
        problems.append("no test passed")
    return problems, count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbena", required=True)
    parser.add_argument("--scratch", help="where to make the copy of the suite (a new folder in it)")
    parser.add_argument("module", help="for example test_qp")
    args = parser.parse_args()
    if args.scratch:
        os.makedirs(args.scratch, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.scratch) as scratch:
        package = unpack(args.module, scratch)
        result_file = os.path.join(scratch, "result.json")
        run = subprocess.run(
            [os.path.abspath(args.verbena), "run", "--", PYTHON, os.path.join(HERE, "suite.py"),
             package, args.module, result_file],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        if not os.path.exists(result_file):
            print(run.stdout)
            print(f"{args.module}: the program ended with status {run.returncode} before its end")
            return 1
        with open(result_file, encoding="utf-8") as file:
            problems, count = judge(json.load(file), allowed_skips())
    if run.returncode != 0:
        problems.append(f"the program ended with status {run.returncode} after its tests")
    if problems:
        print(run.stdout)
    for problem in problems:
        print(problem)
    print(f"{args.module}: " + ", ".join(f"{number} {word}" for word, number in count.items()))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
