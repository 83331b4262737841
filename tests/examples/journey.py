#!/usr/bin/env python3
# `verbena journey`: two journeys of seven steps, each step with an actor, and times; then a wrong R_Key with
# its completion status and its cause.
# SPDX-License-Identifier: Apache-2.0
import re
import subprocess
import sys

ACTORS = r"(sender CPU|sender NIC|network|receiver NIC|receiver CPU)"
CAUSE = r"key 0x[0-9a-f]+ names no memory region"
problems = []


def expect(truth, what):
    if not truth:
        problems.append(what)


def joined(journey):
    """A journey as one line, without the column of the times."""
    return " ".join(re.sub(r" +[+<]?[\d,]+ ns$", "", journey, flags=re.M).split())


def steps(text):
    """{number: its lines}"""
    parts = re.split(r"^([1-7])  \S.*\n", text, flags=re.M)
    return {int(n): body for n, body in zip(parts[1::2], parts[2::2])}


run = subprocess.run([sys.argv[1], "journey"], stdout=subprocess.PIPE, text=True)
print(run.stdout, end="")
expect(run.returncode == 0, f"status {run.returncode}")
expect("\033" not in run.stdout, "colours in a file")
parts = re.split(r"^== (.*?) =+\n", run.stdout, flags=re.M)
journeys = dict(zip(parts[1::2], parts[2::2]))
expect(len(journeys) == 3, f"{len(journeys)} journeys")
pids = re.findall(r"\(pid (\d+)\)", parts[0])
expect(len(set(pids)) == 2, "not two processes")

for title in ("RDMA WRITE", "RDMA WRITE WITH IMMEDIATE"):
    told = steps(journeys.get(title, ""))
    expect(list(told) == [1, 2, 3, 4, 5, 6, 7], f"{title}: steps {list(told)}")
    for number, body in told.items():
        expect(re.search(rf"^   {ACTORS} ", body, re.M), f"{title}: step {number} has no actor")
        timed = re.search(r"[\d,]+ ns$", body, re.M)
        expect(timed or (number == 2 and "needs no" in body), f"{title}: step {number} has no time")
    everything = joined(journeys.get(title, ""))
    expect(f"Hello from process {pids[0]}." in everything, f"{title}: the bytes are not shown")

write = joined(journeys.get("RDMA WRITE", ""))
expect("no ibv_post_recv" in write and "no completion" in write, "WRITE: not said what it does without")
immediate = joined(journeys.get("RDMA WRITE WITH IMMEDIATE", ""))
expect("RECV_RDMA_WITH_IMM, immediate data 2026" in immediate, "no immediate data")
wrong = joined(journeys.get("RDMA WRITE with a wrong R_Key", ""))
expect("remote access error" in wrong, "wrong R_Key: no remote access error")
expect("none of the 4096 B" in wrong, "wrong R_Key: memory is not looked at")
expect(re.search(CAUSE, wrong), "wrong R_Key: no cause")

sys.exit("\n".join(problems) if problems else 0)
