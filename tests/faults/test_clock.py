"""Clocks that jump, or are far off."""

import json
import os
import shutil
import subprocess
import unittest

from harness import MODES, Faults, built, read

AGES = ["unshare", "--time", "--fork", "--kill-child", "--monotonic", "300000000", "--boottime", "300000000"]


def can_set_clocks():
    return shutil.which("unshare") and subprocess.run([*AGES, "true"], capture_output=True).returncode == 0


class Clock(Faults):
    def fill_suite(self):
        for number in range(6):
            self.shtest(f"{number}", "%tool exit 0 | %tool exit 0")
        self.shtest("fails", "%tool exit 1")
        self.shtest("stops", "%tool signal 19")

    def check(self, run):
        self.check_sane(run)
        expected = {f"{number}.test": "PASS" for number in range(6)} | {"fails.test": "FAIL", "stops.test": "TIMEOUT"}
        self.assertEqual(self.codes(run), expected, run)
        for test in json.loads(read(self.path("results.json")))["tests"]:
            self.assertTrue(test["elapsed"] is None or 0 <= test["elapsed"] < 60, test)
        self.check_nothing_left()

    def test_clock_of_the_day_jumps(self):
        self.fill_suite()
        preload = built("clock.c", "-shared", "-fPIC")
        for mode in MODES:
            for _ in range(2):
                with self.subTest(mode):
                    report = self.path("report.xml")
                    self.check(self.run_suite(mode, "--timeout=1", "--xunit-xml-output", report, env={"LD_PRELOAD": preload}))
                    self.assertTrue(read(report).rstrip().endswith("</testsuites>"))

    @unittest.skipUnless(can_set_clocks(), "unshare --time needs to be root")
    def test_monotonic_clock_is_far_off(self):
        self.fill_suite()
        for mode in MODES:
            with self.subTest(mode):
                self.check(self.run_suite(mode, "--timeout=1", wrapper=AGES))

    def test_files_from_the_future(self):
        """A tool and tests of next year, and times of the last run that are none."""
        self.fill_suite()
        for root, _, names in os.walk(self.path("suite")):
            for name in names:
                os.utime(os.path.join(root, name), (4e9, 4e9))
        tool = self.path("tool")
        shutil.copy(self.tool, tool)
        os.utime(tool, (4e9, 4e9))
        self.file("suite/.lit_test_times.txt", "-1e300 0.test\nnan 1.test\ninf 2.test\n")
        config = read(self.path("suite/lit.cfg.py")).replace(repr(self.tool), repr(tool))
        self.file("suite/lit.cfg.py", config)
        for mode in MODES:
            with self.subTest(mode):
                self.check(self.run_suite(mode, "--timeout=1"))
