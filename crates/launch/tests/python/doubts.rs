//! What a script does before it looks at its request: equal to a cold start, whether it stops before that or is cold.

use std::collections::BTreeSet;

use hotstart_launch::{Launcher, Reason, Via};

use crate::harness::{Ends, Script};

const LISTS: &[&[&str]] = &[&["a"], &[], &["b", "c"]];

/// Scripts that are cold, for this reason.
const COLD: &[(&str, &str, Reason)] = &[
    (
        "a date",
        "import datetime\nt = datetime.datetime.now()\nimport sys\nsys.argv[1:]\nprint(t.year > 2000)",
        Reason::ReadsClock,
    ),
    (
        "a file that is left open",
        "f = open('/etc/passwd')\nimport sys\nsys.argv[1:]\nprint(len(f.readline()) > 1)",
        Reason::Descriptors,
    ),
    ("the type of the arguments", "import sys\nprint(type(sys.argv) is list)", Reason::NotPython),
    ("arguments behind a list", "import sys\nprint((['x'] + sys.argv)[2:])", Reason::NotPython),
    ("arguments copied", "import sys, copy\nprint(copy.copy(sys.argv)[1:])", Reason::NotPython),
    ("arguments pickled", "import pickle, sys\nprint(len(pickle.dumps(sys.argv)))", Reason::NotPython),
    (
        "another locale",
        "import locale\nlocale.setlocale(locale.LC_ALL, 'C')\nimport sys\nprint(sys.argv[1:], 'é')",
        Reason::NotPython,
    ),
    ("no look at all", "x = 1", Reason::NotPython),
    (
        "memory that is counted",
        "import tracemalloc\ntracemalloc.start()\nimport sys\nsys.argv[1:]\nprint(tracemalloc.get_traced_memory()[1] > 10000)",
        Reason::NotPython,
    ),
    ("an error", "1/0", Reason::NotPython),
    ("an error of syntax", "x = (", Reason::NotPython),
    ("an exit", "import sys\nsys.exit(4)", Reason::NotPython),
    (
        "the output past its type",
        "import io, sys\nio.TextIOWrapper.write(sys.stdout, 'x')\nsys.stdout.flush()",
        Reason::NotPython,
    ),
];

