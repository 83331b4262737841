#!/usr/bin/env python3
# The layer check: an #include may only follow the arrows of docs/architecture.md, section 1. The arrows are
# read from that page, so that there is one truth.
# SPDX-License-Identifier: Apache-2.0
import os
import re
import sys

import tree

OUTSIDE = ("tools", "kv", "examples")  # folders with an arrow of their own that lie beside src/
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def arrows(page):
    """{layer: set of layers it names directly}, from the line of items like `wire, memory: ib`."""
    line = next((l for l in page.splitlines() if re.match(r"^`ib: base`", l)), None)
    if line is None:
        raise SystemExit("docs/architecture.md has no line of arrows that starts with `ib: base`")
    direct = {"base": set()}
    for item in re.findall(r"`([^`]+:[^`]+)`", line):
        names, targets = item.split(":")
        public_only = "public headers only" in targets
        for name in re.split(r"[,\s]+", names.strip()):
            direct[name] = set() if public_only else set(re.split(r"[,\s]+", targets.strip()))
    return direct


def closure(direct):
    """The same with everything that can be reached; a layer may always enter itself."""

    def reach(name, seen):
        for target in direct.get(name, set()) - seen:
            seen.add(target)
            reach(target, seen)
        return seen

    return {name: reach(name, {name}) for name in direct}


def layer_of(path):
    parts = path.split(os.sep)
    return parts[1] if parts[0] == "src" and len(parts) > 2 else parts[0]


def included_layer(root, path, mark, name):
    """The layer of ours that an include enters: a name, None (not ours), or '?' (quoted and not found)."""
    first = name.split("/")[0]
    if "/" in name and first not in (".", "..") and os.path.isdir(os.path.join(root, "src", first)):
        return first
    if "/" in name and first in OUTSIDE + ("tests", "bench"):
        return first
    if mark == '"':
        here = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if os.path.exists(os.path.join(root, here)):
            return layer_of(here)
        return "?"
    return None


def check(root):
    allowed = closure(arrows(tree.read(root, "docs/architecture.md") or ""))
    problems = []
    paths = tree.files(root, "src", *OUTSIDE, endings=tree.CXX)
    for path in paths:
        layer = layer_of(path)
        if layer not in allowed:
            problems.append(f"{path}: the folder {layer} has no arrow in docs/architecture.md")
            continue
        for match in INCLUDE.finditer(tree.read(root, path)):
            target = included_layer(root, path, *match.groups())
            if target is None or target in allowed[layer]:
                continue
            if target == "tests" and path.endswith("_test.cc"):
                continue
            line = tree.read(root, path)[: match.start()].count("\n") + 1
            reason = "no such file" if target == "?" else f"{layer} may not enter {target}"
            problems.append(f"{path}:{line}: #include {match.group(2)}: {reason}")
    return problems, len(paths)


if __name__ == "__main__":
    sys.exit(tree.report("layers", *check(sys.argv[1] if len(sys.argv) > 1 else tree.ROOT)))
