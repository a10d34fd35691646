"""Turns this process into `hotstart lit`, with the parameters that a wrapper hands to lit's main function."""

import json
import os
import signal
import sys

from hotstart_lit import places


def become(program, arguments, builtin_params, package=None):
    """Turns this process into `hotstart lit`. `package` is the directory of the `lit` that a wrapper would use."""
    try:
        hotstart = places.find_hotstart(program)
        options = places.find_lit(arguments, package)
        if builtin_params:
            options += ["--builtin-parameters", encode(builtin_params)]
    except places.Missing as missing:
        fail(name_of(program), missing)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # Python ignores these; what it starts must not.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    environment = places.without_shim(os.environ)
    try:
        os.execve(hotstart, [name_of(program)] + options + arguments, environment)
    except OSError as error:
        fail(name_of(program), "cannot start '%s': %s" % (hotstart, error.strerror))


def fail(name, message):
    """Ends this process as lit does for wrong use."""
    sys.stderr.write("%s: error: %s\n" % (name, message))
    sys.exit(2)


def name_of(program):
    """The name in messages; by these names hotstart knows that it is to be lit."""
    name = os.path.splitext(os.path.basename(program))[0]
    return name if name in ("lit", "llvm-lit", "hotstart-lit") else "lit"


def encode(builtin_params):
    """A wrapper's parameters as JSON. Paths may be objects; anything else that is not JSON cannot be handed over."""

    def plain(value):
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        raise TypeError

    for name, value in builtin_params.items():
        try:
            json.dumps(value, default=plain)
        except (TypeError, ValueError):
            kind = type(value).__name__
            text = "the builtin parameter %r is of type %s, which cannot be handed over; run this with lit itself"
            raise places.Missing(text % (name, kind)) from None
    return json.dumps(builtin_params, default=plain, ensure_ascii=False)
