"""Puts off the import of a module that another one imports for purposes which have no place here.

lit.BooleanExpression ends with tests of itself. The `unittest` that they need takes a tenth of hotstart's start, and the
`inspect` of lit.LitConfig nearly as much. The library's own modules ask for others, too, for what hardly anybody uses.
"""

import contextlib
import sys
from _frozen_importlib_external import PathFinder

# What `shutil` imports to learn which kinds of archives there are, and the part of each that a Python may lack.
ARCHIVES = {"bz2": "_bz2", "lzma": "_lzma", "zlib": "zlib"}

# What lit's main program has loaded by the time it evaluates a config (by versions 19 and 23, with Python 3.11), and is
# not loaded here.
OF_LIT = frozenset(
    """
    __future__ _ast _bisect _blake2 _bz2 _compat_pickle _compression _datetime _hashlib _heapq _lzma _opcode
    _pickle _posixshmem _queue _random _sha512 _socket _ssl _string _struct argparse array ast base64 binascii
    bisect bz2 calendar copy dataclasses datetime difflib dis email getopt gettext hashlib heapq http inspect
    ipaddress linecache lzma multiprocessing opcode pickle pprint queue quopri random socket ssl string struct
    tempfile textwrap token tokenize traceback typing unittest urllib weakref xml zlib
    """.split()
)


class AsWithLit:
    """Finds these modules where lit's main program has found them, wherever a config has Python look since."""

    def __init__(self, path):
        self.path = list(path)

    def find_spec(self, name, path=None, target=None):
        if path is None and name in OF_LIT:
            return PathFinder.find_spec(name, self.path, target)


class Later(type(sys)):
    """Replaces the module `name` while its context lasts. After that it answers `values`, and passes on any other name to the
    real module."""

    def __init__(self, name, **values):
        super().__init__(name)
        vars(self).update(values)

    def __enter__(self):
        sys.modules.setdefault(self.__name__, self)

    def __exit__(self, *_error):
        self.leave()

    def leave(self):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]

    def __getattr__(self, name):
        if name == "__path__":
            # Python's own question, where something is imported from a module.
            raise AttributeError(name)
        import importlib

        self.leave()
        return getattr(importlib.import_module(self.__name__), name)


def calls(module, name):
    """A function in the place of `module`'s `name`, which imports that when it is called."""

    def later(*arguments, **named):
        import importlib

        return getattr(importlib.import_module(module), name)(*arguments, **named)

    return later


def of_library():
    """A context without what `pathlib` and `shutil` want, while they are imported, for making URLs and archives."""
    together = contextlib.ExitStack()
    together.enter_context(Later("urllib.parse", quote_from_bytes=calls("urllib.parse", "quote_from_bytes")))
    together.callback(give_parse_to_urllib)
    for name, part in ARCHIVES.items():
        if is_there(part):
            together.enter_context(Later(name))
    return together


def is_there(name):
    """Whether a module could be found; not, where a finder is one that only Python's own import knows how to ask."""
    try:
        return any(finder.find_spec(name, None) for finder in sys.meta_path)
    except Exception:
        return False


def give_parse_to_urllib():
    """Configs that import `urllib` use `urllib.parse`, which is there as pathlib has imported it."""
    import urllib

    def parse(name):
        if name != "parse":
            raise AttributeError("module 'urllib' has no attribute %r" % name)
        import importlib

        return importlib.import_module("urllib.parse")

    if "parse" not in vars(urllib):
        urllib.__getattr__ = parse
