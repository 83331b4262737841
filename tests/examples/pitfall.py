#!/usr/bin/env python3
# A program of examples/pitfalls must see what it claims (status 0), and print what docs/pitfalls.md shows.
# SPDX-License-Identifier: Apache-2.0
import os
import re
import subprocess
import sys

verbena, program, page = sys.argv[1:]
name = os.path.basename(program)
run = subprocess.run([verbena, "run", "--", program], stdout=subprocess.PIPE, text=True)
print(run.stdout, end="")
if run.returncode != 0:
    sys.exit(f"{name} ended with status {run.returncode}")

with open(page, encoding="utf-8") as file:
    shown = re.search(rf"^\$ verbena run -- \S*/{name}\n(.*?)^```$", file.read(), re.M | re.S)
if not shown:
    sys.exit(f"{page} does not show the output of {name}")
if shown.group(1) != run.stdout:
    sys.exit(f"{page} shows another output:\n{shown.group(1)}")
