//! What a script finds of its request, wherever it looks first.

use hotstart_launch::Reason;

use crate::harness::{Ends, Script};

const LISTS: &[&[&str]] = &[&["a"], &[], &["b", "c d", "", "é", "-x"]];

const STREAMS: &str = "import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr): print(s.encoding, s.errors, \
    s.line_buffering, s.write_through, \
     s.isatty(), s.fileno(), s.name, s.mode, s.newlines, s.closed, s.buffer.name, s.buffer.mode, s.buffer.raw.mode, s.buffer.raw.closefd, \
     s.seekable(), repr(s), repr(s.buffer), type(s), s.buffer.raw._blksize)";

/// Scripts that print something of the request or of the interpreter. Each is equal with every list of arguments, in any order.
const WARM: &[(&str, &str)] = &[
    (
        "the types of arguments",
        "import sys\nprint([(type(a), len(a), a.encode('utf-8', 'surrogateescape')) for a in sys.argv])",
    ),
    (
        "the list itself",
        "import sys\na = sys.argv\nprint(a is sys.argv, a[1:], type(a) is list, isinstance(a, list), sys.getsizeof(a))",
    ),
    ("the original list", "import sys\nprint(getattr(sys, 'orig_argv', None), len(sys.argv))"),
    ("its length", "import sys\nif len(sys.argv) > 2: sys.exit(len(sys.argv))\nprint('few')"),
    (
        "its items by number",
        "import sys\nprint(sys.argv[0])\ntry: print(sys.argv[1])\nexcept IndexError as e: print(e)",
    ),
    ("its iterator", "import sys\nfor a in sys.argv: print(a)"),
    ("whether it has one", "import sys\nprint('a' in sys.argv, sys.argv == ['x'], bool(sys.argv))"),
    ("its representation", "import sys\nprint(repr(sys.argv))"),
    ("its attributes", "import sys\nsys.argv.append('x')\nprint(sys.argv, sys.argv.__class__ is list)"),
    ("it unpacked", "import sys\n_, *rest = sys.argv\nprint(rest, [*sys.argv][1:])"),
    ("it as a default", "import sys\ndef main(argv=sys.argv): print(argv[1:])\nmain()"),
    (
        "its name replaced",
        "import sys\nold = sys.argv[0]\nsys.argv[0] = 'na' + 'me'\nk = sys.argv[0]\nsys.argv[0] = k * 2\n\
         import argparse\np = argparse.ArgumentParser()\n\
         print(p.prog, sys.argv, old, k, getattr(sys, 'orig_argv', [])[1:], len(sys.argv))",
    ),
    (
        "its name replaced by something else",
        "import sys\nclass S(str): pass\nsys.argv[0] = S('x')\nprint(sys.argv, type(sys.argv[0]))\n\
         sys.argv[-1] = 3\nprint(sys.argv)",
    ),
    ("its name removed", "import sys\ndel sys.argv[0]\nprint(sys.argv)"),
    (
        "its name by other numbers",
        "import sys\nsys.argv[False] = 'b'\nprint(sys.argv)\nsys.argv[0:1] = 'cd'\nprint(sys.argv)",
    ),
    ("it replaced", "import sys\nsys.argv = sys.argv[1:]\nprint(sys.argv)"),
    (
        "the parser of arguments",
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('v', nargs='*')\np.add_argument('-x', \
     action='store_true')\nprint(p.parse_args())",
    ),
    (
        "its errors",
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('one')\nprint(p.parse_args())",
    ),
    ("the command line", "print(open('/proc/self/cmdline').read().split(chr(0)))"),
    ("the environment of the process", "print(open('/proc/self/environ').read().split(chr(0)))"),
    ("the name of the process", "print(open('/proc/self/comm').read())"),
    ("the environment in order", "import os\nprint(list(os.environ.items()))"),
    (
        "its dictionary",
        "import os, posix, sys\nprint(sys.argv[1:], posix.environ, sys.getsizeof(posix.environ), type(posix.environ) is dict)",
    ),
    (
        "one variable",
        "import os, sys\nprint(os.environ['A'], os.environ.get('NONE'), 'A' in os.environ, sys.argv[1:])",
    ),
    (
        "a variable that is set",
        "import os\nos.environ['B'] = '2'\nprint(sorted(os.environ.items()))\nos.system('echo $B')",
    ),
    ("a copy of the environment", "import os\nprint(os.environ.copy() == dict(os.environ), len(os.environ))"),
    (
        "the environment of children",
        "import subprocess\nprint(subprocess.run(['env'], capture_output=True, text=True).stdout)",
    ),
    ("bytes of the environment", "import os\nprint(sorted(os.environb.items()))"),
    ("the streams", STREAMS),
    (
        "the streams kept at import",
        "import sys\no = sys.stdout\ndef f(file=sys.stderr): print('x', file=file)\nprint(sys.argv[1:], o is \
     sys.__stdout__ is sys.stdout)\nf()\no.write('y')",
    ),
    (
        "the classes of streams",
        "import sys, io\nprint(isinstance(sys.stdout, io.TextIOBase), type(sys.stdout) is io.TextIOWrapper, \
     io.TextIOWrapper.__subclasses__(), len(list.__subclasses__()), len(dict.__subclasses__()))",
    ),
    ("the input", "import sys\nprint(sys.stdin.read(), sys.argv[1:])"),
    ("lines of the input", "print(input())\nprint(input())\ntry: input()\nexcept EOFError: print('end')"),
    (
        "bytes of the input",
        "import sys\nprint(sys.stdin.buffer.read(3), sys.stdin.buffer.tell(), sys.stdin.readline())",
    ),
    (
        "output in order",
        "import sys\nsys.stderr.write('e')\nsys.stdout.write('o')\nsys.stdout.flush()\nsys.stderr.write('f')",
    ),
    (
        "a stream set up again",
        "import sys\nsys.stdout.reconfigure(line_buffering=True, encoding='latin-1')\nprint('é')",
    ),
    (
        "descriptors",
        "import os\nos.write(1, b'x')\nprint(os.fstat(0).st_size, os.lseek(1, 0, 1), sorted(os.listdir('/proc/self/fd')))",
    ),
    ("the directory", "import os\nprint(os.getcwd(), os.path.abspath('x'), os.path.exists('bin'))"),
    ("the search path", "import sys\nprint(sys.path, __file__, __name__, __spec__, sorted(globals()))"),
    ("the main module", "import sys, __main__\nprint(__main__.__dict__ is globals(), sys.argv[1:])"),
    (
        "flags",
        "import sys\nprint(sys.flags, sys._xoptions, sys.warnoptions, sys.executable, sys.prefix, sys.dont_write_bytecode)",
    ),
    (
        "the locale",
        "import locale, sys\nprint(locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding(), locale.getpreferredencoding())",
    ),
    (
        "the end",
        "import sys, atexit\natexit.register(print, 'end')\nclass D:\n  def __del__(self): print('gone')\nd = D()\nprint(sys.argv[1:])",
    ),
    (
        "the order of ends",
        "import sys, atexit, weakref\nclass D: pass\nd = D()\nweakref.finalize(d, print, 'final')\natexit.register(print, 'a')\n\
     print(sys.argv[1:])",
    ),
    ("a status", "import sys\nsys.exit(3 if sys.argv[1:] else 'text')"),
    ("an exception", "import sys\ndef f(): raise ValueError(sys.argv[1:])\nf()"),
    (
        "a chain of exceptions",
        "import sys\ntry: 1/0\nexcept ZeroDivisionError: raise KeyError(len(sys.argv))",
    ),
    (
        "the touch while one is handled",
        "import sys\ntry: 1/0\nexcept ZeroDivisionError as e:\n  print(sys.argv[1:], repr(sys.exc_info()[1]))",
    ),
    (
        "a signal",
        "import os, signal, sys\nos.kill(os.getpid(), signal.SIGTERM if sys.argv[1:] else signal.SIGKILL)",
    ),
    (
        "a handler",
        "import os, signal\nsignal.signal(signal.SIGUSR1, lambda *a: print('got', a[0]))\nos.kill(os.getpid(), signal.SIGUSR1)\n\
     print([signal.getsignal(s) for s in (signal.SIGINT, signal.SIGPIPE)])",
    ),
    ("an interrupt", "import os, signal, sys\nos.kill(os.getpid(), signal.SIGINT)"),
    ("a warning", "import sys, warnings\nwarnings.warn('careful ' + ' '.join(sys.argv[1:]))"),
    ("the mask of files", "import os, sys\nprint(oct(os.umask(0)), sys.argv[1:])"),
    ("limits", "import resource, sys\nprint(resource.getrlimit(resource.RLIMIT_NOFILE), sys.argv[1:])"),
    (
        "threads",
        "import threading, os, sys\nm = threading.main_thread()\nsys.argv[1:]\nprint(m.native_id == os.getpid(), m is \
            threading.current_thread(), \
     m.ident == threading.get_ident())\nt = threading.Thread(target=print, args=(sys.argv[1:],))\nt.start()\nt.join()",
    ),
    (
        "a child",
        "import os, sys\npid = os.fork()\nif pid == 0:\n  os._exit(len(sys.argv))\nprint(os.waitpid(pid, 0)[1])",
    ),
    ("the parent", "import os, sys\nprint(os.getpgid(0) > 0, os.getppid() > 0, len(sys.argv))"),
    (
        "hooks of forks",
        "import os, sys\nos.register_at_fork(after_in_child=lambda: print('child'), before=lambda: print('before'))\n\
     print(sys.argv[1:])",
    ),
    (
        "a seed",
        "import random, sys\nr = random.Random(len(sys.argv))\nprint(r.random())\nrandom.seed(1)\nprint(random.random(), \
     random.getstate()[0])",
    ),
    (
        "a logger",
        "import logging, sys\nlogging.basicConfig(format='%(levelname)s %(message)s')\nlogging.warning(sys.argv[1:])",
    ),
    (
        "many modules",
        "import subprocess, logging, random, threading, tempfile, argparse, json, selectors, datetime, hashlib, inspect\n\
     import sys, typing, dataclasses\nprint(sys.argv[1:], len(sys.modules), list(sys.modules)[-5:])",
    ),
    (
        "the collector",
        "import gc, sys\nprint(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), sys.argv[1:])",
    ),
    (
        "a nested touch",
        "import sys\nclass A:\n  def __init__(self): self.v = [x for x in map(len, sys.argv[1:])]\nprint(A().v)",
    ),
    (
        "a touch by a generator",
        "import sys\ndef g():\n  yield 1\n  yield from sys.argv[1:]\nprint(list(g()))",
    ),
    (
        "another interpreter",
        "try: import _interpreters as i\nexcept ImportError: import _xxsubinterpreters as i\nimport sys\nprint(sys.argv, flush=True)\n\
         k = i.create()\ni.run_string(k, 'import sys, os; print(sys.argv, getattr(sys, \"orig_argv\", 0), os.environ.get(\"A\"), \
         sys.stdin.read(), flush=True)')\ni.destroy(k)\nprint('end')",
    ),
    (
        "the arguments that the interpreter was given",
        "import sys\nprint(sys.argv)\nimport ctypes as c\nn, v = c.c_int(), c.POINTER(c.c_wchar_p)()\n\
         c.pythonapi.Py_GetArgcArgv(c.byref(n), c.byref(v))\nprint(n.value, v[1:n.value])",
    ),
    ("hashes of numbers", "import sys\nprint({3, 1, 2}, hash(1.5), sys.hash_info, sys.argv[1:])"),
];

