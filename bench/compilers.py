"""Workloads of bench/compilers: sources, and the commands that build them.

A workload is built in an empty directory, which is the same for both kinds, as paths get into object files. Sources are the
distribution's source packages, fetched once, or generated.
"""

import dataclasses
import os
import re
import shutil
import subprocess
import types

import buildtree
from sidebyside import SetupError

CRATES = 60
UI_TESTS = 200
# Tests of rustc's that a plain `rustc FILE` runs, if their head says nothing else.
PASSES = re.compile(r"// (check|build|run)-pass")
SPECIAL = re.compile(r"// ?(aux-build|compile-flags|ignore|needs|only|revisions|force-host|rustc-env|pp-exact)|#!\[feature")
EDITION = re.compile(r"// ?edition: ?(\d+)")


@dataclasses.dataclass
class Setup:
    """Where everything is, and how it is run."""

    directory: str
    hotstart: str
    jobs: int

    def __post_init__(self):
        self.links, self.server = os.path.join(self.directory, "links"), os.path.join(self.directory, "server")
        os.makedirs(self.server, mode=0o700, exist_ok=True)
        done = subprocess.run([self.hotstart, "exec", "--install", self.links, "gcc", "cc"], stdout=subprocess.DEVNULL)
        if done.returncode:
            raise SetupError("hotstart exec --install failed")

    @property
    def client(self):
        return os.path.join(self.links, "hotstart-exec")

    @property
    def place(self):
        return os.path.join(self.directory, "build")

    def environment(self, hot):
        """The same variables for both, so that what records its environment records the same."""
        path = [self.links] if hot else []
        own = {"HOTSTART_EXEC_DIR": self.server, "HOTSTART_CACHE_DIR": os.path.join(self.directory, "cache")}
        return {**os.environ, **own, "PATH": ":".join([*path, os.environ.get("PATH", "")]), "CFLAGS": "-O0"}


def source(setup, package, part=""):
    """The unpacked sources of the distribution's package."""
    buildtree.fetch(types.SimpleNamespace(name=package), setup)
    return os.path.join(setup.directory, "src", package, part)


class Configured:
    """A program with a configure script, or a makefile alone, built with gcc."""

    outputs = (".o", ".lo")

    def __init__(self, package, *steps):
        self.package, self.steps = package, steps

    def prepare(self, setup, hot):
        shutil.copytree(source(setup, self.package), setup.place, symlinks=True)

    def commands(self, setup, hot):
        return [[word.format(jobs=setup.jobs) for word in step] for step in self.steps], {"CC": "gcc"}


MAKE = ("make", "-s", "-j{jobs}")
LUA = (*MAKE, "-C", "src", "linux", "CC=gcc -std=gnu99", "MYCFLAGS=-O0")


class Ccache:
    """lua by way of ccache with an empty cache, or with one that holds everything."""

    outputs = (".o",)

    def __init__(self, is_hit):
        self.is_hit = is_hit

    def prepare(self, setup, hot):
        if not shutil.which("ccache"):
            raise SetupError("no ccache; install it")
        shutil.copytree(source(setup, "lua5.4"), setup.place, symlinks=True)
        if self.is_hit:
            commands, own = self.commands(setup, hot)
            quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            subprocess.run(commands[0], cwd=setup.place, env={**setup.environment(hot), **own}, **quiet)
            subprocess.run(["make", "-C", "src", "clean"], cwd=setup.place, **quiet)

    def commands(self, setup, hot):
        own = buildtree.ccache_variables(os.path.join(setup.place, "ccache"), setup.client, hot)
        words = [word.replace("CC=gcc", "CC=ccache /usr/bin/gcc").format(jobs=setup.jobs) for word in LUA]
        return [words], own


def toolchain(program):
    """The path of rustc or cargo themselves: in PATH there may be rustup's proxy, which looks for them at each start."""
    found = subprocess.run(["rustc", "--print", "sysroot"], stdout=subprocess.PIPE, text=True)
    if found.returncode:
        raise SetupError("no rustc; install it")
    return os.path.join(found.stdout.strip(), "bin", program)


