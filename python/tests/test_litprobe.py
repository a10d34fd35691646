"""Needs the `lit` package; the protocol over real pipes is tested from Rust."""

import copy
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import lit.formats
import lit.Test
from lit.TestingConfig import SubstituteCaptures, TestingConfig

from litprobe import carry, describe, later, plain, server, session

SETTINGS = {
    "progname": "lit",
    "argv": ["lit"],
    "lit_package": None,
    "path": [],
    "diagnostic_level": "note",
    "use_valgrind": False,
    "valgrind_leak_check": False,
    "valgrind_args": [],
    "no_execute": False,
    "debug": False,
    "order": "smart",
    "builtin_params": {"build_mode": "x"},
    "config_map": [],
    "params": [["a", "1"], ["a", "2"]],
    "config_prefix": None,
    "per_test_coverage": False,
    "gtest_sharding": True,
    "max_retries_per_test": None,
    "update_tests": False,
    "timeout": None,
}


class LaterTest(unittest.TestCase):
    def test_what_is_put_off_is_imported_when_it_is_used(self):
        sys.modules.pop("this_is_put_off", None)
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "this_is_put_off.py"), "w") as file:
                file.write("import sys\nsys.put_off = True\nvalue = 3\n")
            self.addCleanup(sys.path.remove, directory)
            sys.path.insert(0, directory)
            with later.Later("this_is_put_off", Base=dict):
                import this_is_put_off

                self.assertIs(this_is_put_off.Base, dict)
            self.assertFalse(hasattr(sys, "put_off"))
            self.assertNotIn("this_is_put_off", sys.modules)
            self.assertEqual(this_is_put_off.value, 3)
            self.assertTrue(sys.put_off)
            self.assertRaises(AttributeError, lambda: this_is_put_off.missing)

    def test_what_is_wanted_meanwhile_is_there(self):
        sys.modules.pop("colorsys", None)
        with later.Later("colorsys", Base=dict):
            import colorsys

            self.assertIs(colorsys.Base, dict)
            self.assertTrue(callable(colorsys.rgb_to_hsv))
        self.assertIsNot(sys.modules["colorsys"], colorsys)

    def test_what_is_there_is_not_replaced(self):
        with later.Later("os", path=None):
            import os as found
        self.assertIs(found, os)
        self.assertIs(sys.modules["os"], os)


    def test_what_the_library_wants_is_there_when_it_is_used(self):
        program = """
import os, sys
sys.path.insert(0, sys.argv[1])
from litprobe.later import ARCHIVES, of_library
with of_library():
    import pathlib, shutil
put_off = ["urllib.parse", *ARCHIVES]
print([name for name in put_off if name in sys.modules])
import urllib
print(hasattr(urllib, "parse") and urllib.parse.quote("a b"), hasattr(urllib, "absent"))
print(pathlib.Path("/a b").as_uri())
import tempfile
with tempfile.TemporaryDirectory() as directory:
    name = os.path.join(directory, "made")
    os.mkdir(name)
    archives = [name for name, _ in shutil.get_archive_formats()]
    print(archives, [os.path.basename(shutil.make_archive(name, kind, name)) for kind in archives])
import shutil as again, zlib
print(again is shutil, bool(zlib.compress(b"")))
"""
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        plain = program.replace("with of_library():", "if True:")

        def lines(text):
            command = [sys.executable, "-c", text, root]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

        class_ = "class Old:\n    def find_module(self, name, path=None): return None\n"
        old = program.replace("with of_library", class_ + "sys.meta_path.insert(0, Old())\nwith of_library")
        self.assertEqual(lines(old)[1:], lines(plain)[1:])
        with_it, without = lines(program), lines(plain)
        self.assertEqual(with_it[0], "[]")
        self.assertEqual(with_it[1:], without[1:])

    def test_what_runs_tests_is_there_when_a_config_looks(self):
        program = """
import gc, io, json, sys
gc.disable()
from litprobe.server import serve
class Replies:
    def write(self, line):
        print("lit.TestRunner" in sys.modules, gc.isenabled(), sorted(json.loads(line)))
    def flush(self):
        pass
serve(io.BytesIO(sys.argv[1].encode()), Replies())
import lit.formats.googletest
print(lit.formats.googletest.lit.TestRunner.__name__, lit.TestRunner is sys.modules["lit.TestRunner"])
from lit.TestRunner import executeShTest
print(executeShTest is lit.TestRunner.executeShTest)
"""
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        command = [sys.executable, "-c", program, json.dumps(SETTINGS) + "\n"]
        environment = dict(os.environ, PYTHONPATH=root)
        ran = subprocess.run(command, capture_output=True, text=True, env=environment)
        self.assertEqual(ran.stderr, "")
        greeting, ready, *rest = ran.stdout.splitlines()
        self.assertTrue(greeting.startswith("False False ['executable', 'lit_version'"), greeting)
        self.assertEqual(ready, "False True ['diagnostics', 'ready']")
        self.assertEqual(rest, ["lit.TestRunner True", "True"])