#[test]
fn scripts_that_look_at_their_request_are_equal() {
    for (name, body) in WARM {
        println!("{name}");
        Script::new(body).equals(LISTS, Ends::Warm);
    }
}

#[test]
fn streams_without_buffers_are_equal() {
    let body = STREAMS
        .replace("s.buffer.raw.mode, s.buffer.raw.closefd,", "")
        .replace(", s.buffer.raw._blksize", "");
    Script::new(&body).with("PYTHONUNBUFFERED", "1").equals(LISTS, Ends::Warm);
}

#[test]
fn output_is_appended() {
    let mut script =
        Script::new("import sys\nprint(sys.argv[1:], sys.stdout.tell(), file=sys.stderr)\nprint('x')");
    script.before = "before\n";
    script.equals(LISTS, Ends::Warm);
}

#[test]
fn a_seed_of_hashes_is_in_the_key() {
    for seed in ["0", "7", "0"] {
        let script = Script::new(
            "import sys\nprint({'a', 'b', 'c', 'd', 'e'}, hash('x'), sys.flags.hash_randomization)",
        );
        script.with("PYTHONHASHSEED", seed).equals(LISTS, Ends::Warm);
    }
}

#[test]
fn the_mask_of_a_request_is_its_own() {
    let mut script = Script::new("import os, sys\nsys.argv[1:]\nprint(oct(os.umask(0)))");
    for umask in [0o077, 0o022, 0] {
        script.umask = Some(umask);
        let (ran, exit) = script.run(&script.launcher, &[]);
        assert_eq!((ran.stdout, exit.via), (format!("0o{umask:o}\n"), hotstart_launch::Via::Fork));
    }
}

