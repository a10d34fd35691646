"""A file system that records every access (`strictatime`): there a test sees whether a tool was executed."""

import os
import unittest

from harness import MODES, WARM, Faults
from test_full import MOUNTER

MOUNT = 'mount -t tmpfs -o "$2" tmpfs "$1" && cp "$3" "$1/tool" || exit 99; shift 3; exec "$@"'


@unittest.skipUnless(MOUNTER, "no file system can be mounted here")
class Access(Faults):
    def on(self, options, *more):
        """Runs the suite with the tool on a file system that is mounted with these options."""
        place = self.path("suite/mounted")
        os.makedirs(place, exist_ok=True)
        wrapper = [*MOUNTER, "sh", "-c", MOUNT, "mount", place, options, self.tool]
        return self.run_suite("-j1", "--verify=0", "--explain", *more, wrapper=wrapper)

    def test_a_start_is_recorded(self):
        tool = "%S/mounted/tool"
        for number in range(10):
            self.shtest(f"{number}", *[f"{tool} exit 0"] * 20)
        # The clock of file times ticks every 10 ms, or more often.
        lines = f"stat -c %%x {tool} > %t.1", "sleep 0.02", f"{tool} exit 0", f"stat -c %%x {tool} > %t.2", "diff %t.1 %t.2"
        expected = {f"{number}.test": "PASS" for number in range(10)}
        for mode in MODES:
            with self.subTest(mode):
                # A test that has failed before is run cold.
                self.shtest(f"executed{mode}", *lines)
                expected[f"executed{mode}.test"] = "FAIL"
                run = self.on("strictatime", mode)
                self.check_sane(run)
                self.assertEqual(self.codes(run), expected, run)
                self.check_nothing_left()

    def test_a_tool_there_is_cold(self):
        for number in range(10):
            self.shtest(f"{number}", "%S/mounted/tool exit 0")
        for mode in WARM:
            with self.subTest(mode):
                reason = "records every access"
                self.assertIn(reason, self.on("strictatime", mode).err)
                self.assertNotIn(reason, self.on("relatime", mode).err)
                self.check_nothing_left()
