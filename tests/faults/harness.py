"""What the fault tests share: a suite in a directory of its own, runs of the real binary, and a look at what is left.

This process adopts whatever a run leaves behind (it is a "subreaper"), so that no process can hide. Tests wait by reading
FIFOs and by waitpid, which end when the thing waited for happens; what has no such end is looked at until it is so. An
alarm ends a test that waits in vain.
"""

import ctypes
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.join(REPOSITORY, "target")
HOTSTART = os.path.abspath(os.environ.get("HOTSTART_BINARY") or os.path.join(TARGET, "release", "hotstart"))
PYTHON = os.environ.get("HOTSTART_LIT_PYTHON") or os.path.join(REPOSITORY, ".venv", "bin", "python")
# Whoever runs these tests in the background of a script ignores some signals, and a runner does not stop by what it ignores.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(_number, signal.SIG_DFL)

# Seconds after which a test has waited in vain.
PATIENCE = 40
MODES = ["--start=cold", "--start=fork", "--start=rewind"]
WARM = MODES[1:]
CONFIG = """
import lit.formats
config.name = 'faults'
config.suffixes = ['.test']
config.test_format = lit.formats.ShTest(False)
config.environment['TMPDIR'] = config.environment.get('TMPDIR', '/tmp')
config.substitutions.append(('%tool', {tool!r}))
"""

_built = {}


def open_to_all(path):
    """Whether other users can get to a file."""
    path = os.path.dirname(os.path.realpath(path))
    while path != "/" and os.stat(path).st_mode & 0o001:
        path = os.path.dirname(path)
    return path == "/"


def python_for_all():
    """A Python with lit that other users can start, as the settings for hotstart; None if there is none."""
    where = "import lit, os; print(os.path.dirname(os.path.dirname(lit.__file__)))"
    package = subprocess.run([PYTHON, "-c", where], capture_output=True, text=True).stdout.strip()
    for python in (PYTHON, shutil.which("python3", path="/usr/bin:/bin")):
        if python and open_to_all(python) and open_to_all(package) and open_to_all(HOTSTART):
            return {"HOTSTART_LIT_PYTHON": python, "PYTHONPATH": package}
    return None



def built(source, *options):
    """Compiles a C file of this directory, once for all tests."""
    if not _built:
        _built["dir"] = tempfile.TemporaryDirectory(prefix="hotstart-faults-tools-")
    key = (source, options)
    if key not in _built:
        out = os.path.join(_built["dir"].name, os.path.splitext(source)[0])
        subprocess.run(["cc", "-O1", "-w", "-o", out, os.path.join(HERE, source), *options, "-lpthread", "-ldl"], check=True)
        _built[key] = out
    return _built[key]


def adopt():
    """Lets this process be the parent of whatever is orphaned below it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(36, 1, 0, 0, 0) != 0:  # PR_SET_CHILD_SUBREAPER
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def children(pid):
    """The children of a process, by the kernel's account."""
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += [int(child) for child in file.read().split()]
    except OSError:
        pass
    return found


def descendants(pid):
    found = children(pid)
    for child in list(found):
        found += descendants(child)
    return found


def read(path):
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def role(pid):
    """What a process is to hotstart: zygote, worker, guard, helper, or tool."""
    maps = read(f"/proc/{pid}/maps")
    words = read(f"/proc/{pid}/cmdline").split("\0")
    if "__hotstart-guard" in words:
        return "guard"
    if "hotstart-runtime" in maps and "hotstart-slots" in maps:
        return "zygote"
    if "hotstart-runtime" in maps and "hotstart-page" in maps:
        return "worker"
    if os.path.basename(words[0]).startswith("python"):
        return "helper"
    return "tool"


def of_role(runner, wanted):
    return [pid for pid in descendants(runner) if role(pid) == wanted]


def limited(limit, value, user=None):
    """To be run before exec: sets a limit, and becomes another user."""

    def prepare():
        resource.setrlimit(limit, (value, value))
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)

    return prepare


class Run:
    """A run that has ended."""

    def __init__(self, code, out, err, results):
        self.code, self.out, self.err, self.results = code, out, err, results

    def __repr__(self):
        return f"code {self.code}\n--- out\n{self.out}\n--- err\n{self.err}"


