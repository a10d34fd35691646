"""Where hotstart-lit looks for things, and what it hands over. That it works is tested with the real program."""

import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from hotstart_lit import handover, hook, places


class PlacesTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = os.path.realpath(directory.name)

    def file(self, name, text="", mode=0o644):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def environment(self, **values):
        patch = mock.patch.dict(os.environ, values, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_program_that_is_named_goes_before_the_one_beside_the_script(self):
        beside = self.file("bin/hotstart", mode=0o755)
        named = self.file("named", mode=0o755)
        self.environment(HOTSTART=named)
        self.assertEqual(places.find_hotstart(os.path.join(self.root, "bin/hotstart-lit")), named)
        self.environment(PATH="/nonexistent")
        self.assertEqual(places.find_hotstart(os.path.join(self.root, "bin/hotstart-lit")), beside)

    def test_what_cannot_be_run_is_no_program(self):
        self.environment(HOTSTART=self.file("named"))
        with self.assertRaisesRegex(places.Missing, "HOTSTART names '.*named', which is no program"):
            places.find_hotstart("hotstart-lit")

    def test_options_of_the_user_stand(self):
        self.environment()
        self.assertEqual(places.find_lit(["--lit-python=x", "--lit-package", "y", "."]), [])
        self.environment(HOTSTART_LIT_PYTHON="/python")
        self.assertEqual(places.find_lit([], "/package"), ["--lit-package", "/package"])

    def test_a_build_tree_tells_of_its_sources_and_its_wrapper(self):
        self.file("llvm/utils/lit/lit/LitConfig.py")
        self.file("build/CMakeCache.txt", "//x\nLLVM_MAIN_SRC_DIR:PATH=%s/llvm\n" % self.root)
        self.file("build/deep/a.test")
        arguments = ["-v", os.path.join(self.root, "build/deep/a.test")]
        self.assertEqual(places.source_tree_lit(arguments), os.path.join(self.root, "llvm/utils/lit"))
        self.assertIsNone(places.build_tree_wrapper(arguments))
        wrapper = self.file("build/bin/llvm-lit")
        self.assertEqual(places.build_tree_wrapper(arguments), wrapper)
        os.remove(wrapper)
        os.symlink(self.file("hotstart-lit"), wrapper)
        self.assertIsNone(places.build_tree_wrapper(arguments))

    def test_only_the_shim_is_taken_off_the_path(self):
        path = os.pathsep.join(["/a", places.SHIM, "", os.path.join(places.SHIM, "..", "shim")])
        self.assertEqual(places.without_shim({"PYTHONPATH": path, "A": "1"}), {"PYTHONPATH": "/a:", "A": "1"})
        self.assertEqual(places.without_shim({"PYTHONPATH": places.SHIM}), {})


class HandOverTest(unittest.TestCase):
    def test_paths_may_be_objects(self):
        given = {"config_map": {"/a": pathlib.Path("/b")}, "n": [1, True, None]}
        self.assertEqual(json.loads(handover.encode(given)), {"config_map": {"/a": "/b"}, "n": [1, True, None]})

    def test_what_is_no_value_is_named(self):
        with self.assertRaisesRegex(places.Missing, "'made_at' is of type object"):
            handover.encode({"build_mode": ".", "made_at": object()})

    def test_programs_that_are_not_lit_by_name_are_lit(self):
        names = [handover.name_of(name) for name in ("/b/llvm-lit", "lit.py", "/x/__main__.py", "check")]
        self.assertEqual(names, ["llvm-lit", "lit", "lit", "lit"])

    def test_nothing_of_lit_but_its_main_function_is_replaced(self):
        self.assertIsNone(hook.Finder.find_spec("lit.util"))
        self.assertIsNone(hook.Finder.find_spec("lit"))
        self.assertTrue(hook.Finder.find_spec("lit.main").origin.endswith("replacement.py"))


if __name__ == "__main__":
    unittest.main()
