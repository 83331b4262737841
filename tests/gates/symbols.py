#!/usr/bin/env python3
# The no-system-calls check: the archives of the inner layers must not need a symbol of the deny list, be it of
# I/O, clocks, threads, randomness, sockets or memory mapping. What another of these archives defines is fine.
# Usage: symbols.py BUILD_DIR
# SPDX-License-Identifier: Apache-2.0
import glob
import os
import re
import subprocess
import sys

import tree

CLEAN = ("base", "ib", "memory", "queue", "nic", "transport", "cm", "check", "wire", "sim")


def denied(path=os.path.join(os.path.dirname(os.path.abspath(__file__)), "denied_symbols.txt")):
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return re.compile("|".join(f"(?:{line})" for line in lines if line and not line.startswith("#")))


def undefined(listing):
    """(object, symbol) of each undefined symbol in the output of nm --undefined-only."""
    member = "?"
    for line in listing.splitlines():
        if line.endswith(":"):
            member = line[:-1]
        elif line.split()[:1] == ["U"]:
            yield member, line.split()[1].split("@")[0]


def wrong(listing, deny):
    return [(member, name) for member, name in undefined(listing) if deny.fullmatch(name)]


def check(build):
    deny = denied()
    problems = []
    archives = [
        path
        for name in CLEAN
        for path in glob.glob(os.path.join(build, "**", f"libvrb_{name}.a"), recursive=True)
    ]
    for archive in archives:
        nm = subprocess.run(
            ["nm", "--undefined-only", archive], capture_output=True, text=True, check=True
        )
        for member, name in wrong(nm.stdout, deny):
            problems.append(f"{os.path.basename(archive)}: {member} needs {name}")
    return problems, len(archives)


if __name__ == "__main__":
    sys.exit(tree.report("symbols", *check(sys.argv[1])))
