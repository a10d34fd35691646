"""Lets the updaters of a run change a test whose commands failed (`--update-tests`).

Updaters are functions that configs, or lit, put into `lit_config.test_updaters`. They are given what they get
from lit: the result of one command, the test, and the script's lines. Which commands failed is the runner's word;
what the answers mean is its business as well.
"""

import re
import traceback

import lit.TestRunner
from lit.ShCommands import Command
from lit.ShUtil import ShParser


def update(test, lit_config, commands, failures):
    """Calls the updaters for a test that the runner ran."""
    # For what it notes on the test, which updaters may look at.
    lit.TestRunner.parseIntegratedTestScript(test, require_script=False)
    return ask(test, lit_config, commands, failures)


def ask(test, lit_config, commands, failures):
    """Calls the updaters for each failure; what the last one called had to say, or what it raised."""
    update_output = None
    for number, failure in enumerate(failures):
        result = result_of(failure, commands, lit_config)
        for test_updater in lit_config.test_updaters:
            try:
                # What tracebacks show; lit's own tests look for this line.
                update_output = test_updater(result, test, commands)
            except Exception:
                return {"raised": [number, traceback.format_exc()]}
            if update_output:
                break
    return {"said": str(update_output) if update_output else ""}


def result_of(failure, lines, lit_config):
    """A command's result as an object of lit's."""
    return lit.TestRunner.ShellCommandResult(
        command_of(failure, lines, lit_config),
        failure["stdout"],
        failure["stderr"],
        failure["status"],
        failure["timed_out"],
        [(name, path, data.encode("utf-8", "surrogateescape")) for name, path, data in failure["redirected"]],
    )


def command_of(failure, lines, lit_config):
    """The command as lit's own parser has it, redirections included."""
    args, place, count = failure["args"], failure["position"], failure["stages"]
    line = lines[failure["line"]]
    match = re.fullmatch(lit.TestRunner.kPdbgRegex, line)
    try:
        parsed = ShParser(match.group(2) if match else line, lit_config.isWindows, True).parse()
    except ValueError:
        return Command(args, [])
    for pipeline in pipelines(parsed):
        if len(pipeline.commands) == count and [str(arg) for arg in pipeline.commands[place].args] == args:
            return pipeline.commands[place]
    return Command(args, [])


def pipelines(parsed):
    """The pipelines of a line in the order in which they run."""
    waiting = [parsed]
    while waiting:
        parsed = waiting.pop()
        if hasattr(parsed, "commands"):
            yield parsed
        else:
            waiting += [parsed.rhs, parsed.lhs]
