"""Tells the runner what a config has said so far, once it is about to wait for a process.

The runner can then start the tools of the first tests in the meantime. Python tells of each process before it is made,
by an audit event; nothing is put in the place of anything that configs can see.
"""

import os
import sys
import threading

from litprobe.describe import describe_environment

# The config that is being evaluated, and how to tell of it; by whom.
awaited = None
owner = None


def announce(config, put):
    """Tells of `config` at its first process, once."""
    global awaited, owner
    if owner is None and hasattr(sys, "addaudithook"):
        owner = os.getpid(), threading.get_ident()
        sys.addaudithook(notice)
    awaited = config, put


def notice(event, _arguments):
    """Called for everything that Python does, so that it must be quick."""
    global awaited
    if event != "subprocess.Popen" or awaited is None or owner != (os.getpid(), threading.get_ident()):
        return
    (config, put), awaited = awaited, None
    try:
        values = [value for _, value in config.substitutions if isinstance(value, str) and value.startswith("/")]
        environment, root = describe_environment(config.environment), config.test_source_root
        put({"ahead": {"environment": environment, "values": values, "source_root": root and str(root)}})
    except Exception:
        # A config may be in any state; its own errors come to light where it goes on.
        pass