class AheadTest(unittest.TestCase):
    def test_a_config_is_told_of_at_its_first_process(self):
        program = """
import os, subprocess, sys, threading
from litprobe.ahead import announced
class Config:
    environment = {"A": "1", "B": 2}
    substitutions = [("x", "/bin/x -y"), ("z", "z"), ("n", 3)]
    test_source_root, test_exec_root = None, "/e"
told = []
run = lambda: subprocess.run([sys.executable, "-c", ""], check=True)
run()
with announced(Config, told.append):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if os.fork() == 0:
        run()
        os._exit(len(told))
    print(os.wait()[1], told)
    run(), run()
    print(told)
try:
    with announced(Config, told.append):
        raise ValueError
except ValueError:
    run()
Config.environment = None
with announced(Config, told.append):
    run()
print(len(told))
"""
        ran = run(program)
        told = {
            "ahead": {
                "source_root": None,
                "exec_root": "/e",
                "environment": [["A", "1"]],
                "values": ["/bin/x -y"],
            }
        }
        self.assertEqual(ran, ["0 []", str([told]), "1"])


def run(program, *arguments):
    """The lines that a program prints which has litprobe on its path."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = dict(os.environ, PYTHONPATH=root)
    command = [sys.executable, "-c", program, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    if ran.returncode or ran.stderr:
        raise AssertionError(ran.stderr)
    return ran.stdout.splitlines()


# A program that has made a session, as it is when a config is evaluated.
WITH_SESSION = """
import json, os, sys
from litprobe.session import Session
session = Session(json.loads(sys.argv[1]))
"""


class AsWithLitTest(unittest.TestCase):
    def test_what_lit_has_loaded_is_there(self):
        of_lit = run("import sys, lit.main; print(*(name for name in sys.modules if name.startswith('lit.')))")
        names = [name.partition(".")[2] for name in of_lit[0].split() if name.count(".") == 1]
        self.assertIn("ShUtil", names)
        program = WITH_SESSION + "import lit; print([name for name in sys.argv[2:] if not hasattr(lit, name)])"
        self.assertEqual(run(program, json.dumps(SETTINGS), *names, "absent"), ["['absent']"])

    def test_what_lit_has_loaded_is_the_librarys_wherever_a_config_looks(self):
        loaded = run("import sys, lit.main; print(*(name for name in sys.modules if '.' not in name))")[0].split()
        program = WITH_SESSION + """
import importlib
names = [name for name in sys.argv[3:] if name not in sys.modules and not name.startswith("__mp")]
for name in names + ["of_the_directory"]:
    open(os.path.join(sys.argv[2], name + ".py"), "w").write("here = True")
