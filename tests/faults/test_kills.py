"""Whoever is killed while a test runs: the verdict stays right or the run ends with an error, and nothing is left."""

import os
import signal

from harness import CONFIG, MODES, WARM, Faults, of_role
from test_ends import FATAL

# The Rust runtime ignores SIGPIPE, and hotstart SIGXFSZ. Rust has a handler for SIGSEGV and SIGBUS, which detects a stack
# overflow and goes on after a signal for which there is no fault; a second one ends the process.
IGNORED = {signal.SIGPIPE, signal.SIGXFSZ, signal.SIGSEGV, signal.SIGBUS}
# Python ignores SIGPIPE and SIGXFSZ; SIGINT is ignored in helpers as in lit's workers.
ENDS_PYTHON = [number for number in FATAL if number not in {signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT}]
# A test that failed warm and passes cold may be told as flaky; it never fails.
NOT_FAILED = ("PASS", "FLAKYPASS")


class Kills(Faults):
    def begin(self, *options, lines=("%tool once {}",), before=3, config="", wrapper=()):
        """Starts a run of which one test waits in the tool, after `before` tests that ran it."""
        gate = self.gate()
        for number in range(before):
            self.shtest(f"a-{number}", "%tool exit 0")
        self.shtest("b", *(line.format(gate) for line in lines))
        self.shtest("c", "%tool exit 0")
        if config:
            self.file("suite/lit.cfg.py", CONFIG.format(tool=self.tool) + config)
        results = self.path("results.json")
        process = self.start("-j1", "--verify=0", "-o", results, *options, wrapper=wrapper)
        return process, gate, self.await_begun(gate), results

    def finish(self, process, gate, results):
        self.open_gate(gate)
        return self.ended(process, results)


class ToolKilled(Kills):
    def test_cold_tool_killed_fails_as_with_lit(self):
        process, gate, tool, results = self.begin("--start=cold")
        os.kill(tool, signal.SIGKILL)
        run = self.ended(process, results)
        self.assertEqual(self.codes(run)["b.test"], "FAIL", run)
        self.assertEqual(run.code, 1)
        self.assertEqual(self.runs(gate), 1)
        self.check_nothing_left()

    def test_warm_tool_killed_is_confirmed_cold(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
            for mode in WARM:
                with self.subTest(mode, number=number):
                    self.doCleanups()
                    self.setUp()
                    process, gate, tool, results = self.begin(mode)
                    os.kill(tool, number)
                    run = self.ended(process, results)
                    self.check_sane(run)
                    self.assertIn(self.codes(run)["b.test"], NOT_FAILED, run)
                    self.assertEqual(self.codes(run)["c.test"], "PASS")
                    self.assertGreaterEqual(self.runs(gate), 2)
                    self.check_nothing_left()


class ZygoteKilled(Kills):
    def test_zygote_killed_while_its_fork_runs(self):
        for mode in WARM:
            with self.subTest(mode):
                self.doCleanups()
                self.setUp()
                process, gate, tool, results = self.begin(mode)
                zygotes = of_role(process.pid, "zygote")
                self.assertTrue(zygotes)
                for zygote in zygotes:
                    os.kill(zygote, signal.SIGKILL)
                run = self.finish(process, gate, results)
                self.check_sane(run)
                self.assertEqual(set(self.codes(run).values()), {"PASS"}, run)
                # The tool tells its process number, so in a process that has run before it is run again, cold.
                self.assertEqual(self.runs(gate), 2 if "rewind" in mode else 1, "what runs is not disturbed")
                self.check_nothing_left()

    def test_zygote_dies_of_any_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV, signal.SIGUSR1, signal.SIGALRM):
            with self.subTest(number):
                self.doCleanups()
                self.setUp()
                process, gate, tool, results = self.begin("--start=fork")
                for zygote in of_role(process.pid, "zygote"):
                    os.kill(zygote, number)
                run = self.finish(process, gate, results)
                self.check_sane(run)
                self.assertEqual(set(self.codes(run).values()), {"PASS"}, run)
                self.check_nothing_left()

    def test_idle_zygote_or_worker_dies_of_any_signal(self):
        for number in FATAL:
            with self.subTest(number):
                self.doCleanups()
                self.setUp()
                process, gate, tool, results = self.begin(
                    "--start=rewind", lines=("%tool exit 0 | %tool exit 0", "%tool once {}"))
                for pid in of_role(process.pid, "zygote") + of_role(process.pid, "worker"):
                    if pid != tool:
                        os.kill(pid, number)
                run = self.finish(process, gate, results)
                self.check_sane(run)
                self.assertEqual(set(self.codes(run).values()), {"PASS"}, run)
                self.check_nothing_left()

    def test_zygote_that_does_not_answer_is_given_up(self):
        process, gate, tool, results = self.begin("--start=fork")
        for zygote in of_role(process.pid, "zygote"):
            os.kill(zygote, signal.SIGSTOP)
        run = self.finish(process, gate, results)
        self.check_sane(run)
        self.assertEqual(set(self.codes(run).values()), {"PASS"}, run)
        self.check_nothing_left()


