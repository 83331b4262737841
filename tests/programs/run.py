#!/usr/bin/env python3
# Runs the stock programs of cases.txt through `verbena run`, each pair on loopback with a port of its own.
# A server counts as ready when /proc/net/tcp shows its port listening; nothing here waits for a fixed time.
# Usage: run.py --verbena build/bin/verbena [--filter TEXT] [--list] [--as-user UID] [--env K=V] [--markdown]
# SPDX-License-Identifier: Apache-2.0
import argparse
import os
import re
import selectors
import shlex
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
POLL_SECONDS = 0.005
LISTEN_STATE = "0A"


class Case:
    def __init__(self, kind, command, pattern, section):
        self.kind, self.command, self.pattern, self.section = kind, command, pattern, section
        self.trouble = None

    def __str__(self):
        return self.command


def read_cases(path):
    cases, section = [], "?"
    with open(path, encoding="utf-8") as file:
        for line in map(str.strip, file):
            if line.startswith("[") and line.endswith("]"):
                section = line[1:-1]
            elif line and not line.startswith("#"):
                kind, rest = line.split(" ", 1)
                if kind not in ("one", "starts", "pair"):
                    raise SystemExit(f"{path}: '{line}' starts with neither one, starts nor pair")
                command, _, pattern = rest.partition(" ~ ")
                cases.append(Case(kind, command, pattern or None, section))
    return cases


def listening_ports():
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                rows = [line.split() for line in file.readlines()[1:]]
        except FileNotFoundError:
            continue
        ports |= {int(row[1].rsplit(":", 1)[1], 16) for row in rows if row[3] == LISTEN_STATE}
    return ports


class Runner:
    def __init__(self, verbena, carrier, user, environment, limit):
        self.prefix = [verbena, "run"] + (["--carrier", carrier] if carrier else []) + ["--"]
        self.identity = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
        self.environment = {**os.environ, **environment}
        self.limit = limit
        self.port = 20000 + os.getpid() * 131 % 10000

    def next_port(self):
        taken = listening_ports()
        self.port += 1
        while self.port in taken:
            self.port += 1
        return self.port

    def start(self, command, output):
        return subprocess.Popen(
            self.prefix + command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env=self.environment, cwd="/", **self.identity,
        )

    def run(self, case):
        """None when the case is good, else what is wrong and what the programs said."""
        deadline = time.monotonic() + self.limit
        with tempfile.TemporaryFile("w+") as first, tempfile.TemporaryFile("w+") as second:
            processes = []
            try:
                trouble = getattr(self, case.kind)(case, deadline, first, second, processes)
            except subprocess.TimeoutExpired:
                trouble = f"not done after {self.limit} s"
            finally:
                for process in processes:
                    if process.poll() is None:
                        process.kill()
                        process.wait()
            return trouble and trouble + "".join(self.said(*pair) for pair in
                                                 zip(("server", "client"), (first, second)))

    @staticmethod
    def said(who, file):
        file.seek(0)
        lines = file.read().splitlines()[-25:]
        return "".join(f"\n    {who}: {line}" for line in lines)

    def one(self, case, deadline, output, _, processes):
        processes.append(self.start(shlex.split(case.command), output))
        status = processes[0].wait(deadline - time.monotonic())
        output.seek(0)
        if status != 0:
            return f"status {status}"
        return None if re.search(case.pattern, output.read()) else f"no match for {case.pattern}"

    def starts(self, case, deadline, output, _, processes):
        """Reads what the program prints until the pattern is there; the program then has to be still alive."""
        processes.append(self.start(shlex.split(case.command), subprocess.PIPE))
        stream, text = processes[0].stdout, ""
        os.set_blocking(stream.fileno(), False)
        with selectors.DefaultSelector() as selector, stream:
            selector.register(stream, selectors.EVENT_READ)
            while not re.search(case.pattern, text):
                if not selector.select(max(0, deadline - time.monotonic())):
                    break
                piece = stream.read() or b""
                output.write(piece.decode(errors="replace"))
                text += piece.decode(errors="replace")
                if not piece:
                    return f"ended with status {processes[0].wait()} before it printed {case.pattern}"
            if not re.search(case.pattern, text):
                return f"did not print {case.pattern}"
        return None if processes[0].poll() is None else "ended by itself"

    def pair(self, case, deadline, output, client_output, processes):
        port = self.next_port()
        command = shlex.split(case.command) + ["-p", str(port)]
        processes.append(self.start(command, output))
        while port not in listening_ports():
            if processes[0].poll() is not None:
                return f"the server ended with status {processes[0].returncode} before it listened"
            if time.monotonic() > deadline:
                return "the server did not listen"
            time.sleep(POLL_SECONDS)
        processes.append(self.start(command + ["127.0.0.1"], client_output))
        client = processes[1].wait(max(0, deadline - time.monotonic()))
        if client != 0:  # its server may never hear of it
            return f"client status {client}, server status {processes[0].poll()}"
        server = processes[0].wait(max(0, deadline - time.monotonic()))
        return None if server == 0 else f"client status 0, server status {server}"


def markdown(cases):
    rows = ["| | programs | on | cases | passed |", "|---|---|---|---|---|"]
    for section in dict.fromkeys(case.section for case in cases):
        mine = [case for case in cases if case.section == section]
        names = ", ".join(dict.fromkeys(case.command.split()[0] for case in mine))
        types = dict.fromkeys(re.search(r" -c (U[CD])|$", case.command).group(1) or "RC" for case in mine)
        on = " ".join(types) if section.startswith("perftest") else ""
        passed = sum(case.trouble is None for case in mine)
        rows.append(f"| {section} | {names} | {on} | {len(mine)} | {passed} |")
    return "\n".join(rows)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbena", default="build/bin/verbena", help="the launcher")
    parser.add_argument("--carrier", help="passed on to verbena run")
    parser.add_argument("--filter", default="", help="only cases whose command or section contains this")
    parser.add_argument("--list", action="store_true", help="print the cases and run none")
    parser.add_argument("--as-user", type=int, metavar="UID", help="run the programs as this user (needs root)")
    parser.add_argument("--env", action="append", default=[], metavar="K=V")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one case")
    parser.add_argument("--markdown", action="store_true", help="print a table of all cases at the end")
    return parser.parse_args()


def main():
    args = arguments()
    cases = [case for case in read_cases(os.path.join(HERE, "cases.txt"))
             if args.filter in case.command or args.filter in case.section]
    if args.list:
        print("\n".join(f"{case.section}: {case}" for case in cases))
        return 0
    environment = dict(item.split("=", 1) for item in args.env)
    runner = Runner(os.path.abspath(args.verbena), args.carrier, args.as_user, environment, args.limit)
    for case in cases:
        begin = time.monotonic()
        case.trouble = runner.run(case)
        verdict = f"FAILED: {case.trouble}" if case.trouble else "ok"
        print(f"{time.monotonic() - begin:6.2f} s  {case}: {verdict}", flush=True)
    failed = sum(case.trouble is not None for case in cases)
    if args.markdown:
        print(markdown(cases))
    print(f"{len(cases) - failed} cases passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
