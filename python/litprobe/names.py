"""Names of Python that a config may use, so that what it did depends on nothing but what was noted.

Everything is a list of what is known: a name that is on none of them may look at anything. Names that a project gives to things of
its own are known as well, unless objects of Python that can look at the system have one of that name.
"""

import builtins
import errno
import io
import itertools
import math
import os
import pathlib
import re
import subprocess
import sys
import types

# Modules of which every name is known: they compute, and look at nothing.
WHOLE = frozenset("__future__ abc base64 enum errno itertools keyword math numbers re".split())

PATHS = """join exists isfile isdir islink lexists abspath basename dirname normpath realpath relpath expandvars splitext
    split splitdrive commonprefix commonpath isabs normcase sep pathsep"""

NAMES = {
    "argparse": "ArgumentParser Namespace ArgumentError ArgumentTypeError REMAINDER SUPPRESS",
    "ast": "literal_eval",
    "codecs": "open encode decode BOM_UTF8",
    "collections": "OrderedDict defaultdict namedtuple Counter deque ChainMap abc",
    "collections.abc": "Callable Container Hashable Iterable Iterator Mapping MutableMapping MutableSequence Sequence Set Sized",
    "configparser": "ConfigParser RawConfigParser Error NoOptionError NoSectionError",
    "contextlib": "contextmanager closing suppress ExitStack",
    "copy": "copy deepcopy",
    "csv": "reader DictReader",
    "dataclasses": "dataclass field fields asdict astuple replace",
    "fnmatch": "fnmatch fnmatchcase filter translate",
    "functools": "partial reduce lru_cache wraps cmp_to_key total_ordering cached_property cache",
    "glob": "glob iglob escape",
    "io": "StringIO BytesIO open TextIOWrapper SEEK_SET SEEK_CUR SEEK_END",
    "json": "load loads dump dumps JSONDecodeError",
    "operator": """itemgetter add sub mul truediv floordiv mod neg pos abs and_ or_ xor not_ truth eq ne lt le gt ge contains concat
        getitem indexOf countOf""",
    "os": """path environ getenv pathsep sep altsep name listdir walk scandir getcwd linesep extsep curdir pardir devnull fspath
        fsdecode fsencode access F_OK R_OK W_OK X_OK defpath cpu_count getuid geteuid PathLike error uname putenv unsetenv
        environb readlink get_exec_path sched_getaffinity""",
    "os.path": PATHS,
    "pathlib": "Path PurePath PosixPath PurePosixPath",
    "pipes": "quote",
    "platform": """system machine release processor architecture uname mac_ver version platform python_version python_version_tuple
        python_implementation libc_ver win32_ver dist linux_distribution""",
    "posixpath": PATHS,
    "pprint": "pformat pprint",
    "shlex": "quote split join",
    "shutil": "which",
    "string": """Template ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits punctuation whitespace printable
        capwords""",
    "struct": "pack unpack calcsize unpack_from error",
    "subprocess": """Popen PIPE STDOUT DEVNULL run call check_call check_output CalledProcessError TimeoutExpired SubprocessError
        list2cmdline CompletedProcess getoutput getstatusoutput""",
    "sys": """platform version version_info executable path exit maxsize byteorder argv prefix base_prefix exec_prefix hexversion
        implementation builtin_module_names getfilesystemencoding getdefaultencoding abiflags float_info getwindowsversion
        gettotalrefcount maxunicode api_version int_info thread_info""",
    "textwrap": "dedent indent wrap fill shorten",
    "types": "SimpleNamespace",
    "typing": """Any AnyStr Callable ClassVar Dict FrozenSet Generic Iterable Iterator List Literal Mapping NamedTuple NoReturn Optional
        Sequence Set Tuple Type TYPE_CHECKING TypeVar Union cast""",
    "warnings": "warn",
}
MODULES = WHOLE | {"lit"} | {name.split(".")[0] for name in NAMES}