class WorkerKilled(Kills):
    def test_idle_worker_killed_loses_no_test(self):
        # A pipeline has made two workers; one waits in the tool, the others are idle.
        process, gate, tool, results = self.begin(
            "--start=rewind", lines=("%tool exit 0 | %tool exit 0 | %tool exit 0", "%tool once {}"))
        idle = [pid for pid in of_role(process.pid, "worker") if pid != tool]
        self.assertTrue(idle)
        for worker in idle:
            os.kill(worker, signal.SIGKILL)
        run = self.finish(process, gate, results)
        self.check_sane(run)
        self.assertEqual(set(self.codes(run).values()), {"PASS"}, run)
        self.check_nothing_left()


class GuardKilled(Kills):
    def test_guard_ended_by_any_signal_changes_nothing(self):
        for mode, number in [(mode, signal.SIGKILL) for mode in MODES] + [("--start=rewind", number) for number in FATAL]:
            with self.subTest(mode, number=number):
                self.doCleanups()
                self.setUp()
                process, gate, tool, results = self.begin(mode)
                guards = of_role(process.pid, "guard")
                self.assertEqual(len(guards), 1)
                os.kill(guards[0], number)
                run = self.finish(process, gate, results)
                self.check_sane(run)
                self.assertEqual(set(self.codes(run).values()), {"PASS"}, run)
                self.check_nothing_left()

    def test_guard_stopped_does_not_hold_up_the_run(self):
        process, gate, tool, results = self.begin("--start=rewind")
        os.kill(of_role(process.pid, "guard")[0], signal.SIGSTOP)
        run = self.finish(process, gate, results)
        self.assertEqual(set(self.codes(run).values()), {"PASS"}, run)
        self.check_nothing_left()


class HelperEnds(Faults):
    ENDS = ["os._exit(3)", "os._exit(0)", "sys.exit(4)", "sys.exit('enough')", "raise SystemExit", "raise ValueError('x')",
            "raise MemoryError", "os.abort()", "os.kill(os.getpid(), signal.SIGKILL)", "os.kill(os.getpid(), signal.SIGTERM)",
            "os.close(0)", "sys.stdout.close()", "sys.setrecursionlimit(50)\ndef f(): f()\nf()", "config.name = None",
            "config.suffixes = 3", "del config.test_format"]

    def test_config_that_ends_the_helper_is_an_error(self):
        for end in self.ENDS:
            with self.subTest(end):
                self.shtest("a", "%tool exit 0")
                self.file("suite/lit.cfg.py", CONFIG.format(tool=self.tool) + "\nimport os, sys, signal\n" + end + "\n")
                run = self.run_suite()
                self.check_sane(run)
                lit = self.run_lit()
                if run.code == 0:
                    self.assertEqual(lit.code, 0, (run, lit))
                    self.assertEqual(self.codes(run), self.codes(lit))
                elif self.ended_by_config(end):
                    self.assertNotEqual(run.out + run.err, "")
                self.check_nothing_left()

    def ended_by_config(self, end):
        return not end.startswith("sys.exit(4)")

    FORMAT = """
import os
import lit.Test, lit.formats
class Own(lit.formats.FileBasedTest):
    def execute(self, test, lit_config):
        if 'waits' in test.getSourcePath():
            open({gate!r} + '/begun', 'w').write(str(os.getpid()))
            open({gate!r} + '/gate').read()
        return lit.Test.PASS, ''
config.test_format = Own()
"""

    def test_helper_killed_while_it_runs_a_test(self):
        """Of a format written in Python."""
        for number in ENDS_PYTHON:
            with self.subTest(number):
                self.doCleanups()
                self.setUp()
                gate = self.gate()
                for name in ("a", "b-waits", "c"):
                    self.shtest(name)
                self.file("suite/lit.cfg.py", CONFIG.format(tool=self.tool) + self.FORMAT.format(gate=gate))
                results = self.path("results.json")
                process = self.start("-j1", "-o", results)
                os.kill(self.await_begun(gate), number)
                run = self.ended(process, results)
                self.check_sane(run)
                codes = self.codes(run)
                self.assertEqual((codes["a.test"], codes["c.test"]), ("PASS", "PASS"), run)
                self.assertNotIn(codes["b-waits.test"], ("PASS", "XFAIL", "SKIPPED"), run)
                self.assertEqual(run.code, 1, run)
                self.check_nothing_left()

    def killed_in_config(self, number):
        gate = self.gate()
        self.shtest("a", "%tool exit 0")
        self.file("suite/lit.cfg.py", CONFIG.format(tool=self.tool)
                  + f"import os\nopen({gate + '/begun'!r}, 'w').write(str(os.getpid()))\nopen({gate + '/gate'!r}).read()\n")
        process = self.start()
        os.kill(self.await_begun(gate), number)
        return self.ended(process)

    def test_helper_killed_while_it_evaluates_a_config(self):
        for number in ENDS_PYTHON:
            with self.subTest(number):
                self.doCleanups()
                self.setUp()
                run = self.killed_in_config(number)
                self.check_sane(run)
                self.assertEqual(run.code, 2, run)
                self.assertIn("lit.cfg.py", run.err)
                self.check_nothing_left()


