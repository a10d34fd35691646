"""The runner killed at random, and started again: nothing is left, and the next run is right.

HOTSTART_FAULTS_KILLS sets how many times; HOTSTART_FAULTS_SEED repeats a run.
"""

import os
import select
import signal
import time

from harness import MODES, Faults, seeded


class Random(Faults):
    def fill_suite(self):
        for number in range(30):
            self.shtest(f"{number:02}", "%tool exit 0 | %tool exit 0", "%tool put %t", "%tool exit 0")
        self.shtest("fails", "%tool exit 1")
        self.shtest("crashes", "%tool null")
        self.expected = {f"{number:02}.test": "PASS" for number in range(30)} | {"fails.test": "FAIL", "crashes.test": "FAIL"}

    def test_runner_killed_at_random_and_started_again(self):
        self.fill_suite()
        random = seeded("runner killed at random")
        kills = int(os.environ.get("HOTSTART_FAULTS_KILLS") or 200)
        died = 0
        begun = time.monotonic()
        self.run_suite(MODES[0])
        takes = time.monotonic() - begun
        for turn in range(kills):
            mode = MODES[turn % 3]
            with self.subTest(mode, turn=turn):
                signal.alarm(40)
                process = self.start(mode)
                # The moment is the fault: at most as long as a run takes here.
                select.select([], [], [], random.random() * takes)
                process.kill()
                died += self.ended(process).code == -signal.SIGKILL
                self.check_nothing_left()
                if turn % 10 == 9:
                    run = self.run_suite(mode)
                    self.check_sane(run)
                    self.assertEqual(self.codes(run), self.expected, run)
                    self.check_nothing_left()
        print(f"{kills} runs, {died} killed before their end", flush=True)
        self.assertGreater(died, kills // 4)
