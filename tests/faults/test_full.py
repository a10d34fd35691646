"""Every place that is written to, full: a report that cannot be written is an error, and no verdict changes."""

import os
import resource
import shutil
import subprocess
import unittest

from harness import MODES, Faults, read

# Mounts a small file system at $1, with as much room as $2, and becomes the rest.
MOUNT = 'mount -t tmpfs -o "$2" tmpfs "$1" || exit 99; shift 2; exec "$@"'


def mounter():
    """A command that runs another one where it may mount; nothing if the system does not allow it."""
    for way in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        if shutil.which(way[0]) and subprocess.run([*way, "mount", "-t", "tmpfs", "x", "/mnt"], capture_output=True).returncode == 0:
            return way
    return None


MOUNTER = mounter()


class Full(Faults):
    def fill_suite(self):
        for number in range(8):
            self.shtest(f"{number}", "%tool exit 0 | %tool exit 0")
        self.shtest("fails", "%tool exit 1")

    def check_verdicts(self, run):
        expected = {f"{number}.test": "PASS" for number in range(8)} | {"fails.test": "FAIL"}
        self.assertEqual(self.codes(run), expected, run)

    def test_report_cannot_be_written(self):
        self.fill_suite()
        for option in ("-o", "--xunit-xml-output", "--resultdb-output", "--time-trace-output", "--html", "--junit", "--record"):
            for path in ("/dev/full", "/nonexistent/report", "/proc/version"):
                with self.subTest(option, path=path):
                    run = self.ended(self.start(option, path))
                    self.check_sane(run)
                    self.assertNotEqual(run.code, 0, run)
                    self.assertIn(path, run.out + run.err, run)
                    self.check_nothing_left()

    def test_standard_error_cannot_be_written(self):
        self.fill_suite()
        with open("/dev/full", "w") as full:
            run = self.run_suite(stderr=full)
        self.assertEqual(run.code, 1, run)
        self.check_verdicts(run)
        self.check_nothing_left()

    def test_standard_output_cannot_be_written(self):
        self.fill_suite()
        for mode in MODES:
            with self.subTest(mode), open("/dev/full", "w") as full:
                run = self.run_suite(mode, stdout=full)
                self.assertNotEqual(run.code, 0, run)
                self.check_nothing_left()

    def test_reader_of_standard_output_goes_away(self):
        """As with `| head -n 1`."""
        self.fill_suite()
        read_end, write_end = os.pipe()
        process = self.start("-v", stdout=write_end)
        os.close(write_end)
        os.close(read_end)
        self.ended(process)
        self.assertNotEqual(process.returncode, 0)
        self.check_nothing_left()

    def test_tool_writes_to_a_full_device(self):
        self.shtest("redirected", "echo x > /dev/full")
        self.shtest("by-tool", "%tool fill /dev/full 1")
        self.shtest("in-pipe", "%tool put /dev/full | cat")
        self.shtest("well", "%tool exit 0")
        expected = self.run_lit()
        for mode in MODES:
            with self.subTest(mode):
                run = self.run_suite(mode, "--verify=0")
                self.check_sane(run)
                self.assertEqual(self.codes(run), self.codes(expected), run)
                self.check_nothing_left()

    def on_small(self, directory, room, *options):
        """Runs the suite with a file system of so much room at a directory."""
        os.makedirs(directory, exist_ok=True)
        wrapper = [*MOUNTER, "sh", "-c", MOUNT, "mount", directory, room]
        return self.run_suite(*options, wrapper=wrapper)

    @unittest.skipUnless(MOUNTER, "no file system can be mounted here")
    def test_directory_of_tests_is_full(self):
        self.shtest("a-small", "%tool fill %t 4096", "%tool exit 0")
        self.shtest("b-large", "%tool fill %t 1000000")
        self.shtest("c-redirected", "%tool fill /dev/stdout 1000000 > %t")
        self.shtest("d-without-files", "%tool exit 0")
        expected = {"a-small.test": "PASS", "b-large.test": "FAIL", "c-redirected.test": "FAIL", "d-without-files.test": "PASS"}
        for mode in MODES:
            with self.subTest(mode):
                # What a test leaves stays there, so that there is no room for the next.
                run = self.on_small(self.path("suite/Output"), "size=256k", mode, "-j1", "--verify=0")
                self.check_sane(run)
                self.assertEqual(self.codes(run), expected, run)
                self.check_nothing_left()

    @unittest.skipUnless(MOUNTER, "no file system can be mounted here")
    def test_temporary_directory_is_full(self):
        self.fill_suite()
        for room in ("size=4k", "nr_inodes=1", "size=64k,nr_inodes=4"):
            for mode in MODES:
                with self.subTest(mode, room=room):
                    run = self.on_small(self.tmp, room, mode)
                    self.check_sane(run)
                    if run.code == 1:
                        self.check_verdicts(run)
                    else:
                        self.assertEqual(run.code, 2, run)
                        self.assertIn("set TMPDIR", run.err)
                    self.check_nothing_left()

    @unittest.skipUnless(MOUNTER, "no file system can be mounted here")
    def test_times_cannot_be_kept(self):
        """The record of times is a convenience: its loss is no failure."""
        self.fill_suite()
        out = self.path("out")
        self.file("suite/lit.cfg.py", read(self.path("suite/lit.cfg.py")) + f"config.test_exec_root = {out!r}\n")
        # For the root, and the directory of the tests' files.
        run = self.on_small(out, "nr_inodes=2")
        self.check_sane(run)
        self.check_verdicts(run)
        self.assertEqual(run.code, 1)
        self.check_nothing_left()

    def limit_files(self, size):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        return limit

    def test_files_may_not_grow(self):
        """`ulimit -f`: a tool that writes more fails as with lit; hotstart's own files are small."""
        self.shtest("large", "%tool fill %t 1000000")
        self.shtest("small", "%tool fill %t 4096")
        self.shtest("well", "%tool exit 0")
        limit = self.limit_files(65536)
        expected = self.run_lit(preexec_fn=limit)
        for mode in MODES:
            with self.subTest(mode):
                run = self.run_suite(mode, "--verify=0", preexec_fn=limit)
                self.check_sane(run)
                self.assertEqual(self.codes(run), self.codes(expected), run)
                self.check_nothing_left()

    def test_no_byte_may_be_written(self):
        """Not even the report."""
        self.fill_suite()
        run = self.run_suite(preexec_fn=self.limit_files(0))
        self.assertNotEqual(run.code, 0, run)
        self.assertIsNone(run.results)
        self.check_nothing_left()
