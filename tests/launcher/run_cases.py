# `verbena run`: what it sets, that it becomes the command, and each way in which it must refuse.
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import signal
import struct
import tempfile
import unittest

from support import USER, LauncherTest, can, is_root


def elf(machine=62, bits=64, interpreter=b""):
    """The beginning of an ELF program, enough for whoever looks at its kind."""
    ident = b"\x7fELF" + bytes([2 if bits == 64 else 1, 1, 1]) + bytes(9)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56,
                                 1 if interpreter else 0, 0, 0, 0)
    if not interpreter:
        return header + bytes(64)
    text = interpreter + b"\0"
    return header + struct.pack("<IIQQQQQQ", 3, 4, 120, 0, 0, len(text), len(text), 1) + text


class Run(LauncherTest):
    def test_sets_what_the_command_needs(self):
        env = self.variables()
        self.assertEqual(env["LD_LIBRARY_PATH"], self.library_dir)
        self.assertEqual(env["LD_PRELOAD"], self.library_dir + "/libverbena-preload.so")
        self.assertTrue(os.path.isdir(env["VERBENA_TREE"] + "/sys/class/infiniband/verbena0"))
        self.assertNotIn("VERBENA_CARRIER", env)

    def test_carrier(self):
        for carrier in ("auto", "local", "wire"):
            self.assertEqual(self.variables("--carrier", carrier)["VERBENA_CARRIER"], carrier)
        self.assertEqual(self.variables("--carrier=wire")["VERBENA_CARRIER"], "wire")
        self.assertEqual(self.variables(env={"VERBENA_CARRIER": "local"})["VERBENA_CARRIER"], "local")
        self.assertEqual(
            self.variables("--carrier", "wire", env={"VERBENA_CARRIER": "local"})["VERBENA_CARRIER"],
            "wire")

    def test_keeps_existing_lists(self):
        other = shutil.copy(self.library_dir + "/libverbena-preload.so", self.path("other.so"))
        env = self.variables(env={"LD_LIBRARY_PATH": "/a:/b", "LD_PRELOAD": other})
        self.assertEqual(env["LD_LIBRARY_PATH"], self.library_dir + ":/a:/b")
        self.assertEqual(env["LD_PRELOAD"], f"{self.library_dir}/libverbena-preload.so:{other}")

    def test_below_itself_changes_nothing(self):
        outer = self.variables()
        output = self.run_ok(self.verbena, "run", "/usr/bin/env", "-0")
        inner = dict(entry.split("=", 1) for entry in output.split("\0") if entry)
        for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "VERBENA_TREE"):
            self.assertEqual(inner[name], outer[name])

    def test_the_command_keeps_its_arguments(self):
        show = self.write("bin/show", '#!/bin/sh\nprintf "%s|" "$@"\n')
        self.assertEqual(self.run_ok(show, "--carrier", "x", "--", "-h", "", "a b"), "--carrier|x|--|-h||a b|")
        result = self.call("run", show, "--carrier", "x", "--", "--help")
        self.assertEqual(result.stdout, "--carrier|x|--|--help|")
        result = self.call("run", "--carrier", "local", show, "-n", "5")
        self.assertEqual(result.stdout, "-n|5|")

    def test_the_command_keeps_its_name(self):
        self.assertEqual(self.run_ok("sh", "-c", "echo $0"), "sh\n")

    def test_ends_as_the_command_ends(self):
        self.assertEqual(self.call("run", "--", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.call("run", "--", "sh", "-c", "kill -TERM $$").returncode, -signal.SIGTERM)

    def test_is_the_command(self):
        """No process stays in between."""
        self.assertEqual(self.run_ok("sh", "-c", "cat /proc/$$/comm"), "sh\n")

    def test_finds_commands_as_the_shell_does(self):
        self.write("one/tool", "not executable", mode=0o644)
        os.makedirs(self.path("two/tool"))
        self.write("three/tool", "#!/bin/sh\necho found\n")
        path = ":".join(self.path(d) for d in ("absent", "one", "two", "three")) + ":/usr/bin:/bin"
        self.assertEqual(self.run_ok("tool", env={"PATH": path}), "found\n")
        self.expect_failure(126, "tool is not executable", "run", "--", "tool", env={"PATH": self.path("one")})

    def test_scripts(self):
        with_line = self.write("script", "#! /bin/sh -e\necho $VERBENA_TREE\n")
        self.assertIn("/verbena-", self.run_ok(with_line))
        without = self.write("plain-script", "echo $VERBENA_TREE\n")
        self.assertIn("/verbena-", self.run_ok(without))

    def test_names_with_blanks(self):
        self.assertEqual(self.run_ok(self.write("a dir/a tool", "#!/bin/sh\necho here\n")), "here\n")

    def test_statically_linked(self):
        """It can go on, for what it starts may be dynamic, but it is told."""
        program = self.write("static", open("/sbin/ldconfig", "rb").read())
        result = self.call("run", "--", program, "--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"\Averbena: [^\n]*statically linked[^\n]*\n\Z")
        self.assertIn("ldconfig", result.stdout)

    def test_the_loader_as_command(self):
        loader = "/lib64/ld-linux-x86-64.so.2"
        self.assertEqual(self.run_ok(loader, "/bin/echo", "x"), "x\n")


class RunRefuses(LauncherTest):
    def test_bad_options(self):
        self.expect_failure(2, "subcommand", )
        self.expect_failure(2, "frob", "frob")
        self.expect_failure(2, "needs a command", "run")
        self.expect_failure(2, "needs a command", "run", "--")
        self.expect_failure(2, "needs a command", "run", "--carrier", "local")
        self.expect_failure(2, "carrier", "run", "--carrier")
        self.expect_failure(2, "tcp", "run", "--carrier", "tcp", "--", "true")
        self.expect_failure(2, "carrier", "run", "--carrier=", "--", "true")
        self.expect_failure(2, "--frob", "run", "--frob", "--", "true")
        self.expect_failure(2, "-c", "run", "-c", "true")

    def test_bad_variables(self):
        for name, value in (("VERBENA_MTU", "77"), ("VERBENA_CARRIER", "tcp"), ("VERBENA_EXPLAIN", "yes"),
                            ("VERBENA_LOCAL_TRUST", "nobody-of-this-name"), ("VERBENA_KERNEL", "six")):
            self.expect_failure(2, f"{name}={value}: ", "run", "--", "true", env={name: value})

    def test_missing_commands(self):
        self.expect_failure(127, "no-such-command: command not found", "run", "--", "no-such-command")
        self.expect_failure(127, "/absent/tool: command not found", "run", "--", "/absent/tool")
        self.expect_failure(127, "empty", "run", "--", "")
        self.expect_failure(127, "two lines: command", "run", "--", "two\nlines")

    def test_not_executable(self):
        self.expect_failure(126, "is a directory", "run", "--", "/usr")
        self.expect_failure(126, "not executable", "run", "--", self.write("file", "x", mode=0o644))
        self.expect_failure(126, "not executable", "run", "--", "/dev/null")
        script = self.write("script", "#!/absent/interpreter -x\n")
        self.expect_failure(126, "script for /absent/interpreter", "run", "--", script)
        self.expect_failure(126, "for another machine", "run", "--", self.write("arm", elf(machine=40)))
        self.expect_failure(126, "for another machine", "run", "--", self.write("small", elf(bits=32)))
        musl = self.write("musl", elf(interpreter=b"/lib/ld-musl-x86_64.so.1"))
        self.expect_failure(126, "musl", "run", "--", musl)
        odd = self.write("odd", elf(interpreter=b"/absent/ld.so"))
        self.expect_failure(126, "loader /absent/ld.so", "run", "--", odd)

    def test_programs_with_privileges(self):
        true = open("/bin/true", "rb").read()
        self.expect_failure(126, "is set-uid: .*install --system", "run", "--",
                            self.write("setuid", true, mode=0o4755))
        self.expect_failure(126, "is set-gid: ", "run", "--", self.write("setgid", true, mode=0o2755))
        # Without the execute bit of the group this is something else (mandatory locks, once).
        self.run_ok(self.write("locked", true, mode=0o2705))
        for name in ("sudo", "su", "doas"):
            sudo = self.write(f"tools/{name}", true, mode=0o4755)
            self.expect_failure(126, "let it start verbena run -- CMD instead", "run", "--", sudo,
                                "-u", "someone", "true")
        script = self.write("script", f"#!{self.path('setuid')}\n")
        self.expect_failure(126, "is set-uid", "run", "--", script)

    @unittest.skipUnless(is_root(), "only root can give file capabilities")
    def test_programs_with_file_capabilities(self):
        program = self.write("capable", open("/bin/true", "rb").read())
        # Revision 2, effective; CAP_NET_RAW permitted.
        os.setxattr(program, "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0))
        self.expect_failure(126, "file capabilities", "run", "--", program)

    def test_missing_libraries(self):
        for name in ("libibverbs.so.1", "libverbena-preload.so"):
            program = self.stage(self.path("without-" + name))
            os.remove(os.path.join(os.path.dirname(os.path.dirname(program)), "lib", "verbena", name))
            self.expect_failure(1, rf"{name} cannot be used \(No such file", "run", "--", "true",
                                program=program)

    def test_names_that_the_loader_would_split(self):
        for name in ("a b", "a:b", "a$b"):
            program = self.stage(self.path(name))
            self.expect_failure(1, "cannot take", "run", "--", "true", program=program)

    @unittest.skipUnless(is_root() and can("unshare", "-m", "true"), "needs a mount namespace")
    def test_no_place_for_the_tree(self):
        self.in_private_tmp(
            ["mount -o remount,ro /tmp"], 1, "cannot be made below XDG_RUNTIME_DIR or /tmp: Read-only")

    @unittest.skipUnless(is_root() and can("unshare", "-m", "true"), "needs a mount namespace")
    def test_somebody_has_taken_the_place(self):
        owner = 0 if self.uid is None else self.uid
        self.in_private_tmp([f"mkdir -m 777 /tmp/verbena-{owner}", f"chown 1002 /tmp/verbena-{owner}"], 0, "")
        self.in_private_tmp([f"ln -s /etc /tmp/verbena-{owner}"], 0, "")

    def in_private_tmp(self, preparations, status, pattern):
        """Runs `verbena run true` where /tmp is a new one that was prepared."""
        prefix = tempfile.mkdtemp(dir=self.dir)
        os.chmod(prefix, 0o755)
        program = self.stage(prefix)
        place = f"/run/verbena-test-{os.getpid()}"  # outside /tmp; its removal would end another test's mount there
        commands = [f"mkdir -p {place}", f"mount --bind {prefix} {place}",
                    "mount -t tmpfs -o mode=1777 none /tmp", *preparations]
        become = f"setpriv --reuid {self.uid} --regid {self.uid} --clear-groups " if self.uid else ""
        commands.append(f"exec {become}{place}/bin/{os.path.basename(program)} run -- true")
        uid, self.uid = self.uid, None
        try:
            result = self.call("-m", "sh", "-ec", "\n".join(commands), program="/usr/bin/unshare")
        finally:
            self.uid = uid
            os.path.isdir(place) and os.rmdir(place)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertRegex(result.stderr, rf"\Averbena: [^\n]*{pattern}[^\n]*\n\Z" if pattern else r"\A\Z")


class RunAsUser(Run):
    uid = USER


class RunRefusesUser(RunRefuses):
    uid = USER

    def test_libraries_that_the_user_cannot_read(self):
        os.chmod(os.path.join(self.library_dir, "libibverbs.so.1"), 0o600)
        self.expect_failure(1, "cannot be used.*Permission denied", "run", "--", "true")