/// Scripts that go round a trap: each stops before that, is cold, or is equal although it was warm.
const ROUND: &[(&str, &str)] = &[
    ("arguments backwards", "import sys\nr = reversed(sys.argv)\nn = len(sys.argv)\nprint(n, list(r))"),
    (
        "variables backwards",
        "import posix, sys\nr = reversed(posix.environ)\nn = sys.argv[1:]\nprint(n, len(list(r)))",
    ),
    ("a list compared with arguments", "import sys\nprint(['tool', 'a'] == sys.argv, ['x', 'y'] < sys.argv)"),
    ("arguments as text", "import sys\nprint(f'{sys.argv}', format(sys.argv), '%s' % sys.argv)"),
    (
        "the number of arguments by the type",
        "import sys\nn = list.__len__(sys.argv)\nsys.argv[1:]\nprint(n, len(sys.argv))",
    ),
    ("an iterator by the type", "import sys\ni = list.__iter__(sys.argv)\nsys.argv[1:]\nprint(len(list(i)))"),
    (
        "a bound method by the type",
        "import sys\nk = object.__getattribute__(sys.argv, '__len__')()\nsys.argv[1:]\nprint(k, sys.argv)",
    ),
    (
        "a buffer by the type",
        "import sys\nb = object.__getattribute__(sys.stdout, 'buffer')\nsys.argv[1:]\nprint(b is sys.stdout.buffer)",
    ),
    (
        "a stream set up by the type",
        "import io, sys\nio.TextIOWrapper.reconfigure(sys.stdout, errors='replace')\nsys.argv[1:]\nprint(sys.stdout.errors)",
    ),
    (
        "a getter of the type",
        "import io, sys\nb = io.TextIOWrapper.buffer.__get__(sys.stdout)\nsys.argv[1:]\nprint(b is sys.stdout.buffer)",
    ),
    (
        "a check of the type",
        "import io, sys\nprint(isinstance(sys.stdout, io.TextIOWrapper), isinstance(sys.argv, list), sys.argv[1:])",
    ),
    ("a stream that is entered", "import sys\nwith sys.stdin as f: print(f.read(), sys.argv[1:])"),
    (
        "an attribute without a name",
        "import sys\nprint(hasattr(sys.stdout, ''), hasattr(sys.stdout, 'isatty fileno'), sys.argv[1:])",
    ),
    (
        "a table of translation",
        "import posix, sys\ntry: r = str.maketrans(posix.environ)\nexcept (TypeError, ValueError) as e: r = str(e)\nprint(r, sys.argv[1:])",
    ),
    (
        "a type of the environment",
        "import posix, sys\nT = type('T', (), posix.environ)\nsys.argv[1:]\nprint(vars(T).get(b'A'), sys.argv[1:])",
    ),
    (
        "code in the environment",
        "import os, sys\nexec('x = 1', os.environ._data)\nsys.argv[1:]\nprint('x' in os.environ._data, sys.argv[1:])",
    ),
    (
        "another posix",
        "import sys\ndel sys.modules['posix']\nimport posix\ne = posix.environ\nv = e.get(b'A'), len(e)\n\
         sys.argv[1:]\nprint(v, sys.argv[1:])",
    ),
    (
        "posix made anew",
        "import importlib, posix, sys\nimportlib.reload(posix)\nprint(len(posix.environ), sys.argv[1:])",
    ),
    (
        "another os",
        "import sys\nfor k in ('posix', 'os'): del sys.modules[k]\nimport os\n\
         v = os.environ.get('A'), os.environ.get('LD_PRELOAD')\nsys.argv[1:]\nprint(v, sys.argv[1:])",
    ),
    (
        "another sys",
        "import sys\no = sys\ndel sys.modules['sys']\nimport sys\nprint(hasattr(sys, 'argv'), o.argv[1:])",
    ),
    (
        "threads that are forgotten",
        "import sys, threading, os\nt = threading\ndel sys.modules['threading']\nsys.argv[1:]\n\
         print(t.main_thread().native_id - os.getpid())",
    ),
    (
        "another main thread",
        "import sys, threading, os\nm = threading._main_thread\nthreading._main_thread = type('F', (), {})()\n\
         sys.argv[1:]\nthreading._main_thread = m\nprint(m.native_id - os.getpid())",
    ),
    (
        "threads imported twice",
        "import sys, threading\ndel sys.modules['threading']\nimport threading\nsys.argv[1:]\nimport os\n\
         print(threading.main_thread().native_id == os.getpid())",
    ),
    (
        "a logger that is forgotten",
        "import logging, sys, time\nl = sys.modules.pop('logging')\nsys.argv[1:]\nprint(0 <= time.time() - l._startTime < 9)",
    ),
    (
        "a logger imported twice",
        "import logging, sys, time\ndel sys.modules['logging']\nimport logging\nsys.argv[1:]\n\
         print(0 <= time.time() - logging._startTime < 9)",
    ),
    (
        "another interpreter of before",
        "try: import _interpreters as i\nexcept ImportError: import _xxsubinterpreters as i\nk = i.create()\n\
         i.run_string(k, 'import sys; print(sys.argv, flush=True)')\nimport sys\nprint(sys.argv)",
    ),
    (
        "a signal of the parent's death",
        "import sys\nsys.argv[1:]\nimport ctypes\nb = ctypes.c_int(7)\nctypes.CDLL(None).prctl(2, ctypes.byref(b))\nprint(b.value)",
    ),
];

