#!/usr/bin/env python3
# clang-tidy over every file of compile_commands.json, those of tests only with --tests. What passed is remembered in
# BUILD_DIR/tidy under a hash of the file, the headers of ours that it reaches, its command, the checks and the tool,
# and is not run again.
# Usage: tidy.py BUILD_DIR [--jobs N] [--tests] [PATTERN...]
# SPDX-License-Identifier: Apache-2.0
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys

import tree

INCLUDE = re.compile(rb'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


def reached(path, root, seen):
    """The file and the headers of this tree that it includes, directly or not."""
    if path in seen:
        return seen
    with open(path, "rb") as file:
        text = seen[path] = file.read()
    for name in INCLUDE.findall(text):
        for base in (os.path.dirname(path), os.path.join(root, "src"), root):
            header = os.path.normpath(os.path.join(base, os.fsdecode(name)))
            if header.startswith(root + os.sep) and os.path.isfile(header):
                reached(header, root, seen)
                break
    return seen


def key(entry, root, common):
    digest = hashlib.sha256(common)
    digest.update(entry["command"].encode())
    for path, text in sorted(reached(entry["file"], root, {}).items()):
        digest.update(path.encode() + b"\0" + text + b"\0")
    return digest.hexdigest()


def tidy(entry, build, root, marker):
    run = subprocess.run(
        ["clang-tidy", "--quiet", f"--header-filter=^{re.escape(root)}/(src|tools|kv|examples|tests)/",
         "-p", build, entry["file"]],
        capture_output=True, text=True,
    )
    if run.returncode == 0 and "warning:" not in run.stdout:
        with open(marker, "w", encoding="utf-8"):
            return None
    return (run.stdout + ("" if run.stdout.strip() else run.stderr)).strip()


def is_test(path, root):
    return path.endswith("_test.cc") or path.startswith(os.path.join(root, "tests"))


def check(build, jobs, tests, patterns, root=tree.ROOT):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = [entry for entry in json.load(file) if entry["file"].startswith(root + os.sep)]
    if not tests:
        entries = [entry for entry in entries if not is_test(entry["file"], root)]
    if patterns:
        entries = [entry for entry in entries if any(part in entry["file"] for part in patterns)]
    cache = os.path.join(build, "tidy")
    os.makedirs(cache, exist_ok=True)
    with open(os.path.join(root, ".clang-tidy"), "rb") as file:
        common = file.read() + subprocess.check_output(["clang-tidy", "--version"])
    todo = []
    for entry in entries:
        marker = os.path.join(cache, key(entry, root, common))
        if not os.path.exists(marker):
            todo.append((entry, marker))
    print(f"tidy: {len(entries)} files, {len(entries) - len(todo)} unchanged since they passed")
    found = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for text in pool.map(lambda job: tidy(job[0], build, root, job[1]), todo):
            if text and text not in found:  # what is wrong in a header comes once a file
                found[text] = True
                print(text, flush=True)
    return [f"clang-tidy: {len(found)} different complaints, above"] if found else [], len(entries)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("patterns", nargs="*", help="only files whose path contains one of these")
    args = parser.parse_args()
    sys.exit(tree.report("tidy", *check(args.build, args.jobs, args.tests, args.patterns)))
