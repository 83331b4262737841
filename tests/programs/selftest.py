#!/usr/bin/env python3
# run.py can fail: programs made for it misbehave in each way, and it says so.
# SPDX-License-Identifier: Apache-2.0
import os
import tempfile
import unittest

import run

LAUNCHER = "#!/bin/sh\nshift 2\nexec \"$@\"\n"
# pairing.py SERVER_STATUS CLIENT_STATUS -p PORT [HOST]: both ends meet once and end with their status.
PAIRING = """
import socket, sys
server, client, port, host = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[4]), sys.argv[5:]
if server < 0:
    sys.exit(9)
if host:
    socket.create_connection((host[0], port)).recv(1)
    sys.exit(client)
listener = socket.create_server(("127.0.0.1", port))
listener.accept()
sys.exit(server)
"""


class Driver(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        launcher = self.file("launcher", LAUNCHER)
        os.chmod(launcher, 0o755)
        self.pairing = self.file("pairing.py", PAIRING)
        self.runner = run.Runner(launcher, None, None, {}, 20)

    def tearDown(self):
        self.folder.cleanup()

    def file(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def outcome(self, kind, command, pattern=None):
        return self.runner.run(run.Case(kind, command, pattern, "here"))

    def pair(self, server, client):
        return self.outcome("pair", f"python3 {self.pairing} {server} {client}")

    def test_pair(self):
        self.assertIsNone(self.pair(0, 0))
        self.assertIn("server status 3", self.pair(3, 0))
        self.assertIn("client status 4", self.pair(0, 4))
        self.assertIn("before it listened", self.pair(-1, 0))

    def test_pair_that_hangs(self):
        self.runner.limit = 0.5
        self.assertIn("did not listen", self.outcome("pair", "sh -c 'sleep 100'"))

    def test_one(self):
        self.assertIsNone(self.outcome("one", "echo verbena0", "verbena\\d"))
        self.assertIn("no match", self.outcome("one", "echo mlx5_0", "verbena\\d"))
        self.assertIn("status 1\n    server: oh", self.outcome("one", "sh -c 'echo oh; exit 1'", "."))

    def test_starts(self):
        self.assertIsNone(self.outcome("starts", "sh -c 'echo event FD 5; sleep 100'", "FD \\d"))
        self.assertIn("ended with status 0", self.outcome("starts", "true", "FD \\d"))

    def test_the_table(self):
        cases = run.read_cases(os.path.join(run.HERE, "cases.txt"))
        self.assertGreater(sum(case.command.startswith("ib_") for case in cases), 60)
        self.assertEqual(len({(case.kind, case.command) for case in cases}), len(cases))
        for case in cases:
            self.assertEqual(case.kind == "pair", case.pattern is None, case.command)


if __name__ == "__main__":
    unittest.main()
