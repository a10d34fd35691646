"""Descriptors, memory, threads and processes used up: verdicts are lit's or the run ends with an error, never a wrong pass."""

import os
import resource
import signal
import struct
import unittest

from harness import HOTSTART, MODES, Faults, built, limited, python_for_all

NOBODY = 65534
MIB = 1 << 20


def least_to_start():
    """Bytes of address space without which the kernel cannot exec the runner, and kills it, and nobody could write a message: what
    the ELF file has mapped, and room for the loader and the first stack."""
    with open(HOTSTART, "rb") as file:
        head = file.read(64)
        table, size, count = struct.unpack_from("<Q", head, 32) + struct.unpack_from("<HH", head, 54)
        file.seek(table)
        headers = [struct.unpack_from("<IIQQQQQQ", file.read(size)) for _ in range(count)]
    ends = [address + length for kind, _, _, address, _, _, length, _ in headers if kind == 1]
    return max(ends) // MIB * MIB + 2 * MIB


class Limits(Faults):
    def fill_suite(self, count=24):
        for number in range(count):
            self.shtest(f"{number:02}", "%tool exit 0 | %tool exit 0 | %tool exit 0")
        self.shtest("fails", "%tool exit 1")

    def check_honest(self, run):
        """What passed may pass, what fails does not; and whoever is told that all is well got all verdicts."""
        self.check_sane(run)
        self.assertNotEqual(run.code, 0, run)
        if run.results is not None:
            self.assertNotIn(run.results.get("fails.test", ("FAIL",))[0], ("PASS", "XFAIL", "FLAKYPASS"), run)
        else:
            self.assertNotEqual(run.err, "", run)
        self.check_nothing_left()

    def test_tool_uses_up(self):
        """A tool takes all there is of something; the next run of the same worker has it back."""
        for what in ("descriptors", "memory", "threads", "processes"):
            for number in range(2):
                self.shtest(f"{what}-{number}a", f"%tool use-up {what} > %t", "cat %t")
                self.shtest(f"{what}-{number}b", "%tool exit 0 | %tool exit 0")
        for mode in MODES:
            with self.subTest(mode):
                run = self.run_suite(mode, "-a", "-j1", "--verify=100", "--timeout=30")
                self.check_sane(run)
                self.assertEqual(set(self.codes(run).values()), {"PASS"}, run)
                self.assertIn("descriptors: Too many open files", run.out)
                self.assertIn("memory: Cannot allocate memory", run.out)
                self.check_nothing_left()

    def test_few_descriptors(self):
        self.fill_suite()
        for count in (1024, 256, 128, 64, 48, 32, 24, 16, 12, 8, 4):
            for mode in MODES:
                with self.subTest(mode, descriptors=count):
                    run = self.run_suite(mode, "-j8", preexec_fn=limited(resource.RLIMIT_NOFILE, count))
                    self.check_honest(run)

    def test_enough_descriptors_for_lit_are_enough(self):
        self.fill_suite()
        limit = limited(resource.RLIMIT_NOFILE, 256)
        expected = self.codes(self.run_lit(preexec_fn=limit))
        for mode in MODES:
            with self.subTest(mode):
                run = self.run_suite(mode, preexec_fn=limit)
                self.assertEqual(self.codes(run), expected, run)
                self.check_nothing_left()

    def test_little_memory(self):
        self.fill_suite(8)
        least = least_to_start() // MIB
        for size in (*(size for size in (4096, 1024, 512, 256, 128, 96, 64, 32, 24, 16) if size > least), least):
            for mode in MODES:
                with self.subTest(mode, mebibytes=size):
                    run = self.run_suite(mode, preexec_fn=limited(resource.RLIMIT_AS, size * MIB))
                    if run.code in (-signal.SIGABRT, 127):
                        # So ends a process that gets no memory, in the loader, in libc or in Rust: with a message.
                        self.assertRegex(run.err, "memory|map segment|cannot", run)
                        # Rust itself panics before a thread's own code if there is no memory for its stack for signals.
                        self.assertNotRegex(run.err, "panicked at (?!.*/stack_overflow.rs)")
                        self.check_nothing_left()
                    else:
                        self.check_honest(run)

    @unittest.skipUnless(os.getuid() == 0 and python_for_all(), "needs to be root, and a Python that all can start")
    def test_few_processes(self):
        """Threads count as well. The limit does not hold for root."""
        self.fill_suite(8)
        for root, _, _ in os.walk(self.dir):
            os.chown(root, NOBODY, NOBODY)
        os.chmod(os.path.dirname(built("tool.c")), 0o755)
        for count in (40, 20, 12, 8, 6, 5, 4, 3, 2, 1):
            for mode in MODES:
                with self.subTest(mode, processes=count):
                    run = self.run_suite(mode, preexec_fn=limited(resource.RLIMIT_NPROC, count, NOBODY),
                                         env=python_for_all())
                    self.check_honest(run)