#[test]
fn variables_that_are_read_are_in_the_key_and_others_are_replaced() {
    let mut script = Script::new(
        "import os\nmode = os.environ.get('MODE')\nimport sys\nprint(mode, sys.argv[1:], os.environ.get('X'))",
    );
    for (mode, x) in [("1", "a"), ("1", "b"), ("2", "b"), ("1", "a")] {
        script.env.retain(|(name, _)| name != "MODE" && name != "X");
        script.env.extend([("MODE".to_owned(), mode.to_owned()), ("X".to_owned(), x.to_owned())]);
        script.equals(LISTS, Ends::Warm);
    }
    script.env.retain(|(name, _)| name != "MODE");
    script.equals(LISTS, Ends::Warm);
}

#[test]
fn a_locale_of_the_request_is_kept() {
    let body = "import os, sys\nprint(sys.argv[1:], sys.stdout.encoding, sys.stdout.errors, [v for v in os.environ.items() \
        if v[0][0] == 'L'])";
    for (name, value) in [
        ("LC_ALL", "C"),
        ("LC_ALL", "C.UTF-8"),
        ("LANG", "C.UTF-8"),
        ("LC_CTYPE", "C"),
        ("PYTHONUTF8", "1"),
        ("PYTHONIOENCODING", "latin-1:replace"),
    ] {
        Script::new(body).with(name, value).equals(LISTS, Ends::Warm);
    }
}

#[test]
fn a_script_without_a_seed_of_hashes_is_cold_unless_it_may_share_one() {
    let body = "import sys\nprint(len({hash('a'), hash('b')}), sys.argv[1:])";
    let strict = |mut script: Script| {
        script.launcher = crate::harness::strict_launcher().into();
        script
    };
    strict(Script::new(body)).equals(LISTS, Ends::Cold(Reason::HashSeed));
    for seed in ["random", ""] {
        strict(Script::new(body).with("PYTHONHASHSEED", seed)).equals(LISTS, Ends::Cold(Reason::HashSeed));
    }
    // The same tool, first with a seed and then without one.
    let mut script = strict(Script::new(body).with("PYTHONHASHSEED", "3"));
    script.equals(LISTS, Ends::Warm);
    script.env.retain(|(name, _)| name != "PYTHONHASHSEED");
    script.equals(LISTS, Ends::Cold(Reason::HashSeed));
}
