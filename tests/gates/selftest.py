#!/usr/bin/env python3
# The gates can fail: each is shown something wrong and must name it, and something right and must be silent.
# SPDX-License-Identifier: Apache-2.0
import os
import tempfile
import unittest

import exports
import formatting
import layers
import symbols
import words

PAGE = "The arrows:\n`ib: base` · `wire, memory: ib` · `nic: memory` · `tools: nic` · `kv: public headers only`.\n"


class Layers(unittest.TestCase):
    def problems(self, **content):
        with tempfile.TemporaryDirectory() as root:
            files = {"docs/architecture.md": PAGE, "src/base/b.h": "", "src/ib/i.h": "", **content}
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return layers.check(root)[0]

    def test_downwards_is_fine(self):
        code = '#include <vector>\n#include "ib/i.h"\n#include "base/b.h"\n'
        self.assertEqual(self.problems(**{"src/memory/m.cc": code, "tools/t.cc": code}), [])

    def test_upwards_is_not(self):
        self.assertIn("ib may not enter memory", self.problems(**{
            "src/memory/m.h": "", "src/ib/up.cc": '#include "memory/m.h"\n'})[0])

    def test_sideways_is_not(self):
        self.assertIn("wire may not enter memory", self.problems(**{
            "src/memory/m.h": "", "src/wire/w.cc": '# include <memory/m.h>\n'})[0])

    def test_the_inside_is_closed_to_kv(self):
        self.assertIn("kv may not enter base", self.problems(**{"kv/k.cc": '#include "base/b.h"\n'})[0])

    def test_a_way_around_by_dots(self):
        self.assertIn("base may not enter ib", self.problems(**{"src/base/x.cc": '#include "../ib/i.h"\n'})[0])

    def test_a_folder_without_arrow(self):
        self.assertIn("has no arrow", self.problems(**{"src/misc/x.cc": ""})[0])


class Symbols(unittest.TestCase):
    def names(self, *undefined):
        listing = "lib.a(one.o):\n" + "".join(f"                 U {name}\n" for name in undefined)
        return [name for _, name in symbols.wrong(listing, symbols.denied())]

    def test_system_calls_are_seen(self):
        bad = ["open", "write", "printf", "__printf_chk", "clock_gettime", "pthread_mutex_lock@GLIBC_2.2.5",
               "getrandom", "socket", "mmap64", "syscall", "_ZNSt6chrono3_V212steady_clock3nowEv", "_ZSt4cout",
               "_ZNSt13random_device7_M_finiEv", "getenv", "abort"]
        self.assertEqual(self.names(*bad), [name.split("@")[0] for name in bad])

    def test_plain_code_is_not(self):
        self.assertEqual(self.names("memcpy", "_Znwm", "strlen", "__cxa_throw", "_ZN3vrb2ib5causeEv", "timezone_of"), [])


class Exports(unittest.TestCase):
    def test_lists(self):
        reference, extra = ["a@@V1", "b@V1"], ["c@@V2", "?x_*@@V3"]
        self.assertEqual(exports.compare({"a@@V1", "b@V1", "c@@V2", "x_1@@V3"}, reference, extra), [])
        wrong = exports.compare({"a@V1", "b@V1", "y"}, reference, extra)
        self.assertEqual(wrong, ["missing: a@@V1", "missing: c@@V2", "not in the lists: a@V1", "not in the lists: y"])


class Words(unittest.TestCase):
    GOOD = "// What it is.\n// SPDX-License-Identifier: Apache-2.0\n"

    def test_marks_and_paths(self):
        for bad in ("TO" "DO", "FIX" "ME", "/wor" "k/x"):
            self.assertEqual(len(words.check_file("src/a.h", self.GOOD + f"// {bad} this\n")), 1, bad)
        self.assertEqual(words.check_file("src/a.h", self.GOOD + "// network/x, to do\n"), [])

    def test_header(self):
        self.assertEqual(len(words.check_file("src/a.h", "#pragma once\n")), 2)
        self.assertEqual(words.check_file("src/a.cc", "// SPDX-License-Identifier: Apache-2.0\n", True), [])

    def test_size(self):
        self.assertEqual(words.check_file("src/a.h", self.GOOD + "\n" * 448), [])
        self.assertEqual(len(words.check_file("src/a.h", self.GOOD + "\n" * 449)), 1)


class Formatting(unittest.TestCase):
    def test_a_bad_file_is_named(self):
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "src"))
            with open(os.path.join(root, "src", "a.cc"), "w", encoding="utf-8") as file:
                file.write("int   x ;\n")
            self.assertEqual(formatting.check(root), (["src/a.cc: run clang-format -i on it"], 1))


if __name__ == "__main__":
    unittest.main()
