"""Sources, builds and their costs for bench/build.

CPU time is that of the build's own processes by wait4, and with hotstart also that of all processes in the server's
session at the end: server, templates and workers with what they have waited for.
"""

import dataclasses
import filecmp
import glob
import os
import resource
import shutil
import signal
import subprocess
import time

import llvm_tree
from sidebyside import SetupError

TICK = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass(frozen=True)
class Project:
    """A source package, and how it is configured and built; `{...}` are filled in by `command`."""

    name: str
    configure: tuple
    build: tuple


CMAKE = (
    "cmake", "-S", "{source}", "-B", ".", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=", "-DBUILD_TESTING=OFF",
    "-DCMAKE_C_COMPILER_LAUNCHER={launcher}", "-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}",
    "-DCMAKE_C_COMPILER={cc}", "-DCMAKE_EXE_LINKER_FLAGS=--ld-path={ld}", "-DCMAKE_SHARED_LINKER_FLAGS=--ld-path={ld}",
)  # fmt: skip
CURL_WITHOUT = ("CURL_ENABLE_SSL", "CURL_ZLIB", "USE_LIBIDN2", "USE_NGHTTP2", "CURL_USE_LIBSSH2", "CURL_USE_LIBPSL",
                "CURL_BROTLI", "CURL_ZSTD", "ENABLE_MANUAL")  # fmt: skip
PROJECTS = {
    project.name: project
    for project in (
        Project(
            "curl",
            (*CMAKE, "-DCMAKE_C_FLAGS={level}", *(f"-D{name}=OFF" for name in CURL_WITHOUT)),
            ("ninja", "-j{jobs}"),
        ),
        Project(
            "musl",
            ("{source}/configure", "CC={cc}", "CFLAGS={level}", "LDFLAGS=--ld-path={ld}", "--prefix=/nowhere"),
            ("make", "-s", "-j{jobs}"),
        ),
        Project(
            "abseil",
            (*CMAKE, "-DCMAKE_CXX_COMPILER={cxx}", "-DCMAKE_CXX_FLAGS={level}", "-DCMAKE_CXX_STANDARD=17"),
            ("ninja", "-j{jobs}"),
        ),
    )
}


class Setup:
    """Where everything is. With `is_cached`, compilers are run by ccache with an empty cache, and ccache runs the client."""

    def __init__(self, directory, hotstart, llvm, jobs, repository, is_cached=False):
        self.directory, self.hotstart, self.jobs, self.is_cached = directory, hotstart, jobs, is_cached
        self.llvm = llvm or llvm_tree_bin(repository)
        self.links, self.server = os.path.join(directory, "links"), os.path.join(directory, "server")
        os.makedirs(directory, exist_ok=True)
        tools = ["clang", "clang++", "ld.lld"]
        done = subprocess.run([hotstart, "exec", "--install", self.links, *tools], stdout=subprocess.DEVNULL)
        if done.returncode:
            raise SetupError("hotstart exec --install failed")

    def tool(self, kind, name):
        is_link = kind == "hot" and not self.is_cached
        return os.path.join(self.links if is_link else self.llvm, name)

    def environment(self, kind):
        path = [self.llvm, os.environ.get("PATH", "")]
        if kind == "hot":
            path.insert(0, self.links)
        # The same variables for both, so that what records its environment records the same.
        own = {"HOTSTART_EXEC_DIR": self.server}
        if self.is_cached:
            own |= ccache_variables(os.path.join(self.directory, "ccache"), os.path.join(self.links, "hotstart-exec"), kind == "hot")
        return {**os.environ, "PATH": ":".join(path), **own}

    def ask(self, question):
        command = [self.hotstart, "server", question]
        done = subprocess.run(command, env=self.environment("hot"), stdout=subprocess.PIPE, text=True)
        return done.stdout if done.returncode == 0 else ""


def ccache_variables(place, client, is_hot):
    """Settings of ccache: its cache, and the client before each preprocessor and compiler that it runs."""
    prefix = client if is_hot else ""
    return {"CCACHE_DIR": place, "CCACHE_PREFIX": prefix, "CCACHE_PREFIX_CPP": prefix}


