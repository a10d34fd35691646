//! PyPI's filecheck in `hotstart lit`: believed after its test, and not believed once anything about it has changed.
//!
//! Needs filecheck 1.0.6 for the Python of HOTSTART_PYPI_FILECHECK, or of `.venv`; without it, the test says so and checks nothing.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const WRAPPER: &str = "import sys\nfrom filecheck.main import main\nif __name__ == '__main__':\n    \
                       sys.argv[0] = sys.argv[0].removesuffix('.exe')\n    sys.exit(main())\n";
const LIT: &str = "import lit.formats\nconfig.name = 'own'\nconfig.suffixes = ['.txt']\n\
                   config.test_format = lit.formats.ShTest()\n";

/// A virtual environment with filecheck, and a suite that uses it.
struct Space {
    dir: tempfile::TempDir,
    variables: Vec<(OsString, OsString)>,
}

impl Space {
    /// `None`, and a word why, if filecheck is not installed.
    fn new() -> Option<Self> {
        let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
        let python = std::env::var_os("HOTSTART_PYPI_FILECHECK").map_or(default, PathBuf::from);
        let code =
            "import importlib.metadata as m, filecheck; print(m.version('filecheck'), filecheck.__path__[0])";
        let found = Command::new(&python).args(["-c", code]).output().ok()?;
        let text = String::from_utf8(found.stdout).unwrap();
        let Some(package) = text.trim().strip_prefix("1.0.6 ") else {
            let text =
                format!("not tried: PyPI's filecheck 1.0.6 is not installed for {}\n", python.display());
            std::io::stderr().write_all(text.as_bytes()).unwrap();
            return None;
        };
        let space = Space { dir: tempfile::tempdir().unwrap(), variables: Vec::new() };
        let made = Command::new(&python).args(["-m", "venv", "--without-pip"]).arg(space.at("venv")).status();
        assert!(made.unwrap().success());
        fs::create_dir(space.package()).unwrap();
        for file in fs::read_dir(package).unwrap().map(Result::unwrap) {
            if file.path().extension().is_some_and(|suffix| suffix == "py") {
                fs::copy(file.path(), space.package().join(file.file_name())).unwrap();
            }
        }
        space.write_script(WRAPPER);
        fs::create_dir(space.at("suite")).unwrap();
        fs::write(space.at("suite/lit.cfg"), LIT).unwrap();
        Some(space)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn package(&self) -> PathBuf {
        let versions = fs::read_dir(self.at("venv/lib")).unwrap().map(|version| version.unwrap().path());
        versions.last().unwrap().join("site-packages/filecheck")
    }

    fn write_script(&self, wrapper: &str) {
        let script = self.at("venv/bin/filecheck");
        fs::write(&script, format!("#!{}\n{wrapper}", self.at("venv/bin/python").display())).unwrap();
        fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs hotstart in the environment of the suite's tests, or in one for `lit`.
    fn hotstart(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotstart"));
        command.args(args).current_dir(self.dir.path()).env("HOTSTART_CACHE_DIR", self.at("cache"));
        if args[0] == "lit" {
            let path = std::env::var("PATH").unwrap();
            command.env("PATH", format!("{}:{path}", self.at("venv/bin").display()));
        } else {
            command.env_clear().envs(self.variables.iter().cloned());
            command.env("HOTSTART_CACHE_DIR", self.at("cache"));
        }
        command.output().unwrap()
    }

    /// Runs a test of one line, and returns all that is printed.
    fn lit(&self, line: &str) -> String {
        fs::write(self.at("suite/a.txt"), format!("RUN: {line}\n// CHECK: b[[X:.]] [[X]]\n")).unwrap();
        let output = self.hotstart(&["lit", "-v", "--explain", "--verify=0", "--no-check-cache", "suite"]);
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8(text).unwrap()
    }

    /// Puts the program to the test, in the environment that tests have.
    fn test(&self) -> String {
        let program = self.at("venv/bin/filecheck");
        let output = self.hotstart(&["filecheck", "--filecheck", program.to_str().unwrap(), "--test"]);
        String::from_utf8(output.stdout).unwrap()
    }
}

const PASSED: &str = "1 passes decided without it";
const NOT_YET: &str = "left to it: not put to the test yet";
/// The longest that a killed process takes to end.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn it_is_believed_as_long_as_nothing_has_changed() {
    let Some(mut space) = Space::new() else { return };
    let (good, bad) = ("echo b1 1 | filecheck %s", "echo b1 2 | filecheck %s");
    space.lit("/usr/bin/env > %t.variables");
    let variables = fs::read_to_string(space.at("suite/Output/a.txt.tmp.variables")).unwrap();
    let pairs = variables.lines().filter_map(|line| line.split_once('='));
    // lit has removed its directory of temporary files.
    let pairs = pairs.filter(|(name, _)| !matches!(*name, "TMPDIR" | "TMP" | "TEMP" | "TEMPDIR"));
    space.variables = pairs.map(|(name, value)| (name.into(), value.into())).collect();

    // Python writes its compiled modules at the first start.
    let text = space.lit(good);
    assert!(text.contains("Passed: 1") && text.contains(NOT_YET), "{text}");
    let text = space.test();
    assert!(text.contains("answers the test cases as expected"), "{text}");
    let text = space.lit(good);
    assert!(text.contains("Passed: 1") && text.contains(PASSED), "{text}");
    let text = space.lit(bad);
    assert!(text.contains("Failed: 1") && text.contains("Couldn't match"), "{text}");
    // A test that failed is only run cold the next time.
    assert!(space.lit(good).contains("Passed: 1"));

    for variable in ["PYTHONPATH=/x", "PYTHONOPTIMIZE=1", "FILECHECK_FEATURE_ENABLE=MLIR_REGEX_CLS"] {
        let text = space.lit(&format!("echo b1 1 | env {variable} filecheck %s"));
        assert!(text.contains("a variable that changes what a Python script does"), "{variable}: {text}");
    }
    let text = space.lit("echo b1 1 | env OTHER=1 filecheck %s");
    assert!(text.contains(NOT_YET), "{text}");

    // What a start looks for, and finds.
    for name in ["../sitecustomize.py", "../other.pth", "re.py", "../../../../bin/re.py"] {
        let path = space.package().join(name);
        fs::write(&path, "").unwrap();
        let text = space.lit(good);
        fs::remove_file(&path).unwrap();
        assert!(text.contains(NOT_YET), "{name}: {text}");
    }

    assert!(space.lit(good).contains("Passed: 1"));
    let matcher = space.package().join("matcher.py");
    let source = fs::read_to_string(&matcher).unwrap();
    fs::write(&matcher, source.replace("return 1", "return 0")).unwrap();
    let text = space.lit(bad);
    assert!(text.contains("Failed: 1") || text.contains(NOT_YET), "{text}");
    let text = space.test();
    assert!(text.contains("is always run: it is not version 1.0.6, unchanged"), "{text}");
    fs::write(&matcher, source).unwrap();
    space.write_script(&format!("import os\n{WRAPPER}"));
    let text = space.test();
    assert!(text.contains("is always run: it is no script that pip or uv writes"), "{text}");
}

#[test]
fn one_that_does_not_end_when_traced_is_ended_and_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
    let write = |name: &str, text: &str| {
        fs::write(at(name), text).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    let unique = format!("600.{}", std::process::id());
    write("python", &format!("#!/bin/sh\nsleep {unique}\n"));
    write("filecheck", &format!("#!{}\n{WRAPPER}", at("python").display()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotstart"));
    command.arg("filecheck").arg("--filecheck").arg(at("filecheck")).arg("--test");
    let output = command.env("HOTSTART_CACHE_DIR", at("cache")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.ends_with("is always run: what it looks at cannot be told\n"), "{output:?}");
    let is_ours = |process: &PathBuf| {
        let words = fs::read(process.join("cmdline")).unwrap_or_default();
        words.split(|&byte| byte == 0).any(|word| word == unique.as_bytes())
    };
    let left = || fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()).find(is_ours);
    // One that was killed is there until it has ended.
    let begun = Instant::now();
    while left().is_some() && begun.elapsed() < PATIENCE {
        std::thread::yield_now();
    }
    assert_eq!(left(), None);
}