class RunnerEnds(Kills):
    def test_runner_ends_by_any_signal(self):
        for mode in MODES:
            for number in FATAL:
                with self.subTest(mode, number=number):
                    self.doCleanups()
                    self.setUp()
                    process, gate, tool, results = self.begin(mode, before=1)
                    process.send_signal(number)
                    if number in IGNORED:
                        self.open_gate(gate)
                    run = self.ended(process)
                    self.check_sane(run)
                    if number in IGNORED:
                        self.assertEqual(run.code, 0, run)
                    elif number == signal.SIGINT:
                        self.assertIn("interrupted by user", run.err, run)
                        # As with lit: no test has failed.
                        self.assertEqual(run.code, 0, run)
                    else:
                        self.assertEqual(run.code, -number, run)
                    self.check_nothing_left()

    def test_signal_that_is_ignored_does_not_stop_the_runner(self):
        for mode in MODES:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM):
                with self.subTest(mode, number=number):
                    self.doCleanups()
                    self.setUp()
                    ignoring = ("env", "--ignore-signal=" + signal.Signals(number).name.removeprefix("SIG"))
                    process, gate, tool, results = self.begin(mode, before=1, wrapper=ignoring)
                    process.send_signal(number)
                    run = self.finish(process, gate, results)
                    self.assertEqual(run.code, 0, run)
                    self.assertEqual(set(self.codes(run).values()), {"PASS"}, run)
                    self.check_nothing_left()

    def test_runner_ends_while_a_config_is_evaluated(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL, signal.SIGUSR1):
            with self.subTest(number):
                self.doCleanups()
                self.setUp()
                gate = self.gate()
                self.shtest("a", "%tool exit 0")
                self.file("suite/lit.cfg.py", CONFIG.format(tool=self.tool)
                          + f"open({gate + '/begun'!r}, 'w').write('1')\nopen({gate + '/gate'!r}).read()\n")
                process = self.start()
                self.await_begun(gate)
                process.send_signal(number)
                run = self.ended(process)
                self.check_sane(run)
                self.assertNotEqual(run.code, 0)
                self.check_nothing_left()

    def test_stopped_runner_goes_on(self):
        process, gate, tool, results = self.begin("--start=rewind")
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        os.kill(tool, signal.SIGSTOP)
        os.kill(tool, signal.SIGCONT)
        process.send_signal(signal.SIGCONT)
        run = self.finish(process, gate, results)
        self.assertEqual(set(self.codes(run).values()), {"PASS"}, run)
        self.check_nothing_left()

    def test_runner_and_guard_killed_at_once(self):
        """The one case in which nobody is left to end what runs: a cold tool outlives both, a warm one does not."""
        for mode in MODES:
            with self.subTest(mode):
                self.doCleanups()
                self.setUp()
                process, gate, tool, results = self.begin(mode)
                for pid in [*of_role(process.pid, "guard"), process.pid]:
                    os.kill(pid, signal.SIGKILL)
                self.ended(process)
                if mode == "--start=cold":
                    self.open_gate(gate)
                self.await_nobody()
