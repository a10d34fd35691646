//! The end of a script, which a fork may spare itself as far as nobody sees it: equal to that of a cold start.

use hotstart_launch::{Launcher, Via};

use crate::harness::{Ends, Script};

const LISTS: &[&[&str]] = &[&["a"], &[], &["b", "c"]];

/// A class whose objects say that they end.
const LOUD: &str = "import sys\n\
 class D:\n  def __init__(self, n): self.n = n; self.me = self\n  def __del__(self): print('end', self.n)\n";

/// Scripts that print something when an object ends, made before the first look at the request or after it.
const SEEN: &[(&str, &str)] = &[
    ("a file that is read", "n = sys.argv[1:]\no = open('/etc/passwd')\no.readline()\ndef f(): return o"),
    (
        "a text over a class",
        "import io\nclass W(io.RawIOBase):\n  def writable(self): return True\n  def write(self, b): print(len(b)); return len(b)\n\
         n = sys.argv[1:]\no = io.TextIOWrapper(io.BufferedWriter(W()))\no.write('x')\ndef f(): return o",
    ),
    (
        "a text over another class",
        "import io\nclass W:\n  closed = False\n  def readable(self): return False\n  seekable = readable\n  def writable(self): \
         return True\n  def write(self, b): print(b)\n  def flush(self): pass\n  def close(self): print('close')\n\
         n = sys.argv[1:]\no = io.TextIOWrapper(W())\no.write('x')\ndef f(): return o",
    ),
    (
        "values of a thread",
        "import threading\nl = threading.local()\nn = sys.argv[1:]\nl.d = D(1)\ndef f(): return l",
    ),
    ("an object of before", "d = D(1)\nprint(sys.argv[1:])"),
    ("an object of after", "n = len(sys.argv)\nd = D(n)\ndef f(): return d\n"),
    ("both", "d = D(1)\nn = len(sys.argv)\ne = D(n)\nd.e = e"),
    (
        "an object that a function keeps",
        "def f(x=[]): return x\nn = len(sys.argv)\nf().append(D(n))\nf().append(f)",
    ),
    (
        "an object of a class without a dictionary",
        "class S:\n  __slots__ = ()\n  def __del__(self): print('small')\nn = sys.argv[1:]\ns = S()\ndef f(): return s",
    ),
    (
        "a class that gets a finalizer",
        "class C: pass\nc = C(); c.me = c\nn = sys.argv[1:]\nC.__del__ = lambda self: print('late')",
    ),
    (
        "an object that gets another class",
        "class C: pass\nc = C(); c.me = c\nn = sys.argv[1:]\nc.__class__ = D\nc.n = 7",
    ),
    (
        "a generator of before",
        "def g():\n  try: yield 1\n  finally: print('closed')\nh = g(); next(h)\nprint(sys.argv[1:])\ndef f(): return h",
    ),
    (
        "a generator of after",
        "def g():\n  try: yield 1\n  finally: print('closed')\nn = sys.argv[1:]\nh = g(); next(h)\ndef f(): return h",
    ),
    (
        "a context that is left open",
        "import contextlib\n@contextlib.contextmanager\ndef c():\n  try: yield 1\n  finally: print('left')\n\
         n = sys.argv[1:]\nk = c(); k.__enter__()",
    ),
    (
        "a weak reference of before",
        "import weakref\nclass C: pass\nc = C(); c.me = c\nw = weakref.ref(c, lambda r: print('dead'))\nprint(sys.argv[1:])\ndel c",
    ),
    (
        "a weak reference of after",
        "import weakref\nclass C: pass\nc = C()\nn = sys.argv[1:]\nw = weakref.ref(c, lambda r: print('dead'))\n\
         w2 = weakref.ref(c, print)",
    ),
    (
        "a finalizer",
        "import weakref\nclass C: pass\nc = C()\nweakref.finalize(c, print, 'final')\nprint(sys.argv[1:])",
    ),
    (
        "a file with text of its own",
        "n = sys.argv[1:]\no = open(1, 'w', closefd=False)\no.write('kept ' + str(n))\ndef f(): return o",
    ),
    (
        "another output",
        "import io\nn = sys.argv[1:]\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, line_buffering=False)\n\
         print('x', n)\ndef f(): return sys",
    ),
    ("an output without its buffer", "n = sys.argv[1:]\nb = sys.stdout.detach()\nb.write(b'bytes')"),
    (
        "a file of a library",
        "import tempfile\nn = sys.argv[1:]\nt = tempfile.TemporaryFile('w+')\nt.write('x')\nt.seek(0)\nprint(t.read())",
    ),
    (
        "a directory of a library",
        "import tempfile, os\nn = sys.argv[1:]\nt = tempfile.TemporaryDirectory()\nprint(os.path.isdir(t.name))",
    ),
    (
        "an exit function",
        "import atexit\ndef late():\n  global k\n  k = D(9)\n  print('exits')\natexit.register(late)\nprint(sys.argv[1:])",
    ),
    (
        "an exit function of after",
        "import atexit\nn = sys.argv[1:]\ndef late():\n  global k\n  k = D(9)\natexit.register(late)",
    ),
    (
        "no handler of interrupts",
        "import signal\nn = sys.argv[1:]\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\nd = D(3)",
    ),
    (
        "a thread",
        "import threading, time\nn = sys.argv[1:]\nt = threading.Thread(target=time.sleep, args=(99,), daemon=True)\n\
         t.start()\nd = D(4)",
    ),
    (
        "a child",
        "import os\nn = sys.argv[1:]\nsys.stdout.flush()\npid = os.fork()\nd = D('child' if pid == 0 else 'parent')\n\
         if pid: os.wait()",
    ),
    (
        "an interpreter that is replaced",
        "import os\nd = D(1)\nn = sys.argv[1:]\nsys.stdout.flush()\nos.execv('/bin/echo', ['echo', *n])",
    ),
    ("no errors' stream", "d = D(1)\nn = sys.argv[1:]\nsys.stderr = None\ne = D(2)\ne.me = e"),
    (
        "no errors' stream at all",
        "d = D(1)\nn = sys.argv[1:]\ndel sys.stderr, sys.__stderr__\ne = D(2)\ne.me = e",
    ),
    ("a closed errors' stream", "d = D(1)\nn = sys.argv[1:]\nsys.stderr.close()\ne = D(2)\ne.me = e"),
    (
        "another errors' stream",
        "d = D(1)\nn = sys.argv[1:]\nsys.stderr = open('/dev/null', 'w')\ne = D(2)\ne.me = e",
    ),
    (
        "an errors' stream that flushes late",
        "class F:\n  def __init__(self): self.me = self\n  def __del__(self):\n    sys.stderr = sys.__stderr__\n    \
         sys.stderr.flush()\nf = F()\nn = sys.argv[1:]\nsys.stderr = None\ne = D(2)",
    ),
    ("an error", "d = D(1)\nn = sys.argv[1:]\ne = D(2)\nraise ValueError(n)"),
    ("a status", "d = D(1)\nn = sys.argv[1:]\ne = D(2)\nsys.exit(5)"),
    (
        "a hook of errors",
        "sys.unraisablehook = lambda u: print(u.exc_value)\nclass E:\n  def __del__(self): 1/0\n\
     n = sys.argv[1:]\ne = E(); e.me = e",
    ),
    ("nothing", "print(sys.argv[1:])"),
    (
        "a weak proxy",
        "import weakref\nclass C: pass\nc = C(); c.me = c\nn = sys.argv[1:]\np = weakref.proxy(c, lambda r: print('gone'))\ndel c",
    ),
    (
        "a weak proxy of before",
        "import weakref\nclass C: pass\nc = C(); c.me = c\np = weakref.proxy(c, lambda r: print('gone'))\nn = sys.argv[1:]\ndel c",
    ),
    (
        "a weak method",
        "import weakref\nclass C:\n  def m(self): pass\nc = C(); c.me = c\nn = sys.argv[1:]\n\
         w = weakref.WeakMethod(c.m, lambda r: print('gone'))\ndel c",
    ),
    (
        "the key of a weak value",
        "import weakref\nclass K:\n  def __hash__(self): print('hashed'); return 3\nclass C: pass\nn = sys.argv[1:]\n\
         d = weakref.WeakValueDictionary()\nc = C(); c.me = c\nd[K()] = c\ndel c",
    ),
    (
        "a set of another class",
        "import weakref\nclass S(set):\n  def discard(self, i): print('discard'); set.discard(self, i)\nclass C: pass\n\
         n = sys.argv[1:]\nw = weakref.WeakSet(); w.data = S()\nc = C(); c.me = c; w.add(c)\ndel c",
    ),
    (
        "a function that calls itself the library's",
        "import weakref\nclass C: pass\nc = C(); c.me = c\nn = sys.argv[1:]\nspace = {}\n\
         exec(compile('def remove(r): print(1)', weakref.__file__, 'exec'), space)\nw = weakref.ref(c, space['remove'])\ndel c",
    ),
    (
        "an object that calls itself a function",
        "import weakref\ndef look(self): print('asked'); return None\n\
         F = type('function', (), {'__code__': property(look), '__call__': lambda self, r: None})\nclass C: pass\n\
         c = C(); c.me = c\nn = sys.argv[1:]\nw = weakref.ref(c, F())\ndel c",
    ),
    (
        "weak containers",
        "import weakref\nclass C: pass\nc = C(); c.me = c\nn = sys.argv[1:]\nw = weakref.WeakSet([c])\n\
         d = weakref.WeakValueDictionary(c=c)\nk = weakref.WeakKeyDictionary()\nk[c] = 1\ndel c\nprint(len(w), len(d), len(k))",
    ),
    (
        "a buffer that is released",
        "class B:\n  def __buffer__(self, flags): return memoryview(b'x')\n  def __release_buffer__(self, v): print('free')\n\
         n = sys.argv[1:]\nl = [memoryview(B())] if sys.version_info >= (3, 12) else []\nl.append(l)\ndel l",
    ),
    (
        "a capsule that calls back",
        "import ctypes\nn = sys.argv[1:]\nF = ctypes.CFUNCTYPE(None, ctypes.c_void_p)\nf = F(lambda c: print('freed'))\n\
         make = ctypes.pythonapi.PyCapsule_New\nmake.restype = ctypes.py_object\n\
         l = [make(ctypes.c_void_p(8), ctypes.c_char_p(None), f), f]\nl.append(l)\ndel l",
    ),
    (
        "a file that the thread keeps",
        "import threading\nn = sys.argv[1:]\nthreading.current_thread().out = open(1, 'w', closefd=False)\n\
         threading.current_thread().out.write('kept ' + str(n))",
    ),
    (
        "a file whose descriptor is closed",
        "import os\nn = sys.argv[1:]\no = [open('/etc/passwd')]; o.append(o)\nos.close(o[0].fileno())\ndel o",
    ),
    (
        "two files with one descriptor",
        "n = sys.argv[1:]\nf = open('/etc/passwd')\no = [f, open(f.fileno())]; o.append(o)\ndel f, o",
    ),
    (
        "what modules of the library keep",
        "import threading, random, logging, time, posix, _io\nn = sys.argv[1:]\nthreading.main_thread().d = D('thread')\n\
         random._inst.d = D('generator')\nlogging.d = D('logging')\ntime.d = D('time')\nposix.d = D('posix')\n_io.d = D('io')\n\
         for o in vars().copy().values():\n  if isinstance(o, D): o.me = None",
    ),
    (
        "weak references to what the runtime uses",
        "import threading, random, logging, time, posix, gc, weakref, _io\nn = sys.argv[1:]\nw = sys.stdout.write\n\
         o = [random._inst, random.Random.__base__, threading.main_thread(), logging, time, posix, gc.freeze, gc.get_debug, _io.open]\n\
         sys.keep = [weakref.ref(k, lambda r, i=i, o=sys.stdout: o.write(f'gone {i}\\n')) for i, k in enumerate(o)]\ndel o",
    ),
    (
        "another interpreter that is left",
        "try: import _interpreters as i\nexcept ImportError: import _xxsubinterpreters as i\nn = sys.argv[1:]\nk = i.create()\n\
         d = D(5)\ndef f(): return d",
    ),
    (
        "a function that is told of what happens",
        "import logging\nlogging.basicConfig()\nn = sys.argv[1:]\n\
         sys.addaudithook(lambda e, a: e == 'object.__getattr__' and sys.__stdout__.write(f'{e} {a[1]}\\n'))",
    ),
];

