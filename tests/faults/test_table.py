"""docs/design/faults.md and the tests name the same cases."""

import os
import re
import unittest

from harness import HERE, REPOSITORY, read


class Table(unittest.TestCase):
    def test_each_case_has_a_stated_outcome(self):
        rows = [line for line in read(os.path.join(REPOSITORY, "docs/design/faults.md")).splitlines() if line.startswith("| ")]
        stated = [re.findall(r"`(test_\w+)`", row) for row in rows]
        named = [name for names in stated for name in names]
        defined = []
        for file in sorted(os.listdir(HERE)):
            if file.startswith("test_") and file != os.path.basename(__file__):
                defined += re.findall(r"^    def (test_\w+)", read(os.path.join(HERE, file)), re.MULTILINE)
        self.assertEqual(sorted(named), sorted(defined))
