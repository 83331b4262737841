# `verbena env`, `devices`, `version`, `journey` as a subcommand that exists, and help.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import shlex
import shutil
import socket
import subprocess

from support import USER, LauncherTest, clean_environment


class Env(LauncherTest):
    NAMES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "VERBENA_TREE", "VERBENA_CARRIER")

    def evaluated(self, text, env):
        script = text + "\nexec /usr/bin/env -0"
        output = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True,
                                env=clean_environment(**env)).stdout
        return dict(entry.split("=", 1) for entry in output.split("\0") if entry)

    def test_is_what_run_sets(self):
        other = shutil.copy(self.library_dir + "/libverbena-preload.so", self.path("other.so"))
        for env, options in (({}, ()), ({}, ("--carrier", "local")),
                             ({"LD_LIBRARY_PATH": "/it's $HOME/`a` \"b\"", "LD_PRELOAD": other}, ())):
            result = self.call("env", *options, env=env)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            got = self.evaluated(result.stdout, env)
            wanted = self.variables(*options, env=env)
            for name in self.NAMES:
                self.assertEqual(got.get(name), wanted.get(name), name)

    def test_every_line_is_an_export(self):
        lines = self.call("env", "--carrier=wire").stdout.splitlines()
        self.assertEqual([re.match(r"export (\w+)=", line).group(1) for line in lines], list(self.NAMES))

    def test_mpi(self):
        words = shlex.split(self.call("env", "--mpi", "--carrier", "auto").stdout)
        self.assertEqual(words[0::2], ["-x"] * len(self.NAMES))
        self.assertEqual([word.split("=")[0] for word in words[1::2]], list(self.NAMES))

    def test_systemd(self):
        text = self.call("env", "--systemd", env={"LD_LIBRARY_PATH": '/50%/"x"'}).stdout
        self.assertIn(f'Environment="LD_LIBRARY_PATH={self.library_dir}:/50%%/\\"x\\""\n', text)
        self.assertIn('Environment="LD_PRELOAD=', text)
        self.assertNotIn("VERBENA_TREE", text)  # it belongs to the user who asked

    def test_refuses(self):
        self.expect_failure(2, "systemd", "env", "--mpi", "--systemd")
        self.expect_failure(2, "extra", "env", "extra")
        self.expect_failure(2, "--carrier", "env", "--carrier", "x")
        self.expect_failure(2, "VERBENA_MTU=1", "env", env={"VERBENA_MTU": "1"})
        os.remove(self.library_dir + "/libibverbs.so.1")
        self.expect_failure(1, "libibverbs.so.1", "env")


class EnvAsUser(Env):
    uid = USER


class Devices(LauncherTest):
    def facts(self, **env):
        result = self.call("devices", "--json", env=env)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)

    def test_json(self):
        facts = self.facts()
        device = facts["devices"][0]
        port = device["ports"][0]
        self.assertEqual(device["name"], "verbena0")
        self.assertRegex(device["guid"], r"\A[0-9a-f]{16}\Z")
        self.assertEqual((port["port"], port["state"], port["link_layer"]), (1, "ACTIVE", "Ethernet"))
        self.assertIn(port["active_mtu"], (256, 512, 1024, 2048, 4096))
        self.assertEqual([gid["index"] for gid in port["gids"]], list(range(len(port["gids"]))))
        self.assertEqual(device["limits"]["max_qp"], 65536)
        self.assertEqual([tier["name"] for tier in facts["tiers"]], ["shared pages", "cma", "assist"])
        self.assertEqual(self.facts(VERBENA_MTU="512")["devices"][0]["ports"][0]["active_mtu"], 512)
        self.assertEqual(self.facts(VERBENA_CARRIER="wire")["carrier"], "wire")

    def test_plain_has_a_line_for_each_gid(self):
        text = self.call("devices").stdout
        self.assertIn("verbena0", text)
        for gid in self.facts()["devices"][0]["ports"][0]["gids"]:
            wanted = [str(gid["index"]), gid["address"]]
            self.assertTrue(any(line.split()[:2] == wanted for line in text.splitlines()), wanted)

    def test_agrees_with_the_tree(self):
        gids = self.facts()["devices"][0]["ports"][0]["gids"]
        folder = self.variables()["VERBENA_TREE"] + "/sys/class/infiniband/verbena0/ports/1"
        for gid in gids:
            for name, wanted in (("gids", gid["gid"]), ("gid_attrs/types", gid["type"]),
                                 ("gid_attrs/ndevs", gid["ifname"])):
                with open(f"{folder}/{name}/{gid['index']}") as file:
                    self.assertEqual(file.read(), wanted + "\n")

    def test_running_slots(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            slot = self.bind_free_slot(listener)
            listener.listen()
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
                peer.connect(f"\0verbena/{slot}")
                self.assertEqual(self.facts()["slots"].count(slot), 1)
                self.assertRegex(self.call("devices").stdout, rf"Running slots .*\b{slot}\b")

    def bind_free_slot(self, listener):
        for slot in range(1023, 0, -1):
            try:
                listener.bind(f"\0verbena/{slot}")
                return slot
            except OSError:
                continue  # a real process has it
        return self.fail("no slot is free")

    def test_refuses(self):
        self.expect_failure(2, "--frob", "devices", "--frob")
        self.expect_failure(2, "VERBENA_MTU=1", "devices", env={"VERBENA_MTU": "1"})

    def test_needs_no_libraries(self):
        os.remove(self.library_dir + "/libibverbs.so.1")
        self.facts()


class DevicesAsUser(Devices):
    uid = USER


class Words(LauncherTest):
    def test_version(self):
        for arguments in (("version",), ("--version",)):
            result = self.call(*arguments)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertRegex(result.stdout, r"\Averbena \d+\.\d+\.\d+\n\Z")
        self.expect_failure(2, "extra", "version", "extra")

    def test_help(self):
        text = self.call("--help").stdout
        for name in ("run", "env", "install", "devices", "version", "journey"):
            self.assertRegex(text, rf"\n  {name} ")
            result = self.call(name, "--help")
            self.assertEqual((result.returncode, result.stderr), (0, ""), name)
            self.assertIn("Usage: verbena " + name, result.stdout)

    def test_a_full_disk_is_noticed(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([self.verbena, "version"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot be written", result.stderr)
