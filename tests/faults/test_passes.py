"""The store of remembered passes of FileCheck: shared, cut off, damaged and full. It may forget, and never makes up a pass.

Needs a FileCheck of LLVM 15 or newer in /usr/lib/llvm-*/bin. HOTSTART_FAULTS_PASSES sets how many runners are killed.
"""

import glob
import os
import re
import select
import signal
import subprocess
import unittest

from harness import HOTSTART, Faults, seeded
from test_full import MOUNT, MOUNTER

RUNNERS = 16


def filecheck():
    found = {int(re.search(r"llvm-(\d+)/", path)[1]): path for path in glob.glob("/usr/lib/llvm-[0-9]*/bin/FileCheck")}
    return next((path for version, path in sorted(found.items()) if version >= 15), None)


FILECHECK = filecheck()


@unittest.skipUnless(FILECHECK, "no FileCheck of LLVM 15 or newer is installed")
class Passes(Faults):
    def setUp(self):
        super().setUp()
        self.cache = self.path("cache")
        self.store = self.path("cache/filecheck/passes")
        self.cached = {"HOTSTART_CACHE_DIR": self.cache}
        for number in range(20):
            self.check(f"{number:02}", f"word {number}", f"word {number}")
            self.check(f"fails{number:02}", f"word {number}", f"word {number + 1}")
        passes = {f"{number:02}.test": "PASS" for number in range(20)}
        self.expected = passes | {f"fails{number:02}.test": "FAIL" for number in range(20)}
        tested = [HOTSTART, "filecheck", "--filecheck", FILECHECK, "--test"]
        done = subprocess.run(tested, env=self.environment(**self.cached), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done)

    def check(self, name, expected, found):
        lines = [f"RUN: echo '{found}' | {FILECHECK} %s", f"CHECK: {expected}"]
        self.file(f"suite/{name}.test", "\n".join(lines) + "\n")

    def run_once(self, **more):
        run = self.run_suite("--explain", env=self.cached, **more)
        self.check_sane(run)
        self.assertNotIn("fault of hotstart:", run.err, run)
        self.assertEqual(self.codes(run), self.expected, run)
        return int(re.search(r"(\d+) of them remembered", run.err)[1])

    def test_passes_of_runners_killed_at_random(self):
        random = seeded("runners that share a store")
        kills = int(os.environ.get("HOTSTART_FAULTS_PASSES") or 100)
        running = []
        for turn in range(kills):
            signal.alarm(60)
            while len(running) < RUNNERS:
                running.append(self.start(env=self.cached))
            # The moment is the fault.
            select.select([], [], [], random.random() * 0.1)
            process = running.pop(random.randrange(len(running)))
            process.kill()
            self.ended(process)
            if turn % 20 == 19:
                for process in running:
                    run = self.ended(process)
                    self.check_sane(run)
                    self.assertEqual(run.code, 1, run)
                    failed = sorted(set(re.findall(r"^  faults :: (\w+\.test)$", run.out, re.MULTILINE)))
                    self.assertEqual(failed, sorted(name for name in self.expected if name.startswith("fails")), run)
                running = []
                self.run_once()
        self.assertGreater(self.run_once(), 10)

    def test_passes_damaged_at_random(self):
        random = seeded("a damaged store")
        for _ in range(30):
            signal.alarm(40)
            self.run_once()
            for name in os.listdir(self.store):
                path = os.path.join(self.store, name)
                with open(path, "r+b") as file:
                    at = random.randrange(os.path.getsize(path) + 1)
                    if random.random() < 0.5:
                        file.truncate(at)
                    else:
                        file.seek(at)
                        file.write(random.randbytes(40))

    def test_passes_of_another_check_file_or_input(self):
        self.run_once()
        for number in range(20):
            self.check(f"{number:02}", f"word {number}", f"word {number + 1}")
            self.check(f"fails{number:02}", f"word {number}", f"word {number}")
        for name in self.expected:
            self.expected[name] = "PASS" if name.startswith("fails") else "FAIL"
        self.run_once()
        self.assertGreater(self.run_once(), 10)

    @unittest.skipUnless(MOUNTER, "the system does not allow a mount")
    def test_passes_on_a_full_disk(self):
        os.makedirs(self.store)
        wrapper = [*MOUNTER, "sh", "-c", MOUNT, "sh", self.store, "size=4k,nr_inodes=1"]
        for _ in range(2):
            # A run remembers what it has seen itself: a test of the sample runs twice.
            self.assertLess(self.run_once(wrapper=wrapper), 10)
