//! `hotstart filecheck`, and FileChecks in `hotstart lit`, compared with an installed FileCheck.
//!
//! Needs a FileCheck of LLVM 15 or newer in /usr/lib/llvm-*/bin; without one, the tests say so and check nothing.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Says why nothing is tested, past the test harness, which keeps the output of tests that pass.
fn skipped(why: &str) {
    std::io::stderr().write_all(format!("not tried: {why}\n").as_bytes()).unwrap();
}

fn installed() -> Option<PathBuf> {
    let dirs = fs::read_dir("/usr/lib").ok()?.filter_map(|dir| Some(dir.ok()?.path()));
    let version = |dir: &PathBuf| dir.file_name()?.to_str()?.strip_prefix("llvm-")?.parse::<u32>().ok();
    let known = dirs.filter(|dir| version(dir).is_some_and(|version| version >= 15));
    let found = known.map(|dir| dir.join("bin/FileCheck")).find(|file| file.is_file());
    if found.is_none() {
        skipped("no FileCheck of LLVM 15 or newer is installed: nothing to compare with");
    }
    found
}

fn run(program: &Path, args: &[&str], dir: &Path, input: &str) -> Output {
    let mut child = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("HOTSTART_CACHE_DIR", dir.join("cache"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // FileCheck may end without reading.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn the_command_answers_as_filecheck_does() {
    let Some(filecheck) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let hotstart = Path::new(env!("CARGO_BIN_EXE_hotstart"));
    fs::write(dir.path().join("check"), "CHECK: a{{[0-9]+}}\n").unwrap();
    let path = filecheck.to_str().unwrap();
    let tested = run(hotstart, &["filecheck", "--filecheck", path, "--test"], dir.path(), "");
    let text = String::from_utf8(tested.stdout).unwrap();
    assert!(tested.status.success() && text.contains("answers the test cases as expected"), "{text}");
    for (args, input) in [
        (&["check"][..], "a12\n"),
        (&["check"], "b\n"),
        (&["check"], ""),
        (&["check", "-v"], "a1\n"),
        (&["missing"], "a1\n"),
        (&["check", "--input-file=check"], ""),
        (&[], ""),
    ] {
        let own = run(hotstart, &[&["filecheck", "--filecheck", path], args].concat(), dir.path(), input);
        let real = run(&filecheck, args, dir.path(), input);
        assert_eq!(own.status.code(), real.status.code(), "{args:?}");
        assert_eq!((own.stdout, own.stderr), (real.stdout, real.stderr), "{args:?}");
    }
}

#[test]
fn a_filecheck_that_is_not_there_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_hotstart"))
        .args(["filecheck", "check"])
        .env("PATH", dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("there is no 'FileCheck'; name one with --filecheck PATH"), "{text}");
}

#[test]
fn passes_in_a_run_are_decided_unless_that_is_switched_off() {
    let Some(filecheck) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let hotstart = Path::new(env!("CARGO_BIN_EXE_hotstart"));
    let python = std::env::var("HOTSTART_LIT_PYTHON")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/python").to_owned());
    let config = "import lit.formats\nconfig.name = 't'\nconfig.suffixes = ['.test']\n\
                  config.test_format = lit.formats.ShTest(execute_external=False)\n";
    fs::write(dir.path().join("lit.cfg.py"), config).unwrap();
    for (name, pattern) in [("passes.test", "a"), ("fails.test", "b")] {
        let text = format!("RUN: echo a | {} %s\nCHECK: {pattern}\n", filecheck.display());
        fs::write(dir.path().join(name), text).unwrap();
    }
    let path = filecheck.to_str().unwrap();
    run(hotstart, &["filecheck", "--filecheck", path, "--test"], dir.path(), "");
    let lit = |more: &[&str]| {
        // A test of the sample would be decided twice.
        let usual = ["lit", "--lit-python", &python, "--explain", "--verify=0", "-v"];
        let args = [&usual[..], more, &["."]].concat();
        let output = run(hotstart, &args, dir.path(), "");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let told = lit(&[]);
    let first = "FileCheck: 1 passes decided without it, 0 of them remembered; 1 runs left to it\n";
    assert!(told.contains(first), "{told}");
    assert!(told.contains("1  left to it: no match\n"), "{told}");
    let diagnosed = run(hotstart, &["lit", "--lit-python", &python, "--diagnose", "."], dir.path(), "");
    let columns = "fails.test:2: CHECK: expected string not found in input\n";
    assert!(String::from_utf8(diagnosed.stdout).unwrap().contains(columns));
    // One in 200 remembered passes is run nevertheless.
    let second = "FileCheck: 1 passes decided without it, 1 of them remembered; 0 runs left to it\n";
    assert!((0..3).any(|_| lit(&[]).contains(second)), "the other failed before, and runs cold");
    let anew = "FileCheck: 1 passes decided without it, 0 of them remembered; 0 runs left to it\n";
    assert!(lit(&["--no-check-cache"]).contains(anew));
    let cache = |command: &str| {
        let output = run(hotstart, &["cache", command], dir.path(), "");
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, stats) = cache("stats");
    assert!(code == Some(0) && stats.contains("passes of FileCheck: 2\n"), "{stats}");
    let store = dir.path().join("cache/filecheck/passes");
    let segment = fs::read_dir(&store).unwrap().next().unwrap().unwrap().path();
    fs::write(&segment, "torn").unwrap();
    assert!(lit(&[]).contains(anew), "a damaged store is no store");
    let of_tests = "tests with known inputs: 0 in 0 files in order; 0 damaged files, removed\n";
    let damaged = |number| {
        format!("passes of FileCheck: 2 in 1 files in order; {number} damaged files, removed\n{of_tests}")
    };
    assert_eq!(cache("verify"), (Some(1), damaged(1)));
    assert_eq!(cache("verify"), (Some(0), damaged(0)));
    assert_eq!(cache("clear").0, Some(0));
    assert!(!store.exists() && cache("stats").1.contains("passes of FileCheck: 0\n"));
    assert_eq!(cache("nonsense").0, Some(2));
    for switch in ["--no-filecheck", "--cold", "--keep-cold=FileCheck"] {
        let told = lit(&[switch]);
        assert!(!told.contains("passes decided"), "{switch}: {told}");
    }
}

/// A suite whose only test pipes "a" into a FileCheck that was put to the test before.
struct Suite {
    dir: tempfile::TempDir,
    filecheck: PathBuf,
}

impl Suite {
    /// `run` is the RUN line, in which `FC` is the FileCheck.
    fn new(filecheck: &Path, run_line: &str) -> Suite {
        let dir = tempfile::tempdir().unwrap();
        let config = "import lit.formats\nconfig.name = 't'\nconfig.suffixes = ['.test']\n\
                      config.test_format = lit.formats.ShTest(execute_external=False)\n";
        fs::write(dir.path().join("lit.cfg.py"), config).unwrap();
        let line = run_line.replace("FC", filecheck.to_str().unwrap());
        fs::write(dir.path().join("a.test"), format!("RUN: {line}\nCHECK: a\n")).unwrap();
        Suite { dir, filecheck: filecheck.to_owned() }
    }

    /// Returns what `hotstart lit` tells, started by `before` in a shell.
    fn told(&self, before: &str) -> String {
        let hotstart = env!("CARGO_BIN_EXE_hotstart");
        let python = std::env::var("HOTSTART_LIT_PYTHON")
            .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/python").to_owned());
        let path = self.filecheck.to_str().unwrap();
        let tested =
            run(Path::new(hotstart), &["filecheck", "--filecheck", path, "--test"], self.dir.path(), "");
        let is_as_expected = String::from_utf8_lossy(&tested.stdout).contains("as expected");
        assert!(tested.status.success() && is_as_expected, "{tested:?}");
        let line = format!("{before} '{hotstart}' lit --lit-python '{python}' --explain --verify=0 -v .");
        let output = run(Path::new("/bin/sh"), &["-c", &line], self.dir.path(), "");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn a_test_runs_again_if_a_check_file_changes_meanwhile() {
    let Some(filecheck) = installed() else { return };
    let line = "echo 'CHECK: a' > %t.one && echo 'CHECK: b' > %t.other && \
                sh -c \"echo x >> %S/log; sleep 0.5; mv %t.other %t.one; echo a\" | FC %t.one";
    let suite = Suite::new(&filecheck, line);
    let told = suite.told("");
    assert!(told.contains("1 passes decided without it"), "{told}");
    assert_eq!(fs::read_to_string(suite.dir.path().join("log")).unwrap(), "x\nx\n");
}

#[test]
fn nothing_is_decided_under_limits_that_filecheck_may_meet() {
    let Some(filecheck) = installed() else { return };
    let suite = Suite::new(&filecheck, "echo a | FC %s");
    assert!(suite.told("").contains("1 passes decided without it"));
    let told = suite.told("ulimit -s 4096;");
    assert!(told.contains("left to it: limits under which FileCheck may end early"), "{told}");
}

#[test]
fn a_filecheck_that_a_test_may_replace_is_always_run() {
    let Some(filecheck) = installed() else { return };
    let mut suite = Suite::new(&filecheck, "");
    let own = suite.dir.path().join("Output/FileCheck");
    fs::create_dir(suite.dir.path().join("Output")).unwrap();
    fs::copy(&filecheck, &own).unwrap();
    fs::write(suite.dir.path().join("a.test"), format!("RUN: echo a | {} %s\nCHECK: a\n", own.display()))
        .unwrap();
    suite.filecheck = own;
    let told = suite.told("");
    assert!(!told.contains("passes decided without it"), "{told}");
}

/// A suite with `--cache` whose FileCheck looks for its libraries in `lib` first.
struct Remembered {
    suite: Suite,
    lib: PathBuf,
}

impl Remembered {
    fn new(filecheck: &Path) -> Self {
        let suite = Suite::new(filecheck, "echo a | FC %s");
        let lib = suite.dir.path().canonicalize().unwrap().join("lib");
        fs::create_dir(&lib).unwrap();
        let config = suite.dir.path().join("lit.cfg.py");
        let text = fs::read_to_string(&config).unwrap();
        let variable = format!("config.environment['LD_LIBRARY_PATH'] = '{}'\n", lib.display());
        fs::write(config, text + &variable).unwrap();
        // What is known of the FileCheck is asked for once the first test has used it.
        fs::copy(suite.dir.path().join("a.test"), suite.dir.path().join("b.test")).unwrap();
        Remembered { suite, lib }
    }

    /// Returns what hotstart tells.
    fn told(&self, args: &[&str]) -> String {
        let own = self.suite.dir.path();
        let output = Command::new(env!("CARGO_BIN_EXE_hotstart"))
            .args(args)
            .current_dir(own)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LD_LIBRARY_PATH", &self.lib)
            .env("HOTSTART_CACHE_DIR", own.join("cache"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap()
    }

    fn lit(&self) -> String {
        let python = std::env::var("HOTSTART_LIT_PYTHON")
            .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/python").to_owned());
        self.told(&["lit", "--lit-python", &python, "-j1", "--cache", "--explain", "--verify=0", "."])
    }

    /// Whether the tests are not run any more. One in 20 remembered tests is.
    fn are_remembered(&self) -> bool {
        (0..12).any(|_| self.lit().contains("--cache: 2 tests not run"))
    }
}

#[test]
fn what_a_filecheck_looks_at_that_was_not_run_is_an_input() {
    let Some(filecheck) = installed() else { return };
    let place = Remembered::new(&filecheck);
    place.told(&["filecheck", "--filecheck", filecheck.to_str().unwrap(), "--test"]);
    let first = place.lit();
    assert!(first.contains("2 traced") && first.contains("1 passes decided without it"), "{first}");
    assert!(place.are_remembered());
    // A library that comes in before the one that it had.
    let late = place.lib.join("libc.so.6");
    let libc = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6"]
        .into_iter()
        .find(|path| Path::new(path).exists());
    fs::copy(libc.unwrap(), &late).unwrap();
    let told = place.lit();
    assert!(told.contains("--cache: 0 tests not run"), "{told}");
    assert!(place.are_remembered());
    fs::remove_file(&late).unwrap();
    assert!(place.are_remembered(), "as before");
    // A FileCheck has lost its trust meanwhile. As long as that is recent, nothing is known.
    let losses = place.suite.dir.path().join("cache/filecheck/losses");
    fs::create_dir(&losses).unwrap();
    fs::write(losses.join("one"), "").unwrap();
    let told = (0..100).map(|_| place.lit()).find(|told| {
        assert!(told.contains("--cache: 0 tests not run"), "{told}");
        told.contains(" 2 traced")
    });
    assert!(told.is_some_and(|told| told.contains("passes decided without it")));
    assert!(place.are_remembered());
}

/// A suite that joins a directory and a variable that was not set has such a value.
#[test]
fn an_empty_part_of_the_library_path_counts_where_it_leads_to_a_library() {
    let Some(filecheck) = installed() else { return };
    let suite = Suite::new(&filecheck, "echo a | FC %s");
    let own = suite.dir.path();
    let test = |name: &str, lines: &[&str]| {
        let lines: String = lines.iter().map(|line| format!("RUN: {line}\n")).collect();
        let lines = lines.replace("FC", filecheck.to_str().unwrap());
        fs::write(own.join(name), format!("{lines}CHECK: a\n")).unwrap();
    };
    let enter = "rm -rf %t.d && mkdir %t.d && cd %t.d";
    test("found.test", &[enter, "echo none > libc.so.6", "echo a | FC %s"]);
    // The matcher leaves it to FileCheck, which lit has started long before there is a library.
    let late = "sh -c \"sleep 0.5; echo none > libc.so.6; printf 'b\\\\rb\\\\na\\\\n'\" | FC %s";
    test("late.test", &[enter, late]);
    let python = std::env::var("HOTSTART_LIT_PYTHON")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/python").to_owned());
    let told = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_hotstart"))
            .args(args)
            .current_dir(own)
            .env("LD_LIBRARY_PATH", "/no/such/directory:")
            .env("HOTSTART_CACHE_DIR", own.join("cache"))
            .output()
            .unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let path = filecheck.to_str().unwrap();
    let tested = told(&["filecheck", "--filecheck", path, "--test"]);
    assert!(tested.contains("answers the test cases as expected"), "{tested}");
    let ran = told(&["lit", "--lit-python", &python, "--explain", "--verify=0", "-v", "-j1", "."]);
    for verdict in ["PASS: t :: a.test", "FAIL: t :: found.test", "PASS: t :: late.test"] {
        assert!(ran.contains(verdict), "{ran}");
    }
    assert!(ran.contains("FileCheck: 1 passes decided without it"), "{ran}");
    assert!(ran.contains("left to it: a carriage return"), "{ran}");
}

/// Its libraries are others in another working directory.
#[test]
fn a_filecheck_with_a_relative_search_path_is_always_run() {
    let Some(filecheck) = installed() else { return };
    let mut program = fs::read(filecheck).unwrap();
    let path = b"$ORIGIN/../lib\0";
    let Some(at) = program.windows(path.len()).position(|bytes| bytes == path) else {
        return skipped("this FileCheck has no search path");
    };
    program[at..][..path.len()].copy_from_slice(b"../lib\0\0\0\0\0\0\0\0\0");
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("FileCheck");
    fs::write(&copy, program).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    let hotstart = Path::new(env!("CARGO_BIN_EXE_hotstart"));
    let args = ["filecheck", "--filecheck", copy.to_str().unwrap(), "--test"];
    let told = String::from_utf8(run(hotstart, &args, dir.path(), "").stdout).unwrap();
    assert!(told.contains("is always run: it looks for libraries in the working directory"), "{told}");
}

/// It has only the name, and its suite never starts it so.
#[test]
fn a_program_that_does_not_end_is_no_filecheck() {
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("waits.c"), dir.path().join("FileCheckWaits"));
    fs::write(&source, "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n").unwrap();
    let built = Command::new("cc").arg("-o").args([&program, &source]).output().unwrap();
    assert!(built.status.success(), "{built:?}");
    let hotstart = Path::new(env!("CARGO_BIN_EXE_hotstart"));
    let args = ["filecheck", "--filecheck", program.to_str().unwrap(), "--test"];
    let told = String::from_utf8(run(hotstart, &args, dir.path(), "").stdout).unwrap();
    assert!(told.contains("is always run: it did not end in time"), "{told}");
}