/// Scripts that ask the collector.
const ASKED: &[(&str, &str)] = &[
    (
        "an object that is collected",
        "import gc, weakref\nclass C: pass\nc = C(); c.me = c\nw = weakref.ref(c)\nn = sys.argv[1:]\ndel c\n\
         gc.collect()\nprint(w(), n)",
    ),
    (
        "all objects",
        "import gc\nclass C: pass\nc = C()\nn = sys.argv[1:]\n\
         print(len([o for o in gc.get_objects() if o is c]), gc.get_freeze_count())",
    ),
    (
        "referrers",
        "import gc\nclass C: pass\nc = C(); l = [c]\nn = sys.argv[1:]\nprint(any(r is l for r in gc.get_referrers(c)))",
    ),
    (
        "a freeze",
        "import gc\nn = sys.argv[1:]\nd = D(1)\ngc.freeze()\nprint(gc.get_freeze_count() > 1000)\ngc.unfreeze()\n\
         print(gc.get_freeze_count())",
    ),
    (
        "a callback",
        "import gc\nn = sys.argv[1:]\ngc.callbacks.append(lambda phase, info: print(phase))\ngc.collect()",
    ),
    (
        "a callback at the end",
        "import gc\nn = sys.argv[1:]\ngc.callbacks.append(lambda phase, info: print(phase))",
    ),
    (
        "garbage",
        "import gc\ngc.set_debug(gc.DEBUG_SAVEALL)\nn = sys.argv[1:]\nl = []; l.append(l); del l\ngc.collect()\n\
         print(len(gc.garbage) > 0)",
    ),
    (
        "subclasses",
        "import gc\nclass A: pass\nclass B(A): pass\nn = sys.argv[1:]\ndel B\ngc.collect()\nprint(A.__subclasses__())",
    ),
    (
        "the modules",
        "n = sys.argv[1:]\nprint('gc' in sys.modules, sorted(sys.modules) == sorted(set(sys.modules)))\nimport gc\n\
         print(gc.garbage, gc.callbacks)",
    ),
];

