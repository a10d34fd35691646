//! A small suite in a private directory, and runs of the real binary over it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// The directory of a suite; removed when dropped.
pub struct Suite {
    dir: tempfile::TempDir,
}

impl Suite {
    /// Creates a suite named `t` of `.test` files, with `extra` appended to its config.
    pub fn new(extra: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let suite = Suite { dir };
        let config = "import lit.formats\nconfig.name = 't'\nconfig.suffixes = ['.test']\n\
                      config.test_format = lit.formats.ShTest(False)\n";
        suite.file("lit.cfg.py", format!("{config}{extra}\n"));
        suite
    }

    /// Adds a file, with the directories above it.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("files lie in a directory")).expect("a directory");
        fs::write(&path, content).expect("a file");
        path
    }

    /// Adds a copy of hotstart. Another process writes it: while one of this process's threads did, a fork of another thread would
    /// hold the file open for writing, and nobody could execute it.
    pub fn own_binary(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let copied =
            Command::new("cp").arg(env!("CARGO_BIN_EXE_hotstart")).arg(&path).status().expect("cp starts");
        assert!(copied.success());
        path
    }

    /// Adds a FIFO.
    pub fn fifo(&self, name: &str) {
        let made = Command::new("mkfifo").arg(self.path(name)).status().expect("mkfifo starts");
        assert!(made.success());
    }

    /// Returns a path in the suite.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns a `hotstart lit` command in the suite's directory.
    pub fn command(&self, args: &[&str]) -> Command {
        self.command_finding("--default-signal", args)
    }

    /// The same with signals as an option of coreutils' `env` makes them. Signals that are ignored do not stop a runner, and
    /// whoever runs these tests in the background of a script ignores some.
    pub fn command_finding(&self, signals: &str, args: &[&str]) -> Command {
        let mut command = Command::new("/usr/bin/env");
        command.arg(format!("{signals}=INT,TERM,HUP")).arg(env!("CARGO_BIN_EXE_hotstart"));
        command.arg("lit").args(args).current_dir(self.dir.path());
        prepare(&mut command);
        command
    }

    /// Runs `hotstart lit` with these arguments in the suite's directory.
    pub fn run(&self, args: &[&str]) -> Run {
        Run::from(self.command(args).output().expect("hotstart starts"))
    }
}

/// Lets the command find the reference `lit`, and hides the caller's own settings and what hotstart remembers of the user's tools.
pub fn prepare(command: &mut Command) {
    command.env("HOTSTART_LIT_PYTHON", lit_python()).env("HOTSTART_CACHE_DIR", cache());
    for name in [
        "LIT_OPTS",
        "HOTSTART_CONFIG",
        "LIT_FILTER",
        "LIT_XFAIL",
        "LIT_MAX_WORKERS",
        "FILECHECK_OPTS",
        "LD_LIBRARY_PATH",
    ] {
        command.env_remove(name);
    }
}

/// Returns the Python that has lit; `make venv` makes one.
pub fn lit_python() -> PathBuf {
    if let Some(python) = std::env::var_os("HOTSTART_LIT_PYTHON") {
        return python.into();
    }
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    assert!(venv.exists(), "no Python with the lit package: run `make venv`, or set HOTSTART_LIT_PYTHON");
    venv
}

/// Returns the directory where hotstart remembers tools: one for all tests, which is kept, since observing a tool takes seconds.
/// Commands that were doubtful in one test would start cold in another. A directory in the place of their file keeps them from being
/// remembered.
fn cache() -> &'static Path {
    static CACHE: LazyLock<PathBuf> = LazyLock::new(|| {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hotstart-cache");
        let doubtful = cache.join("doubtful-commands");
        let _ = fs::remove_file(&doubtful);
        fs::create_dir_all(&doubtful).expect("the tests' own directory");
        fs::set_permissions(&cache, Permissions::from_mode(0o700)).expect("it is theirs");
        cache
    });
    &CACHE
}

/// The output and the exit code of a finished run.
#[derive(Debug)]
pub struct Run {
    pub out: String,
    pub err: String,
    pub code: Option<i32>,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Run {
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code(),
        }
    }
}

impl Run {
    /// Asserts that a line of standard output begins with `start`.
    pub fn has(&self, start: &str) -> &Self {
        assert!(
            self.out.lines().any(|line| line.starts_with(start)),
            "no line begins with {start:?} in {self:#?}"
        );
        self
    }

    /// Asserts that standard output contains `text`.
    pub fn says(&self, text: &str) -> &Self {
        assert!(self.out.contains(text), "{text:?} is not in the output of {self:#?}");
        self
    }

    /// Asserts that standard error contains `text`.
    pub fn warns(&self, text: &str) -> &Self {
        assert!(self.err.contains(text), "{text:?} is not in the errors of {self:#?}");
        self
    }

    /// Asserts the exit code.
    pub fn ends_with(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "in {self:#?}");
        self
    }
}