/// Scripts that stop before what they do, whose results are the same in each run.
const STOPPED: &[(&str, &str)] = &[
    ("a collection", "import gc, sys\nprint(gc.collect() >= 0, sys.argv[1:])"),
    (
        "paths",
        "import pathlib, sys\nprint(pathlib.Path('/etc/passwd').exists(), pathlib.Path('/').is_dir(), sys.argv[1:])",
    ),
    (
        "a profile",
        "import cProfile, sys\np = cProfile.Profile()\np.enable()\np.disable()\nprint(sys.argv[1:])",
    ),
    (
        "a monitor",
        "import sys\nm = getattr(sys, 'monitoring', None)\nif m: m.use_tool_id(0, 'x')\nprint(sys.argv[1:])",
    ),
    (
        "references",
        "import sys\nn = sys.getrefcount(sys.argv)\nm = sys.getrefcount(sys.stdout)\nprint(n, m, sys.argv[1:])",
    ),
    ("a size", "import sys\nprint(sys.getsizeof(sys.argv), sys.getsizeof(sys.stdout))"),
    ("another generator", "import random, sys\nr = random.Random()\nprint(r.random() < 1, sys.argv[1:])"),
    (
        "random numbers seeded",
        "import random\nrandom.seed(1)\nimport sys\nprint(random.random(), sys.argv[1:])",
    ),
    (
        "random numbers drawn",
        "import random\nx = random.random()\nimport sys\nprint(0 <= x < 1, sys.argv[1:])",
    ),
    (
        "the time",
        "import time, sys\nt = time.time()\nprint(t > 1e9, time.strftime('%Y') > '2000', sys.argv[1:])",
    ),
    ("a sleep", "import time, sys\ntime.sleep(0.001)\nprint(sys.argv[1:])"),
    (
        "the number of the process",
        "import os, sys\np = os.getpid()\nprint(p == int(os.readlink('/proc/self')), sys.argv[1:])",
    ),
    ("the directory", "import os\nhere = os.getcwd()\nprint(here)"),
    (
        "a relative file",
        "import os\nopen('made', 'w').write('1')\nprint(open('made').read(), os.path.exists('made'))\nos.remove('made')",
    ),
    (
        "a relative path",
        "import os\nprint(os.path.exists('bin'), os.listdir('.'), os.stat('bin').st_size > 0)",
    ),
    (
        "a thread",
        "import threading, sys\nt = threading.Thread(target=lambda: None)\nt.start()\nt.join()\nprint(sys.argv[1:], t.native_id > 1)",
    ),
    (
        "a child",
        "import subprocess, sys\no = subprocess.run(['echo', 'x'], capture_output=True).stdout\nprint(o, sys.argv[1:])",
    ),
    ("a fork", "import os, sys\npid = os.fork()\nif pid == 0: os._exit(0)\nos.wait()\nprint(sys.argv[1:])"),
    (
        "a socket",
        "import socket, sys\na, b = socket.socketpair()\na.send(b'x')\nprint(b.recv(1), sys.argv[1:])",
    ),
    ("a pipe", "import os, sys\nr, w = os.pipe()\nos.write(w, b'x')\nprint(os.read(r, 1), sys.argv[1:])"),
    (
        "a signal",
        "import signal, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.alarm(100)\nprint(signal.alarm(0) > 1, sys.argv)",
    ),
    ("the mask", "import os, sys\nos.umask(0o77)\nprint(oct(os.umask(0)), sys.argv[1:])"),
    (
        "a limit",
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_CORE, (0, \
            0))\nprint(resource.getrlimit(resource.RLIMIT_CORE), sys.argv[1:])",
    ),
    (
        "a variable",
        "import os, sys\nos.environ['NEW'] = 'x'\nos.putenv('P', 'y')\nprint(os.environ['NEW'], os.popen('echo $P').read(), sys.argv[1:])",
    ),
    ("a change of directory", "import os, sys\nos.chdir('/')\nprint(os.getcwd(), sys.argv[1:])"),
    ("random bytes", "import os, sys\nx = os.urandom(8)\nprint(len(x), sys.argv[1:])"),
    (
        "a tracer",
        "import sys\nseen = []\nsys.settrace(lambda f, e, a: seen.append(e))\nimport \
            json\nsys.settrace(None)\nprint(len(seen) > 0, sys.argv[1:])",
    ),
    (
        "an audit hook",
        "import sys\nseen = []\nsys.addaudithook(lambda e, a: seen.append(e))\nopen('/dev/null').close()\nprint(seen[:3], sys.argv[1:])",
    ),
    (
        "the objects of the collector",
        "import gc, sys\nprint(sys.argv[1:] in gc.get_objects(), len([o for o in gc.get_objects() if o is sys.argv]))",
    ),
    (
        "a fault handler",
        "import faulthandler, sys\nfaulthandler.enable()\nprint(faulthandler.is_enabled(), sys.argv[1:])",
    ),
    ("shared memory", "import mmap, sys\nm = mmap.mmap(-1, 4096)\nm[0] = 1\nprint(m[0], sys.argv[1:])"),
    ("another output", "import sys\nsys.stdout = open(1, 'w', closefd=False)\nprint(sys.argv[1:])"),
    ("a printed line", "print('first')\nimport sys\nprint(sys.argv[1:])"),
    (
        "an answer of the terminal",
        "import os, sys, shutil\nprint(shutil.get_terminal_size(), os.isatty(1), sys.stdout.isatty())",
    ),
    ("the processors", "import os, sys\nprint(os.cpu_count(), len(os.sched_getaffinity(0)), sys.argv[1:])"),
    (
        "the user",
        "import os, pwd, sys\nprint(os.getuid(), pwd.getpwuid(os.getuid()).pw_name, os.path.expanduser('~'), sys.argv[1:])",
    ),
    (
        "a stopwatch",
        "import time, sys\nt = time.perf_counter()\nprint(time.perf_counter() >= t, time.process_time() < 60, sys.argv[1:])",
    ),
];

