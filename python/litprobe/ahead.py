"""Tells the runner what a config has said so far, once it is about to wait for a process.

The runner can then start the tools of the first tests in the meantime. Python tells of each process before it is made,
by an audit event; nothing is put in the place of anything that configs can see.
"""

import contextlib
import os
import sys
import threading

from litprobe.describe import describe_environment

# The config that is being evaluated, and how to tell of it; by whom.
awaited = None
owner = None


@contextlib.contextmanager
def announced(config, put):
    """Tells of `config` at the first process while the context lasts."""
    global awaited, owner
    if owner is None and hasattr(sys, "addaudithook"):
        owner = os.getpid(), threading.get_ident()
        sys.addaudithook(notice)
    awaited = config, put
    try:
        yield
    finally:
        awaited = None


def notice(event, _arguments):
    """Called for everything that Python does, so that it must be quick."""
    global awaited
    if event != "subprocess.Popen" or awaited is None or owner != (os.getpid(), threading.get_ident()):
        return
    (config, put), awaited = awaited, None
    try:
        values = [value for _, value in config.substitutions if isinstance(value, str) and value.startswith("/")]
        roots = {name: getattr(config, "test_" + name) for name in ("source_root", "exec_root")}
        told = {name: root and str(root) for name, root in roots.items()}
        put({"ahead": dict(told, environment=describe_environment(config.environment), values=values)})
    except Exception:
        # A config may be in any state; its own errors come to light where it goes on.
        pass