#[test]
fn the_end_of_objects_is_seen() {
    for (name, body) in SEEN.iter().chain(ASKED) {
        println!("{name}");
        Script::new(&format!("{LOUD}{body}\n")).equals_somehow(LISTS);
    }
}

/// What the collector reports has addresses.
#[test]
fn reports_of_the_collector_are_seen() {
    let body =
        "import gc, sys\nn = sys.argv[1:]\ngc.set_debug(gc.DEBUG_COLLECTABLE)\nl = []; l.append(l)\ndel l\n";
    let script = Script::new(body);
    let reports =
        |launcher: &Launcher| script.run(launcher, &["a"]).0.stderr.contains("gc: collectable <list");
    assert_eq!(script.first(&["a"]), Via::Fork);
    assert!(reports(&Launcher::new()) && reports(&script.launcher));
}

/// Scripts by whose end something is called that says "seen", each time. The collector finds it, since a function keeps the module.
const CALLED: &[(&str, &str)] = &[
    ("the close of a text in memory", "import io\no = io.StringIO()\no.close = seen"),
    ("the close of bytes in memory", "import io\no = io.BytesIO()\no.close = seen"),
    ("the close of a file that is read", "o = open('/etc/passwd')\no.close = seen"),
    ("the close of its buffer", "o = open('/etc/passwd', 'rb')\no.close = seen"),
    ("the close of its descriptor", "o = open('/etc/passwd', 'rb')\no.raw.close = seen"),
    (
        "the name of a file",
        "class N:\n  def __repr__(self): seen(); return 'n'\no = open('/etc/passwd', 'rb')\no.raw.name = N()",
    ),
    (
        "the close of the output",
        "class T: pass\nt = T(); t.o = sys.stdout; sys.stdout.t = t\nsys.stdout.close = seen\ndel t",
    ),
    ("the close of the errors", "sys.stderr.close = seen"),
    (
        "a pattern that is compared with a warning",
        "import warnings\nclass P:\n  def match(self, text, see=seen): see(); return None\n\
         warnings.filters.insert(0, ('ignore', P(), BytesWarning, None, 0))\no = [open('/etc/passwd')]; o.append(o)\ndel o",
    ),
    (
        "an iterator over a weak set",
        "import weakref\nclass P:\n  def append(self, r, see=seen): see()\nclass C: pass\nc = C(); c.me = c\n\
         w = weakref.WeakSet([c]); w._iterating = {1}; w._pending_removals = P()\ndel c",
    ),
    (
        "an iterator over weak keys",
        "import weakref\nclass I:\n  def __bool__(self, see=seen): see(); return False\nclass C: pass\nc = C(); c.me = c\n\
         k = weakref.WeakKeyDictionary(); k[c] = 1; k._iterating = I()\ndel c",
    ),
    (
        "a property of a weak set",
        "import weakref\nclass C: pass\nc = C(); c.me = c\nw = weakref.WeakSet([c])\n\
         weakref.WeakSet._iterating = property(lambda s, see=seen: see() and False, lambda s, v: None)\ndel c",
    ),
    (
        "another function of weak values",
        "import weakref\nclass C: pass\nc = C(); c.me = c\nd = weakref.WeakValueDictionary(c=c)\n\
         d._remove.__defaults__ = (d._remove.__defaults__[0], lambda *a, see=seen: see())\ndel c",
    ),
    (
        "a list of handlers",
        "import logging\nclass L(list):\n  def remove(self, r, see=seen): see()\n\
         logging._handlerList = L(logging._handlerList)\nh = logging.Handler(); h.me = h\ndel h",
    ),
    (
        "a lock of handlers",
        "import logging\nclass L:\n  def acquire(self, see=seen): see()\n  __enter__ = acquire\n  def release(self, *e): pass\n  \
         __exit__ = release\nh = logging.Handler(); h.me = h\nlogging._lock = L()\ndel h",
    ),
];

