//! `cat` and `diff` without a process. lit runs them as Python programs.
//!
//! A task and its run are separate, because what it would read decides whether a process has to run it.

use std::path::Path;

use hotstart_launch::leads_through_made_up;
use hotstart_model::Dialect;
use hotstart_python::path::join;

use super::cat::Cat;
use super::diff::Diff;
use crate::halt::Halting;

/// The output and the status of a native stage.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub status: i32,
    /// The number of bytes of output before the errors, if both go to one place. Python's buffers keep it small.
    pub output_before_errors: usize,
}

impl Written {
    /// Returns an error without output.
    pub fn error(message: String) -> Self {
        Written { stderr: message.into_bytes(), status: 1, ..Written::default() }
    }
}

/// Whether every process that reads this path finds the same, at once: a regular file or a directory, the null device, or nothing. A path
/// through a link of the kernel's (`/dev/stdin`) leads elsewhere in another process, files of `/proc` tell of the process, and reading a
/// FIFO waits for another stage.
pub(super) fn is_plain(path: &str) -> bool {
    if path == "/dev/null" {
        return true;
    }
    let found = std::fs::metadata(path);
    !leads_through_made_up(Path::new(path)) && found.map_or(true, |found| found.is_file() || found.is_dir())
}

/// A native stage.
#[derive(Debug)]
pub(crate) enum Task {
    Cat(Cat),
    Diff(Diff),
    /// The arguments were wrong.
    Refused(Written),
}

impl Task {
    /// Returns the native stage for `args`. `None` if only lit's own program can run them.
    pub fn find(args: &[String], dialect: Dialect) -> Option<Task> {
        let task = match args[0].as_str() {
            "cat" => Cat::parse(&args[1..], dialect).map(Task::Cat),
            _ => match Diff::parse(&args[1..]) {
                Ok(diff) => Ok(Task::Diff(diff?)),
                Err(written) => Err(written),
            },
        };
        Some(task.unwrap_or_else(Task::Refused))
    }

    /// Whether it reads standard input.
    pub fn reads_stdin(&self, cwd: &str) -> bool {
        match self {
            Task::Cat(cat) => cat.reads_stdin(),
            Task::Diff(diff) => diff.reads_stdin(cwd),
            Task::Refused(_) => false,
        }
    }

    /// Whether the runner may read its files in a process's place.
    pub fn has_plain_files(&self, cwd: &str) -> bool {
        match self {
            Task::Cat(cat) => cat.files().iter().all(|file| is_plain(&join(cwd, file))),
            Task::Diff(diff) => diff.has_plain_files(cwd),
            Task::Refused(_) => true,
        }
    }

    /// Runs the task.
    pub fn run(self, stdin: Vec<u8>, cwd: &str) -> Halting<Written> {
        match self {
            Task::Cat(cat) => Ok(cat.run(stdin, cwd)),
            Task::Diff(diff) => diff.run(&stdin, cwd),
            Task::Refused(written) => Ok(written),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode};

    use super::*;

    #[test]
    fn files_that_lead_elsewhere_or_wait_are_not_plain() {
        let dir = tempfile::tempdir().unwrap();
        let name = |file: &str| dir.path().join(file).to_str().unwrap().to_owned();
        std::fs::write(name("file"), "").unwrap();
        std::os::unix::fs::symlink("file", name("link")).unwrap();
        std::os::unix::fs::symlink("/dev/stdin", name("input")).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, name("fifo"), FileType::Fifo, mode, 0).unwrap();
        for plain in ["file", "link", ".", "absent", "file/absent"] {
            assert!(is_plain(&name(plain)), "{plain}");
        }
        assert!(is_plain("/dev/null"));
        for other in
            [&name("input"), &name("fifo"), "/dev/fd/0", "/proc/self/comm", "/proc/version", "/dev/zero"]
        {
            assert!(!is_plain(other), "{other}");
        }
    }
}
