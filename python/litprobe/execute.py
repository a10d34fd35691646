"""Runs tests whose format is written in Python, and lets the runner run their scripts and programs.

What a test is and what its results mean stays with the format and with lit: only the functions of lit that start
processes are replaced, before any config is evaluated, as configs import them by name. Each test gets copies of
its config and suite by way of pickle, as lit's own workers do: what a format changes there concerns one test.
"""

import builtins
import contextlib
import copy
import json
import os
import pickle
import threading

import lit
import lit.Test
import lit.TestRunner
import lit.util
import lit.worker

from litprobe import carry, plain


class Execution:
    """Runs tests for one server."""

    def __init__(self, session, ask, request):
        self.session = session
        self.lit_config = session.lit_config
        self.ask = ask
        self.lock = threading.Lock()
        self.limit = request["timeout"]
        self.temporary = dict.fromkeys(("TMP", "TMPDIR", "TEMP", "TEMPDIR"), request["tmp_dir"])
        self.pickled = {}
        self.names_test_case = lit.__versioninfo__[0] > 19
        # lit 23 hands on what its test updaters said.
        self.has_updates = "test_update_output" in lit.TestRunner._runShTest.__code__.co_varnames
        self.install()

    def install(self):
        """Replaces what starts processes in lit."""
        self.originals = lit.TestRunner.executeScriptInternal, lit.TestRunner.executeScript, lit.util.executeCommand

        def execute_script_internal(test, litConfig, tmpBase, commands, cwd, debug=True):
            return self.script(test, litConfig, tmpBase, commands, cwd, debug)

        def execute_script(test, litConfig, tmpBase, commands, cwd):
            return self.external(test, litConfig, tmpBase, commands, cwd)

        def execute_command(command, cwd=None, env=None, input=None, timeout=0, redirect_stderr=False):
            return self.command(command, cwd, env, input, timeout, redirect_stderr)

        lit.TestRunner.executeScriptInternal = execute_script_internal
        lit.TestRunner.executeScript = execute_script
        lit.util.executeCommand = execute_command

    def run(self, request, suite, config):
        """Runs one test to its result."""
        test = self.test(request, suite, config)
        if self.limit is not None:
            self.lit_config.maxIndividualTestTime = self.limit
        with self.running(test):
            test.setResult(lit.worker._execute(test, self.lit_config))
        return {"result": dict(describe_result(test.result), missing=missing_features(test))}

    def update(self, request, suite, config):
        """Lets updaters change a test that the runner ran."""
        from litprobe.update import update

        test = self.test(request, suite, config)
        with self.running(test):
            return {"update": update(test, self.lit_config, request["lines"], request["failures"])}

    def test(self, request, suite, config):
        """The test of a request."""
        suite, config = self.fresh(suite, config)
        if request["carried"] is not None:
            test = carry.unpack(request["carried"], suite, config, self.lit_config)
        else:
            test = lit.Test.Test(suite, tuple(request["path"]), config, request["file"], request["results"])
        mark(test, request["marks"])
        return test

    @contextlib.contextmanager
    def running(self, test):
        """The state of the process while a test runs."""
        before = {name: os.environ.get(name) for name in self.temporary}
        self.session.is_running = True
        try:
            if self.temporary["TMP"] is not None:
                os.environ.update(self.temporary)
                test.config.environment.update(self.temporary)
            yield
        finally:
            self.session.is_running = False
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def fresh(self, suite, config):
        """Copies for one test. What cannot be pickled could not be run by lit at all; it is copied otherwise."""
        key = (suite.name, suite.source_root, suite.exec_root, id(suite.config), id(config))
        pickled = self.pickled.get(key)
        if pickled is None:
            try:
                pickled = pickle.dumps((suite, config), pickle.HIGHEST_PROTOCOL)
            except Exception:
                return copy.deepcopy((suite, config))
            self.pickled[key] = pickled
        return pickle.loads(pickled)

    def forget(self):
        """Another config is evaluated, which may change those that are known."""
        self.pickled.clear()

    def call(self, **values):
        """Lets the runner do something; raises what lit would raise."""
        with self.lock:
            answer = self.ask(values)
        if answer["fatal"] is not None:
            raise lit.TestRunner.ScriptFatal(answer["fatal"])
        if answer["fault"] is not None:
            raise exception(*answer["fault"])
        return answer

    def script(self, test, lit_config, tmp_base, commands, cwd, debug):
        """In the place of lit's internal shell."""
        output_limit = plain.output_limit(lit_config)
        if not commands or output_limit is None or not self.can_hand_on(test, commands):
            return self.originals[0](test, lit_config, tmp_base, commands, cwd, debug)
        asks_updaters = debug and getattr(lit_config, "update_tests", False)
        answer = self.call(
            kind="internal",
            trace=debug,
            wants_failures=asks_updaters,
            output_limit=output_limit,
            **self.script_values(test, lit_config, tmp_base, commands, cwd),
        )
        said = self.updated(test, commands, answer) if asks_updaters else None
        return self.with_updates(answer, self.time_limit(test, lit_config), said)

    def can_hand_on(self, test, commands):
        """Whether the runner can run a script; else lit does it, with the objects as they are."""
        if not self.session.is_running or not plain.are_names(list(commands)):
            return False
        if plain.HAS_LIMITS_IN_CONFIGS and not plain.is_limit(test.config.maxIndividualTestTime):
            return False
        return plain.is_environment(test.config.environment)

    def updated(self, test, commands, answer):
        """What updaters have to say of commands that failed."""
        failures = answer["failures"]
        if not failures or answer["timed_out"] or test.isExpectedToFail():
            return None
        from litprobe.update import ask

        said = ask(test, self.lit_config, commands, failures)
        if "raised" in said:
            number, trace = said["raised"]
            text = failures[number]["seen"] + "Exception occurred in test updater:\n" + trace
            raise lit.TestRunner.TestUpdaterException(text)
        return said["said"] or None

    def external(self, test, lit_config, tmp_base, commands, cwd):
        """In the place of a script run by bash."""
        if not self.can_hand_on(test, commands):
            return self.originals[1](test, lit_config, tmp_base, commands, cwd)
        answer = self.call(
            kind="external",
            argv=[lit_config.getBashPath() or "/bin/sh"],
            prefix=[str(word) for word in lit_config.valgrindArgs] if lit_config.useValgrind else [],
            **self.script_values(test, lit_config, tmp_base, commands, cwd),
        )
        return self.with_updates(answer, self.time_limit(test, lit_config))

    def command(self, command, cwd, env, input, timeout, redirect_stderr):
        """In the place of a subprocess."""
        variables = os.environ if env is None else env
        if not self.session.is_running or input is not None or not is_command(command, cwd, variables, timeout):
            return self.originals[2](command, cwd, env, input, timeout, redirect_stderr)
        answer = self.call(
            kind="program",
            argv=[os.fspath(word) for word in command],
            merges_errors=bool(redirect_stderr),
            cwd=os.path.abspath(os.fspath(cwd)) if cwd is not None else os.getcwd(),
            env=[[name, str(value)] for name, value in variables.items()],
            timeout=timeout or 0,
        )
        if answer["timed_out"]:
            raise lit.util.ExecuteCommandTimeoutException(
                msg=reached(timeout), out=answer["out"], err=answer["err"], exitCode=answer["code"]
            )
        return answer["out"], answer["err"], answer["code"]

    def script_values(self, test, lit_config, tmp_base, commands, cwd):
        env = dict(test.config.environment)
        if self.names_test_case:
            env["LIT_CURRENT_TESTCASE"] = test.getFullName()
        return {
            "lines": list(commands),
            "cwd": os.path.abspath(cwd),
            "env": [[name, str(value)] for name, value in env.items()],
            "timeout": self.time_limit(test, lit_config) or 0,
            "pipefail": bool(test.config.pipefail),
            "tmp_base": os.path.abspath(tmp_base),
        }

    def time_limit(self, test, lit_config):
        return getattr(test.config, "maxIndividualTestTime", None) or lit_config.maxIndividualTestTime

    def with_updates(self, answer, limit, said=None):
        timeout = reached(limit) if answer["timed_out"] else None
        values = answer["out"], answer["err"], answer["code"], timeout
        return values + (said,) if self.has_updates else values


