"""Every way in which a tool ends is told as lit tells it, however the tool was started."""

import signal

from harness import MODES, Faults

# What stops a process, or does nothing to it, is no end.
NO_ENDS = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT, signal.SIGCHLD, signal.SIGURG,
           signal.SIGWINCH}
FATAL = [number for number in range(1, 65) if number not in NO_ENDS and number not in (32, 33)]
STATUSES = [0, 1, 2, 77, 126, 127, 128, 129, 255]
WAYS = ["return", "exit", "_exit", "quick_exit", "thread", "closed"]
CRASHES = ["abort", "last-thread", "null", "trap", "stack"]


class ToolEnds(Faults):
    def compare_with_lit(self):
        """Each test twice, so that a worker runs after one that ended so."""
        expected = self.run_lit("-j2")
        for mode in MODES:
            with self.subTest(mode):
                run = self.run_suite(mode, "--verify=0")
                self.check_sane(run)
                self.assertEqual(self.codes(run), self.codes(expected))
                self.assertEqual(self.outputs(run), self.outputs(expected))
                self.assertEqual(run.code, expected.code)
                self.check_nothing_left()

    def outputs(self, run):
        """Without those of tools that die of SIGINT: lit prints a traceback of its own code then."""
        return {name: output for name, (_, output) in run.results.items() if "KeyboardInterrupt" not in output}

    def test_tool_exits_with_any_status(self):
        for way in WAYS:
            for status in STATUSES:
                self.shtest(f"{way}-{status}", f"%tool {way} {status}")
        self.compare_with_lit()

    def test_tool_dies_of_any_signal(self):
        for number in FATAL:
            self.shtest(f"{number:02}", f"%tool signal {number}")
            self.shtest(f"{number:02}-again", f"%tool raise-default {number}")
        self.compare_with_lit()

    def test_tool_crashes(self):
        for way in CRASHES:
            self.shtest(way, f"%tool {way}")
            self.shtest(f"{way}-in-pipe", f"%tool {way} | %tool exit 0")
            self.shtest(f"{way}-not", f"not --crash %tool {way}")
        self.compare_with_lit()

    def test_tool_becomes_another_program(self):
        for status in (0, 3):
            self.shtest(f"exec-{status}", f"%tool exec /bin/sh sh -c 'exit {status}'")
            self.shtest(f"after-{status}", "%tool exit 0")
        self.compare_with_lit()

    def test_tool_that_stops_runs_into_the_time_limit(self):
        for number in (signal.SIGSTOP, signal.SIGTSTP):
            self.shtest(f"stop-{int(number)}", f"%tool signal {int(number)}")
        self.shtest("well", "%tool exit 0")
        for mode in MODES:
            with self.subTest(mode):
                run = self.run_suite(mode, "--timeout=1", "--verify=0")
                self.check_sane(run)
                # SIGTSTP does nothing to a process whose group is orphaned.
                self.assertEqual(self.codes(run)["stop-19.test"], "TIMEOUT", run)
                self.assertIn(self.codes(run)["stop-20.test"], ("TIMEOUT", "PASS"), run)
                self.assertEqual(self.codes(run)["well.test"], "PASS", run)
                self.check_nothing_left()