# Functions of Python without a module. Exceptions are known as well.
BUILTINS = frozenset(
    """
    Ellipsis False None NotImplemented True __build_class__ __debug__ abs all any bin bool bytearray bytes callable chr classmethod complex
    dict dir divmod enumerate filter float format frozenset int isinstance issubclass iter len list map max min next object oct open ord
    pow print property range repr reversed round set slice sorted staticmethod str sum super tuple type zip hex
    """.split()
)
# Those whose second argument is the name of an attribute.
BY_NAME = frozenset("getattr hasattr setattr delattr".split())
# Of a module itself.
OWN = frozenset("__file__ __name__ __doc__ __annotations__".split())

# Attributes of objects that can look at more than what was noted, or can be called to do so.
PURE = frozenset(
    """
    absolute anchor args as_posix as_uri close closed cmd communicate cwd drive encoding errors exists glob is_absolute is_dir is_file
    is_relative_to is_symlink iterdir joinpath match mode name newlines open output parent parents parts path poll read read_bytes read_text
    readable readline readlines relative_to resolve returncode rglob root seek stderr stdin stdout stem suffix suffixes tell wait walk
    with_name with_stem with_suffix writable write writelines buffer check_returncode flush getvalue
    __class__ __doc__ __enter__ __exit__ __file__ __init__ __name__ __version__ __versioninfo__ __all__ __str__ __repr__ __eq__ __lt__
    __len__ __iter__ __getitem__ __setitem__ __contains__ __call__ __new__ __add__ __ne__ __bool__ __next__ __setattr__ __delitem__
    """.split()
)
LOOKING = (
    pathlib.Path,
    os.DirEntry,
    subprocess.Popen,
    io.TextIOWrapper,
    io.BufferedReader,
    io.FileIO,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.CodeType,
    types.FrameType,
    types.GeneratorType,
    types.TracebackType,
    types.ModuleType,
    os.stat_result,
    type,
    BaseException,
)
# Data of these types depends on nothing else.
DATA = (str, bytes, bytearray, list, tuple, dict, set, frozenset, int, float, complex, bool, range, re.Pattern, re.Match)
NAMED = """
    add_argument add_mutually_exclusive_group add_argument_group parse_args parse_known_args cache_clear cache_info elements
    most_common subtract appendleft popleft extendleft rotate maxlen move_to_end default_factory new_child maps has_option
    has_section sections options read_file read_string getboolean getint getfloat fieldnames line_num substitute safe_substitute
    template safe_load _asdict _replace _fields _make errno strerror filename filename2 code msg lineno major minor micro
    releaselevel serial build service_pack platform_version platform executable byteorder node release version machine system
    processor sysname nodename value names
""".split()


def dunder(name):
    return name.startswith("__") and name.endswith("__")


def of_types(kinds):
    return {name for kind in kinds for name in dir(kind)}


def impure():
    """Attributes that look at the system, whatever else is named so."""
    return of_types(LOOKING).union(["pid"]) - PURE - {name for name in of_types(DATA) if not dunder(name)}


def of_python():
    """Attributes of Python's own objects that look at nothing but what was noted."""
    return PURE.union(NAMED, (name for name in of_types(DATA) if not dunder(name)))


def of_lit(objects):
    """What lit's modules and classes name, and what these objects of a run have."""
    found, objects = set(), list(objects)
    for module in [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "lit" and module]:
        for name, value in list(vars(module).items()):
            if not isinstance(value, types.ModuleType) or value.__name__.split(".")[0] == "lit":
                found.add(name)
            if isinstance(value, type) and is_lits(value):
                found.update(dir(value))
            elif is_lits(type(value)):
                objects.append(value)
    for value in objects:
        parts = list(vars(value).values()) if hasattr(value, "__dict__") else []
        found.update(*(vars(each) for each in [value, *parts] if is_lits(type(each)) and hasattr(each, "__dict__")))
    return {name for name in found if not dunder(name)}


def is_lits(kind):
    return kind.__module__.split(".")[0] == "lit"


def is_builtin(name):
    """Whether the name is one of Python's own that may be used."""
    value = getattr(builtins, name, None)
    return name in BUILTINS or isinstance(value, type) and issubclass(value, BaseException)
