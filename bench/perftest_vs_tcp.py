#!/usr/bin/env python3
# Stock perftest on Verbena next to TCP over loopback, UCX over shared memory and what the machine itself gives (a cache
# line on its way, memcpy), measured in turn in the same run, both ends pinned to a core of their own, where they spin
# (only qperf sleeps). Numbers are medians of the repeats. Latency is half a round trip, for READ the whole of it (the
# tools' own definitions). Usage: perftest_vs_tcp.py [--json FILE] [--repeats N] [--quick]
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time

READY_SECONDS = 20
RUN_SECONDS = 120
LATENCY_BYTES, BANDWIDTH_BYTES = 8, 65536

# name, program or qperf test, what it measures, the row that it is compared with (TCP's), and UCX's
ROWS = (
    ("cache-line hand-off", "hand-off", "us", None, None),
    ("memcpy", "memcpy", "MB/s", None, None),
    ("TCP, sleeping", "tcp_lat", "us", None, None),
    ("TCP latency", "tcp_ping", "us", None, None),
    ("UCX put latency", "ucp_put_lat", "us", "TCP latency", None),
    ("UCX tag latency", "tag_lat", "us", "TCP latency", None),
    ("WRITE latency", "ib_write_lat", "us", "TCP latency", "UCX put latency"),
    ("READ latency", "ib_read_lat", "us", "TCP latency", "UCX put latency"),
    ("SEND latency", "ib_send_lat", "us", "TCP latency", "UCX tag latency"),
    ("TCP bandwidth", "tcp_bw", "MB/s", None, None),
    ("UCX put bandwidth", "ucp_put_bw", "MB/s", "TCP bandwidth", None),
    ("WRITE bandwidth", "ib_write_bw", "MB/s", "TCP bandwidth", "UCX put bandwidth"),
    ("READ bandwidth", "ib_read_bw", "MB/s", "TCP bandwidth", "UCX put bandwidth"),
    ("SEND bandwidth", "ib_send_bw", "MB/s", "TCP bandwidth", "UCX put bandwidth"),
)


def listens(port):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(table):
            with open(table, encoding="ascii") as file:
                if any(row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A"
                       for row in file.readlines()[1:]):
                    return True
    return False


