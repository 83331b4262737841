#!/usr/bin/env python3
# docs/errors.md is made from the table of causes in src/ib/cause.h: this prints it (--print), writes it (--write), or
# fails when the committed page says something else.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "errors.md"
ROW = re.compile(r'X\((\d+), (\w+),\s*((?:"(?:[^"\\]|\\.)*"\s*\\?\s*)+)\)', re.S)
HEAD = """# Causes

Every refused call and every completion in error leaves a cause. `VERBENA_EXPLAIN=1` prints it as one line on stderr, and
`vendor_err` of the completion holds its number. The numbers never change their meaning. `{0}` stands for a value in
decimal, `{x0}` in hexadecimal. This page is made from `src/ib/cause.h` by `tests/gates/errors_doc.py --write`.

| number | name | in plain words |
|---:|---|---|
"""


def page():
    text = (ROOT / "src" / "ib" / "cause.h").read_text()
    table = text[text.index("#define VRB_CAUSES"):text.index("enum class CauseCode")]
    rows = []
    for number, name, literal in ROW.findall(table):
        sentence = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literal))
        rows.append(f"| {number} | {name} | {sentence} |\n")
    if len(rows) < 50:
        sys.exit(f"errors_doc: only {len(rows)} causes found in src/ib/cause.h")
    return HEAD + "".join(rows)


def main():
    if "--print" in sys.argv:
        print(page(), end="")
    elif "--write" in sys.argv:
        PAGE.write_text(page())
    elif not PAGE.exists() or PAGE.read_text() != page():
        sys.exit("docs/errors.md is not what src/ib/cause.h says: run tests/gates/errors_doc.py --write")


main()
