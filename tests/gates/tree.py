# The files that the gates look at: everything in the source tree that is not built, hidden or cached.
# SPDX-License-Identifier: Apache-2.0
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CXX = (".cc", ".h", ".c")
SKIPPED = re.compile(r"^(build(-.*)?|\.git|\.cache|__pycache__)$")


def files(root, *folders, endings=None):
    """Paths relative to root, sorted; without folders the whole tree."""
    found = []
    for start in folders or ("",):
        for where, subfolders, names in os.walk(os.path.join(root, start)):
            subfolders[:] = [name for name in subfolders if not SKIPPED.match(name)]
            found += [os.path.relpath(os.path.join(where, name), root) for name in names]
    return sorted(path for path in found if endings is None or path.endswith(tuple(endings)))


def read(root, path):
    """The text of a file, or None when it is not text."""
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()
    except (UnicodeDecodeError, FileNotFoundError):
        return None


def report(name, problems, looked_at):
    """Prints the outcome; the value is the exit status. A gate that saw nothing has not passed."""
    for problem in problems:
        print(problem)
    if not looked_at:
        print(f"{name}: found nothing to look at")
        return 1
    print(f"{name}: {looked_at} looked at, {len(problems)} wrong")
    return 1 if problems else 0
