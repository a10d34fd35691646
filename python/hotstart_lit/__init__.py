"""Puts hotstart in the place of lit, for whoever calls lit from Python: by script, by module, by import.

`main` has the signature of lit's own and never returns: this process becomes `hotstart lit`. What tests are, and
what their results mean, is not known here; the real `lit` package is neither imported nor replaced, but for its
main function where `hook` is installed.
"""

import sys


def main(builtin_params={}):
    """Runs the command line of this process as lit would."""
    # Not before it is needed: with the shim, each Python of a build imports this package.
    from hotstart_lit.handover import become

    become(sys.argv[0], sys.argv[1:], builtin_params)
