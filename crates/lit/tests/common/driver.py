"""Answers what Python's `re` and the real lit make of given inputs, for the property tests.

One JSON object per line in and out; nothing here knows hotstart. The package that is asked is the `lit` of the
Python that runs this, or the one in the directory named by HOTSTART_LIT_PACKAGE.
"""
import base64
import json
import os
import re
import sys
import traceback
import types
import warnings

if os.environ.get("HOTSTART_LIT_PACKAGE"):
    sys.path.insert(0, os.environ["HOTSTART_LIT_PACKAGE"])
warnings.simplefilter("ignore")

import lit
import lit.BooleanExpression
import lit.formats
import lit.Test
import lit.TestingConfig
import lit.TestRunner
import lit.worker

captured = []


def capture(test, lit_config, use_external, script, tmp_base):
    captured.append(list(script))
    return lit.Test.Result(lit.Test.PASS, "")


lit.TestRunner._runShTest = capture


def exception_line(error):
    return "".join(traceback.format_exception_only(error)).rstrip("\n")


def answer(compute):
    try:
        return {"value": compute()}
    except Exception as error:
        return {"error": exception_line(error)}


def sub(pattern, template, text):
    return answer(lambda: re.sub(pattern, template, text))


def boolean(expression, features):
    return answer(lambda: lit.BooleanExpression.BooleanExpression.evaluate(expression, features))


def run_test(test, lit_config):
    captured.clear()
    result = lit.worker._execute(test, lit_config)
    test.setResult(result)
    if captured and result.code in (lit.Test.PASS, lit.Test.XPASS):
        return {"commands": captured[0], "expected_to_fail": result.code is lit.Test.XPASS}
    return {"code": result.code.name, "output": result.output}


def script(case):
    root = case["root"]
    name = "test.txt"
    with open(os.path.join(root, name), "wb") as file:
        file.write(base64.b64decode(case["content"]))
    substitutions = [(key, value) for key, value in case["substitutions"]]
    config = lit.TestingConfig.TestingConfig(
        None, "suite", {".txt"}, lit.formats.ShTest(False, preamble_commands=case["preamble"]), {}, substitutions,
        False, root, root, set(), case["features"], True, limit_to_features=case["limit"])
    config.recursiveExpansionLimit = case["recursion"]
    if case["retries"] is not None:
        config.test_retry_attempts = case["retries"]
    suite = lit.Test.TestSuite("suite", root, root, config)
    test = lit.Test.Test(suite, (name,), config)
    lit_config = types.SimpleNamespace(
        noExecute=False, params={}, debug=False, per_test_coverage=False, maxIndividualTestTime=0)
    return run_test(test, lit_config)


class Suite:
    """A configured suite, discovered by lit."""

    def __init__(self, path, only):
        import lit.discovery
        import lit.LitConfig

        keywords = dict(
            progname="driver", path=[], useValgrind=False, valgrindLeakCheck=False, valgrindArgs=[],
            noExecute=False, debug=False, isWindows=False, order="lexical", params={})
        if lit.__versioninfo__ >= (20,):
            keywords["diagnostic_level"] = "error"
        else:
            keywords["quiet"] = True
        self.lit_config = lit.LitConfig.LitConfig(**keywords)
        paths = [os.path.join(path, part) for part in only] or [path]
        self.tests = lit.discovery.find_tests_for_inputs(self.lit_config, paths)
        self.configs = []

    def describe(self, config):
        for number, known in enumerate(self.configs):
            if known is config:
                return number, None
        self.configs.append(config)
        description = {
            "environment": list(config.environment.items()),
            "substitutions": [
                (key, str(value), isinstance(value, getattr(lit.TestingConfig, "SubstituteCaptures", ())))
                for key, value in config.substitutions
            ],
            "features": sorted(config.available_features),
            "limit": sorted(config.limit_to_features),
            "unsupported": bool(config.unsupported),
            "recursion": config.recursiveExpansionLimit,
            "format": type(config.test_format).__name__,
            "external": bool(getattr(config.test_format, "execute_external", False)),
        }
        return len(self.configs) - 1, description

    def lines(self, step):
        """The RUN lines of every so manyth test, as they are written."""
        found = []
        for test in self.tests[::step]:
            with open(test.getSourcePath(), "rb") as file:
                text = file.read(100_000).decode("utf-8", "replace")
            found += [line.rstrip("\r") for line in re.findall(r"RUN:(.*)", text)]
        return found

    def take(self, start, stop, step):
        answers = []
        for test in self.tests[start:stop:step]:
            number, description = self.describe(test.config)
            if type(test.config.test_format) is not lit.formats.ShTest:
                continue
            answers.append({
                "config": number, "description": description,
                "source_root": test.suite.source_root, "exec_root": test.suite.exec_root,
                "path": list(test.path_in_suite), "suite_name": test.suite.config.name,
                "result": run_test(test, self.lit_config),
            })
        return answers


def main():
    # Configs may print; only answers may appear on the pipe.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    suite = None
    for line in sys.stdin:
        request = json.loads(line)
        kind = request["op"]
        if kind == "version":
            reply = lit.__versioninfo__[0]
        elif kind == "sub":
            reply = [sub(*case) for case in request["cases"]]
        elif kind == "boolean":
            reply = [boolean(*case) for case in request["cases"]]
        elif kind == "script":
            reply = [script(case) for case in request["cases"]]
        elif kind == "suite":
            suite = Suite(request["path"], request["only"])
            reply = len(suite.tests)
        elif kind == "keys":
            known = {}
            for test in suite.tests:
                for key, value in test.config.substitutions:
                    known.setdefault(key, str(value))
            reply = list(known.items())
        elif kind == "lines":
            reply = suite.lines(request["step"])
        elif kind == "take":
            reply = suite.take(request["start"], request["stop"], request["step"])
        else:
            raise ValueError(kind)
        out.write(json.dumps(reply) + "\n")
        out.flush()


main()