class Faults(unittest.TestCase):
    """A test with a suite of its own, that ends with nothing left of hotstart."""

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(HOTSTART):
            raise RuntimeError(f"{HOTSTART} is missing: run `make build`, or set HOTSTART_BINARY")
        adopt()

    def setUp(self):
        self.maxDiff = 4000
        self.dir = tempfile.mkdtemp(prefix="hotstart-faults-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        os.chmod(self.dir, 0o755)
        self.tool = built("tool.c")
        self.tmp = self.path("tmp")
        os.mkdir(self.tmp)
        self.file("suite/lit.cfg.py", CONFIG.format(tool=self.tool))
        signal.signal(signal.SIGALRM, self.waited_in_vain)
        signal.alarm(PATIENCE)
        self.addCleanup(signal.alarm, 0)

    def waited_in_vain(self, *_):
        left = {pid: read(f"/proc/{pid}/cmdline").replace("\0", " ") for pid in descendants(os.getpid())}
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.fail(f"nothing happened for {PATIENCE} s; processes: {left}")

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def file(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(content)
        return path

    def shtest(self, name, *lines):
        self.file(f"suite/{name}.test", "".join(f"RUN: {line}\n" for line in lines))

    def environment(self, **more):
        env = {key: value for key, value in os.environ.items() if not key.startswith(("LIT_", "HOTSTART_", "FILECHECK_"))}
        return {**env, "HOTSTART_LIT_PYTHON": PYTHON, "TMPDIR": self.tmp, "PYTHONDONTWRITEBYTECODE": "1", **more}

    def start(self, *options, suite="suite", wrapper=(), env=None, **popen):
        """Starts `hotstart lit` on the suite."""
        command = [*wrapper, HOTSTART, "lit", "-j4", "--order=lexical", *options, self.path(suite)]
        popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        return subprocess.Popen(command, cwd=self.dir, env=self.environment(**(env or {})), text=True, errors="replace",
                                stdin=subprocess.DEVNULL, **popen)

    def ended(self, process, results=None):
        out, err = process.communicate()
        return Run(process.returncode, out or "", err or "", self.results(results) if results else None)

    def run_suite(self, *options, **more):
        """Runs the suite; the verdicts are read from `-o`."""
        results = self.path("results.json")
        if os.path.exists(results):
            os.unlink(results)
        return self.ended(self.start("-o", results, *options, **more), results)

    def run_lit(self, *options, **more):
        """Runs lit itself."""
        results = self.path("lit.json")
        command = [PYTHON, "-c", "from lit.main import main; main()", "-j4", "--order=lexical", "-o", results, *options, self.path("suite")]
        done = subprocess.run(command, cwd=self.dir, env=self.environment(), capture_output=True, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, **more)
        return Run(done.returncode, done.stdout, done.stderr, self.results(results))

    def results(self, path):
        """Code and output of each test, or None if the file is not whole."""
        try:
            tests = json.loads(read(path))["tests"]
        except (ValueError, KeyError):
            return None
        return {test["name"].split(" :: ")[1]: (test["code"], test["output"]) for test in tests}

    def codes(self, run):
        self.assertIsNotNone(run.results, run)
        return {name: code for name, (code, _) in run.results.items()}

    def await_nobody(self):
        """Waits for the end of every process below this one."""
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def await_that(self, what, holds):
        """For what has nothing to wait on."""
        until = time.monotonic() + PATIENCE / 2
        while not (found := holds()):
            if time.monotonic() > until:
                self.fail(f"{what} did not come")
            os.sched_yield()
        return found

    def check_nothing_left(self):
        self.await_nobody()
        left = os.listdir(self.tmp)
        for name in left:
            shutil.rmtree(os.path.join(self.tmp, name))
        left += [name for name in os.listdir("/dev/shm") if "hotstart" in name]
        self.assertEqual(left, [])

    def check_sane(self, run):
        """Whatever happened, hotstart did not panic, nor report a fault of its own."""
        for text in ("panicked at", "RUST_BACKTRACE", "internal error"):
            self.assertNotIn(text, run.err, run)

    # A tool that waits: `%tool once DIR`.

    def gate(self, name="gate"):
        gate = self.path(name)
        os.mkdir(gate)
        os.chmod(gate, 0o777)
        for fifo in ("begun", "gate"):
            os.mkfifo(os.path.join(gate, fifo))
            os.chmod(os.path.join(gate, fifo), 0o777)
        return gate

    def await_begun(self, gate):
        """Waits until the tool runs; its number."""
        with open(os.path.join(gate, "begun")) as file:
            return int(file.read())

    def open_gate(self, gate):
        with open(os.path.join(gate, "gate"), "w"):
            pass

    def runs(self, gate):
        return len(read(os.path.join(gate, "runs")).split())


def seeded(name):
    """Random numbers; the seed is printed, and HOTSTART_FAULTS_SEED sets it."""
    seed = int(os.environ.get("HOTSTART_FAULTS_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"{name}: HOTSTART_FAULTS_SEED={seed}", flush=True)
    return random.Random(seed)