def two_ends(server, client, port, cores):
    """Runs both ends on their cores; the client's output."""
    ends = []
    try:
        for command, core in zip((server, client), cores):
            ends.append(subprocess.Popen(["taskset", "-c", str(core), *command], stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
            deadline = time.monotonic() + READY_SECONDS
            while len(ends) == 1 and not listens(port):
                if ends[0].poll() is not None or time.monotonic() > deadline:
                    ends[0].kill()
                    raise SystemExit(f"{' '.join(server)} does not listen:\n{ends[0].communicate()[0]}")
                time.sleep(0.005)
        output, _ = ends[1].communicate(timeout=RUN_SECONDS)
        if ends[1].returncode != 0:
            raise SystemExit(f"{' '.join(client)} ended with status {ends[1].returncode}:\n{output}")
        return output
    except subprocess.TimeoutExpired:
        raise SystemExit(f"{' '.join(client)} was not done after {RUN_SECONDS} s") from None
    finally:
        for end in ends:
            if end.poll() is None:
                end.terminate()
            end.wait()


def qperf(test, args, port):
    size = LATENCY_BYTES if test == "tcp_lat" else BANDWIDTH_BYTES
    client = ["qperf", "127.0.0.1", "-lp", str(port), "-uu", "-m", str(size), "-t", str(args.seconds), test]
    output = two_ends(["qperf", "-lp", str(port)], client, port, args.cores)
    found = re.search(r"(?:latency|bw)\s*=\s*([\d.]+) (ns|bytes/sec)", output)  # what -uu prints
    if not found:
        raise SystemExit(f"qperf printed no number:\n{output}")
    return {"value": float(found.group(1)) * (1e-3 if found.group(2) == "ns" else 1e-6)}


def tcp_ping(_, args, port):
    """Spins in recv(), as perftest does in ibv_poll_cq(); qperf sleeps there."""
    common = [args.tcp_ping, "-p", str(port), "-s", str(LATENCY_BYTES), "-n", str(args.latency_count)]
    output = two_ends(common, common + ["127.0.0.1"], port, args.cores)
    return {"value": float(output.split()[1]) * 1e-3}


def limit(what, args, _):
    """What no software between two processes can beat: a cache line on its way, and memcpy of the same bytes."""
    words = map(str, args.cores) if what == "hand-off" else [str(BANDWIDTH_BYTES)]
    output = subprocess.run([args.limits, what, *words], check=True, capture_output=True, text=True).stdout
    return {"value": float(output.split()[0]) * (1e-3 if what == "hand-off" else 1)}


def ucx(test, args, port):
    """UCX's own transport for one host, POSIX shared memory: what a library without verbs reaches."""
    latency = test.endswith("_lat")
    size, count = (LATENCY_BYTES, args.latency_count) if latency else (BANDWIDTH_BYTES, args.bandwidth_count)
    server = ["env", "UCX_TLS=posix,self", "UCX_LOG_LEVEL=error", "ucx_perftest", "-p", str(port)]
    client = server + ["127.0.0.1", "-t", test, "-s", str(size), "-n", str(count), "-w", "1000"]
    found = re.search(r"^Final:\s+\d+((?:\s+[\d.]+)+)", two_ends(server, client, port, args.cores), re.M)
    if not found:
        raise SystemExit(f"ucx_perftest {test} printed no result")
    numbers = [float(word) for word in found.group(1).split()]  # latency: 50 %, average, overall; MB/s: ...
    return {"value": numbers[2] if latency else numbers[4] * 2**20 / 1e6}


def perftest(program, args, port):
    latency = program.endswith("_lat")
    size, count = (LATENCY_BYTES, args.latency_count) if latency else (BANDWIDTH_BYTES, args.bandwidth_count)
    common = [args.verbena, "run", "--", program, "-F", "-p", str(port), "-s", str(size), "-n", str(count)]
    if not latency:
        common.append("-N")  # no peak, which would cost a clock read a message
    output = two_ends(common, common + ["127.0.0.1"], port, args.cores)
    rows = [line.split() for line in output.splitlines() if re.match(rf"\s*{size}\s+{count}\s", line)]
    if not rows:
        raise SystemExit(f"{program} printed no line of results:\n{output}")
    numbers = [float(word) for word in rows[-1]]
    if latency:  # bytes, iterations, min, max, typical, average, stdev, 99 %, 99.9 %
        return {"value": numbers[5], "typical": numbers[4], "p99": numbers[7], "p999": numbers[8]}
    return {"value": numbers[3] * 2**20 / 1e6, "messages_per_second": numbers[4] * 1e6}  # MiB/s, Mpps


def tool_of(program):
    if program.startswith("ib_"):
        return perftest
    return {"hand-off": limit, "memcpy": limit, "tcp_ping": tcp_ping, "tcp_lat": qperf, "tcp_bw": qperf}.get(program, ucx)


def show(progress):
    if sys.stderr.isatty():
        print(progress, end="", file=sys.stderr, flush=True)


def measure(args):
    """{row: [one result a repeat]}; the rows take turns, so that a disturbance meets all of them."""
    results = {name: [] for name, *_ in ROWS}
    port = 19000 + os.getpid() * 31 % 4000
    for repeat in range(args.repeats):
        for name, program, *_ in ROWS:
            port += 1
            show(f"\r{repeat + 1}/{args.repeats} {name:20}")
            results[name].append(tool_of(program)(program, args, port))
    show("\r" + " " * 40 + "\r")
    return results


def summary(results):
    medians = {name: statistics.median(r["value"] for r in runs) for name, runs in results.items()}
    rows = []
    for name, program, unit, tcp, other in ROWS:
        values = [result["value"] for result in results[name]]

        def times_better(base):
            if base is None:
                return None
            return medians[base] / medians[name] if unit == "us" else medians[name] / medians[base]
        rows.append({"name": name, "program": program, "unit": unit, "median": medians[name],
                     "lowest": min(values), "highest": max(values), "times_better_than_tcp": times_better(tcp),
                     "times_better_than_ucx": times_better(other),
                     "runs": results[name]})
    return rows


def table(rows):
    lines = [f"{'':20}{'median':>10}{'lowest':>10}{'highest':>10}  {'':6}{'against TCP':>12}{'against UCX':>12}"]
    for row in rows:
        ratios = "".join(f"{f'{row[key]:.3g} x' if row[key] else '':>12}"
                         for key in ("times_better_than_tcp", "times_better_than_ucx"))
        digits = 2 if row["unit"] == "us" else 0
        numbers = "".join(f"{row[key]:10.{digits}f}" for key in ("median", "lowest", "highest"))
        lines.append(f"{row['name']:20}{numbers}  {row['unit']:6}{ratios}".rstrip())
    return "\n".join(lines)


def arguments():
    cores = sorted(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbena", default="build/bin/verbena")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one repeat, fewer messages")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--cores", type=lambda text: [int(word) for word in text.split(",")],
                        default=[cores[0], cores[-1]], help="the server's and the client's, default first and last")
    args = parser.parse_args()
    args.verbena = os.path.abspath(args.verbena)
    beside = os.path.join(os.path.dirname(os.path.dirname(args.verbena)), "bench")
    args.tcp_ping, args.limits = os.path.join(beside, "tcp_ping"), os.path.join(beside, "limits")
    args.repeats = 1 if args.quick else args.repeats
    args.seconds = 1 if args.quick else 2
    args.latency_count = 20000 if args.quick else 100000
    args.bandwidth_count = 20000 if args.quick else 50000
    for tool in ("taskset", "qperf", "ib_write_lat", "ucx_perftest"):
        if not shutil.which(tool):
            raise SystemExit(f"{tool} is not installed; scripts/deps brings it")
    return args


def main():
    args = arguments()
    rows = summary(measure(args))
    print(f"{LATENCY_BYTES} B latency, {BANDWIDTH_BYTES} B bandwidth; {args.repeats} repeat(s); "
          f"cores {args.cores[0]} and {args.cores[1]}; MB = 10^6 bytes")
    print(table(rows))
    if args.json:
        about = {"kernel": platform.release(), "machine": platform.machine(), "cores": args.cores,
                 "repeats": args.repeats, "latency_bytes": LATENCY_BYTES, "bandwidth_bytes": BANDWIDTH_BYTES}
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"about": about, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