class RustUi:
    """Tests of rustc's own suite that a plain call compiles without a word."""

    outputs = (".rmeta",)

    def prepare(self, setup, hot):
        chosen = os.path.join(setup.directory, "ui-tests")
        if not os.path.exists(chosen):
            choose(setup, source(setup, "rustc", "src/test/ui"), chosen)
        os.makedirs(setup.place)
        with open(chosen) as lines, open(os.path.join(setup.place, "commands"), "w") as out:
            for number, line in enumerate(lines):
                edition, path = line.split()
                print(*options(number, edition, path), file=out)

    def commands(self, setup, hot):
        rustc = [setup.client, toolchain("rustc")] if hot else [toolchain("rustc")]
        return [["xargs", "-a", "commands", "-P", str(setup.jobs), "-L", "1", *rustc]], {}


def options(number, edition, path):
    return ["--emit=metadata", "--edition", edition, "-Awarnings", "--crate-name", f"t{number}", "-o", f"t{number}.rmeta", path]


def choose(setup, folder, chosen):
    """Writes the list of the first tests that compile, with their editions."""
    found = []
    for base, folders, names in os.walk(folder):
        folders.sort()
        for path in (os.path.join(base, name) for name in sorted(names) if name.endswith(".rs")):
            with open(path, errors="replace") as text:
                text = text.read()
            if not PASSES.search(text) or SPECIAL.search(text) or " " in path:
                continue
            edition = EDITION.search(text)
            words = options(0, edition.group(1) if edition else "2015", path)
            done = subprocess.run([toolchain("rustc"), *words], cwd="/tmp", capture_output=True)
            if done.returncode == 0 and not done.stdout + done.stderr:
                found.append(f"{words[2]} {path}\n")
            if len(found) == UI_TESTS:
                break
        if len(found) == UI_TESTS:
            break
    if len(found) < UI_TESTS:
        raise SetupError(f"{folder} has {len(found)} tests of that kind instead of {UI_TESTS}")
    with open(chosen, "w") as out:
        out.writelines(found)


class Cargo:
    """A workspace of small crates, each of which uses the one before it in its group of six."""

    outputs = (".rmeta",)

    def prepare(self, setup, hot):
        names = [f"crate{number}" for number in range(CRATES)]
        os.makedirs(setup.place)
        write(setup.place, "Cargo.toml", f"[workspace]\nresolver = \"2\"\nmembers = {names}\n".replace("'", '"'))
        for number, name in enumerate(names):
            uses = [names[number - 1]] if number % 6 else []
            manifest = f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'
            manifest += "".join(f'{other} = {{ path = "../{other}" }}\n' for other in uses)
            body = " + ".join([f"{other}::value()" for other in uses] + [str(number)])
            write(setup.place, f"{name}/Cargo.toml", manifest)
            write(setup.place, f"{name}/src/lib.rs", f"pub fn value() -> u64 {{\n    {body}\n}}\n")

    def commands(self, setup, hot):
        own = {"RUSTC": toolchain("rustc"), "CARGO_INCREMENTAL": "0", "CARGO_TARGET_DIR": os.path.join(setup.place, "target")}
        if hot:
            own["RUSTC_WRAPPER"] = setup.client
        return [[toolchain("cargo"), "check", "--offline", "--quiet", f"-j{setup.jobs}"]], own


def write(base, name, text):
    path = os.path.join(base, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as out:
        out.write(text)


WORKLOADS = {
    "dash-configure": Configured("dash", ("./configure", "-q")),
    "dash": Configured("dash", ("./configure", "-q"), MAKE),
    "zlib": Configured("zlib", ("./configure",), MAKE),
    "lua": Configured("lua5.4", LUA),
    "ccache-miss": Ccache(False),
    "ccache-hit": Ccache(True),
    "rustc-ui": RustUi(),
    "cargo": Cargo(),
}
