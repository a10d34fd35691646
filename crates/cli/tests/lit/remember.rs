//! `--cache`: ways to make a remembered pass wrong. After each change the test has to run, and what cannot be followed always runs.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::suite::{Run, Suite};

/// Runs after which a test that can be remembered is: it may be in the sample, and find its own outputs only the second time.
const RUNS: usize = 8;

pub struct Place {
    pub suite: Suite,
    pub cache: tempfile::TempDir,
    pub env: Vec<(&'static str, String)>,
    args: Vec<&'static str>,
}

impl Place {
    pub fn new(run: &str) -> Place {
        let config = "import os\nif 'SEEN' in os.environ: config.environment['SEEN'] = os.environ['SEEN']\n\
                      config.environment['PATH'] = os.path.join(os.path.dirname(__file__), 'first') + ':' + \
                      os.path.join(os.path.dirname(__file__), 'bin') + ':/usr/bin:/bin'\n\
                      config.substitutions.append(('%word', open(os.path.join(os.path.dirname(__file__), 'word')).read()))\n";
        let suite = Suite::new(config);
        let place =
            Place { suite, cache: tempfile::tempdir().unwrap(), env: Vec::new(), args: vec!["--cache"] };
        for (name, text) in [
            ("word", "word"),
            ("data/file", "one\n"),
            ("data/other", "one\n"),
            ("data/list/a", ""),
            ("dir1/inner", "one\n"),
            ("dir2/inner", "two\n"),
            ("first/none", ""),
            ("Output/a.testx.tmp", ""),
        ] {
            place.suite.file(name, text);
        }
        symlink("dir1", place.path("link")).unwrap();
        fs::create_dir(place.path("bin")).unwrap();
        fs::copy("/bin/cat", place.path("bin/tool")).unwrap();
        place.suite.file("a.test", format!("RUN: {run}\n"));
        place
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.suite.path(name)
    }

    /// Runs the test. Returns its code, and whether it was not run.
    pub fn run(&self) -> (String, bool) {
        let (code, is_cached, _) = self.told();
        (code, is_cached)
    }

    /// Runs the test. Returns its code, whether it was not run, and what was printed.
    fn told(&self) -> (String, bool, String) {
        self.settle();
        let report = self.path("report.json");
        let _ = fs::remove_file(&report);
        let mut command =
            self.suite.command(&[&self.args[..], &["--explain", "-o", "report.json", "a.test"]].concat());
        command
            .env("HOTSTART_CACHE_DIR", self.cache.path())
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        let run = Run::from(command.output().unwrap());
        let text = fs::read_to_string(&report).unwrap_or_else(|_| panic!("{run:?}"));
        let report: Value = serde_json::from_str(&text).unwrap();
        let test = &report["tests"][0];
        (test["code"].as_str().unwrap().to_owned(), test["cached"] == true, format!("{run:?}"))
    }

    /// Whether the test is never remembered.
    pub fn is_never_remembered(&self) -> bool {
        (0..3).all(|_| !self.run().1)
    }

    /// Waits until the clock of files has gone on, so that a change is seen to be one.
    pub fn settle(&self) {
        let probe = self.path("probe");
        let changed = |path: &Path| {
            fs::write(path, "").unwrap();
            fs::metadata(path).unwrap().modified().unwrap()
        };
        let begun = changed(&probe);
        while changed(&probe) < begun + Duration::from_millis(110) {
            std::thread::yield_now();
        }
    }

    /// Whether the test is remembered in the end. If it is not, prints what each run said.
    pub fn is_remembered(&self) -> bool {
        let mut texts = Vec::new();
        for _ in 0..RUNS {
            let (_, is_cached, text) = self.told();
            if is_cached {
                return true;
            }
            texts.push(text);
        }
        eprintln!("never remembered:\n{}", texts.join("\n"));
        false
    }
}

pub type Change = (&'static str, &'static str, fn(&mut Place));

pub fn same_times(path: &Path, with: impl FnOnce()) {
    let before = fs::metadata(path).unwrap().modified().unwrap();
    with();
    File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(before)).unwrap();
}

