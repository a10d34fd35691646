"""Stands in the place of `lit.main`."""

import os
import sys

import lit
from hotstart_lit import handover, hook


def main(builtin_params={}):
    """Runs the command line as hotstart does, configs evaluated by the `lit` that this module would be a part of."""
    if hook.handed_over is not None:
        builtin_params = {name: value for name, value in builtin_params.items() if name in hook.handed_over}
    package = os.path.dirname(os.path.dirname(os.path.abspath(lit.__file__)))
    handover.become(sys.argv[0], sys.argv[1:], builtin_params, package)


if __name__ == "__main__":
    sys.argv[0] = "lit"
    main()
