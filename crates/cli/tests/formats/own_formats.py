"""Test formats of a project's own, in the shapes that there are; imported by the suite's config."""

import os

import lit.formats
import lit.Test
import lit.TestRunner
import lit.util
from lit.TestRunner import executeScriptInternal, parseIntegratedTestScript

ODD = lit.Test.ResultCode("ODD", "Odd Ones", True)


class Own(lit.formats.FileBasedTest):
    """One method per kind of test, by the first part of its name."""

    def execute(self, test, lit_config):
        return getattr(self, test.path_in_suite[-1].split(".")[0])(test, lit_config)

    def tuple(self, test, lit_config):
        return lit.Test.PASS, "said"

    def nothing(self, test, lit_config):
        return None

    def raises(self, test, lit_config):
        return {}["x"]

    def odd(self, test, lit_config):
        return ODD, "odd"

    def leaves(self, test, lit_config):
        lit_config.note("a note of the test")
        return lit_config.fatal("no more")

    def metrics(self, test, lit_config):
        result = lit.Test.Result(lit.Test.PASS, "outer")
        for name, value in (("n", 3), ("r", 0.5), ("j", {"b": [1], "a": None})):
            result.addMetric(name, lit.Test.toMetricValue(value))
        micro = lit.Test.Result(lit.Test.FAIL, "inner", 0.5)
        micro.addMetric("k", lit.Test.toMetricValue(4))
        result.addMicroResult("small", micro)
        return result

    def command(self, test, lit_config):
        shell = ["sh", "-c", "echo $X; echo e >&2; exit 2"]
        apart = lit.util.executeCommand(shell, env={"X": "y", "PATH": "/usr/bin:/bin"})
        together = lit.util.executeCommand(["sh", "-c", "pwd; cat"], cwd="/", input="given", redirect_stderr=True)
        try:
            lit.util.executeCommand(["sh", "-c", "echo begun; exec sleep 100"], timeout=1)
        except lit.util.ExecuteCommandTimeoutException as late:
            return lit.Test.FAIL, repr((apart, together, late.msg, late.out, late.exitCode))

    def absent(self, test, lit_config):
        return lit.util.executeCommand(["/nonesuch/program"])

    def scratch(self, test, lit_config):
        places = [os.environ[name] for name in ("TMPDIR", "TEMP")] + [test.config.environment["TMP"]]
        return lit.Test.PASS if len(set(places)) == 1 and os.path.isdir(places[0]) else lit.Test.FAIL, ""

    def analyze(self, test, lit_config):
        """As clang's: keywords are parsed once, then scripts run with one more substitution each."""
        parsed = parseIntegratedTestScript(test)
        if isinstance(parsed, lit.Test.Result):
            return parsed
        saved = list(test.config.substitutions)
        for word in ("one", "two"):
            test.config.substitutions = saved + [("%analyze", "echo %s %d" % (word, len(saved)))]
            for condition in (test.xfails, test.requires, test.unsupported):
                del condition[:]
            result = lit.TestRunner.executeShTest(test, lit_config, False)
            if result.code is not lit.Test.PASS:
                break
        # What is left here must not reach the next test.
        test.config.substitutions.append(("%left", "over"))
        return result

    def silent(self, test, lit_config):
        """As libc++'s: no trace, a script of its own making."""
        _, base = lit.TestRunner.getTempPaths(test)
        os.makedirs(os.path.dirname(base), exist_ok=True)
        script = ["%dbg(MADE UP) echo out", "sh -c 'echo err >&2; exit 4' | cat", "echo never"]
        directory = os.path.dirname(test.getExecPath())
        out, err, code, timeout = executeScriptInternal(test, lit_config, base, script, directory, debug=False)[:4]
        return lit.Test.FAIL, repr((out, err, code, timeout))


class Derived(lit.formats.GoogleTest):
    """Finds tests as its parent does, and runs them with a word of its own."""

    def execute(self, test, lit_config):
        test.config.environment["DERIVED"] = "1"
        return super().execute(test, lit_config)
