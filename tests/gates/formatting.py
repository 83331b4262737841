#!/usr/bin/env python3
# Formatting: clang-format has nothing to change in any C++ file.
# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys

import tree

FOLDERS = ("src", "tools", "examples", "tests", "kv", "bench")


def check(root):
    paths = tree.files(root, *FOLDERS, endings=tree.CXX)
    wrong = set()
    for start in range(0, len(paths), 50):
        run = subprocess.run(
            ["clang-format", "--dry-run", "-Werror", *paths[start : start + 50]],
            capture_output=True, text=True, cwd=root,
        )
        if run.returncode != 0:
            found = {l.split(":")[0] for l in run.stderr.splitlines() if "error:" in l}
            wrong |= found or {run.stderr.strip()}
    return [f"{path}: run clang-format -i on it" for path in sorted(wrong)], len(paths)


if __name__ == "__main__":
    sys.exit(tree.report("formatting", *check(sys.argv[1] if len(sys.argv) > 1 else tree.ROOT)))
