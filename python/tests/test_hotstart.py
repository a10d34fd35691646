"""`python -m hotstart`: which program it becomes, with which arguments."""

import os
import tempfile
import unittest
from unittest import mock

from hotstart import __main__ as command
from hotstart_lit import places


class BecomesTheProgram(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.program = os.path.join(directory.name, "hotstart")
        with open(self.program, "w"):
            os.chmod(self.program, 0o755)
        patches = [
            mock.patch.dict(os.environ, {"HOTSTART": self.program, "PYTHONPATH": places.SHIM}, clear=True),
            mock.patch("signal.signal"),
            mock.patch("os.execve"),
        ]
        for patch in patches:
            self.execve = patch.start()
            self.addCleanup(patch.stop)

    def test_lit_is_told_which_python_has_lit(self):
        with mock.patch.object(places, "find_lit", return_value=["--lit-python", "/python"]) as find_lit:
            command.run(["lit", "-v", "."])
        find_lit.assert_called_once_with(["-v", "."])
        expected = ["hotstart", "lit", "--lit-python", "/python", "-v", "."]
        # The shim is for those who call lit, and not for hotstart's own Python.
        self.execve.assert_called_once_with(self.program, expected, {"HOTSTART": self.program})

    def test_other_commands_are_passed_on(self):
        command.run(["server", "status"])
        self.assertEqual(self.execve.call_args[0][1], ["hotstart", "server", "status"])

    def test_a_program_that_is_not_there_is_wrong_use(self):
        os.environ["HOTSTART"] = "/nonexistent"
        with mock.patch("sys.stderr") as stderr, self.assertRaises(SystemExit) as ended:
            command.run(["lit"])
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("hotstart: error: HOTSTART names '/nonexistent'", stderr.write.call_args[0][0])


if __name__ == "__main__":
    unittest.main()
