# `verbena install`: into a staged root as anybody, into one with a loader configuration as root, and into
# the real system in a mount namespace of its own.
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import stat
import subprocess
import unittest

from support import SYSTEM_LIBRARY, USER, LauncherTest, can, clean_environment, is_root

# Runs a command where /etc and /usr/local can be changed without anybody seeing it.
PRIVATE = """
mount -t tmpfs none {scratch}
for dir in etc usr/local; do
  mkdir -p {scratch}/$dir/upper {scratch}/$dir/work
  mount -t overlay none -o lowerdir=/$dir,upperdir={scratch}/$dir/upper,workdir={scratch}/$dir/work /$dir
done
"""


class Install(LauncherTest):
    def setUp(self):
        super().setUp()
        self.root = self.path("root")
        os.mkdir(self.root)
        os.chown(self.root, self.uid or -1, -1)
        self.conf = self.root + "/etc/ld.so.conf.d/00-verbena.conf"
        self.libraries = self.root + "/usr/local/lib/verbena"

    def install(self, *options):
        result = self.call("install", *options, "--root", self.root)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_stage_and_undo(self):
        before = sorted(os.listdir(self.library_dir))
        self.install("--system")
        with open(self.conf) as file:
            lines = [line for line in file if not line.startswith("#")]
        self.assertEqual(lines, ["/usr/local/lib/verbena\n"])
        self.assertEqual(sorted(os.listdir(self.libraries)), before)
        for name in before:
            self.assertEqual(stat.S_IMODE(os.stat(f"{self.libraries}/{name}").st_mode), 0o644)
        self.install("--system")  # again: the same
        self.assertEqual(sorted(os.listdir(self.libraries)), before)
        self.install("--uninstall")
        self.assertFalse(os.path.exists(self.conf))
        self.assertFalse(os.path.exists(self.libraries))

    def test_undo_leaves_what_is_not_ours(self):
        self.install("--system")
        other = os.path.join(self.libraries, "other.so")
        shutil.copy("/bin/true", other)
        self.install("--uninstall", "--system")
        self.assertTrue(os.path.exists(other))

    def test_refuses(self):
        self.expect_failure(2, "--system or --uninstall", "install")
        self.expect_failure(2, "--system or --uninstall", "install", "--root", self.root)
        self.expect_failure(2, "--frob", "install", "--system", "--frob")
        self.expect_failure(1, "nothing to undo", "install", "--uninstall", "--root", self.root)
        self.expect_failure(1, "not a directory", "install", "--system", "--root", self.path("absent"))
        os.remove(self.library_dir + "/libibverbs.so.1")
        self.expect_failure(1, "libibverbs.so.1", "install", "--system", "--root", self.root)
        self.assertEqual(os.listdir(self.root), [])


class InstallAsUser(Install):
    uid = USER

    def test_the_system_needs_root(self):
        self.expect_failure(1, "needs root", "install", "--system")
        self.expect_failure(1, "needs root", "install", "--uninstall")


@unittest.skipUnless(is_root(), "only root can renew a loader cache")
class InstallWithCache(Install):
    """A root in which the loader would find a distribution's library."""

    def setUp(self):
        super().setUp()
        theirs = self.root + os.path.dirname(SYSTEM_LIBRARY)
        os.makedirs(theirs)
        shutil.copy(SYSTEM_LIBRARY, theirs)
        os.makedirs(self.root + "/etc/ld.so.conf.d")
        self.write("root/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n", mode=0o644)
        self.write("root/etc/ld.so.conf.d/x86_64-linux-gnu.conf", os.path.dirname(SYSTEM_LIBRARY) + "\n",
                   mode=0o644)

    def found(self):
        cache = subprocess.run(["/sbin/ldconfig", "-r", self.root, "-p"], capture_output=True, text=True).stdout
        lines = [line.split()[-1] for line in cache.splitlines() if "libibverbs.so.1 " in line]
        return lines[0] if lines else None

    def test_the_loader_prefers_ours_until_it_is_undone(self):
        self.install("--system")
        self.assertEqual(self.found(), "/usr/local/lib/verbena/libibverbs.so.1")
        self.install("--uninstall")
        self.assertEqual(self.found(), SYSTEM_LIBRARY)

    def test_says_when_the_loader_prefers_another(self):
        self.write("root/etc/ld.so.conf.d/00-before.conf", os.path.dirname(SYSTEM_LIBRARY) + "\n", mode=0o644)
        result = self.call("install", "--system", "--root", self.root)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"\Averbena: installed, but the loader still prefers another [^\n]*\n\Z")

    def test_refuses(self):
        pass  # the cases of the base class, which need no cache


@unittest.skipUnless(is_root() and can("unshare", "-m", "true"), "needs a mount namespace")
class InstallForReal(LauncherTest):
    def test_programs_find_it_without_any_variable(self):
        scratch = self.path("scratch")
        os.mkdir(scratch)
        script = PRIVATE.format(scratch=scratch) + f"""
{self.verbena} install --system
echo installed; ldd /usr/bin/ibv_devices | grep libibverbs
{self.verbena} install --uninstall
echo undone; ldd /usr/bin/ibv_devices | grep libibverbs
"""
        result = subprocess.run(["unshare", "-m", "sh", "-ec", script], capture_output=True, text=True,
                                env=clean_environment())
        if "overlay" in result.stderr:
            self.skipTest("no overlay file system: " + result.stderr.strip())
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        installed, undone = result.stdout.split("installed\n")[1].split("undone\n")
        self.assertIn("=> /usr/local/lib/verbena/libibverbs.so.1", installed)
        self.assertNotIn("verbena", undone)
        self.assertFalse(os.path.exists("/etc/ld.so.conf.d/00-verbena.conf"))
