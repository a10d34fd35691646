"""Answers the runner's requests, one line of JSON each, until it closes its end.

An error in a config is an answer, never the end: lit stops there, the runner goes on with the other tests.
Bytes that are not UTF-8 travel as they are, by Python's own surrogate escapes.
"""

import contextlib
import copy
import gc
import json
import os
import sys

import litprobe


class Server:
    """The configs evaluated so far, each with the state in which the runner knows it."""

    def __init__(self, settings, ask=None, put=None):
        from litprobe.session import Session

        self.session = Session(settings)
        self.ask = ask
        self.put = put
        self.execution = None
        self.configs = []
        self.sent = []
        self.immutable = {}
        self.operations = {
            "suite": self.load_suite,
            "local": self.load_local,
            "tests": self.find_tests,
            "group": self.parallelism_group,
            "state": self.state,
            "begin": self.begin,
            "run": self.run,
            "update": self.update,
            "trace": self.tell_trace,
        }
        self.traced = None

    def answer(self, request):
        """The reply to one request."""
        try:
            reply = self.operations[request["op"]](request)
        except SystemExit as stop:
            reply = self.stopped(stop)
        except BaseException as error:
            reply = failed(error, request.get("path"))
        reply["diagnostics"] = self.session.take_diagnostics()
        return reply

    def load_suite(self, request):
        """Evaluates a suite's config, from defaults."""
        from lit.TestingConfig import TestingConfig

        # What lit's classes are is noted before a config can put others in their places.
        from litprobe.ahead import announced

        config = TestingConfig.fromdefaults(self.session.lit_config)
        with announced(config, self.put) if request.get("ahead") else contextlib.nullcontext():
            config.load_from_path(request["path"], self.session.lit_config)
        return self.enter(config, None)

    def load_local(self, request):
        """Evaluates a directory's config on a copy of the one above."""
        parent = request["parent"]
        config = self.copy_of(parent)
        config.load_from_path(request["path"], self.session.lit_config)
        return self.enter(config, self.sent[parent])

    def copy_of(self, parent):
        """A deep copy. Pairs of strings, which are most of a config, copy to themselves; the copier is told so,
        as it would take a millisecond to find out. `sent` keeps them alive, so their identities stay theirs."""
        immutable = self.immutable.get(parent)
        if immutable is None:
            pairs = self.sent[parent]["substitutions"]
            plain = (pair for pair in pairs if type(pair) is tuple and set(map(type, pair)) == {str})
            immutable = self.immutable[parent] = {id(pair): pair for pair in plain}
        return copy.deepcopy(self.configs[parent], dict(immutable))

    def enter(self, config, known):
        reply = {"id": len(self.configs)}
        if self.execution is not None:
            # The runner knows its values: the tests need the config itself.
            self.execution.forget()
            values = {"substitutions": list(config.substitutions)}
        else:
            from litprobe.describe import changes, snapshot

            values = snapshot(config, self.session.lit_config, known)
            reply["changes"] = changes(known, values)
        self.configs.append(config)
        self.sent.append(values)
        return reply

    def find_tests(self, request):
        """Lets a format written in Python find its tests, in a directory or for one path."""
        from litprobe import carry

        config, suite = self.configs[request["config"]], self.suite(request)
        path, lit_config = tuple(request["path"]), self.session.lit_config
        find = config.test_format.getTestsInDirectory if request["directory"] else config.test_format.getTestsForPath
        tests = list(find(suite, path, lit_config, config))
        reply = {"tests": [list(test.path_in_suite) for test in tests]}
        # Tests of a format derived from GoogleTest.
        details = [[place, test.file_path, test.gtest_json_file] for place, test in enumerate(tests) if test.file_path]
        if details:
            reply["details"] = details
        try:
            carried = carry.pack(tests, suite, config, lit_config)
        except carry.Uncarriable as refusal:
            return {"error": {"text": str(refusal), "file": None, "line": None}}
        return dict(reply, carried=carried) if carried else reply

    def parallelism_group(self, request):
        """Asks a config's function for the group of one test."""
        import lit.Test

        config = self.configs[request["config"]]
        test = lit.Test.Test(self.suite(request), tuple(request["path"]), config)
        group = config.parallelism_group(test)
        return {"group": None if group is None else str(group)}

    def suite(self, request):
        import lit.Test

        # Not by the constructor: it reads the file of test times, which is the runner's.
        suite = lit.Test.TestSuite.__new__(lit.Test.TestSuite)
        suite.name, suite.source_root, suite.exec_root = request["suite"]
        suite.config = self.configs[request["suite_config"]]
        suite.test_times = None
        return suite

    def state(self, request):
        """The state of `lit_config`, and what changed in configs since they were handed over: a local config
        can reach the suite's own, by `llvm_config` for one."""
        from litprobe.describe import changes, snapshot

        late = []
        for number, (config, known) in enumerate(zip(self.configs, self.sent)):
            values = snapshot(config, self.session.lit_config, known)
            differing = changes(known, values)
            if differing:
                self.sent[number] = values
                self.immutable.pop(number, None)
                late.append([number, differing])
        return {"state": self.session.state(request["bash"]), "late": late}

    def begin(self, request):
        """From now on tests are run, and their scripts by the runner."""
        from litprobe.execute import Execution

        self.execution = Execution(self.session, self.ask, request)
        return {"ready": True}

    def run(self, request):
        """Runs a test of a format written in Python."""
        return self.execution.run(request, self.suite(request), self.configs[request["config"]])

    def update(self, request):
        """Lets updaters change a test."""
        return self.execution.update(request, self.suite(request), self.configs[request["config"]])

    def end_part(self):
        """What was looked at since the last time belongs to one answer."""
        if self.traced:
            self.traced.part()

    def tell_trace(self, request):
        """What all answers so far depend on."""
        from litprobe import trace

        if not self.traced:
            return {"trace": {"why": "this Python is not known", "parts": []}}
        return trace.tell([self.session.lit_config, *self.configs])

    def stopped(self, stop):
        """A config called `lit_config.fatal`, or `sys.exit` with a value."""
        last = self.session.diagnostics[-1] if self.session.diagnostics else None
        if last and last["kind"] == "fatal":
            self.session.diagnostics.pop()
            return {"error": {"text": last["message"], "file": last["file"], "line": last["line"]}}
        code = stop.code
        if code is None or isinstance(code, int):
            return {"exit": {"status": code or 0, "text": None}}
        return {"exit": {"status": 1, "text": str(code)}}