#[test]
fn scripts_with_a_doubt_are_cold() {
    for (name, body, reason) in COLD {
        println!("{name}");
        Script::new(body).equals(LISTS, Ends::Cold(*reason));
    }
}

#[test]
fn scripts_that_stop_before_a_doubt_are_equal() {
    for (name, body) in STOPPED {
        println!("{name}");
        Script::new(body).equals_somehow(LISTS);
    }
}

#[test]
fn scripts_that_go_round_a_trap_are_equal() {
    for (name, body) in ROUND {
        println!("{name}");
        let script = Script::new(body);
        script.equals_somehow(LISTS);
        // The zygote, if there is one, was made with another number of variables.
        script.with("B", "2").with("C", "3").equals_somehow(LISTS);
    }
}

/// What ten runs print, and whether any of them was warm.
fn printed(script: &Script) -> (BTreeSet<String>, bool) {
    let runs: Vec<_> = (0..10).map(|_| script.run(&script.launcher, &["x"])).collect();
    let is_warm = runs.iter().any(|(_, exit)| exit.via == Via::Fork);
    (runs.into_iter().map(|(ran, _)| ran.stdout).collect(), is_warm)
}

#[test]
fn what_is_random_is_fresh_in_each_run() {
    for body in [
        "import random, sys\nsys.argv[1:]\nprint(random.random())",
        "import random, sys\nsys.argv[1:]\nprint(random.randrange(1 << 60))",
        "import uuid\nprint(uuid.uuid4())",
        "import tempfile\nprint(tempfile.mktemp())",
        "import secrets\nprint(secrets.token_hex())",
        "import os\nprint(os.getpid())",
        "import threading, sys\nsys.argv[1:]\nprint(threading.main_thread().native_id)",
        "import random, sys\nr = sys.modules.pop('random')\nsys.argv[1:]\nprint(r.random())",
        "import random, sys\ndel sys.modules['random']\nimport random as r\nsys.argv[1:]\nprint(r.random())",
        "import threading as t, sys\ndel sys.modules['threading']\nsys.argv[1:]\nprint(t.main_thread().native_id)",
        "import logging, sys\nsys.argv[1:]\nprint(logging._startTime)",
        "import time\nprint(time.time_ns())",
    ] {
        let script = Script::new(body);
        let (texts, is_warm) = printed(&script);
        // Python before 3.11 seeds each generator, and is cold.
        let may_be_cold = body.contains("secrets") || body.contains("random as r");
        assert!(texts.len() == 10 && (is_warm || may_be_cold), "{body}: {texts:?} {}", script.why());
    }
}

