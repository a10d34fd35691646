"""`python -m hotstart_lit`, and what the script `hotstart-lit` runs.

    hotstart-lit ARGUMENTS              runs tests; the arguments are lit's. Where they are about a build tree with an
                                        llvm-lit, its config map is honoured
    hotstart-lit --wrapper FILE ARGUMENTS
                                        runs a script that calls lit, such as a build tree's llvm-lit, with hotstart
    hotstart-lit --shim                 prints the directory that, on PYTHONPATH, lets all such scripts run hotstart

The last two are told apart only as first arguments: lit has no such options.
"""

import os
import sys

import hotstart_lit
from hotstart_lit import handover, hook, places


def run(arguments):
    if arguments[:1] == ["--shim"]:
        print(places.SHIM)
    elif arguments[:1] == ["--wrapper"]:
        if len(arguments) < 2 or not os.path.isfile(arguments[1]):
            named = "'%s' is no file" % arguments[1] if len(arguments) > 1 else "there is none"
            handover.fail("hotstart-lit", "--wrapper needs the path of a script that runs lit; %s" % named)
        hook.run(arguments[1], arguments[2:])
        handover.fail("hotstart-lit", "'%s' ended without calling lit.main.main" % arguments[1])
    else:
        run_tests(arguments)


def run_tests(arguments):
    """Runs lit's command line, with the config map that a build tree has for it. The other parameters of its
    llvm-lit are not for those who run another lit."""
    wrapper = places.build_tree_wrapper(arguments)
    if wrapper is not None:
        try:
            hook.run(wrapper, arguments, ["config_map"])
        except ImportError:
            # It knows no lit; hotstart may know one.
            sys.argv[0] = wrapper
    tree = places.build_tree_of(sys.argv[0])
    if tree and not any(argument.startswith("--build-tree") for argument in arguments):
        sys.argv[1:1] = ["--build-tree", tree]
    hotstart_lit.main()


if __name__ == "__main__":
    if os.path.basename(sys.argv[0]) == "__main__.py":
        sys.argv[0] = "hotstart-lit"
    run(sys.argv[1:])
