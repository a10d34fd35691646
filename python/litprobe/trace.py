"""Notes all that the evaluation of configs looks at, so that its results can be kept until something of it changes.

Python announces what it does by audit events: files opened, directories listed, programs started, code run. `stat` and its like are not
announced; functions that take note of the path stand in their places, under the same names. An event that is not known to be
harmless, or code that may depend on anything else (see `pure`), means that nothing is kept.
"""

import os
import posix
import stat
import sys

# Of other versions it is not known which functions look at files without an event.
KNOWN = ((3, 8), (3, 13))

# Events that change nothing and depend on nothing but what other events tell.
HARMLESS = frozenset(
    """
    import exec compile marshal.loads marshal.load object.__getattr__ object.__setattr__ object.__delattr__ code.__new__ function.__new__
    builtins.id sys._getframe sys._getframemodulename sys.addaudithook os.putenv os.unsetenv os.walk os.fwalk glob.glob glob.glob/2
    pathlib.Path.glob pathlib.Path.rglob 
    """.split()
)

trace = None


class Trace:
    """What was looked at since the last question."""

    def __init__(self):
        self.why = None
        self.fresh = {}
        self.known = set()
        self.parts = []
        self.codes = {}
        self.programs = []
        self.own = 0
        self.inside = False
        self.written = written()

    def note(self, kind, path, seen):
        """The path was looked at in this way, and this was seen: 1 if it was there, else 0."""
        try:
            path = os.path.join(posix.getcwd(), os.fsdecode(path))
        except (TypeError, ValueError, OSError):
            self.give_up("a path of type %s" % type(path).__name__)
            return
        if (kind, path) not in self.known:
            self.known.add((kind, path))
            self.fresh[kind, path] = seen

    def give_up(self, why):
        if self.why is None:
            self.why = why

    def part(self):
        """Ends what belongs to one request."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        self.inside = True
        if self.why is None and (self.written is None or written() != self.written + self.own):
            self.give_up("a config prints or writes")
        self.inside = False
        self.parts.append(self.fresh)
        self.fresh = {}


def written():
    """Bytes that this process has written so far, wherever to. Of the thread, as a process counts those of its children, too."""
    try:
        descriptor = posix.open("/proc/thread-self/io", os.O_RDONLY)
        try:
            text = posix.read(descriptor, 4096)
        finally:
            posix.close(descriptor)
    except OSError:
        return None
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith(b"wchar:")), None)


def start():
    """Takes note from now on, if that is possible."""
    global trace
    version = sys.version_info[:2]
    # Older ones of `pathlib` take the functions as they are imported, and would go on with those.
    if not KNOWN[0] <= version <= KNOWN[1] or version < (3, 11) and "pathlib" in sys.modules:
        return
    trace = Trace()
    for name in ("stat", "lstat", "access", "readlink"):
        stand_in(name)
    sys.addaudithook(notice)


def stand_in(name):
    real = getattr(posix, name)

    def watched(path, *arguments, **named):
        try:
            found = real(path, *arguments, **named)
        except OSError:
            look(path, 0, named)
            raise
        look(path, 1, named)
        return found

    def look(path, seen, named):
        if trace.inside or isinstance(path, int):
            return
        if named.get("dir_fd") is not None:
            trace.give_up("os.%s of a path below a descriptor" % name)
        follows = named.get("follow_symlinks", True)
        kind = {"stat": "s" if follows else "l", "lstat": "l", "access": "a", "readlink": "r"}[name]
        if kind == "a":
            # Whether it is allowed depends on mode and owner, which a look at it tells.
            kind, seen = "s", int(exists(path))
        trace.note(kind, path, seen)

    watched.__name__ = watched.__qualname__ = name
    watched.__doc__ = real.__doc__
    setattr(os, name, watched)
    setattr(posix, name, watched)
    for names in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        if real in names:
            names.add(watched)


real_stat = posix.stat
real_access = posix.access


def exists(path):
    try:
        real_stat(path)
    except (OSError, ValueError):
        return False
    return True


def notice(event, arguments):
    """Called for everything that Python announces, so that it must be quick."""
    if trace.inside or trace.why is not None:
        return
    if event == "open":
        opened(*arguments)
    elif event in ("os.listdir", "os.scandir"):
        trace.note("d", "." if arguments[0] is None else arguments[0], 1)
    elif event == "exec":
        # By the caller where the code has no file of its own.
        name = arguments[0].co_filename
        trace.codes.setdefault(sys._getframe(1).f_code.co_filename if name == "<string>" else name)
    elif event == "subprocess.Popen":
        frame = sys._getframe(1).f_locals
        started(arguments, frame.get("c2pwrite", -1) != -1)
    elif event == "os.posix_spawn" and is_of_subprocess(sys._getframe(1)):
        # The way in which Python 3.13 starts what it has announced.
        pass
    elif event not in HARMLESS:
        trace.give_up("it is not known to be harmless: %s" % event)


def is_of_subprocess(frame):
    module = sys.modules.get("subprocess")
    return module is not None and frame.f_code.co_filename == module.__file__


def opened(path, mode, flags):
    if isinstance(path, int):
        if not is_of_subprocess(sys._getframe(2)):
            trace.give_up("a config opens a descriptor")
        return
    if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
        if os.fsdecode(path) != os.devnull:
            trace.give_up("a config writes '%s'" % os.fsdecode(path))
        return
    trace.note("f", path, int(exists(path)))


def started(arguments, is_captured):
    executable, words, directory, environment = arguments
    if directory is not None or isinstance(words, (str, bytes)):
        trace.give_up("a config starts %r in another way than is known" % (words,))
        return
    program = os.fsdecode(executable or words[0])
    search = os.environ if environment is None else environment
    if "/" not in program:
        program = find(program, search.get("PATH", os.defpath))
    trace.programs.append((program, [os.fsdecode(word) for word in words[1:]], dict(search), is_captured))


def find(name, search):
    """Along PATH, taking note of every place that was looked at."""
    for directory in search.split(os.pathsep):
        path = os.path.join(directory or ".", name)
        found = exists(path)
        trace.note("s", path, int(found))
        if found and real_access(path, os.X_OK):
            return path
    return name


def tell(objects):
    """`objects` are those that lit hands to configs. All parts, and why nothing may be kept of them if that is so."""
    from litprobe import pure

    trace.inside = True
    try:
        if trace.why is None:
            pure.judge(trace, objects)
    except Exception as error:
        trace.give_up("%s: %s" % (type(error).__name__, error))
    parts = [[[kind, path, seen] for (kind, path), seen in part.items()] for part in trace.parts]
    try:
        for part in parts:
            for _, path, _ in part:
                path.encode()
    except UnicodeEncodeError:
        trace.give_up("a path is not UTF-8")
    return {"trace": {"why": trace.why, "parts": [] if trace.why else parts}}