/// A change that somebody could believe to be none: what a test runs, and what happens between two runs.
const CHANGES: &[Change] = &[
    ("content", "grep one %S/data/file", |at| drop(at.suite.file("data/file", "two\n"))),
    ("content of the same size and time", "grep one %S/data/file", |at| {
        let path = at.path("data/file");
        same_times(&path, || fs::write(&path, "two\n").unwrap());
    }),
    ("a file with the old times in its place", "grep one %S/data/file", |at| {
        let (path, new) = (at.path("data/file"), at.path("data/new"));
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&new, "two\n").unwrap();
        File::options()
            .write(true)
            .open(&new)
            .unwrap()
            .set_times(FileTimes::new().set_modified(before))
            .unwrap();
        fs::rename(new, path).unwrap();
    }),
    ("content by another name", "grep one %S/data/file", |at| {
        fs::hard_link(at.path("data/file"), at.path("name")).unwrap();
        at.suite.file("name", "two\n");
    }),
    ("time only", "stat -c %%Y %S/data/file", |at| {
        let file = File::options().write(true).open(at.path("data/file")).unwrap();
        file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH)).unwrap();
    }),
    ("mode", "test -x %S/bin/tool", |at| {
        fs::set_permissions(at.path("bin/tool"), PermissionsExt::from_mode(0o644)).unwrap();
    }),
    ("removed", "test -e %S/data/file", |at| fs::remove_file(at.path("data/file")).unwrap()),
    ("no longer missing", "not test -e %S/data/late", |at| drop(at.suite.file("data/late", ""))),
    ("a directory no longer missing", "not test -e %S/deep/down/late", |at| {
        drop(at.suite.file("deep/down/late", ""))
    }),
    ("a file in the place of a missing directory", "not test -e %S/deep/late", |at| {
        at.suite.file("deep/late", "");
    }),
    ("another target of a link", "grep one %S/link/inner", |at| {
        fs::remove_file(at.path("link")).unwrap();
        symlink("dir2", at.path("link")).unwrap();
    }),
    ("content behind a link", "grep one %S/link/inner", |at| drop(at.suite.file("dir1/inner", "two\n"))),
    ("a link in the place of a directory", "grep one %S/dir1/inner", |at| {
        fs::remove_dir_all(at.path("dir1")).unwrap();
        symlink("dir2", at.path("dir1")).unwrap();
    }),
    ("text of a link", "readlink %S/link | grep dir1", |at| {
        fs::remove_file(at.path("link")).unwrap();
        symlink("./dir1", at.path("link")).unwrap();
    }),
    ("what `stat` tells of a link", "stat -c %%Y %S/link", |at| {
        fs::remove_file(at.path("link")).unwrap();
        symlink("dir1", at.path("link")).unwrap();
    }),
    ("a directory behind a link and a dot", "stat -c %%a %S/link/.", |at| {
        fs::set_permissions(at.path("dir1"), PermissionsExt::from_mode(0o700)).unwrap();
    }),
    ("the time of a file's last change", "stat -c %%Z %S/data/file", |at| {
        for mode in [0o600, 0o644] {
            fs::set_permissions(at.path("data/file"), PermissionsExt::from_mode(mode)).unwrap();
        }
    }),
    ("an output that is gone", "echo x > %S/data/made", |at| fs::remove_file(at.path("data/made")).unwrap()),
    ("the mode of an output", "echo x > %S/data/made", |at| {
        fs::set_permissions(at.path("data/made"), PermissionsExt::from_mode(0o600)).unwrap();
    }),
    ("a file beside the outputs", "stat -c %%Y %S/Output/other || true", |at| {
        fs::create_dir_all(at.path("Output")).unwrap();
        at.suite.file("Output/other", "");
    }),
    (
        "the time of a file whose name begins as those of the outputs",
        "stat -c %%Y %S/Output/a.testx.tmp",
        |at| {
            let file = File::options().write(true).open(at.path("Output/a.testx.tmp")).unwrap();
            file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH)).unwrap();
        },
    ),
    ("an entry that became a pipe", "ls --file-type %S/data/list > %t", |at| {
        fs::remove_file(at.path("data/list/a")).unwrap();
        at.suite.fifo("data/list/a");
    }),
    ("an entry of a directory", "ls %S/data/list > %t && not grep b %t", |at| {
        drop(at.suite.file("data/list/b", ""))
    }),
    ("an entry that a pattern of the shell meets", "cat %S/data/f* > %t && not grep two %t", |at| {
        at.suite.file("data/fzz", "two\n");
    }),
    ("an entry that is another kind of file", "ls -p %S/data/list > %t && not grep / %t", |at| {
        fs::remove_file(at.path("data/list/a")).unwrap();
        fs::create_dir(at.path("data/list/a")).unwrap();
    }),
    ("the program", "tool %S/data/file", |at| {
        fs::remove_file(at.path("bin/tool")).unwrap();
        fs::copy("/bin/tac", at.path("bin/tool")).unwrap();
    }),
    ("a program earlier on the path", "tool %S/data/file", |at| {
        fs::copy("/bin/tac", at.path("first/tool")).unwrap();
    }),
    ("a variable", "true", |at| at.env.push(("SEEN", "other".to_owned()))),
    ("a library that is found earlier", "env LD_LIBRARY_PATH=%S/lib grep one %S/data/file", |at| {
        let dir = at.path("lib");
        fs::create_dir_all(&dir).unwrap();
        at.suite.file("lib/libc.so.6", "no library");
    }),
    ("the config", "echo %word", |at| drop(at.suite.file("word", "other"))),
    ("the script", "true", |at| drop(at.suite.file("a.test", "RUN: true && true\n"))),
    ("what the script is expected to do", "true", |at| {
        drop(at.suite.file("a.test", "RUN: true\nXFAIL: *\n"))
    }),
    ("a file that the shell opens", "true < %S/data/file", |at| {
        fs::remove_file(at.path("data/file")).unwrap();
    }),
    ("a file that the shell compares", "diff %S/data/file %S/data/other", |at| {
        at.suite.file("data/other", "two\n");
    }),
    ("a file that the shell prints", "cat %S/data/file > %t && grep one %t", |at| {
        drop(at.suite.file("data/file", "two\n"))
    }),
    ("a file that the script is made of", "echo %{readfile:%S/data/file} | grep one", |at| {
        at.suite.file("data/file", "two\n");
    }),
    ("a file that is appended to", "echo x >> %S/data/file && grep one %S/data/file", |at| {
        at.suite.file("data/file", "two\n");
    }),
    ("a file that is copied", "cp %S/data/file %t && grep one %t", |at| {
        drop(at.suite.file("data/file", "two\n"))
    }),
    ("a file that is read from a directory", "cd %S/data && grep one file", |at| {
        drop(at.suite.file("data/file", "two\n"))
    }),
    ("an output that the test left behind and reads", "touch %t && cp %t %t.2 && not grep one %t", |at| {
        at.suite.file("Output/a.test.tmp", "one\n");
    }),
    ("another name of an output", "test -e %t || touch %t && stat -c %%h %t | grep -x 1", |at| {
        fs::hard_link(at.path("Output/a.test.tmp"), at.path("hard")).unwrap();
    }),
    ("a directory within an output", "test -d %t || mkdir %t && stat -c %%h %t > /dev/null", |at| {
        fs::create_dir(at.path("Output/a.test.tmp/sub")).unwrap();
    }),
    (
        "the size of a directory that is an output",
        "test -d %t || mkdir %t && stat -c %%s %t > /dev/null",
        |at| {
            for number in 0..400 {
                fs::write(at.path(&format!("Output/a.test.tmp/{number:0>80}")), "").unwrap();
            }
        },
    ),
    ("an output that the test does not expect", "mkdir -p %t && not test -e %t/late", |at| {
        at.suite.file("Output/a.test.tmp/late", "");
    }),
    (
        "a file in a directory that could not be replaced",
        "rm -rf %t && mkdir %t && not mv -T %t %S/data && grep one %S/data/file",
        |at| drop(at.suite.file("data/file", "two\n")),
    ),
    ("a file in a directory that could not be removed", "not rmdir %S/data && grep one %S/data/file", |at| {
        at.suite.file("data/file", "two\n");
    }),
    ("the limits", "true", |at| at.args.push("--timeout=77")),
    ("the stored knowledge", "true", |at| {
        for entry in fs::read_dir(at.cache.path().join("verdicts")).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(path, bytes).unwrap();
        }
    }),
];