sys.path.insert(0, sys.argv[2])
found = [name for name in names if hasattr(importlib.import_module(name), "here")]
import of_the_directory
print(len(names) > 30, found)
"""
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(run(program, json.dumps(SETTINGS), directory, *loaded), ["True []"])


class ServerTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.server = server.Server(SETTINGS)

    def config(self, text, name="lit.cfg"):
        path = os.path.join(self.directory.name, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def suite(self, text):
        return self.server.answer({"op": "suite", "path": self.config(text)})

    def local(self, text, parent=0):
        request = {"op": "local", "path": self.config(text, "lit.local.cfg"), "parent": parent}
        return self.server.answer(request)

    def test_a_local_config_tells_only_what_differs(self):
        self.assertEqual(self.suite("config.name = 'S'")["changes"]["name"], "S")
        reply = self.local("config.unsupported = True\nconfig.suffixes = ['.x']")
        self.assertEqual(reply["changes"], {"unsupported": True, "suffixes": [".x"]})
        self.assertEqual(self.local("pass")["changes"], {})

    def test_a_local_config_works_on_a_deep_copy(self):
        self.suite("config.substitutions = [('%a', 'b'), ['%c', 'd']]")
        self.local("config.substitutions[1][1] = 'e'\nconfig.substitutions.append(('%f', 'g'))")
        self.assertEqual(self.server.configs[0].substitutions, [("%a", "b"), ["%c", "d"]])
        self.assertEqual(self.local("pass", parent=1)["changes"], {})

    def test_a_config_that_is_changed_later_is_told_with_the_state(self):
        self.suite("import builtins\nbuiltins.TOP = config")
        self.local("TOP.available_features.add('late')")
        reply = self.server.answer({"op": "state", "bash": False})
        self.assertEqual(reply["late"], [[0, {"available_features": ["late"]}]])

    def test_an_error_names_the_config_s_line_and_does_not_end_the_server(self):
        reply = self.suite("import os\n\nos.path.join(3)\n")
        self.assertEqual(reply["error"]["line"], 3)
        self.assertEqual(reply["error"]["file"], os.path.join(self.directory.name, "lit.cfg"))
        self.assertIn("TypeError", reply["error"]["text"])
        self.assertIn("changes", self.suite("pass"))

    def test_messages_carry_the_place_of_the_call(self):
        reply = self.suite("\nlit_config.note('n')\nlit_config.warning('w')")
        got = [(message["kind"], message["line"], message["message"]) for message in reply["diagnostics"]]
        self.assertEqual(got, [("note", 2, "n"), ("warning", 3, "w")])
        self.assertEqual(self.server.session.state(False)["warnings"], 1)

    def test_fatal_is_an_error_and_exit_an_exit(self):
        self.assertEqual(self.suite("lit_config.fatal('no')")["error"]["text"], "no")
        self.assertEqual(self.suite("import sys; sys.exit(3)")["exit"], {"status": 3, "text": None})
        self.assertEqual(self.suite("import sys; sys.exit('m')")["exit"], {"status": 1, "text": "m"})
        self.assertIn("changes", self.suite("import sys; sys.exit()"))

    def test_parameters_of_the_command_line_win(self):
        reply = self.suite("config.name = lit_config.params['a'] + lit_config.params['build_mode']")
        self.assertEqual(reply["changes"]["name"], "2x")

    def test_modules_of_lit_are_there_without_import(self):
        reply = self.suite("import lit\nconfig.name = lit.reports.__name__")
        self.assertEqual(reply["changes"]["name"], "lit.reports")

    def test_bash_is_looked_for_only_when_asked(self):
        self.assertIsNone(self.server.session.state(False)["bash"])
        self.assertEqual(self.server.session.state(True)["bash"], self.server.session.lit_config.getBashPath())

    def test_a_lit_before_18_has_no_coverage_per_test(self):
        config = self.server.session.lit_config

        class Old:
            def __getattr__(self, name):
                if name == "per_test_coverage":
                    raise AttributeError(name)
                return getattr(config, name)

        self.server.session.lit_config = Old()
        self.assertIs(self.server.session.state(False)["per_test_coverage"], False)

    def test_result_codes_of_configs_are_told(self):
        self.suite("import lit.Test\nlit.Test.ResultCode('PROBED', 'Probed', True)")
        self.assertIn(["PROBED", "Probed", True], self.server.session.state(False)["result_codes"])


class DescribeTest(unittest.TestCase):
    def test_only_exact_formats_are_native(self):
        class Own(lit.formats.ShTest):
            pass

        def kind(test_format, odd=()):
            return describe.describe_format(test_format, frozenset(odd))["kind"]

        self.assertEqual(kind(lit.formats.ShTest()), "shtest")
        self.assertEqual(kind(Own()), "python")
        patched = lit.formats.ShTest()
        patched.execute = lambda test, config: None
        self.assertEqual(kind(patched), "python")
        self.assertEqual(kind(lit.formats.ShTest(), ["suffixes"]), "python")
        self.assertEqual(kind(lit.formats.ShTest(extra_substitutions=[("a",)])), "python")
        self.assertEqual(kind(lit.formats.ShTest(preamble_commands=[5])), "python")
        self.assertEqual(kind(lit.formats.ShTest(preamble_commands=("true",))), "shtest")
        self.assertEqual(kind(lit.formats.GoogleTest(".", "Tests"), ["substitutions"]), "googletest")
        self.assertEqual(kind(lit.formats.GoogleTest(".", "Tests"), ["environment"]), "python")
        self.assertEqual(kind(lit.formats.GoogleTest(".", "Tests", run_under=[5])), "python")
        self.assertEqual(kind(lit.formats.ExecutableTest(), ["environment"]), "executable")

    def test_substitutions_are_told_unless_they_are_odd(self):
        pairs = [("a", "1"), ["b", SubstituteCaptures(r"\1")]]
        self.assertEqual(describe.describe_substitutions(pairs), [["a", "1", False], ["b", r"\1", True]])
        self.assertEqual(describe.describe_substitutions([*pairs, (5, "x")]), [])

    def test_the_order_of_variables_matters(self):
        self.assertFalse(describe.same({"a": "1", "b": "2"}, {"b": "2", "a": "1"}))

    def test_tools_to_keep_cold_are_names_or_all(self):
        self.assertEqual(describe.describe_some(True), {"all": True})
        self.assertEqual(describe.describe_some(None), {"all": False})
        self.assertEqual(describe.describe_some("opt, llc"), {"names": ["llc", "opt"]})
        self.assertEqual(describe.describe_some(["opt"]), {"names": ["opt"]})


class PlainTest(unittest.TestCase):
    def test_substitutions_are_pairs_of_text(self):
        captures = SubstituteCaptures(r"\1")
        for pairs in [], (), [("a", "b")], [["a", "\xe9"]], [("a", captures)], (("a", "b"), ["c", "d"]):
            self.assertTrue(plain.are_substitutions(pairs), pairs)
        captures.substitution = None
        odd = ["ab", ("a",), ("a", "b", "c"), (5, "b"), (b"a", "b"), (re.compile("a"), "b"), ("a", "\ud800"), ("\udcff", "b")]
        if lit.__versioninfo__[0] > 19:
            odd += [("a", 1), ("a", None), ("a", pathlib.Path("b")), ("a", captures)]
        for pair in odd:
            self.assertFalse(plain.are_substitutions([("a", "b"), pair]), pair)
        self.assertFalse(plain.are_substitutions({"ab": "c"}))

    def test_variables_are_text_or_paths(self):
        for variable in ("A", ""), ("", "x"), ("A", "\udcff"), ("A", pathlib.Path("/x")):
            self.assertTrue(plain.is_variable(*variable), variable)
        odd = [("A", value) for value in (1, True, None, b"x", ["x"], "\ud800", "a\0b", pathlib.Path("\ud800"))]
        for variable in [*odd, ("A=B", "x"), (b"A", "x"), ("\ud800", "x"), ("PATH", pathlib.Path("/x"))]:
            self.assertFalse(plain.is_variable(*variable), variable)

    def test_other_fields_are_checked_for_their_types(self):
        limits = lit.__versioninfo__[0] >= 23
        for name, value, is_odd in (
            ("available_features", {"a", 19}, True),
            ("available_features", "ab", True),
            ("available_features", ["a"], False),
            ("limit_to_features", "ab", True),
            ("suffixes", {".x", None}, True),
            ("excludes", {"\ud800"}, True),
            ("test_retry_attempts", "2", True),
            ("test_retry_attempts", None, True),
            ("test_retry_attempts", 1.0, True),
            ("test_retry_attempts", -1, True),
            ("test_retry_attempts", True, False),
            ("maxIndividualTestTime", "60", limits),
            ("maxIndividualTestTime", None, limits),
            ("maxIndividualTestTime", float("inf"), limits),
            ("maxIndividualTestTime", 0.5, False),
            ("recursiveExpansionLimit", 1 << 40, False),
            ("unsupported", "no", False),
        ):
            lit_config = session.Session(SETTINGS).lit_config
            config = TestingConfig.fromdefaults(lit_config)
            setattr(config, name, value)
            values = describe.snapshot(config, lit_config, None)
            self.assertEqual(len(values["odd"]), is_odd, (name, value))
            json.dumps(describe.changes(None, values))

    def test_a_limit_of_output_is_a_number_in_python_s_words(self):
        config = session.Session(SETTINGS).lit_config
        self.assertEqual(plain.output_limit(config), 10240)
        if lit.__versioninfo__[0] > 19:
            for given, limit in (" 1_0 ", 10), ("-3", -3), (7.9, 7), ("unlimited", None), (None, None), (1 << 70, (1 << 63) - 1):
                config.params["output_limit"] = given
                self.assertEqual(plain.output_limit(config), limit)

    def test_what_is_odd_is_so_in_configs_below(self):
        known = server.Server(SETTINGS)
        with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
            file.write("import lit.formats\nconfig.test_format = lit.formats.ShTest()\nconfig.environment['X'] = 1\n")
            file.flush()
            top = known.answer({"op": "suite", "path": file.name})
        with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
            same = known.answer({"op": "local", "path": file.name, "parent": 0})
            file.write("config.environment['X'] = '1'\n")
            file.flush()
            mended = known.answer({"op": "local", "path": file.name, "parent": 0})
        self.assertEqual(top["changes"]["format"]["kind"], "python")
        self.assertEqual(same["changes"], {})
        self.assertEqual(mended["changes"]["format"]["kind"], "shtest")


class Uncertain(lit.Test.Test):
    """A test of a class of its own."""


class CarryTest(unittest.TestCase):
    def setUp(self):
        self.lit_config = session.Session(SETTINGS).lit_config
        self.config = TestingConfig.fromdefaults(self.lit_config)
        self.config.test_format = lambda: None
        self.suite = lit.Test.TestSuite("s", "/s", "/s", self.config)
        self.suite.test_times = None

    def found(self, kind=lit.Test.Test, **values):
        test = kind(self.suite, ("a", "b"), self.config)
        vars(test).update(values)
        return test

    def carried(self, tests):
        return [place for place, _ in carry.pack(tests, self.suite, self.config, self.lit_config)]

    def test_tests_that_are_their_names_are_not_carried(self):
        marked = [{name: ["x"]} for name in ("xfails", "requires", "unsupported")]
        odd = [*marked, {"allowed_retries": 2}, {"own": 1}, {"config": copy.copy(self.config)}, {"gtest_json_file": "x"}]
        tests = [self.found(**values) for values in odd]
        details = {"file_path": "/x", "gtest_json_file": "/y"}
        plain_tests = [self.found(), self.found(**details)]
        self.assertEqual(self.carried([*plain_tests, *tests, self.found(Uncertain)]), list(range(2, 10)))
        self.config.test_retry_attempts = 2
        self.assertEqual(self.carried([self.found(allowed_retries=2)]), [])

    def test_suite_and_config_are_those_of_the_other_process(self):
        own = copy.copy(self.config)
        own.name = "own"
        tests = [self.found(xfails=["*"], note="n"), self.found(config=own)]
        told = carry.pack(tests, self.suite, self.config, self.lit_config)
        suite, config = copy.copy(self.suite), copy.copy(self.config)
        config.test_format = "theirs"
        first, second = [carry.unpack(text, suite, config, self.lit_config) for _, text in told]
        self.assertEqual((first.xfails, first.note, first.path_in_suite), (["*"], "n", ("a", "b")))
        self.assertIs(first.config, config)
        self.assertIs(first.suite, suite)
        self.assertEqual((second.config.name, second.config.test_format), ("own", "theirs"))

    def test_a_test_without_a_pickle_is_named(self):
        with self.assertRaisesRegex(carry.Uncarriable, "'a/b'.*cannot be handed"):
            carry.pack([self.found(hook=lambda: None)], self.suite, self.config, self.lit_config)


class ProtocolTest(unittest.TestCase):
    def test_bytes_that_are_not_utf8_pass_through(self):
        line = server.encode({"path": "a\udcff"})
        self.assertEqual(line, b'{"path":"a\xff"}')
        self.assertEqual(server.decode(line), {"path": "a\udcff"})
        self.assertEqual(server.encode("\ud800"), b'"\xed\xa0\x80"')

    def test_a_constructor_is_given_what_it_has(self):
        def constructor(self, b, a=1, *, c):
            unrelated = 0
            return unrelated

        given = {"a": 1, "b": 2, "c": 3, "unrelated": 4, "self": 5}
        self.assertEqual(session.accepted(constructor, given), {"a": 1, "b": 2, "c": 3})

    def test_limits_are_numbers_before_lit_23(self):
        for version, limit in [((22, 1, 8), 0), ((23, 1, 5), None)]:
            with unittest.mock.patch("lit.__versioninfo__", version):
                self.assertEqual(session.arguments(SETTINGS)["maxIndividualTestTime"], limit)

    def test_it_greets_and_ends_with_the_requests(self):
        replies = io.BytesIO()
        server.serve(io.BytesIO(server.encode(SETTINGS) + b"\n"), replies)
        hello, ready = [json.loads(line) for line in replies.getvalue().splitlines()]
        self.assertEqual(hello["litprobe"], 1)
        self.assertEqual(hello["lit_version"], list(lit.__versioninfo__[:3]))
        self.assertTrue(ready["ready"])


if __name__ == "__main__":
    unittest.main()
