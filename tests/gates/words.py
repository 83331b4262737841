#!/usr/bin/env python3
# Size and words: no source file over 450 lines, none without its licence line and first comment, and no marks
# of unfinished work or paths of somebody's own machine in any text file.
# SPDX-License-Identifier: Apache-2.0
import re
import sys

import tree

MOST_LINES = 450
SOURCES = tree.CXX + (".py", ".sh", ".cmake", "CMakeLists.txt")
SCRIPTS = ("demo", "check", ".ci/run")
# Written so that this file does not contain them itself.
BAD = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b|/wor" r"k/|/far" r"m/")
NO_HEADER = re.compile(r"(^|/)(CMakeLists\.txt|.*\.cmake)$")


def first_comment(text):
    """The comment at the top, without the #! line."""
    body = re.sub(r"^#!.*\n", "", text)
    if body.startswith("/*"):
        return body.partition("*/")[0]
    return re.match(r"((//|#(?!include|pragma)).*\n)*", body).group()


def check_file(path, text, header_beside=False):
    """header_beside: a .cc next to the .h of its name may leave the words to that."""
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        found = BAD.search(line)
        if found:
            problems.append(f"{path}:{number}: '{found.group()}' has no place in the repository")
    if path.endswith(SOURCES) or path in SCRIPTS or path.startswith("scripts/"):
        lines = text.count("\n")
        if lines > MOST_LINES:
            problems.append(f"{path}: {lines} lines; {MOST_LINES} is the most")
        if not NO_HEADER.search(path):
            comment = first_comment(text)
            if "SPDX-License-Identifier: Apache-2.0" not in comment:
                problems.append(f"{path}: no SPDX-License-Identifier line in its first comment")
            if not header_beside and len(comment.strip().splitlines()) < 2:
                problems.append(f"{path}: its first comment does not say what it is")
    return problems


def check(root):
    problems = []
    paths = tree.files(root)
    for path in paths:
        text = tree.read(root, path)
        if text is not None:
            header = re.sub(r"(_test)?\.cc$", ".h", path)
            problems += check_file(path, text, header != path and header in paths)
    return problems, len(paths)


if __name__ == "__main__":
    sys.exit(tree.report("words", *check(sys.argv[1] if len(sys.argv) > 1 else tree.ROOT)))
