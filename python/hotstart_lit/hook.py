"""Replaces lit's main function, and nothing else of lit, in this process.

Wrappers put the directory of their own `lit` first on the path of modules, so a package of that name could not
stand before it. Instead, `lit.main` alone is found here, in whichever `lit` it is looked for; what that package
is, the runner is told, so that configs are evaluated by it.
"""

import os
import sys

# lit has no `__main__`; `python -m lit` then is what it looks like.
REPLACED = ("lit.main", "lit.__main__")


class Finder:
    """Finds the modules that are replaced."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in REPLACED:
            return None
        import importlib.util

        return importlib.util.spec_from_file_location(name, os.path.join(os.path.dirname(__file__), "replacement.py"))


# Parameters of wrappers that are handed over; None is all of them.
handed_over = None


def install():
    """From now on, whoever imports `lit.main` gets hotstart."""
    if not any(finder is Finder for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder)


def run(wrapper, arguments, parameters=None):
    """Runs a wrapper script such as a build tree's `llvm-lit`, up to where it calls lit's main function. Only these
    of its parameters count, if any are named."""
    global handed_over
    import runpy

    handed_over = parameters
    install()
    sys.argv = [wrapper] + arguments
    # As Python does for a script.
    sys.path.insert(0, os.path.dirname(os.path.realpath(wrapper)))
    runpy.run_path(wrapper, run_name="__main__")
