//! Asks executables for their tests.
//!
//! Each must be started for that, so all executables of an input are asked at once, on all cores.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hotstart_launch::{EnvBlock, Group, Launcher, Spec, StartError};
use hotstart_model::{Environment, Status};
use hotstart_python::{repr, repr_bytes, which};

use crate::render;

/// An executable to ask.
#[derive(Debug)]
pub(crate) struct Question {
    /// Its path.
    pub path: String,
    /// Words put before it.
    pub before: Vec<OsString>,
    /// Its environment.
    pub env: Arc<Environment>,
}

/// The means to start processes for the discovery.
#[derive(Clone, Copy)]
pub(crate) struct Starter<'a> {
    pub launcher: &'a Launcher,
    pub group: &'a Group,
    pub cwd: &'a Path,
}

/// The result of a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Number of tests.
    Tests(u64),
    /// The executable failed; lit's warning.
    Failed(String),
    /// The executable could not be started, which ends lit.
    NotStarted(String),
}

/// Returns the number of usable processors, counted as Python does.
pub(crate) fn cores() -> u64 {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| u64::from(set.count()).max(1))
}

/// Returns the words before an executable: those of the config, then an interpreter if it is a Python script.
pub(crate) fn words_before(path: &str, run_under: &[String], python: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = run_under.iter().map(OsString::from).collect();
    if path.ends_with(".py") {
        words.push(python.into());
    }
    words
}

/// Asks all executables. The answers are in the same order.
pub(crate) fn ask_all(questions: &[Question], starter: Starter<'_>) -> Vec<Answer> {
    let next = AtomicUsize::new(0);
    let answers: Mutex<Vec<Option<Answer>>> = Mutex::new(questions.iter().map(|_| None).collect());
    let work = || {
        while let Some((place, question)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|place| Some((place, questions.get(place)?)))
        {
            let answer = ask(question, starter);
            answers.lock().expect("no panic while locked")[place] = Some(answer);
        }
    };
    let threads = questions.len().min(usize::try_from(cores()).unwrap_or(1));
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Best effort: fewer threads take longer.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let answers = answers.into_inner().expect("no panic while locked");
    answers.into_iter().map(|answer| answer.expect("every question was asked")).collect()
}

fn ask(question: &Question, starter: Starter<'_>) -> Answer {
    let mut argv = question.before.clone();
    argv.push(question.path.clone().into());
    argv.extend(["--gtest_list_tests", "--gtest_filter=-*DISABLED_*"].map(OsString::from));
    match run(&argv, question, starter) {
        Ok((Status::Exited(0), output)) => Answer::Tests(count(&output)),
        Ok((status, output)) => Answer::Failed(format!(
            "unable to discover google-tests in {}: {}. Process output: {}",
            repr(&question.path),
            ended(&argv, status),
            repr_bytes(&output)
        )),
        Err(error) => Answer::NotStarted(format!(
            "cannot ask '{}' for its tests: {error}; make it executable or remove it",
            question.path
        )),
    }
}

fn run(argv: &[OsString], question: &Question, starter: Starter<'_>) -> io::Result<(Status, Vec<u8>)> {
    let path = question.env.get("PATH");
    let program = which::program(&argv[0], path, starter.cwd)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "a word of run_under is not found"))?;
    let (from, to) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let nothing = OpenOptions::new().read(true).open("/dev/null")?;
    let stderr = io::stderr();
    let spec = Spec {
        program,
        argv: argv.to_vec(),
        env: EnvBlock::new(&question.env),
        cwd: Arc::from(starter.cwd),
        stdio: [nothing.as_fd(), to.as_fd(), stderr.as_fd()],
        extra_fds: Vec::new(),
        umask: None,
        limits: Vec::new(),
        ignored: None,
        keep_cold: false,
        process_group: starter.group.process_group()?,
    };
    let child = starter.launcher.start(&spec, starter.group).map_err(|error| match error {
        StartError::Program { source, .. } | StartError::Directory { source, .. } => source,
        other => io::Error::other(other.to_string()),
    })?;
    drop(to);
    let mut output = Vec::new();
    let read = File::from(from).read_to_end(&mut output);
    let status = child.wait().status;
    read.map(|_| (status, output))
}

/// Counts the tests. Lines that begin with two spaces name a test; others name a group of tests.
fn count(output: &[u8]) -> u64 {
    let lines = output.split(|&byte| byte == b'\n' || byte == b'\r');
    lines.filter(|line| line.starts_with(b"  ")).count() as u64
}

/// Returns Python's description of the end of a process that did not succeed.
fn ended(argv: &[OsString], status: Status) -> String {
    let words: Vec<String> = argv.iter().map(|word| repr(&OsStr::to_string_lossy(word))).collect();
    let command = format!("Command '[{}]'", words.join(", "));
    match status {
        Status::Exited(code) => format!("{command} returned non-zero exit status {code}."),
        Status::Signaled(signal) => match render::signal_name(signal) {
            Some(name) => format!("{command} died with <Signals.{name}: {signal}>."),
            None => format!("{command} died with unknown signal {signal}."),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(executables: &[&str]) -> Vec<Answer> {
        let env = Arc::new([("PATH", "/usr/bin:/bin")].into_iter().collect::<Environment>());
        let question =
            |path: &&str| Question { path: (*path).to_owned(), before: Vec::new(), env: env.clone() };
        let questions: Vec<Question> = executables.iter().map(question).collect();
        let (launcher, group) = (Launcher::new(), Group::new());
        ask_all(&questions, Starter { launcher: &launcher, group: &group, cwd: Path::new("/") })
    }

    #[test]
    fn answers_come_in_the_order_of_the_questions() {
        let answers = answers(&["/bin/true", "/bin/false", "/nonesuch"]);
        assert_eq!(answers[0], Answer::Tests(0));
        let failed = "unable to discover google-tests in '/bin/false': Command '['/bin/false', \
                      '--gtest_list_tests', '--gtest_filter=-*DISABLED_*']' returned non-zero exit status 1.. \
                      Process output: b''";
        assert_eq!(answers[1], Answer::Failed(failed.to_owned()));
        assert!(matches!(&answers[2], Answer::NotStarted(text) if text.contains("No such file")));
    }

    #[test]
    fn indented_lines_are_tests() {
        assert_eq!(count(b"A.\n  one\n  two\r\nB.\n  three # GetParam() = 1\n three spaces\n"), 3);
    }

    #[test]
    fn a_signal_is_named_as_python_names_it() {
        let text = ended(&["x".into()], Status::Signaled(11));
        assert_eq!(text, "Command '['x']' died with <Signals.SIGSEGV: 11>.");
    }
}