#[test]
fn after_each_change_the_test_runs() {
    check_all(CHANGES, Place::new);
}

/// Makes each change in a place of its own, and has its test run afterwards.
pub fn check_all(changes: &[Change], make: fn(&str) -> Place) {
    let missed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for part in changes.chunks(changes.len().div_ceil(4)) {
            scope.spawn(|| {
                part.iter().for_each(|change| {
                    let found = check(change, make(change.1));
                    missed.lock().unwrap().extend(found);
                })
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "{missed:#?}");
}

fn check((what, run, change): &Change, mut place: Place) -> Option<String> {
    // A test that writes to its inputs changes them with each run, and is never remembered.
    let is_stable = !run.contains(">> %S");
    if place.is_remembered() != is_stable {
        return Some(format!("{what}: remembered: {}, by {:?}", !is_stable, place.run()));
    }
    change(&mut place);
    place.run().1.then(|| format!("{what}: not run"))
}

/// Tests that depend on what no key can hold, and those that never count as passes.
const NEVER: &[&str] = &[
    "date",
    "sh -c 'test $$ -gt 1'",
    "head -c 4 /dev/urandom > %t",
    "cat /proc/self/status",
    "cat /proc/uptime",
    // Beside other stages lit's Python runs it, which reads random bytes.
    "cat %S/data/file | grep one",
    "uptime",
    "bash -c 'echo $RANDOM'",
    "%python -c 'import time; print(time.time())'",
    "%python -c 'import os; print(os.urandom(2))'",
    "%python -c 'import socket; socket.socket()'",
    "df /",
    "head -n 1 /proc/sys/kernel/hostname",
    "mktemp %t.XXXXXX",
    "false",
];

#[test]
fn what_cannot_be_followed_always_runs() {
    for run in NEVER {
        let place = Place::new(&run.replace("%python", &crate::suite::lit_python().display().to_string()));
        assert!(place.is_never_remembered(), "{run}");
    }
}

#[test]
fn a_process_that_a_test_leaves_is_not_waited_for() {
    let place = Place::new("setsid -f sleep 30 > %t 2>&1");
    let begun = std::time::Instant::now();
    assert_eq!(place.run(), ("PASS".to_owned(), false));
    assert!(begun.elapsed() < Duration::from_secs(25));
}

#[test]
fn other_times_are_no_change_if_only_content_counts() {
    let mut place = Place::new("grep one %S/data/file");
    place.args = vec!["--cache-by-content"];
    assert!(place.is_remembered());
    fs::remove_file(place.path("data/file")).unwrap();
    place.suite.file("data/file", "one\n");
    assert!(place.is_remembered());
    let traced = Command::new(env!("CARGO_BIN_EXE_hotstart"))
        .args(["cache", "stats"])
        .env("HOTSTART_CACHE_DIR", place.cache.path())
        .output();
    assert!(String::from_utf8_lossy(&traced.unwrap().stdout).contains("tests with known inputs: 1"));
    place.suite.file("data/file", "two\n");
    assert_eq!(place.run(), ("FAIL".to_owned(), false));
}

#[test]
fn a_program_that_has_just_changed_is_traced_by_the_next_run() {
    let place = Place::new("tool %S/data/file");
    assert!(place.is_remembered());
    fs::remove_file(place.path("bin/tool")).unwrap();
    fs::copy("/bin/cat", place.path("bin/tool")).unwrap();
    let told = || {
        place.settle();
        let mut command = place.suite.command(&["--cache", "a.test"]);
        let out = command.env("HOTSTART_CACHE_DIR", place.cache.path()).output().unwrap();
        String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout)
    };
    let (first, second) = (told(), told());
    assert!(
        first.contains("0 traced") && first.contains("1 tests use a program that has just changed"),
        "{first}"
    );
    assert!(second.contains("1 traced") && !second.contains("just changed"), "{second}");
    assert!(place.is_remembered());
}

#[test]
fn inputs_and_affected_tests_are_listed() {
    let place = Place::new("cat %S/data/file");
    assert!(place.is_remembered());
    let list = |args: &[&str]| {
        let mut command = place.suite.command(args);
        let out = command.env("HOTSTART_CACHE_DIR", place.cache.path()).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    assert!(
        list(&["--inputs", "a.test"])
            .contains(&format!("read        {}", place.path("data/file").canonicalize().unwrap().display()))
    );
    assert_eq!(list(&["--cache", "--affected", "data/file", "a.test"]), "t :: a.test\n");
    for other in ["data/other", "data/lit.cfg", "b.test"] {
        assert_eq!(list(&["--cache", "--affected", other, "a.test"]), "", "{other}");
    }
    // The test itself, and its config.
    for own in ["a.test", "link/../a.test", "lit.cfg", "lit.local.cfg"] {
        assert_eq!(list(&["--cache", "--affected", own, "a.test"]), "t :: a.test\n", "{own}");
    }
}

#[test]
fn affected_tests_are_found_by_paths_through_links() {
    let place = Place::new("readlink %S/dir1/last && not test -e %S/dir1/late/file");
    symlink("inner", place.path("dir1/last")).unwrap();
    assert!(place.is_remembered());
    for name in ["link/last", "link/late", "link/late/file", "dir1/last", "link/../dir1/last"] {
        let mut command = place.suite.command(&["--cache", "--affected", name, "a.test"]);
        let out = command.env("HOTSTART_CACHE_DIR", place.cache.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&out.stdout), "t :: a.test\n", "{name}");
    }
}

/// A container has another name in each run. Only a test that asks for it runs again.
#[test]
fn another_name_of_the_machine_matters_to_who_asks_for_it() {
    const NAMED: &str =
        "import os, socket, sys\nsocket.sethostname(sys.argv[1])\nos.execv(sys.argv[2], sys.argv[2:])";
    let is_root = rustix::process::geteuid().is_root();
    let spaces: &[&str] = if is_root { &["--uts"] } else { &["--user", "--map-root-user", "--uts"] };
    let run = |place: &Place, name: &str| {
        place.settle();
        let told = place.suite.command(&["--cache", "-o", "report.json", "a.test"]);
        let mut command = Command::new("unshare");
        command.args(spaces).arg(crate::suite::lit_python()).args(["-c", NAMED, name]);
        command.arg(told.get_program()).args(told.get_args()).current_dir(told.get_current_dir().unwrap());
        for (name, value) in told.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let output = command.env("HOTSTART_CACHE_DIR", place.cache.path()).output().unwrap();
        let text = fs::read_to_string(place.path("report.json")).unwrap_or_else(|_| panic!("{output:?}"));
        let report: Value = serde_json::from_str(&text).unwrap();
        report["tests"][0]["cached"] == true
    };
    let is_allowed = Command::new("unshare").args(spaces).arg("true").status();
    if !is_allowed.is_ok_and(|status| status.success()) {
        return skipped("no process may have another host name here");
    }
    for (line, asks) in [("cat %S/data/file", false), ("uname -n", true)] {
        let place = Place::new(line);
        assert!((0..RUNS).any(|_| run(&place, "one")), "{line}");
        assert_eq!((0..RUNS).all(|number| !run(&place, &format!("other{number}"))), asks, "{line}");
    }
}

/// Says why nothing is tested, past the test harness, which keeps the output of tests that pass.
fn skipped(why: &str) {
    std::io::Write::write_all(&mut std::io::stderr(), format!("skipped: {why}\n").as_bytes()).unwrap();
}