#[test]
fn a_file_that_is_read_or_missed_is_looked_for_each_time() {
    let script = Script::new(
        "import os, sys\nhome = os.path.dirname(__file__)\n\
        text = open(home + '/data').read() if os.path.exists(home + '/data') else 'none'\n\
        try:\n  import helper\n  text += helper.NAME\nexcept ImportError: text += ' alone'\nprint(text, sys.argv[1:])",
    );
    let equal = || script.equals(LISTS, Ends::Warm);
    equal();
    for text in ["1", "22", "1"] {
        script.beside("data", text);
        equal();
        script.beside("helper.py", &format!("NAME = 'helper {text}'\n"));
        equal();
    }
    std::fs::remove_file(script.home().join("data")).unwrap();
    script.beside("x", "");
    equal();
    script.write("import sys\nprint('another', sys.argv)");
    equal();
}

#[test]
fn a_stream_that_python_opens_otherwise_is_cold() {
    let script = Script::new("import sys\nprint(sys.argv[1:])");
    script.equals(LISTS, Ends::Warm);
    let directory = std::fs::File::open("/").unwrap();
    let null = std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
    let stdio = [&directory, &null, &null].map(std::os::fd::AsFd::as_fd);
    let started = |launcher: &Launcher| script.start(launcher, &[], stdio).unwrap();
    let (cold, warm) = (started(&Launcher::new()), started(&script.launcher));
    assert_eq!((warm.via, warm.status), (Via::Cold(Reason::LooksAtStream), cold.status));
}

#[test]
fn variables_of_python_are_known_or_the_start_is_cold() {
    let body = "import sys\nprint(sys.argv[1:], sys.flags)";
    Script::new(body).with("PYTHONOPTIMIZE", "1").equals(LISTS, Ends::Warm);
    Script::new(body).with("PYTHONPATH", "/usr/lib:/usr/share").equals(LISTS, Ends::Warm);
    for (name, value, reason) in
        [("PYTHONINSPECT", "1", Reason::ReadsEnvironment), ("PYTHONDEVMODE", "1", Reason::ReadsEnvironment)]
    {
        Script::new(body).with(name, value).equals(LISTS, Ends::Cold(reason));
    }
    for relative in ["lib", "/usr/lib:"] {
        Script::new(body).with("PYTHONPATH", relative).equals_cold(LISTS);
    }
}

#[test]
fn scripts_are_cold_unless_they_are_asked_for() {
    let script = Script::new("import sys\nprint(sys.argv)");
    let policy =
        hotstart_launch::Policy { choice: hotstart_launch::Choice::Auto { after: 0 }, ..Default::default() };
    let (_, exit) = script.run(&Launcher::new().with_policy(policy), &[]);
    assert!(matches!(exit.via, Via::Cold(Reason::Script | Reason::NotElf)), "{:?}", exit.via);
}

#[test]
fn a_script_whose_files_change_all_the_time_is_given_up() {
    let body = "import os\nos.lstat(os.path.dirname(__file__))\nimport sys\nprint(sys.argv[1:])";
    let script = Script::new(body);
    let mut last = None;
    for index in 0..20 {
        script.beside(&format!("file{index}"), "");
        last = Some(script.run(&script.launcher, &["x"]).1.via);
    }
    assert_eq!(last, Some(Via::Cold(Reason::FilesChanging)), "{}", script.why());
    assert!(script.launcher.statistics().tools[0].observed < 16, "{}", script.why());
}