#[test]
fn what_the_end_of_an_object_calls_is_seen() {
    for (name, body) in CALLED {
        println!("{name}");
        let before = "import sys, os\nseen = lambda write=os.write: write(1, b'seen\\n')\nn = sys.argv[1:]\n";
        let script = Script::new(&format!("{before}{body}\ndef f(): return 1\nprint(n, flush=True)\n"));
        assert!(script.run(&Launcher::new(), &["a"]).0.stdout.contains("seen"), "{name}");
        script.equals(LISTS, Ends::Warm);
    }
}

/// Warnings of objects that the collector does not know, with their addresses.
#[test]
fn what_is_left_open_is_seen() {
    for body in [
        "i = os.scandir('/usr'); next(i)",
        "import _socket\ns = _socket.socket(); c = [s]; c.append(c)\ndel c, s",
    ] {
        let script = Script::new(&format!(
            "import sys, os, warnings\nn = sys.argv[1:]\nwarnings.simplefilter('always')\ndef f(): pass\n{body}\n"
        ));
        let warns =
            |launcher: &Launcher| script.run(launcher, &["a"]).0.stderr.contains("ResourceWarning: unclosed");
        assert_eq!(script.first(&["a"]), Via::Fork, "{body}");
        assert!(warns(&Launcher::new()), "{body}");
        assert!(warns(&script.launcher), "{body}");
    }
}

