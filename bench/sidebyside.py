"""Runs lit and hotstart interleaved on the same tests, compares every verdict, and tabulates what they cost.

Shared by bench/llvm-suite, bench/runner-cost and demo/run, so that all of them mean the same by a figure:

* wall: from start to exit of the runner, by the monotonic clock.
* user, system: usage of every process of the run. This process is a subreaper, as a runner need not wait for all.
* peak: VmHWM of the runner's own main process, read from /proc every 20 ms until it ends; its workers and
  the tools are not in it (wait4's ru_maxrss is of no use here: it is the largest of all descendants).

Knows nothing of suites: what to run and where is the caller's business.
"""

import collections
import ctypes
import dataclasses
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time

LABELS = {
    "UNSUPPORTED": "Unsupported", "PASS": "Passed", "FLAKYPASS": "Passed With Retry", "XFAIL": "Expectedly Failed",
    "UNRESOLVED": "Unresolved", "TIMEOUT": "Timed Out", "FAIL": "Failed", "XPASS": "Unexpectedly Passed",
}  # fmt: skip
FAILING = {"UNRESOLVED", "TIMEOUT", "FAIL", "XPASS"}


PR_SET_CHILD_SUBREAPER = 36


class SetupError(Exception):
    """Something outside the comparison is wrong: said in one line, exit status 2."""


@dataclasses.dataclass
class Runner:
    """A command that takes lit's options: `argv` comes before them."""

    name: str
    argv: list
    environment: dict


@dataclasses.dataclass
class Run:
    """One run of a runner: what it cost and each test's result codes (several if the test is there twice)."""

    name: str
    status: int
    wall: float
    user: float
    system: float
    peak_kib: int
    verdicts: dict

    @property
    def cpu(self):
        return self.user + self.system


def lit_runner(lit):
    """The reference: `lit` is the path of lit's script, in a virtual environment or in a source tree."""
    argv = [sys.executable, lit] if lit.endswith(".py") else [lit]
    return Runner("lit", argv, dict(os.environ))


def hotstart_runner(hotstart, lit_python, arguments=()):
    """hotstart, with the Python whose lit package evaluates the configs. A lit can be given in its place."""
    environment = dict(os.environ, HOTSTART_LIT_PYTHON=lit_python)
    subcommand = [] if os.path.basename(hotstart).startswith("lit") else ["lit"]
    return Runner("hotstart", [hotstart, *subcommand, *arguments], environment)


