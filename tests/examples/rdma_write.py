#!/usr/bin/env python3
# examples/rdma_write must end well, and the receiver must have found what the sender wrote.
# SPDX-License-Identifier: Apache-2.0
import re
import subprocess
import sys

verbena, program = sys.argv[1:]
run = subprocess.run([verbena, "run", "--", program], stdout=subprocess.PIPE, text=True)
print(run.stdout, end="")
found = re.search(r'^receiver: process (\d+) found "hello from process (\d+)"$', run.stdout, re.M)
if run.returncode != 0 or "completed: success" not in run.stdout or not found:
    sys.exit(f"status {run.returncode}, or not the output that was expected")
if found.group(1) == found.group(2):
    sys.exit("the sender and the receiver are the same process")
