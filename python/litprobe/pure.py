"""Judges whether what configs did depends on nothing but what was noted: their code, and the programs that they started.

Code is judged by its names. Modules, their functions, Python's own functions and the attributes of objects have to be on a list
(`names`); what is not on it (the time, random numbers, process numbers, the network, code made of text) may be anything. Python's own
library and the `lit` package are known and are not read. Programs have to be on a list as well, with their arguments.
"""

import ast
import atexit
import builtins
import os
import re
import subprocess
import sys
import sysconfig
import threading
import types

from litprobe.names import BY_NAME, MODULES, NAMES, OWN, WHOLE, dunder, impure, is_builtin, of_lit, of_python

# Whatever they belong to.
ATTRIBUTES = re.compile(
    "st_.*|stat|lstat|get[amc]time|getsize|f_.*als|__(loader|subclasses|globals|builtins|dict|code|closure|getattribute)__"
)
# Modules are reached by their own names only, not as attributes of others that have imported them.
OTHERS = frozenset(getattr(sys, "stdlib_module_names", ())) | frozenset(sys.builtin_module_names) | MODULES
# Tools whose answers to these questions depend on themselves alone.
TOOLS = re.compile(r"(llvm-[a-z-]+|opt|llc|lli|FileCheck|not|count|true|false|ar|nm|as|objdump|gold|lld|ld(\.[a-z]+)?)(-\d+(\.\d+)*)?")
QUESTIONS = frozenset("--version -version -v -V --help -help".split())
OF_LLVM_CONFIG = frozenset("--version --assertion-mode --build-mode --build-system --targets-built --host-target --has-rtti".split())

# At startup; a config that adds one wants it called at the end of lit.
callbacks = atexit._ncallbacks() if hasattr(atexit, "_ncallbacks") else None


def judge(trace, objects):
    """`objects` are those that lit hands to configs. Gives up if anything is not known; else adds what programs and modules depend on."""
    trace.parts = trace.parts or [{}]
    if threading.active_count() > 1:
        trace.give_up("a config has started a thread")
    if callbacks is None or atexit._ncallbacks() != callbacks:
        trace.give_up("a config has registered something for the end")
    library = Library()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not file.endswith(".py") and not library.has(file):
            trace.give_up("the module '%s' is not written in Python" % file)
    trees = [(name, read_code(trace, name)) for name in list(trace.codes) if trace.why is None and not library.has(name)]
    if trace.why is None:
        judge_code(trace, trees, library, objects)
    for program in trace.programs:
        if trace.why is None:
            judge_program(trace, program)
    add_links(trace)
    add_modules(trace, [path for path in sys.path if path])


class Library:
    """Python's own library and the `lit` package."""

    def __init__(self):
        import lit

        paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
        self.own = tuple(os.path.join(path, "") for path in paths if path)
        self.added = tuple(path + name for path in self.own for name in ("site-packages/", "dist-packages/"))
        self.lit = os.path.join(os.path.dirname(os.path.abspath(lit.__file__)), "")

    def has(self, name):
        if name.startswith((self.lit, "<frozen ", "litprobe/")):
            return True
        return name.startswith(self.own) and not name.startswith(self.added)


def read_code(trace, name):
    if not os.path.isabs(name) or not os.path.isfile(name):
        trace.give_up("there is no file of code named '%s'" % name)
        return None
    with open(name, "rb") as file:
        return ast.parse(file.read(), name)


def judge_code(trace, trees, library, objects):
    if not trees:
        return
    attributes = (of_python() | of_lit(objects)).union(*(given_names(tree) for _, tree in trees)) - impure()
    for name, tree in trees:
        try:
            Reader(library, attributes, tree).visit(tree)
        except Unknown as unknown:
            trace.give_up("%s:%d: %s" % (name, unknown.args[0], unknown.args[1]))
            return