class PeakSampler(threading.Thread):
    """Follows VmHWM of one process until stopped; it only ever grows, so the last value read is the peak."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.path = f"/proc/{pid}/status"
        self.kib = 0
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(0.02):
            try:
                with open(self.path) as status:
                    found = [line for line in status if line.startswith("VmHWM:")]
            except OSError:
                return
            if found:
                self.kib = int(found[0].split()[1])


def pair(lit, hotstart, cache):
    """lit and hotstart, which keeps what it learns in the directory `cache` only."""
    for path in (lit, hotstart):
        if not os.path.exists(path):
            raise SetupError(f"no {path}; run `make build venv`")
    runner = hotstart_runner(os.path.abspath(hotstart), os.path.join(os.path.dirname(lit), "python"))
    runner.environment["HOTSTART_CACHE_DIR"] = cache
    return lit_runner(lit), runner


def compare(runners, rounds, arguments, directory):
    """Runs both in turns, `rounds` times each, and says how each run went. Their logs go to `directory`."""
    comparison = Comparison()
    for number, runner in interleaved(runners, rounds):
        comparison.add(run_once(runner, arguments, directory, f"{runner.name}-{number}"))
        last = comparison.runs[runner.name][-1]
        print(f"round {number + 1}: {runner.name:<9}{last.wall:9.2f} s wall {last.cpu:9.2f} s CPU", flush=True)
    return comparison


def usage_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime, usage.ru_stime


def wait_for_all():
    """Waits for every process that a run has left."""
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def run_once(runner, arguments, directory, label):
    """Runs `runner` with `arguments`, keeping LABEL.json and LABEL.log in `directory`."""
    report = os.path.join(directory, label + ".json")
    log = os.path.join(directory, label + ".log")
    if os.path.exists(report):
        os.remove(report)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = usage_of_children()
    with open(log, "wb") as output:
        start = time.monotonic()
        process = subprocess.Popen(
            [*runner.argv, "-o", report, *arguments],
            env=runner.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        sampler = PeakSampler(process.pid)
        sampler.start()
        _, wait_status = os.waitpid(process.pid, 0)
        wall = time.monotonic() - start
        sampler.ended.set()
        sampler.join()
    wait_for_all()
    user, system = (after - before for after, before in zip(usage_of_children(), before))
    process.returncode = status = os.waitstatus_to_exitcode(wait_status)
    if status not in (0, 1) or not os.path.exists(report):
        with open(log, errors="replace") as text:
            tail = "".join(text.readlines()[-20:])
        raise SetupError(f"{runner.name} ended with status {status}; the end of {log}:\n{tail}")
    return Run(
        runner.name, status, wall, user, system, sampler.kib, read_verdicts(report)
    )  # fmt: skip


def read_verdicts(report):
    """Name of each test in a lit JSON report → its result codes, sorted."""
    with open(report) as text:
        tests = json.load(text)["tests"]
    codes = collections.defaultdict(list)
    for test in tests:
        codes[test["name"]].append(test["code"])
    return {name: tuple(sorted(found)) for name, found in codes.items()}


def differing(reference, other):
    """Lines `NAME: CODE here, CODE there` for each test whose result codes are not the same."""
    lines = []
    for name in sorted(reference.keys() | other.keys()):
        left, right = reference.get(name, ("absent",)), other.get(name, ("absent",))
        if left != right:
            lines.append(f"{name}: {'+'.join(left)} by lit, {'+'.join(right)} by hotstart")
    return lines


def counts(verdicts):
    """How many tests have which result code."""
    return collections.Counter(code for codes in verdicts.values() for code in codes)


def interleaved(runners, rounds):
    """A B, B A, A B, …: each round has both, and neither always comes first."""
    for number in range(rounds):
        for runner in runners if number % 2 == 0 else reversed(runners):
            yield number, runner


class Comparison:
    """All runs so far of a reference and of hotstart, or of hotstart and verdicts that were kept."""

    def __init__(self, kept_reference=None):
        self.runs = {"lit": [], "hotstart": []}
        self.kept_reference = kept_reference

    def add(self, run):
        """Takes a run in. A runner that disagrees with itself is noted by `differing` of its later runs."""
        self.runs[run.name].append(run)

    def reference(self):
        """The verdicts that hotstart's are compared with."""
        return self.kept_reference if self.kept_reference is not None else self.runs["lit"][0].verdicts

    def differing(self):
        """The tests that any run judged otherwise than the reference did, each once, in order."""
        found = {}
        for run in self.runs["hotstart"]:
            found.update(dict.fromkeys(differing(self.reference(), run.verdicts)))
        for run in self.runs["lit"][1:]:
            unsteady = differing(self.reference(), run.verdicts)
            found.update(dict.fromkeys(line.replace("by hotstart", "by lit another time") for line in unsteady))
        return sorted(found)

    def medians(self):
        """Median wall, user and system seconds and the largest peak in KiB, of each runner that ran."""
        result = {}
        for name, runs in self.runs.items():
            if runs:
                result[name] = {}
                for field in ("wall", "cpu", "user", "system"):
                    result[name][field] = statistics.median(getattr(run, field) for run in runs)
                result[name]["peak_kib"] = max(run.peak_kib for run in runs)
        return result

    def summary(self):
        """Everything as plain data, for a JSON file."""
        medians = self.medians()
        data = {
            "tests": len(self.reference()),
            "counts": {"lit": counts(self.reference()), "hotstart": counts(self.runs["hotstart"][0].verdicts)},
            "differing": self.differing(),
            "medians": medians,
            "runs": [
                {"runner": name, "wall": run.wall, "user": run.user, "system": run.system, "peak_kib": run.peak_kib}
                for name, runs in self.runs.items() for run in runs
            ],
        }  # fmt: skip
        if "lit" in medians:
            data["ratio"] = {field: ratio(medians, field) for field in ("wall", "cpu", "user", "system", "peak_kib")}
        return data

    def verdict_table(self):
        """Verdict counts of both, then the tests that differ, as text."""
        left, right = counts(self.reference()), counts(self.runs["hotstart"][0].verdicts)
        lines = [row("", "lit", "hotstart"), row("tests", sum(left.values()), sum(right.values()))]
        codes = [code for code in LABELS if left[code] or right[code]]
        codes += sorted((left.keys() | right.keys()) - LABELS.keys())
        lines += [row("  " + LABELS.get(code, code), left[code], right[code]) for code in codes]
        found = self.differing()
        lines.append(row("differing", "", len(found)))
        return "\n".join(lines + ["  " + line for line in found])

    def cost_table(self):
        """Medians of both runners and how many times less hotstart needs, as text."""
        medians = self.medians()
        lines = [row("", "lit", "hotstart", "ratio")]
        for label, field, scale, digits in COSTS:
            cells = [f"{medians[name][field] / scale:.{digits}f}" if name in medians else "" for name in self.runs]
            lines.append(row(label, *cells, f"{ratio(medians, field):.2f}" if "lit" in medians else ""))
        rounds = max(len(runs) for runs in self.runs.values())
        return "\n".join(lines) + f"\n(medians of {rounds}; memory: largest VmHWM of the runner's main process)"


# Label, field, what to divide it by, decimals.
COSTS = [
    ("wall s", "wall", 1, 2), ("CPU s", "cpu", 1, 2), ("user s", "user", 1, 2), ("system s", "system", 1, 2),
    ("memory MB", "peak_kib", 1024, 1),
]  # fmt: skip


def ratio(medians, field):
    """lit's figure divided by hotstart's."""
    return medians["lit"][field] / max(medians["hotstart"][field], 1e-9)


def row(label, *cells):
    """One line of a table."""
    return f"{label:<22}" + "".join(f"{cell:>12}" for cell in cells)