def failed(error, path):
    """The reply to a request that raised an exception outside of lit's own handling."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == path), None)
    return {"error": {"text": traceback.format_exc(), "file": path if isinstance(path, str) else None, "line": line}}


def encode(value):
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def decode(line):
    return json.loads(line.decode("utf-8", "surrogateescape"), strict=False)


def hello():
    """Who answers; or why nobody can."""
    greeting = {"litprobe": litprobe.PROTOCOL, "python": list(sys.version_info[:3]), "executable": sys.executable}
    try:
        import lit

        greeting["package_dir"] = os.path.dirname(os.path.abspath(lit.__file__))
        greeting["lit_version"] = list(lit.__versioninfo__)[:3]
        greeting["lit_version_text"] = lit.__version__
    except Exception as error:
        greeting["missing"] = "%s: %s" % (type(error).__name__, error)
    return greeting


def serve(requests, replies):
    """Greets, takes the settings, and answers until the requests end."""

    traced = None

    def put(value):
        line = encode(value) + b"\n"
        replies.write(line)
        replies.flush()
        if traced is not None and traced.trace is not None:
            traced.trace.own += len(line)

    def send(value):
        # A config's own prints come before what it leads to.
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        put(value)

    def ask(call):
        send({"call": call})
        line = requests.readline()
        if not line:
            # The runner is gone; a test format must not catch this.
            os._exit(1)
        return decode(line)

    settings = decode(requests.readline())
    if settings.get("trace"):
        from litprobe import trace as traced

        traced.start()
    if settings["lit_package"]:
        sys.path.insert(0, settings["lit_package"])
    sys.argv = list(settings["argv"])
    greeting = hello()
    send(greeting)
    if "missing" in greeting:
        return
    try:
        server = Server(settings, ask, put)
    except BaseException as error:
        send(failed(error, None))
        return
    freeze()
    gc.enable()
    send({"ready": True, "diagnostics": server.session.take_diagnostics()})
    server.traced = traced.trace if traced else None
    server.end_part()
    for line in requests:
        reply = server.answer(decode(line))
        server.end_part()
        send(reply)
    # Python's end looks through all objects for cycles, several times: 11 of its 17 ms, for which the runner waits.
    freeze()


def freeze():
    """Keeps what there is out of Python's search for cycles."""
    if hasattr(gc, "freeze"):
        gc.freeze()
