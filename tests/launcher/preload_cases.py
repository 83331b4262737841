# The preload library: stock programs see the tree at the places that they know, and nothing else changes.
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import subprocess

from support import BUILD, USER, LauncherTest, as_user, clean_environment

DEVICE = "/sys/class/infiniband/verbena0"


class Preload(LauncherTest):
    def shell(self, script):
        return self.run_ok("bash", "-ec", script)

    def test_cat_and_grep(self):
        self.assertEqual(self.run_ok("cat", DEVICE + "/ports/1/state"), "4: ACTIVE\n")
        self.assertIn("/gid_attrs/types/0:RoCE v2\n", self.run_ok("grep", "-r", "RoCE", DEVICE))

    def test_ls(self):
        self.assertEqual(self.run_ok("ls", "/sys/class/infiniband", "/dev/infiniband"),
                         "/dev/infiniband:\nby-ibdev\nuverbs240\n\n/sys/class/infiniband:\nverbena0\n")
        self.assertIn("node_guid", self.run_ok("ls", "-l", DEVICE + "/"))
        self.assertIn("hw_counters", self.run_ok("ls", "-lR", "/sys/class/infiniband/"))

    def test_find(self):
        names = self.run_ok("find", "/sys/class/infiniband", "-name", "link_layer")
        self.assertEqual(names, DEVICE + "/ports/1/link_layer\n")
        self.assertIn("uverbs240", self.run_ok("find", "/dev/infiniband", "-ls"))

    def test_stat(self):
        self.assertEqual(self.run_ok("stat", "-c", "%F", DEVICE), "directory\n")
        self.assertEqual(self.run_ok("stat", "-c", "%F %A", DEVICE + "/fw_ver"), "regular file -r--r--r--\n")
        self.assertEqual(self.run_ok("stat", "-L", "-c", "%F", "/dev/infiniband/uverbs240"),
                         "character special file\n")

    def test_shell(self):
        self.assertEqual(self.shell(f"for p in /sys/class/infiniband/*/ports/*; do echo $p; done"),
                         DEVICE + "/ports/1\n")
        self.assertEqual(self.shell(f"[ -r {DEVICE}/node_type ] && read x < {DEVICE}/node_type && echo $x"),
                         "1: CA\n")
        self.assertEqual(self.shell("cd /sys/class/infiniband && ls && pwd"), "verbena0\n/sys/class/infiniband\n")
        self.assertEqual(self.run_ok("sh", "-ec", f"test -d {DEVICE}; cat < {DEVICE}/ports/1/lid"), "0x0\n")

    def test_names_lead_back(self):
        link = "/sys/class/infiniband_verbs/uverbs240/device"
        for command in (("realpath", link), ("readlink", "-f", link)):
            self.assertEqual(self.run_ok(*command), DEVICE + "/device\n")
        self.assertEqual(self.run_ok("readlink", link), "../../infiniband/verbena0/device\n")

    def test_python(self):
        script = """
import glob, os
device = "/sys/class/infiniband/verbena0"
assert os.listdir("/sys/class/infiniband") == ["verbena0"]
assert [e.name for e in os.scandir(device + "/ports")] == ["1"]
assert os.path.isdir(device) and os.stat(device + "/fw_ver").st_size > 0
assert os.access("/dev/infiniband/uverbs240", os.R_OK | os.W_OK)
assert os.path.realpath("/sys/class/infiniband_verbs/uverbs240/device") == device + "/device"
assert glob.glob("/sys/class/infiniband/*/ports/*/state") == [device + "/ports/1/state"]
assert open(device + "/node_type").read() == "1: CA\\n"
net = os.listdir(device + "/device/net")
assert len(net) == 1 and os.path.exists(device + "/device/net/" + net[0] + "/mtu"), net
assert len(list(os.walk(device))) > 5
"""
        self.run_ok("python3", "-c", script)

    def test_other_places_are_untouched(self):
        for arguments in (("ls", "/sys/class"), ("ls", "/dev"), ("cat", "/sys/class/net/lo/mtu"),
                          ("ls", "/sys/class/mem/")):
            plain = subprocess.run(arguments, capture_output=True, text=True, env=clean_environment()).stdout
            self.assertEqual(self.run_ok(*arguments), plain)

    def test_every_function(self):
        probe = shutil.copy(os.path.join(BUILD, "test", "launcher_probe"), self.path("probe"))
        self.assertEqual(self.run_ok(probe), "0 wrong\n")

    def test_without_a_tree_nothing_happens(self):
        probe = shutil.copy(os.path.join(BUILD, "test", "launcher_probe"), self.path("probe"))
        for tree in ({}, {"VERBENA_TREE": ""}, {"VERBENA_TREE": "relative"}):
            env = clean_environment(LD_PRELOAD=self.library_dir + "/libverbena-preload.so", **tree)
            result = subprocess.run([probe, "--plain"], capture_output=True, text=True, env=env,
                                    **as_user(self.uid))
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))


class PreloadAsUser(Preload):
    uid = USER


class PreloadFile(LauncherTest):
    def test_exports_no_more_than_its_list(self):
        library = self.library_dir + "/libverbena-preload.so"
        output = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                                check=True).stdout
        names = {line.split()[-1] for line in output.splitlines()}
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, "..", "..", "src", "preload", "exports.map")) as file:
            text = file.read()
        listed = text.partition("global:")[2].partition("local:")[0]
        self.assertEqual(names, {name.strip() for name in listed.split(";") if name.strip()})

    def test_needs_the_c_library_alone(self):
        library = self.library_dir + "/libverbena-preload.so"
        output = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        needed = [line.split("[")[1].split("]")[0] for line in output.splitlines() if "(NEEDED)" in line]
        self.assertEqual(needed, ["libc.so.6"])
        # One constructor is in every shared object: the compiler's own frame_dummy.
        sizes = [line.split()[2] for line in output.splitlines() if "INIT_ARRAYSZ" in line]
        self.assertLessEqual(sum(int(size) for size in sizes), 8)
