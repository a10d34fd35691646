"""One run's `lit_config`, and what configs say through it.

The object is lit's own, made by its own constructor; the constructor's parameters differ between versions, so
only those it names are given. The one method that writes messages is replaced: they go to the runner, which
shows them in order with its own.
"""

import os
import sys

import lit

from litprobe.later import AsWithLit, Later, of_library

with of_library():
    import pathlib
    import shutil
with Later("unittest", TestCase=object):
    import lit.BooleanExpression
# For the place of a message, which is found without it here; and for running tests, which is the runner's.
with Later("inspect"), Later("lit.TestRunner"):
    import lit.LitConfig
import lit.Test

from litprobe import plain

# What lit's own main program imports; configs use them as attributes of `lit` without importing them.
LOADED_BY_LIT = {
    "InprocBuiltins",
    "ShCommands",
    "ShUtil",
    "ShellEnvironment",
    "TestRunner",
    "TestTimes",
    "cl_arguments",
    "discovery",
    "display",
    "main",
    "reports",
    "run",
    "worker",
}


class Session:
    """The `lit_config` of a run and the messages not yet handed over."""

    def __init__(self, settings):
        self.diagnostics = []
        self.is_running = False
        self.built_in_codes = len(lit.Test.ResultCode.all_codes())
        kind = lit.LitConfig.LitConfig
        kind._write_message = self._writer()
        # The runner limits the time of tests itself; lit's need of psutil does not apply.
        kind.maxIndividualTestTimeIsSupported = property(lambda _config: (True, ""))
        # After Python's own, which know what is built in.
        sys.meta_path.insert(-1, AsWithLit(sys.path))
        self.lit_config = kind(**accepted(kind.__init__, arguments(settings)))
        lit.__getattr__ = load_submodule

    def take_diagnostics(self):
        """The messages since the last call."""
        taken, self.diagnostics = self.diagnostics, []
        return taken

    def state(self, with_bash):
        """What configs left in `lit_config` that concerns the whole run."""
        config = self.lit_config
        codes = lit.Test.ResultCode.all_codes()[self.built_in_codes :]
        return {
            "errors": config.numErrors,
            "warnings": config.numWarnings,
            "parallelism_groups": [[str(name), size] for name, size in config.parallelism_groups.items()],
            "max_individual_test_time": config.maxIndividualTestTime or 0,
            # lit 18 and newer have it.
            "per_test_coverage": bool(getattr(config, "per_test_coverage", False)),
            "valgrind_args": [str(word) for word in config.valgrindArgs],
            "params": [[str(k), str(v)] for k, v in self.params().items() if not isinstance(v, dict)],
            "bash": (config.getBashPath() or None) if with_bash else None,
            "result_codes": [[code.name, code.label, bool(code.isFailure)] for code in unique(codes)],
        }

    def params(self):
        """The parameters; those that lit uses itself, as it understands them."""
        limit = plain.output_limit(self.lit_config)
        own = {} if limit is None else {"output_limit": limit}
        has_slashes = self.lit_config.params.get("use_normalized_slashes")
        return dict(self.lit_config.params, **own, use_normalized_slashes=has_slashes and "1" or "")

    def _writer(self):
        def write_message(lit_config, kind, message):
            enabled = getattr(lit_config, "diagnostic_level_enabled", None)
            if enabled and not enabled(kind):
                return
            # Out of this function, and out of the method that named the kind.
            frame = sys._getframe(2)
            file, line = os.path.abspath(frame.f_code.co_filename), frame.f_lineno
            if self.is_running:
                # What a test has to say goes to the user at once, as lit's workers do it.
                sys.stderr.write("%s: %s:%d: %s: %s\n" % (lit_config.progname, file, line, kind, message))
                sys.stderr.flush()
                return
            if kind == "fatal":
                file, line = place_of_error(file, line)
            self.diagnostics.append({"kind": kind, "file": file, "line": line, "message": str(message)})

        return write_message


def arguments(settings):
    """All parameters that any version of lit's constructor has."""
    params = dict(settings["builtin_params"])
    if settings["config_map"]:
        params["config_map"] = dict(settings["config_map"])
    params.update(settings["params"])
    return {
        "progname": settings["progname"],
        "path": settings["path"],
        "quiet": settings["diagnostic_level"] == "error",
        "diagnostic_level": settings["diagnostic_level"],
        "useValgrind": settings["use_valgrind"],
        "valgrindLeakCheck": settings["valgrind_leak_check"],
        "valgrindArgs": settings["valgrind_args"],
        "noExecute": settings["no_execute"],
        "debug": settings["debug"],
        "isWindows": os.name == "nt",
        "order": settings["order"],
        "params": params,
        "config_prefix": settings["config_prefix"],
        "per_test_coverage": settings["per_test_coverage"],
        "gtest_sharding": settings["gtest_sharding"],
        "maxRetriesPerTest": settings["max_retries_per_test"],
        "update_tests": settings["update_tests"],
        # lit before 23 takes the command line's limit only after discovery, and so does the runner then.
        "maxIndividualTestTime": settings["timeout"] if lit.__versioninfo__[0] >= 23 else 0,
        # Not the default: it is one dict for all instances.
        "parallelism_groups": {},
    }


def accepted(function, given):
    """The part of `given` that `function` has parameters for."""
    code = function.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    return {name: given[name] for name in names if name in given}


def load_submodule(name):
    """`lit.NAME` as after `import lit.main`, without the cost of importing it for configs that do not look."""
    if name not in LOADED_BY_LIT:
        raise AttributeError("module 'lit' has no attribute %r" % name)
    import importlib

    try:
        return importlib.import_module("lit." + name)
    except ModuleNotFoundError as error:
        if error.name != "lit." + name:
            raise
        # This version has none.
        raise AttributeError("module 'lit' has no attribute %r" % name) from None


def place_of_error(file, line):
    """Where the exception that is being handled left the config, if there is one; else the place given."""
    error = sys.exc_info()[1]
    if error is None:
        return file, line
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno or 1
    here = os.path.dirname(os.path.abspath(lit.__file__)) + os.sep
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        # The innermost frame of a config, not of the libraries that it called.
        if "cfg" in os.path.basename(name) and not name.startswith(here):
            file, line = name, trace.tb_lineno
        trace = trace.tb_next
    return file, line


def unique(codes):
    """The codes without repetition: lit lists one again each time a config defines it again."""
    return list({code.name: code for code in codes}.values())
