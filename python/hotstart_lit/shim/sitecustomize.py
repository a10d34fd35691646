"""Python imports this at its start if this directory is on PYTHONPATH: lit's main function becomes hotstart's.

That is all the directory is for; hotstart takes it off PYTHONPATH for the processes that it starts itself.
"""

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

HERE = os.path.dirname(os.path.realpath(__file__))
LIBRARY = os.path.dirname(os.path.dirname(HERE))


def pass_on():
    """Loads the module that this one hides, if there is one."""
    others = [entry for entry in sys.path if os.path.realpath(entry) != HERE]
    hidden = PathFinder.find_spec("sitecustomize", others)
    if hidden is not None and hidden.loader is not None:
        module = importlib.util.module_from_spec(hidden)
        hidden.loader.exec_module(module)


def find_package():
    """Makes hotstart_lit known, without other modules beside it coming into reach."""
    spec = PathFinder.find_spec("hotstart_lit", [LIBRARY])
    module = importlib.util.module_from_spec(spec)
    sys.modules["hotstart_lit"] = module
    spec.loader.exec_module(module)


find_package()

from hotstart_lit import hook  # noqa: E402

hook.install()
pass_on()
