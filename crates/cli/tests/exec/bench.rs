//! A directory with an installed client, its own server, and a tool to start.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// Tests wait this long for an expected event.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// The directory of one test's server, client and files.
pub struct Bench {
    dir: tempfile::TempDir,
    start: &'static str,
}

impl Bench {
    /// Installs the client and starts nothing yet. Tools shall be reset.
    pub fn new() -> Bench {
        Bench::starting("rewind")
    }

    /// The same, but tools shall start in this way.
    pub fn starting(start: &'static str) -> Bench {
        keep_descriptors_private();
        let dir = tempfile::tempdir().expect("a directory");
        let bench = Bench { dir, start };
        let made =
            bench.hotstart().args(["exec", "--install"]).arg(bench.path("bin")).output().expect("it runs");
        assert!(made.status.success(), "{made:?}");
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns a command for the main binary, with this bench's server and no other.
    pub fn hotstart(&self) -> Command {
        self.command(Path::new(env!("CARGO_BIN_EXE_hotstart")))
    }

    /// Returns a command for the installed client.
    pub fn client(&self) -> Command {
        self.command(&self.path("bin/hotstart-exec"))
    }

    /// Returns a client in a session of its own, where the system stops nobody by SIGTSTP.
    pub fn client_in_session(&self) -> Command {
        let mut client = self.command("/usr/bin/setsid".as_ref());
        client.arg(self.path("bin/hotstart-exec"));
        client
    }

    /// Returns a command with default handling of signals. A shell that runs the tests in the background ignores some for them,
    /// and the server compares the signals that clients ignore.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("/usr/bin/env");
        command.arg("--default-signal=INT,QUIT,TERM,HUP").arg(program);
        command.env("HOTSTART_EXEC_DIR", self.path("server")).env("HOTSTART_SERVER_START", self.start);
        command.env_remove("HOTSTART_EXEC").current_dir(self.dir.path());
        command.stdin(Stdio::null());
        command
    }

    /// Copies the tool to this name, under which nothing has started it yet.
    pub fn tool(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::copy(victim(), &path).expect("copied");
        path
    }

    /// Starts the server, and `tool` once, so that its next starts are warm.
    pub fn warm_up(&self, tool: &Path) {
        await_that("a server", || {
            let run = self.client().env("HOTSTART_EXEC", "explain").arg(tool).args(["exit", "0"]).output();
            run.expect("it runs").stderr.is_empty()
        });
    }

    /// Returns the server's status; empty if there is none.
    pub fn status(&self) -> String {
        let asked = self.hotstart().args(["server", "status"]).output().expect("it runs");
        if asked.status.success() { String::from_utf8(asked.stdout).expect("text") } else { String::new() }
    }

    /// Returns the status as JSON.
    pub fn status_json(&self) -> serde_json::Value {
        let asked = self.hotstart().args(["server", "status", "--json"]).output().expect("it runs");
        serde_json::from_slice(&asked.stdout).expect("JSON")
    }

    /// Returns the server's process.
    pub fn server(&self) -> Option<Pid> {
        let status = self.status();
        Pid::from_raw(status.strip_prefix("server ")?.split(' ').next()?.parse().ok()?)
    }

    pub fn warm_starts(&self) -> u64 {
        let status = self.status();
        let line = status.lines().find_map(|line| line.strip_prefix("started warm ")).expect("the count");
        line.split(',').next().expect("a number").parse().expect("a number")
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let stopped = self.hotstart().args(["server", "stop"]).output();
        if !std::thread::panicking() {
            stopped.expect("it runs");
        }
    }
}

/// The descriptors that the tests' own caller left open would be too many, or too high, for a warm start.
fn keep_descriptors_private() {
    use hotstart_launch::{Launcher, Policy};
    drop(Launcher::new().with_policy(Policy::cold()));
}

/// Builds the tool once for all tests.
fn victim() -> &'static Path {
    static VICTIM: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let build = || {
        let dir = tempfile::tempdir().expect("a directory");
        let out = dir.path().join("victim");
        compile(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/exec/victim.c").as_ref(), &out);
        (dir, out)
    };
    &VICTIM.get_or_init(build).1
}

pub fn compile(source: &Path, out: &Path) {
    let built = Command::new("cc").args(["-O1", "-o"]).arg(out).arg(source).output().expect("cc runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// Returns clang from the tools of the repository's tests.
pub fn clang() -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/llvm-bin");
    let found = Command::new(script).output().expect("tools/llvm-bin runs");
    assert!(found.status.success(), "{}", told(&found));
    Path::new(String::from_utf8(found.stdout).expect("a path").trim()).join("clang")
}

/// Waits until `met` returns true. Fails the test after a while.
pub fn await_that(what: &str, mut met: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !met() {
        assert!(begun.elapsed() < PATIENCE, "waited for {what} in vain");
        std::thread::yield_now();
    }
}

/// Waits for the end of a client that should not hang. If it does, it is killed, and its job with it.
pub fn await_end(mut client: Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = client.try_wait().expect("it is a child") {
            return status;
        }
        if begun.elapsed() >= PATIENCE {
            let _ = client.kill();
            panic!("waited for the client in vain: {:?}", client.wait());
        }
        std::thread::yield_now();
    }
}

/// Returns the lines of a file that a tool writes to; none if it is missing.
pub fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Waits until a tool has reported that it runs, and returns its process.
pub fn await_begun(log: &Path) -> Pid {
    await_that("a tool to begin", || std::fs::read_to_string(log).is_ok_and(|text| text.ends_with('\n')));
    let line = lines(log).pop().expect("a line");
    Pid::from_raw(line.rsplit(' ').next().expect("a number").parse().expect("a number")).expect("a number")
}

pub fn await_gone(process: Pid) {
    await_that("a process to end", || has_ended(process));
}

/// Returns whether a process is gone, or only its parent has not asked yet how it ended.
pub fn has_ended(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    !stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X'])))
}

pub fn kill(process: Pid, signal: Signal) {
    rustix::process::kill_process(process, signal).expect("it is there");
}

pub fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Returns status, output and error output as one text.
pub fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{:?}\n{}--\n{}", output.status, text(&output.stdout), text(&output.stderr))
}
