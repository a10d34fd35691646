"""`python -m hotstart ARGUMENTS` becomes `hotstart ARGUMENTS`; `lit` there is evaluated by this Python, as by
`hotstart-lit`."""

import os
import signal
import sys

import hotstart
from hotstart_lit import places


def run(arguments):
    try:
        program = hotstart.find_program()
        if arguments[:1] == ["lit"]:
            arguments = ["lit"] + places.find_lit(arguments[1:]) + arguments[1:]
    except hotstart.Missing as missing:
        sys.stderr.write("hotstart: error: %s\n" % missing)
        sys.exit(2)
    # Python ignores these; what it starts must not.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(program, ["hotstart"] + arguments, places.without_shim(os.environ))
    except OSError as error:
        sys.stderr.write("hotstart: error: cannot start '%s': %s\n" % (program, error.strerror))
        sys.exit(2)


if __name__ == "__main__":
    run(sys.argv[1:])