def given_names(tree):
    """The names that this code gives to things of its own."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
            found.update(word.value for word in node.args[1:2] if isinstance(word, ast.Constant) and isinstance(word.value, str))
    return {name for name in found if not dunder(name)}


class Unknown(Exception):
    """Line, and what is not on a list."""


class Reader(ast.NodeVisitor):
    """Reads one file of code."""

    def __init__(self, library, attributes, tree):
        self.library = library
        self.attributes = attributes
        # A module that is used without an import, in a branch that was not taken or because another config has imported it.
        bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        bound.update(node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))
        self.modules = {name: name for name in NAMES if "." not in name and name not in bound}

    def visit_Import(self, node):
        for alias in node.names:
            self.admit(node, alias.name)
            self.modules[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else alias.name.split(".")[0]

    def visit_ImportFrom(self, node):
        if node.level:
            raise Unknown(node.lineno, "it imports by a relative name")
        self.admit(node, node.module)
        for alias in node.names:
            self.allow(node, node.module, alias.name)
            full = node.module + "." + alias.name
            if full in NAMES:
                self.modules[alias.asname or alias.name] = full
            elif alias.name == "*" or self.is_other_module(node.module, alias.name):
                raise Unknown(node.lineno, "it imports %s from %s" % (alias.name, node.module))

    def is_other_module(self, module, name):
        """Whether it is a module, and not one that lies in `module`: modules are reached by their own names only."""
        value = getattr(sys.modules.get(module), name, None)
        own = isinstance(value, types.ModuleType) and value.__name__ == module + "." + name
        return not own and (isinstance(value, types.ModuleType) or name in OTHERS)

    def admit(self, node, name):
        top = name.split(".")[0]
        if top in MODULES:
            return
        module = sys.modules.get(top)
        file = getattr(module, "__file__", None) or ""
        # One of the project's own is read as well, as it was run.
        if not file.endswith(".py") or self.library.has(file):
            raise Unknown(node.lineno, "it imports %s" % name)

    def allow(self, node, module, name):
        if module in NAMES and name not in NAMES[module].split():
            raise Unknown(node.lineno, "it uses %s.%s" % (module, name))

    def visit_Attribute(self, node):
        module = self.module(node.value)
        if not module:
            self.visit(node.value)
        # Some have a function of their own name.
        through = node.attr in OTHERS and node.attr != module and not (module and module + "." + node.attr in ("os.path", *NAMES))
        if through and self.outermost(node) in self.modules and node.attr not in NAMES.get(module, "").split():
            raise Unknown(node.lineno, "it reaches %s through another module" % node.attr)
        if module in NAMES or module in WHOLE:
            self.allow(node, module, node.attr)
        elif not isinstance(node.ctx, ast.Store):
            self.attribute(node, node.attr)

    def attribute(self, node, name):
        """An attribute of an object, of which only the name is known."""
        if name not in self.attributes or ATTRIBUTES.fullmatch(name):
            raise Unknown(node.lineno, "it uses .%s" % name)

    def visit_MatchClass(self, node):
        for name in node.kwd_attrs:
            self.attribute(node, name)
        self.generic_visit(node)

    def outermost(self, node):
        """The name with which a chain of attributes begins."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return node.id if isinstance(node, ast.Name) else None

    def module(self, node):
        """The module that an expression is, if it is one."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id)
        if isinstance(node, ast.Attribute):
            outer = self.module(node.value)
            inner = outer and outer + "." + node.attr
            return inner if inner in NAMES else None
        return None

    def visit_Call(self, node):
        function = node.func.id if isinstance(node.func, ast.Name) else None
        if function not in BY_NAME or len(node.args) < 2 or node.keywords:
            self.generic_visit(node)
            return
        # `hasattr(sys, "name")` is a question about Python alone.
        if function == "hasattr" and self.module(node.args[0]):
            return
        for argument in node.args:
            self.visit(argument)
        name = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
        if function in ("getattr", "hasattr") and isinstance(name, str):
            self.attribute(node, name)
        elif function == "getattr":
            raise Unknown(node.lineno, "it uses getattr with a name that is computed")

    def visit_Name(self, node):
        if node.id in self.modules:
            raise Unknown(node.lineno, "it hands on the module %s" % node.id)
        is_pythons = hasattr(builtins, node.id) or dunder(node.id)
        if is_pythons and not is_builtin(node.id) and node.id not in OWN:
            raise Unknown(node.lineno, "it uses %s" % node.id)


def judge_program(trace, program):
    path, words, environment, is_captured = program
    name = os.path.basename(path)
    if re.fullmatch(r"llvm-config(-\d+)?", name):
        is_question = set(words) <= OF_LLVM_CONFIG
    elif re.fullmatch(r"llvm-readobj(-\d+)?", name):
        is_question = len(words) == 2 and words[0] == "--needed-libs"
        trace.note("f", words[-1], 1)
    elif name == "uname":
        # Python's own `platform`, before 3.9; the system is a part of the key.
        is_question = set(words) <= {"-m", "-n", "-p", "-r", "-s", "-v"}
    else:
        is_question = bool(TOOLS.fullmatch(name)) and len(words) == 1 and words[0] in QUESTIONS
    if not is_question or not is_captured and name != "true":
        trace.give_up("a config starts '%s'" % " ".join([path] + words))
        return
    add_program(trace, path, environment)


def add_program(trace, path, environment):
    """The program, and all places where the loader looks for its libraries."""
    trace.note("f", path, 1)
    with open(path, "rb") as file:
        head = file.read(4096)
    if not head.startswith(b"\x7fELF"):
        trace.give_up("'%s' is a script" % path)
        return
    if b"/ld-linux" not in head:
        return
    asked = dict(environment, LD_TRACE_LOADED_OBJECTS="1", LD_DEBUG="libs")
    done = subprocess.run([path], env=asked, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    found = re.findall(r"=> (/\S+) \(", done.stdout.decode()) + re.findall(r"^\s(/\S+) \(", done.stdout.decode(), re.M)
    for name in re.findall(r"trying file=(\S+)", done.stderr.decode()) + found:
        trace.note("f", name, int(os.path.exists(name)))
    for name in ("/etc/ld.so.cache", "/etc/ld.so.preload"):
        trace.note("f", name, int(os.path.exists(name)))


def add_links(trace):
    """A listing tells what its entries are; where links lead, it asks of each."""
    for part in [*trace.parts, trace.fresh]:
        for kind, path in list(part):
            if kind == "d" and os.path.isdir(path):
                with os.scandir(path) as entries:
                    links = [entry.path for entry in entries if entry.is_symlink()]
                for link in links:
                    trace.note("s", link, int(os.path.exists(link)))


def add_modules(trace, packages):
    """What Python had read before anything was noted; it belongs to the first part."""
    fresh, trace.fresh = trace.fresh, {}
    for module in list(sys.modules.values()):
        for name in {getattr(module, "__file__", None), getattr(module, "__cached__", None)}:
            if isinstance(name, str) and os.path.isabs(name):
                trace.note("f", name, int(os.path.exists(name)))
    for directory in packages:
        trace.note("s", directory, int(os.path.exists(directory)))
        if os.path.isdir(directory):
            trace.note("d", directory, 1)
            for name in os.listdir(directory):
                if name.endswith((".pth", "._pth")):
                    trace.note("f", os.path.join(directory, name), 1)
    here = os.path.dirname(sys.executable)
    for name in (sys.executable, os.path.join(here, "pyvenv.cfg"), os.path.join(os.path.dirname(here), "pyvenv.cfg")):
        trace.note("f", name, int(os.path.exists(name)))
    # What programs and modules depend on counts from the beginning, for want of a better place.
    trace.parts[0].update(fresh)
    trace.parts[0].update(trace.fresh)
    trace.fresh = {}
