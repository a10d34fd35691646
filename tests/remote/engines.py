"""Engines of the Remote Execution API on loopback, for the tests beside this file.

Two engines are known: `justbuild execute` (version 2.0 of the API only, no workers of its own), and BuildGrid with buildbox-worker.
Both are programs of other distributions; they are looked for in directories that `fetch` fills, and started by the loader there. An
engine that is not there is reported with the reason. All that is started here is ended here, by its process number.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time

HOME = os.environ.get("HOTSTART_ENGINES", os.path.join(os.path.expanduser("~"), ".cache", "hotstart-engines"))


class Missing(Exception):
    """An engine is not installed."""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for_port(port, process, what):
    """Returns once somebody listens, however long that takes while the process lives."""
    while True:
        if process.poll() is not None:
            raise RuntimeError(f"{what} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            # Nothing tells us when a server listens.
            time.sleep(0.05)


def missing(what, part):
    """Says that something is not there, and why `fetch` could not get it."""
    try:
        with open(os.path.join(HOME, part + ".why")) as source:
            why = "tests/remote/fetch could not get it: " + source.read().strip()
    except OSError:
        why = "run tests/remote/fetch"
    return Missing(f"there is no {what}; {why}")


def program(tree, path):
    """The command of a program of another distribution: its own loader, libraries and file."""
    root = os.path.join(HOME, tree, "usr")
    loader, name = os.path.join(root, "lib64", "ld-linux-x86-64.so.2"), os.path.join(root, "bin", path)
    if not os.path.exists(name) or not os.path.exists(loader):
        raise missing(name, tree)
    return [loader, "--library-path", os.path.join(root, "lib", "x86_64-linux-gnu"), name]


class Engine:
    """What both engines have in common: processes and their end."""

    def __init__(self, directory):
        self.directory = directory
        self.processes = []
        os.makedirs(directory, exist_ok=True)

    def start(self, name, command, **options):
        log = open(os.path.join(self.directory, name + ".log"), "ab")
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                   start_new_session=True, **options)
        log.close()
        self.processes.append(process)
        return process

    def kill(self, process):
        """Ends a process with all that it has started, as a crash would."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        if process in self.processes:
            self.processes.remove(process)

    def close(self):
        for process in list(reversed(self.processes)):
            self.kill(process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class JustBuild(Engine):
    """`justbuild execute`, which stores, schedules and executes in one process."""

    name = "justbuild"

    def __init__(self, directory):
        super().__init__(directory)
        self.command = program("trixie", "justbuild")
        self.port = free_port()
        self.url = f"grpc://127.0.0.1:{self.port}/remote-execution"
        self.begin()

    def begin(self):
        """Starts the server, or starts it again."""
        root = os.path.join(self.directory, "root")
        self.server = self.start("server", [
            *self.command, "execute", "--compatible", "--local-build-root", root, "-i", "127.0.0.1", "-p", str(self.port), "--plain-log"])
        wait_for_port(self.port, self.server, "justbuild")

    def kill_server(self):
        self.kill(self.server)
        self.begin()


CONFIG = """
server:
  - !channel
    address: "127.0.0.1:{port}"
    insecure-mode: true
authorization:
  method: none
connections:
  - !sql-connection &sql
    connection-string: postgresql://{user}@/bgd?host={directory}/db
    pool-size: 5
    pool-timeout: 30
    max-overflow: 10
storages:
  - !disk-storage &cas
    path: {directory}/cas
caches:
  - !lru-action-cache &results
    storage: *cas
    max-cached-refs: 4096
    allow-updates: true
    cache-failed-actions: false
schedulers:
  - !sql-scheduler &scheduler
    sql: *sql
    storage: *cas
    action-cache: *results
    bot-session-keepalive-timeout: 10
    assigners:
      - !priority-age-assigner
        count: 1
        interval: 0.2
instances:
  - name: main
    services:
      - !action-cache
        cache: *results
      - !execution
        scheduler: *scheduler
        operation-stream-keepalive-timeout: 10
      - !cas
        storage: *cas
      - !bytestream
        storage: *cas
thread-pool-size: 100
"""


class BuildGrid(Engine):
    """BuildGrid with PostgreSQL, and workers that run actions without a sandbox of their own."""

    name = "BuildGrid"

    def __init__(self, directory, workers=2):
        super().__init__(directory)
        try:
            self.prepare(workers)
        except BaseException:
            self.close()
            raise

    def prepare(self, workers):
        directory = self.directory
        self.bgd = os.path.join(HOME, "buildgrid", "bin", "bgd")
        if not os.path.exists(self.bgd):
            raise missing(self.bgd, "buildgrid")
        self.worker_program = program("sid", "buildbox-worker")
        self.binaries = postgres()
        self.port = free_port()
        self.url = f"grpc://127.0.0.1:{self.port}/main"
        self.config = os.path.join(directory, "server.yml")
        self.runner = self.write_runner()
        self.begin_database()
        with open(self.config, "w") as to:
            to.write(CONFIG.format(port=self.port, directory=directory, user="postgres"))
        subprocess.run([self.bgd, "migrate", "apply", f"postgresql://postgres@/bgd?host={directory}/db"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.begin()
        self.storage = self.begin_storage()
        self.workers = [self.begin_worker(number) for number in range(workers)]

    def write_runner(self):
        """A script in the place of buildbox-run-hosttools, which has to be started by its own loader as well."""
        path = os.path.join(self.directory, "runner")
        with open(path, "w") as to:
            to.write("#!/bin/sh\nexec " + " ".join(program("sid", "buildbox-run-hosttools")) + ' "$@"\n')
        os.chmod(path, 0o755)
        return path

    def begin_database(self):
        data, sockets = os.path.join(self.directory, "data"), os.path.join(self.directory, "db")
        os.makedirs(sockets, exist_ok=True)
        as_user = []
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root.
            as_user = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
            os.makedirs(data, exist_ok=True)
            for path in (data, sockets):
                shutil.chown(path, "nobody", "nogroup")
            for path in parents(self.directory):
                os.chmod(path, os.stat(path).st_mode | 0o011)
        initdb = [*as_user, os.path.join(self.binaries, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd="/")
        settings = ["-c", "listen_addresses=", "-c", "fsync=off", "-k", sockets]
        server = self.start("database", [*as_user, os.path.join(self.binaries, "postgres"), "-D", data, *settings], cwd="/")
        create = [os.path.join(self.binaries, "createdb"), "-h", sockets, "-U", "postgres", "bgd"]
        while subprocess.run(create, stderr=subprocess.DEVNULL).returncode:
            if server.poll() is not None:
                raise RuntimeError(f"PostgreSQL ended with {server.returncode}")
            time.sleep(0.1)

    def begin(self):
        """Starts the server, or starts it again."""
        self.server = self.start("server", [self.bgd, "server", "start", self.config])
        wait_for_port(self.port, self.server, "BuildGrid")

    def begin_storage(self):
        """The storage of the workers' machine, which keeps inputs from action to action."""
        self.storage_port = free_port()
        server = f"http://127.0.0.1:{self.port}"
        storage = self.start("casd", [
            *program("sid", "buildbox-casd"), f"--remote={server}", "--instance=main", f"--bind=127.0.0.1:{self.storage_port}",
            "--log-level=warning", os.path.join(self.directory, "casd")])
        wait_for_port(self.storage_port, storage, "buildbox-casd")
        return storage

    def begin_worker(self, number):
        return self.start(f"worker{number}", [
            *self.worker_program, f"--buildbox-run={self.runner}", f"--bots-remote=http://127.0.0.1:{self.port}", "--bots-instance=main",
            f"--cas-remote=http://127.0.0.1:{self.storage_port}", "--runner-arg=--staging-mode=copy-or-link", "--max-wait-time=10",
            "--log-level=warning", f"worker{number}"])

    def kill_server(self):
        self.kill(self.server)
        self.begin()

    def kill_worker(self, number):
        self.kill(self.workers[number])
        self.workers[number] = self.begin_worker(number)


def parents(path):
    """A directory of ours and those above it that are ours."""
    while path not in ("/", "/tmp") and os.stat(path).st_uid == os.geteuid():
        yield path
        path = os.path.dirname(path)


def postgres():
    """The directory of PostgreSQL's programs."""
    places = [os.path.dirname(shutil.which("initdb") or "")]
    for versions in ("/usr/lib/postgresql", os.path.join(HOME, "postgresql", "usr/lib/postgresql")):
        if os.path.isdir(versions):
            places += [os.path.join(versions, version, "bin") for version in sorted(os.listdir(versions), reverse=True)]
    for place in places:
        if place and all(os.path.exists(os.path.join(place, name)) for name in ("initdb", "postgres", "createdb")):
            return os.path.realpath(place) if place.startswith("/usr/lib") else place
    raise missing("PostgreSQL (initdb, postgres, createdb)", "postgresql")


ENGINES = {"justbuild": JustBuild, "buildgrid": BuildGrid}

if __name__ == "__main__":
    # By hand: start an engine in a directory, print its address, end it with this process.
    name, directory = sys.argv[1:3]
    with ENGINES[name](os.path.abspath(directory)) as engine:
        print(engine.url, flush=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        signal.pause()
