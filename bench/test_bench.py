"""Tests of what the benchmarks share: verdicts, usage of a run, apt sources, folders left out, object files, workloads."""

import json
import os
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import buildtree  # noqa: E402
import compilers  # noqa: E402
import llvm_tree  # noqa: E402
import sidebyside  # noqa: E402


def a_run(name, verdicts, wall=1.0):
    return sidebyside.Run(name, 0, wall, wall / 2, wall / 4, 1024, verdicts)


# A runner that writes the report asked for with -o, after using some memory and starting a child.
RUNNER = """
import json, subprocess, sys, time
report = sys.argv[sys.argv.index("-o") + 1]
memory = bytearray(64 << 20)
memory[::4096] = b"x" * len(memory[::4096])
subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
json.dump({"tests": [{"name": "s :: a", "code": "PASS"}, {"name": "s :: a", "code": "FAIL"}]}, open(report, "w"))
sys.exit(int(sys.argv[-1]))
"""


class RunOnce(unittest.TestCase):
    def run_with_status(self, status):
        runner = sidebyside.Runner("lit", [sys.executable, "-c", RUNNER], dict(os.environ))
        with tempfile.TemporaryDirectory() as directory:
            return sidebyside.run_once(runner, [str(status)], directory, "x")

    def test_reports_verdicts_status_and_usage_with_descendants(self):
        run = self.run_with_status(1)
        self.assertEqual((run.status, run.verdicts), (1, {"s :: a": ("FAIL", "PASS")}))
        self.assertGreater(run.user, 0)
        self.assertGreaterEqual(run.wall, run.user / 2)
        self.assertGreater(run.peak_kib, 64 << 10)

    def test_a_runner_that_breaks_is_no_comparison(self):
        with self.assertRaisesRegex(sidebyside.SetupError, "status 2"):
            self.run_with_status(2)


class Verdicts(unittest.TestCase):
    def test_each_difference_is_named_once(self):
        comparison = sidebyside.Comparison()
        comparison.add(a_run("lit", {"a": ("PASS",), "b": ("FAIL",), "c": ("PASS",)}))
        for _ in range(2):
            comparison.add(a_run("hotstart", {"a": ("PASS",), "b": ("PASS",), "d": ("XFAIL",)}))
        self.assertEqual(
            comparison.differing(),
            ["b: FAIL by lit, PASS by hotstart", "c: PASS by lit, absent by hotstart", "d: absent by lit, XFAIL by hotstart"],
        )
        self.assertIn("  b: FAIL by lit, PASS by hotstart", comparison.verdict_table())

    def test_a_difference_in_a_later_round_counts(self):
        comparison = sidebyside.Comparison()
        for run in (a_run("lit", {"a": ("PASS",)}), a_run("hotstart", {"a": ("PASS",)}), a_run("hotstart", {"a": ("FAIL",)})):
            comparison.add(run)
        self.assertEqual(comparison.differing(), ["a: PASS by lit, FAIL by hotstart"])

    def test_lit_disagreeing_with_itself_is_said(self):
        comparison = sidebyside.Comparison()
        for run in (a_run("lit", {"a": ("PASS",)}), a_run("hotstart", {"a": ("PASS",)}), a_run("lit", {"a": ("FAIL",)})):
            comparison.add(run)
        self.assertEqual(comparison.differing(), ["a: PASS by lit, FAIL by lit another time"])

    def test_kept_verdicts_stand_in_for_lit(self):
        comparison = sidebyside.Comparison({"a": ("PASS",)})
        comparison.add(a_run("hotstart", {"a": ("PASS",)}))
        summary = comparison.summary()
        self.assertEqual((summary["differing"], summary["tests"]), ([], 1))
        self.assertNotIn("ratio", summary)
        comparison.cost_table()

    def test_ratio_is_of_medians(self):
        comparison = sidebyside.Comparison()
        for wall in (1.0, 9.0, 4.0):
            comparison.add(a_run("lit", {}, wall))
            comparison.add(a_run("hotstart", {}, wall / 4))
        self.assertEqual(json.loads(json.dumps(comparison.summary()))["ratio"]["wall"], 4.0)

    def test_neither_runner_always_comes_first(self):
        self.assertEqual([runner for _, runner in sidebyside.interleaved(["A", "B"], 3)], list("ABBAAB"))


