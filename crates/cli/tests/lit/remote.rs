//! A worker's side of `--remote`, without a network: an action's inputs are laid out here, and its command is run.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use hotstart_model::{ColdTools, Dialect, Environment, Interpreter, Script};
use serde_json::{Value, json};

const HOTSTART: &str = env!("CARGO_BIN_EXE_hotstart");
/// Exit code of a worker that cannot make a root directory.
const UNFIT: i32 = 90;

/// An action's directory.
struct Action {
    dir: tempfile::TempDir,
    tests: Vec<Value>,
    fixed: Vec<&'static str>,
}

impl Action {
    fn new() -> Action {
        let action = Action { dir: tempfile::tempdir().unwrap(), tests: Vec::new(), fixed: Vec::new() };
        for program in [Path::new(HOTSTART), Path::new("/bin/sh"), Path::new("/bin/touch")] {
            for library in libraries(program) {
                action.place(&library, &fs::read(&library).unwrap());
            }
        }
        action.place(Path::new("/bin/touch"), &fs::read("/bin/touch").unwrap());
        let own = action.dir.path().join("hotstart");
        fs::create_dir(&own).unwrap();
        fs::copy(HOTSTART, own.join("program")).unwrap();
        action
    }

    /// Adds a file with the path that it has for tests, executable as all that could be.
    fn place(&self, path: &Path, content: &[u8]) -> PathBuf {
        let to = self.dir.path().join("files").join(path.strip_prefix("/").unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(&to, content).unwrap();
        fs::set_permissions(&to, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        to
    }

    fn test(&mut self, command: &str) {
        let name = format!("/out/t{}", self.tests.len());
        let script = Script {
            commands: vec![hotstart_model::Command {
                label: "RUN: at line 1".to_owned(),
                text: command.to_owned(),
            }],
            dialect: Dialect::V23,
            interpreter: Interpreter::Internal,
            pipefail: true,
            cwd: "/out".into(),
            make_dirs: vec!["/out".into()],
            env: Arc::default(),
            timeout: None,
            tmp_base: name.into(),
            captures: false,
            lit_package_dir: None,
            lit_python: None,
            cold: ColdTools::None,
            wraps: Default::default(),
        };
        self.tests.push(json!([script, 0]));
    }

    /// Runs the batch. Returns the exit code and each test's; `None` if this system cannot run any.
    fn run(&self) -> Option<(i32, Vec<i64>)> {
        let environment: Environment = [("PATH", "/bin:/usr/bin")].into_iter().collect();
        let id = |of: &str| -> u32 {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with(of)).unwrap();
            line.split_whitespace().nth(2).unwrap().parse().unwrap()
        };
        let order = json!({
            "environments": [environment], "tests": self.tests, "links": [["/linked", "/out"]],
            "directories": ["/out", "/suite"], "fixed": self.fixed, "owner": [id("Uid:"), id("Gid:")],
            "jobs": 2, "is_warm": false,
        });
        let own = self.dir.path().join("hotstart");
        fs::write(own.join("order.json"), order.to_string()).unwrap();
        let mut command = Command::new(own.join("program"));
        command.args(["__hotstart-batch", "enter"]).current_dir(&self.dir);
        let output = loop {
            match command.output() {
                // A child of another test has what `program` was written through, until it executes its own.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                other => break other.unwrap(),
            }
        };
        let code = output.status.code().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        if code == UNFIT {
            assert!(told.contains("allow user namespaces") || told.contains("cannot mount"), "{told}");
            return None;
        }
        let answer = fs::read(self.dir.path().join("root/hotstart/answer.json")).expect(&told);
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let code_of = |test: &Value| test["transcript"]["exit_code"].as_i64().unwrap_or(-1);
        Some((code, answer["tests"].as_array().unwrap().iter().map(code_of).collect()))
    }
}

/// Returns the loader and the libraries of a program.
fn libraries(program: &Path) -> BTreeSet<PathBuf> {
    let output = Command::new(program).env("LD_TRACE_LOADED_OBJECTS", "1").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

#[test]
fn tests_see_the_paths_that_were_sent_and_nothing_else() {
    let mut action = Action::new();
    action.place(Path::new("/suite/input"), b"x");
    action.test("cat /suite/input > /out/copy && touch /linked/t0.tmp");
    action.test("cat /suite/missing");
    // What is installed on this machine is not there.
    action.test("cat /etc/hostname");
    let Some((code, codes)) = action.run() else { return };
    assert_eq!((code, codes), (1, vec![0, 1, 1]));
    assert_eq!(fs::read(action.dir.path().join("root/out/copy")).unwrap(), b"x");
}

#[test]
fn the_exit_code_is_zero_only_if_all_pass() {
    let mut action = Action::new();
    action.test("touch t0.tmp");
    let Some((code, codes)) = action.run() else { return };
    assert_eq!((code, codes), (0, vec![0]));
}

#[test]
fn inputs_are_not_written() {
    // An executable file as well, since a script can be one.
    let cases = [0o644, 0o755].map(|mode| [(mode, vec![]), (mode, vec!["/suite"])]);
    for (mode, fixed) in cases.into_iter().flatten() {
        let mut action = Action::new();
        let input = action.place(Path::new("/suite/input"), b"x");
        // Such a file may be a link into the worker's storage.
        fs::set_permissions(&input, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        let is_fixed = !fixed.is_empty();
        action.fixed = fixed;
        action.test("echo y > /suite/input");
        let Some((_, codes)) = action.run() else { return };
        assert_eq!(fs::read(&input).unwrap(), b"x");
        // A directory without outputs is read-only, elsewhere a copy was written.
        assert_eq!(codes[0] == 0, !is_fixed, "{codes:?}");
    }
}
