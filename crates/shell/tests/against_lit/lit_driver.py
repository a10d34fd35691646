"""Runs scripts through lit's own internal shell, one JSON request per line, for comparison with ours.

It only calls what lit defines (its parser, its executor) and reports the structured results that lit would
render; it decides nothing. Usage: lit_driver.py, with the lit package to be compared importable.
"""
import gc
import importlib
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import traceback
import warnings

import lit.ShUtil as ShUtil
import lit.TestRunner as TestRunner

# lit's workers ignore it, and the processes they start inherit that. The test's own blocked signals must not be
# inherited.
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
gc.disable()
# Scripts take milliseconds. Some never end in lit: it reads a stage's standard error only after the last stage's end.
PATIENCE_SECONDS = 15
IS_V23 = hasattr(TestRunner, "_expandLateSubstitutions")


class Stuck(BaseException):
    """lit waits for a process that waits for lit."""


class Patience:
    """Raises Stuck after three periods, as the first may have passed while the machine slept or this process was stopped."""

    def __enter__(self):
        self.left = 3
        signal.signal(signal.SIGALRM, self.elapsed)
        signal.alarm(PATIENCE_SECONDS)

    def elapsed(self, _signal, _frame):
        self.left -= 1
        if self.left == 0:
            raise Stuck
        signal.alarm(PATIENCE_SECONDS)

    def __exit__(self, *_):
        signal.alarm(0)


def kill_children():
    """Ends whatever a stuck script has started."""
    pending = [os.getpid()]
    while pending:
        pid = pending.pop()
        try:
            with open("/proc/%d/task/%d/children" % (pid, pid)) as children:
                found = [int(child) for child in children.read().split()]
        except OSError:
            continue
        pending += found
        for child in found:
            os.kill(child, signal.SIGKILL)


def stage_of(result):
    files = [[str(name), data.decode("utf-8", "replace")] for name, _, data in result.outputFiles]
    return {
        "args": [str(arg) for arg in result.command.args],
        "status": int(result.exitCode),
        "stdout": result.stdout.encode("utf-8", "replace").decode(),
        "stderr": result.stderr.encode("utf-8", "replace").decode(),
        "redirected": files,
    }


def announced(text):
    """A command behind the one by which lit tells it first. What is told is of no interest here, but that can fail."""
    return "@echo %s && %s" % (shlex.quote(text.lstrip()), text) if IS_V23 else text


def leftmost(command):
    while isinstance(command, ShUtil.Seq):
        command = command.lhs
    return command.commands[0]


def run(request):
    commands = []
    for index, text in enumerate(request["commands"]):
        try:
            commands.append(ShUtil.ShParser(announced(text), False, request["pipefail"]).parse())
        except Exception:
            return {"parse": index}
    told = [id(leftmost(command).args) for command in commands] if IS_V23 else []
    tree = commands[0]
    for command in commands[1:]:
        tree = ShUtil.Seq(tree, "&&", command)
    shell = TestRunner.ShellEnvironment(request["cwd"], dict(request["env"]))
    results = []
    try:
        try:
            status, _ = TestRunner.executeShCmd(tree, shell, results)
        except TestRunner.InternalShellError as error:
            # lit 19 does this only in the caller.
            status = 127
            results.append(TestRunner.ShellCommandResult(error.command, "", error.message, status, False))
        seen = [result for result in results if result.exitCode != 0 or id(result.command.args) not in told]
        return {"exit": int(status), "stages": [stage_of(r) for r in seen]}
    except Stuck:
        raise
    except BaseException as error:
        return {"exception": type(error).__name__, "message": str(error), "stages": []}


def diff(args, cwd):
    """lit's `diff`, without a process where it is made for that."""
    try:
        run_here = importlib.import_module("lit.builtin_commands.diff").run
    except (ImportError, AttributeError):
        package = os.path.dirname(os.path.abspath(TestRunner.__file__))
        program = [sys.executable, os.path.join(package, "builtin_commands", "diff.py")]
        done = subprocess.run(program + args, cwd=cwd, env={**os.environ, "PYTHONPATH": package}, capture_output=True)
        return {"status": done.returncode, "stdout": done.stdout.decode()}
    out = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            status = run_here(["diff", *args], io.BytesIO(), out, io.BytesIO(), cwd)
    except Exception:
        status = 1
    return {"status": status, "stdout": out.getvalue().decode()}


def reap():
    """Waits for processes of pipelines that lit gave up on, whose files are to be compared, too.

    Python keeps their pipes open; those that write more than a pipe holds would never end.
    """
    until = time.monotonic() + 1
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                if time.monotonic() > until:
                    close_abandoned()
                time.sleep(0.002)
        except ChildProcessError:
            close_abandoned()
            return


def close_abandoned():
    gc.collect()
    for process in subprocess._active:
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()


def main():
    hello = {"python": sys.executable, "v23": IS_V23, "package": os.path.dirname(os.path.abspath(TestRunner.__file__))}
    print(json.dumps(hello), flush=True)
    umask = os.umask(0o022)
    for line in sys.stdin:
        # lit leaves a script's own in place where a program could not be started.
        os.umask(umask)
        try:
            with Patience():
                request = json.loads(line)
                answer = diff(request["diff"], request["cwd"]) if "diff" in request else run(request)
        except Stuck:
            kill_children()
            answer = {"stuck": True}
        except BaseException:
            answer = {"broken": traceback.format_exc()}
        reap()
        print(json.dumps(answer), flush=True)


main()
