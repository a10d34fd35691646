"""Where things are: the hotstart program, and the `lit` package that evaluates configs.

Only looks at the file system and the environment; nothing of what is found is imported or run.
"""

import importlib.machinery
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
SHIM = os.path.join(HERE, "shim")
# The directory above the package: python/ of a checkout, or where pip installs packages.
LIBRARY = os.path.dirname(HERE)


class Missing(Exception):
    """Something is not there; the text says what, and what to do."""


def find_hotstart(program):
    """The program that HOTSTART names; else the one beside `program` or this package; else the first on PATH."""
    named = os.environ.get("HOTSTART")
    if named:
        if is_program(named):
            return os.path.abspath(named)
        raise Missing("HOTSTART names '%s', which is no program that can be run; correct it" % named)
    beside = [os.path.dirname(os.path.realpath(program)), *scripts(), *built()]
    for directory in beside:
        candidate = os.path.join(directory, "hotstart")
        if is_program(candidate):
            return candidate
    for directory in os.get_exec_path():
        candidate = os.path.abspath(os.path.join(directory, "hotstart"))
        if is_program(candidate):
            return candidate
    raise Missing(
        "cannot find the hotstart program: it is not beside this one (%s) and not on PATH; build it with "
        "'cargo build --release' and set HOTSTART to its path" % ", ".join(beside)
    )


def is_program(path):
    return os.path.isfile(path) and os.access(path, os.X_OK)


def scripts():
    """Where pip puts scripts, if it has installed this package: LIBRARY is lib/pythonX.Y/site-packages then, Debian's
    dist-packages, or the directory of `pip install --target`."""
    if os.path.basename(LIBRARY) not in ("site-packages", "dist-packages"):
        return [os.path.join(LIBRARY, "bin")]
    prefix = os.path.dirname(os.path.dirname(os.path.dirname(LIBRARY)))
    return [os.path.join(prefix, "bin")]


def built():
    """Where cargo builds, if this is a checkout."""
    root = os.path.dirname(LIBRARY)
    is_checkout = os.path.isfile(os.path.join(root, "Cargo.toml"))
    return [os.path.join(root, "target", "release")] if is_checkout else []


def find_lit(arguments, package=None):
    """Options that name Python and `lit` package, unless the user did.

    A wrapper's own package comes first, then that of the LLVM whose build tree this is about, then the one that
    this Python has, then the one installed beside hotstart. If there is none, hotstart says so itself.
    """
    asked = {argument.split("=", 1)[0] for argument in arguments}
    names_python = bool(os.environ.get("HOTSTART_LIT_PYTHON")) or "--lit-python" in asked
    python = [] if names_python or not sys.executable else ["--lit-python", sys.executable]
    if "--lit-package" in asked:
        return python
    package = package or source_tree_lit(arguments)
    if package:
        return python + ["--lit-package", package]
    if names_python or has_lit(sys.path):
        return python
    import glob

    for directory in scripts() + [os.path.join(os.path.dirname(LIBRARY), ".venv", "bin")]:
        other = os.path.join(directory, "python3")
        if is_program(other) and has_lit(glob.glob(os.path.join(directory, "../lib/python3*/site-packages"))):
            return ["--lit-python", other]
    return []


def has_lit(directories):
    return importlib.machinery.PathFinder.find_spec("lit", list(directories)) is not None


def source_tree_lit(arguments):
    """The `lit` of the LLVM whose build tree this is about."""
    packages = (lit_of_cache(cache) for cache in caches(arguments))
    return next((package for package in packages if package), None)


def build_tree_wrapper(arguments):
    """The llvm-lit of the build tree that this is about, unless hotstart was put there."""
    for cache in caches(arguments):
        wrapper = os.path.join(os.path.dirname(cache), "bin", "llvm-lit")
        if os.path.isfile(wrapper) and os.path.basename(os.path.realpath(wrapper)) == "llvm-lit":
            return wrapper
    return None


def build_tree_of(program):
    """The build tree in which this program was called, be it by a link in the place of that tree's llvm-lit."""
    cache = above(os.path.dirname(os.path.abspath(program)), "CMakeCache.txt")
    return os.path.dirname(cache) if cache else None


def caches(arguments):
    """The CMake caches of the build trees that paths, or else the working directory, lie in."""
    starts = [os.path.abspath(argument) for argument in arguments if not argument.startswith("-")]
    starts = [path for path in starts if os.path.exists(path)] + [os.getcwd()]
    found = (above(start, "CMakeCache.txt") for start in starts)
    return [cache for cache in found if cache]


def above(directory, name):
    """The file of this name in the directory or the nearest one above."""
    while True:
        candidate = os.path.join(directory, name)
        if os.path.isfile(candidate):
            return candidate
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent


def lit_of_cache(cache):
    """`utils/lit` of the LLVM sources that a CMake cache names."""
    try:
        with open(cache, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except OSError:
        return None
    for line in text.splitlines():
        name, _, source = line.partition("=")
        if name.partition(":")[0] not in ("LLVM_SOURCE_DIR", "LLVM_MAIN_SRC_DIR", "LLVM_BUILD_MAIN_SRC_DIR"):
            continue
        package = os.path.join(source, "utils", "lit")
        if os.path.isfile(os.path.join(package, "lit", "LitConfig.py")):
            return package
    return None


def without_shim(environment):
    """The environment for hotstart: its own Pythons need the real lit."""
    environment = dict(environment)
    path = environment.get("PYTHONPATH")
    if path is not None:
        kept = [entry for entry in path.split(os.pathsep) if not entry or os.path.realpath(entry) != SHIM]
        if kept:
            environment["PYTHONPATH"] = os.pathsep.join(kept)
        else:
            del environment["PYTHONPATH"]
    return environment
