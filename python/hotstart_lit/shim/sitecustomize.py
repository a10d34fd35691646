"""Python imports this at its start if this directory is on PYTHONPATH: lit's main function becomes hotstart's.

That is all the directory is for; hotstart takes it off PYTHONPATH for the processes that it starts itself. Every
Python of a build imports this, so it imports little.
"""

import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))


def install():
    """Replaces lit's main function. Other modules beside the package do not come into reach."""
    library = os.path.dirname(os.path.dirname(HERE))
    sys.path.insert(0, library)
    try:
        import hotstart_lit.hook
    finally:
        sys.path.remove(library)
    hotstart_lit.hook.install()


def pass_on():
    """Loads the module that this one hides, if there is one."""
    from importlib.machinery import PathFinder

    others = [entry for entry in sys.path if os.path.realpath(entry) != HERE]
    hidden = PathFinder.find_spec("sitecustomize", others)
    if hidden is not None and hidden.loader is not None:
        from importlib.util import module_from_spec

        hidden.loader.exec_module(module_from_spec(hidden))


install()
pass_on()