/// A reference of the runtime's would keep an object from its end.
#[test]
fn no_object_has_a_reference_more() {
    let body = "import sys\nimport gc, io, logging, os, random, threading, time, weakref\nn = sys.argv[1:]\n\
        def look(name, value):\n  \
          if not isinstance(value, (str, int, float, bytes, type(None))): print(name, sys.getrefcount(value))\n\
        for m in sorted(sys.modules):\n  look(m, sys.modules[m])\n  \
          for k in sorted(vars(sys.modules[m])):\n    if k != '__warningregistry__': look((m, k), vars(sys.modules[m])[k])\n\
        for t in (list, dict, io.TextIOWrapper, random.Random, random.Random.__base__, threading.Thread):\n  \
          for k in sorted(vars(t)): look((t, k), vars(t)[k])\n\
        for s in (sys.stdin, sys.stdout, sys.stderr): look(s.name, s)\n\
        look('thread', threading.main_thread())\nlook('list', os.environ._data)";
    Script::new(body).equals(LISTS, Ends::Warm);
}

#[test]
fn warnings_of_the_end_are_seen() {
    let body = "import sys\nn = sys.argv[1:]\nf = open('/etc/passwd')\ndef g(): return f\n";
    Script::new(body).with("PYTHONWARNINGS", "always").equals(LISTS, Ends::Warm);
    let own = format!("import warnings\nwarnings.simplefilter('always')\n{body}");
    Script::new(&own).equals(LISTS, Ends::Warm);
    // The same in a cycle, with one filter after the other.
    for filter in [
        "simplefilter('default', Warning)",
        "filterwarnings('error', category=ResourceWarning)",
        "simplefilter('always'); warnings.filterwarnings('ignore', category=ResourceWarning, lineno=99)",
        "resetwarnings()",
    ] {
        let after = format!("{body}import warnings\nwarnings.{filter}\nl = [f]; l.append(l)\ndel l, f, g\n");
        Script::new(&after).equals(LISTS, Ends::Warm);
    }
}
