#!/usr/bin/env python3
# The exported-symbols check: libibverbs.so.1 must export each symbol of Debian 12's in each of its versions and
# nothing else but what tests/abi/extra.txt allows.
# Usage: exports.py LIBRARY REFERENCE_LIST EXTRA_LIST
# SPDX-License-Identifier: Apache-2.0
import fnmatch
import subprocess
import sys

import tree


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def exported(library):
    """name@@version, name@version or the name of a version node, from readelf."""
    output = subprocess.run(
        ["readelf", "--dyn-syms", "-W", library], capture_output=True, text=True, check=True
    ).stdout
    columns = [line.split() for line in output.splitlines()]
    return {
        fields[7]
        for fields in columns
        if len(fields) >= 8 and fields[0].rstrip(":").isdigit() and fields[6] != "UND"
    }


def compare(have, reference, extra):
    required = set(reference) | {line for line in extra if not line.startswith("?")}
    optional = [line[1:] for line in extra if line.startswith("?")]
    problems = [f"missing: {name}" for name in sorted(required - have)]
    for name in sorted(have - required):
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in optional):
            problems.append(f"not in the lists: {name}")
    return problems


if __name__ == "__main__":
    library, reference, extra = sys.argv[1:]
    symbols = exported(library)
    problems = compare(symbols, lines(reference), lines(extra))
    sys.exit(tree.report("exports", problems, len(symbols)))