def llvm_tree_bin(repository):
    """The directory of tools that the repository's tests use."""
    script = os.path.join(repository, "tools/llvm-bin")
    done = subprocess.run([script], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SetupError("no LLVM tools; name their directory with --llvm")
    return done.stdout.strip()


def fetch(project, setup):
    """Unpacks the upstream archive of the distribution's source package, once."""
    source = os.path.join(setup.directory, "src", project.name)
    if os.path.isdir(source):
        return
    download = os.path.join(setup.directory, "download", project.name)
    os.makedirs(download, exist_ok=True)
    apt = llvm_tree.private_apt(os.path.join(setup.directory, "apt"))
    print(f"build: downloading {project.name}", flush=True)
    llvm_tree.run(["apt-get", *apt, "-q", "update"], download, check=False)
    llvm_tree.run(["apt-get", *apt, "-q", "--download-only", "source", project.name], download)
    archives = [path for path in glob.glob(f"{download}/*.orig.tar.*") if not path.endswith(".asc")]
    if len(archives) != 1:
        raise SetupError(f"{len(archives)} .orig.tar files in {download} instead of one; remove it and try again")
    partial = source + ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    os.makedirs(partial)
    llvm_tree.run(["tar", "-C", partial, "--strip-components=1", "-xf", archives[0]], partial)
    os.rename(partial, source)


def command(words, project, level, kind, setup):
    """The words with their places filled in."""
    values = {
        "source": os.path.join(setup.directory, "src", project.name), "level": level, "jobs": setup.jobs,
        "launcher": "ccache" if setup.is_cached else "",
        "cc": setup.tool(kind, "clang"), "cxx": setup.tool(kind, "clang++"), "ld": setup.tool(kind, "ld.lld"),
    }  # fmt: skip
    return [word.format(**values) for word in words]


def build(project, level, kind, setup):
    """One build from nothing; its costs, and how the server started things."""
    setup.ask("stop")
    # Both kinds in the same place, as paths get into object files.
    place = os.path.join(setup.directory, "build", project.name)
    for old in (place, os.path.join(setup.directory, "ccache")):
        shutil.rmtree(old, ignore_errors=True)
    os.makedirs(place)
    costs = {"kind": kind}
    before = (0, 0)
    for step, words in (("configure", project.configure), ("build", project.build)):
        costs[step] = measured(command(words, project, level, kind, setup), place, setup, kind)
        status = setup.ask("status")
        now = starts(status)
        costs[step]["warm"], costs[step]["cold"] = (late - early for late, early in zip(now, before))
        before = now
    costs["status"] = status
    costs["objects"] = len(objects(place))
    setup.ask("stop")
    kept = os.path.join(setup.directory, "built", kind, project.name)
    shutil.rmtree(kept, ignore_errors=True)
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    os.rename(place, kept)
    return costs


def measured(words, place, setup, kind):
    """Runs a step; wall and CPU seconds."""
    log = os.path.join(setup.directory, "log")
    begun, used, served = time.monotonic(), children(), server_time(setup)
    with open(log, "wb") as output:
        done = subprocess.run(
            words, cwd=place, env=setup.environment(kind), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, preexec_fn=default_signals,
        )  # fmt: skip
    wall = time.monotonic() - begun
    if done.returncode:
        with open(log, errors="replace") as text:
            raise SetupError(f"`{' '.join(words)}` failed; the end of {log}:\n{''.join(text.readlines()[-20:])}")
    return {"wall": wall, "cpu": children() - used + max(server_time(setup) - served, 0)}


def default_signals():
    """Not as this Python's caller may have set them: the first client starts the server with its own."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def starts(status):
    """Counts of warm and cold starts in what `hotstart server status` prints."""
    for line in status.splitlines():
        if line.startswith("started warm "):
            words = line.replace(",", "").split()
            return int(words[2]), int(words[-1])
    return 0, 0


def server_time(setup):
    """CPU seconds of the processes in the server's session; 0 if there is no server."""
    status = setup.ask("status")
    if not status.startswith("server "):
        return 0.0
    server = status.split()[1]
    found = {path.split("/")[2]: fields for path in glob.glob("/proc/[0-9]*/stat") if (fields := stat_fields(path))}
    session = found[server][SESSION] if server in found else server
    times = (fields[UTIME : CSTIME + 1] for fields in found.values() if fields[SESSION] == session)
    return sum(int(ticks) for four in times for ticks in four) / TICK


# Numbers of proc(5), less the three fields before: pid and name, and as it counts from one.
SESSION, UTIME, CSTIME = 6 - 3, 14 - 3, 17 - 3


def stat_fields(path):
    """The fields behind the name; None if the process is gone."""
    try:
        with open(path) as stat:
            return stat.read().rsplit(") ", 1)[1].split()
    except OSError:
        return None


def objects(base):
    """Object files below a directory, by their relative names."""
    paths = (os.path.join(folder, name) for folder, _, names in os.walk(base) for name in names)
    # What configuring tried out is gone, or has a random name.
    wanted = (path for path in paths if path.endswith((".o", ".lo")) and "CMakeFiles/CMake" not in path)
    return {os.path.relpath(path, base): path for path in wanted}


def differing(setup, project):
    """Object files of the last two builds that are not the same, or only in one."""
    built = os.path.join(setup.directory, "built")
    found = {kind: objects(os.path.join(built, kind, project.name)) for kind in ("cold", "hot")}
    if not found["cold"]:
        raise SetupError(f"{project.name} has no object files")
    names = found["cold"].keys() | found["hot"].keys()
    return sorted(
        name for name in names
        if name not in found["cold"] or name not in found["hot"]
        or not filecmp.cmp(found["cold"][name], found["hot"][name], shallow=False)
    )  # fmt: skip