class Tree(unittest.TestCase):
    def test_sources_of_both_formats(self):
        self.assertEqual(
            llvm_tree.with_sources("# no\ndeb http://a b c\ndeb-src http://a b c\n deb [x=y] http://d e\n"),
            "deb-src http://a b c\ndeb-src [x=y] http://d e\n",
        )
        self.assertEqual(llvm_tree.with_sources("Types: deb deb-src\nURIs: x\n"), "Types: deb-src\nURIs: x\n")

    def test_folders_above_what_is_left_out_are_opened(self):
        with tempfile.TemporaryDirectory() as source:
            for folder in ("Other", "tools/a", "tools/llvm-exegesis", "tools/z"):
                os.makedirs(os.path.join(source, "llvm/test", folder))
            pick = llvm_tree.folders_without_left_out
            self.assertEqual(pick(source, ["."]), ["Other", "tools/a", "tools/z"])
            self.assertEqual(pick(source, ["tools/", "Other"]), ["tools/a", "tools/z", "Other"])
            self.assertEqual(pick(source, ["tools/a", "tools/llvm-exegesis"]), ["tools/a"])
            with self.assertRaisesRegex(sidebyside.SetupError, "Nowhere"):
                pick(source, ["Nowhere"])


class Builds(unittest.TestCase):
    def test_object_files_that_differ_or_are_in_one_build_only_are_named(self):
        with tempfile.TemporaryDirectory() as directory:
            written = {"cold": {"a.o": "1", "sub/b.o": "2", "c.o": "3", "log": "x"},
                       "hot": {"a.o": "1", "sub/b.o": "?", "d.o": "4", "log": "y"}}  # fmt: skip
            for kind, files in written.items():
                for name, text in files.items():
                    path = os.path.join(directory, "built", kind, "p", name)
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "w") as out:
                        out.write(text)
            setup, project = unittest.mock.Mock(directory=directory), unittest.mock.Mock()
            project.name = "p"
            self.assertEqual(buildtree.differing(setup, project), ["c.o", "d.o", "sub/b.o"])

    def test_counts_are_read_from_the_status(self):
        status = "server 7 in /d, protocol 1\nstarted warm 40, left to the client (cold) 2\n 2 cold: few\n"
        self.assertEqual(buildtree.starts(status), (40, 2))
        self.assertEqual(buildtree.starts(""), (0, 0))

    def test_places_in_commands_are_filled_in(self):
        setup = unittest.mock.Mock(directory="/d", jobs=3)
        setup.tool = lambda kind, name: f"/{kind}/{name}"
        words = buildtree.command(("make", "CC={cc}", "{source}", "-j{jobs}"), buildtree.PROJECTS["musl"], "-O0", "hot", setup)
        self.assertEqual(words, ["make", "CC=/hot/clang", "/d/src/musl", "-j3"])


class Workloads(unittest.TestCase):
    def test_the_generated_workspace_has_all_crates_and_their_dependencies(self):
        with tempfile.TemporaryDirectory() as directory:
            place = os.path.join(directory, "build")
            compilers.Cargo().prepare(unittest.mock.Mock(place=place), False)
            with open(os.path.join(place, "Cargo.toml")) as workspace:
                self.assertEqual(workspace.read().count('"crate'), compilers.CRATES)
            with open(os.path.join(place, "crate7/Cargo.toml")) as manifest:
                self.assertIn('crate6 = { path = "../crate6" }', manifest.read())
            with open(os.path.join(place, "crate6/src/lib.rs")) as body:
                self.assertNotIn("crate5", body.read())

    def test_only_tests_that_a_plain_call_compiles_are_chosen(self):
        is_plain = [bool(compilers.PASSES.search(text)) and not compilers.SPECIAL.search(text) for text in (
            "// check-pass\nfn main() {}", "// run-pass\n// edition:2018\nfn main() {}", "// run-pass\n// aux-build:a.rs\n",
            "// run-pass\n#![feature(x)]\n", "fn main() {}",
        )]  # fmt: skip
        self.assertEqual(is_plain, [True, True, False, False, False])
        self.assertEqual(compilers.EDITION.search("// edition:2018").group(1), "2018")


if __name__ == "__main__":
    unittest.main()
