# What the launcher's tests share: a copy of the program and its libraries in a place that every user can
# read, and a way to run it there as another user.
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import subprocess
import tempfile
import unittest

USER = 1001  # an unprivileged user; no account is needed
SYSTEM_LIBRARY = "/usr/lib/x86_64-linux-gnu/libibverbs.so.1"
VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "XDG_RUNTIME_DIR", "PATH")
BUILD = os.environ.get("VERBENA_BUILD", "")


def is_root():
    return os.geteuid() == 0


def can(*command):
    return subprocess.run(command, capture_output=True).returncode == 0


def clean_environment(**more):
    """The caller's, without what would change the answers."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("VERBENA_") and k not in VARIABLES}
    env["PATH"] = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    env.update(more)
    return env


def as_user(uid):
    """Arguments for subprocess.run."""
    return {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}


class LauncherTest(unittest.TestCase):
    uid = None  # whom to run as; None: as we are

    def setUp(self):
        if self.uid is not None and not is_root():
            self.skipTest("only root can become another user")
        self.dir = tempfile.mkdtemp(prefix="verbena-launcher-")
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)
        self.verbena = self.stage(os.path.join(self.dir, "prefix"))
        self.library_dir = os.path.join(self.dir, "prefix", "lib", "verbena")

    def stage(self, prefix):
        """The layout of the build directory, which is also that of an installation."""
        os.makedirs(os.path.join(prefix, "bin"))
        os.makedirs(os.path.join(prefix, "lib", "verbena"))
        program = shutil.copy(os.path.join(BUILD, "bin", "verbena"), os.path.join(prefix, "bin"))
        libraries = os.path.join(prefix, "lib", "verbena")
        built = os.path.join(BUILD, "lib", "verbena")
        shutil.copy(os.path.join(built, "libverbena-preload.so"), libraries)
        verbs = os.path.join(built, "libibverbs.so.1")
        shutil.copy(verbs if os.path.exists(verbs) else SYSTEM_LIBRARY,
                    os.path.join(libraries, "libibverbs.so.1"))
        return program

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, content, mode=0o755):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, mode)
        return path

    def call(self, *arguments, program=None, env=None, **more):
        """Runs verbena; the result has its returncode, stdout and stderr."""
        return subprocess.run(
            [program or self.verbena, *arguments], capture_output=True, text=True, cwd="/",
            env=clean_environment(**(env or {})), stdin=more.pop("stdin", subprocess.DEVNULL),
            **as_user(self.uid), **more)

    def run_ok(self, *command, options=(), env=None, **more):
        """The output of a command that `verbena run` starts, which must end well and say nothing else."""
        result = self.call("run", *options, "--", *command, env=env, **more)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return result.stdout

    def variables(self, *arguments, env=None):
        """The environment of a command below `verbena run`."""
        output = self.run_ok("/usr/bin/env", "-0", options=arguments, env=env)
        return dict(entry.split("=", 1) for entry in output.split("\0") if entry)

    def expect_failure(self, status, pattern, *arguments, **more):
        """One clear line on stderr, nothing on stdout."""
        result = self.call(*arguments, **more)
        what = f"verbena {' '.join(arguments)}\n{result.stdout}{result.stderr}"
        self.assertEqual(result.returncode, status, what)
        self.assertRegex(result.stderr, r"\Averbena: [^\n]+\n\Z", what)
        self.assertRegex(result.stderr, pattern, what)
        self.assertEqual(result.stdout, "", what)