def is_command(command, cwd, env, timeout):
    """Whether it is one that the runner can run."""
    if not isinstance(command, (list, tuple)) or not command or not all(map(is_word, command)):
        return False
    if not (cwd is None or is_word(cwd)) or not plain.is_limit(timeout or 0):
        return False
    return all(plain.is_variable(name, value) for name, value in env.items())


def is_word(word):
    if isinstance(word, os.PathLike):
        word = os.fspath(word)
    return isinstance(word, str) and plain.is_argument(word)


def reached(limit):
    return "Reached timeout of {} seconds".format(limit)


def exception(kind, message):
    """The exception of this name."""
    known = getattr(builtins, kind, None)
    arguments = (message,) if message else ()
    if isinstance(known, type) and issubclass(known, BaseException):
        try:
            return known(*arguments)
        except TypeError:
            pass  # It wants more than a message.
    return type(kind, (Exception,), {"__module__": "builtins"})(*arguments)


def mark(test, marks):
    """Sets what the command line says of a test, as lit's main function does."""
    if marks["xfail"]:
        test.xfails += "*"
    test.xfail_not = marks["xfail_not"]
    test.exclude_xfail = marks["exclude_xfail"]
    if marks["unsupported"]:
        test.config.available_features = set(test.config.available_features) | {"lit-unsupported-marker"}
        test.unsupported.append("lit-unsupported-marker")
    test.unsupported_not = marks["unsupported_not"]


def missing_features(test):
    """Why a test is not supported, for reports."""
    if test.result.code is not lit.Test.UNSUPPORTED:
        return []
    try:
        return list(test.getMissingRequiredFeatures())
    except ValueError:
        return []


def describe_result(result):
    return {
        "code": result.code.name,
        "output": result.output if isinstance(result.output, str) else str(result.output),
        "attempts": [getattr(result, "attempts", 1), getattr(result, "max_allowed_attempts", None) or 1],
        "elapsed": result.elapsed,
        "updates": [str(said) if said else "" for said in getattr(result, "test_updater_outputs", ())],
        "metrics": [[str(name), *describe_metric(value)] for name, value in result.metrics.items()],
        "micro": [[str(name), describe_result(micro)] for name, micro in result.microResults.items()],
    }


def describe_metric(value):
    """Kind and text."""
    data = value.todata()
    if isinstance(data, int) and not isinstance(data, bool):
        return ["int", str(data)]
    if isinstance(data, float):
        return ["real", repr(data)]
    return ["json", json.dumps(data)]

