//! Runs a single process and captures all its output: a test that is a program by itself, or an external shell that runs a
//! script file.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use hotstart_launch::{EnvBlock, Group, Launcher, Spec, StartError};
use hotstart_model::{Dialect, Fault, Program, Script, Status, Transcript};
use hotstart_python::errors::io_error;
use hotstart_python::repr_bytes;
use hotstart_python::text::decode;
use hotstart_python::which;
use rustix::io::Errno;
use rustix::process::Signal;

use crate::clock::Clock;
use crate::halt::{Halt, Halting};
use crate::interp::make_dirs;
use crate::pipeline::{self, new_pipe};
use crate::pump::Pump;
use crate::stage::Running;

/// The process to start.
pub(crate) struct Process {
    /// The file to execute.
    pub file: OsString,
    pub argv: Vec<OsString>,
    pub merges_errors: bool,
}

/// Runs one attempt at a test that is a program.
pub(crate) fn run(script: &Script, program: &Program, launcher: &Launcher, group: &Group) -> Transcript {
    conclude(script, launcher, group, || {
        let argv = program.argv.clone();
        Ok(Process { file: find(script, &argv)?, argv, merges_errors: program.merges_errors })
    })
}

/// Returns the file that Python's `subprocess` would execute for a name.
fn find(script: &Script, argv: &[OsString]) -> Halting<OsString> {
    let name = argv.first().map_or(OsStr::new(""), OsString::as_os_str);
    let file = which::program(name, script.env.get("PATH"), &script.cwd);
    file.map(PathBuf::into_os_string).ok_or_else(|| Halt::file(&io_error(Errno::NOENT), name))
}

/// Runs the process that `prepare` returns, and returns the transcript.
pub(crate) fn conclude(
    script: &Script,
    launcher: &Launcher,
    group: &Group,
    prepare: impl FnOnce() -> Halting<Process>,
) -> Transcript {
    let clock = Clock::start(script.timeout, group);
    let mut transcript = Transcript::default();
    if let Err(fault) = make_dirs(script) {
        transcript.fault = Some(fault);
        return transcript;
    }
    match prepare().and_then(|process| capture(script, process, launcher, group, &clock)) {
        Ok(ended) => {
            transcript.timed_out = clock.is_timed_out();
            transcript.exit_code = Some(ended.status);
            transcript.cpu = ended.cpu;
            transcript.stdout = text(ended.stdout, script.dialect);
            transcript.stderr = text(ended.stderr, script.dialect);
            if ended.process == Some(Status::Signaled(Signal::INT.as_raw())) && !transcript.timed_out {
                // lit takes it for Ctrl-C.
                transcript.exit_code = None;
                transcript.fault =
                    Some(Fault::Exception { kind: "KeyboardInterrupt".to_owned(), message: String::new() });
            }
        }
        Err(Halt::Exception { kind, message }) => transcript.fault = Some(Fault::Exception { kind, message }),
        Err(Halt::Internal(what)) => transcript.fault = Some(Fault::Internal(what)),
        Err(Halt::Shell { .. } | Halt::Killed) => transcript.timed_out = clock.is_timed_out(),
    }
    if clock.is_killed() && !transcript.timed_out {
        transcript.exit_code = None;
        transcript.fault = Some(Fault::Interrupted);
    }
    transcript
}

/// lit 19 shows bytes that are not UTF-8 as Python would.
fn text(bytes: Vec<u8>, dialect: Dialect) -> String {
    match (dialect, std::str::from_utf8(&bytes)) {
        (Dialect::V19, Err(_)) => repr_bytes(&bytes),
        _ => decode(bytes),
    }
}

fn capture<'g>(
    script: &Script,
    process: Process,
    launcher: &'g Launcher,
    group: &'g Group,
    clock: &Clock<'g>,
) -> Halting<Running<'g>> {
    let begun = Instant::now();
    let name = process.argv.first().cloned().unwrap_or_default();
    let (stdin, _) = new_pipe()?;
    let (stdout, stdout_write) = new_pipe()?;
    let (stderr, stderr_write) = if process.merges_errors { (None, None) } else { new_pipe().map(both)? };
    let errors = stderr_write.as_ref().unwrap_or(&stdout_write);
    let file = PathBuf::from(process.file);
    let spec = Spec {
        ignored: None,
        keep_cold: script.cold.covers(&file),
        program: file,
        argv: process.argv,
        env: EnvBlock::new(&script.env),
        cwd: script.cwd.as_path().into(),
        stdio: [stdin.as_fd(), stdout_write.as_fd(), errors.as_fd()],
        extra_fds: Vec::new(),
        umask: None,
        limits: Vec::new(),
        process_group: pipeline::process_group(group)?,
    };
    let child = launcher.start(&spec, group).map_err(|error| not_started(error, &name))?;
    drop((stdin, stdout_write, stderr_write));
    let mut stages = [Running {
        child: Some(child),
        stdout_end: Some(Rc::new(stdout)),
        stderr_end: stderr.map(Rc::new),
        ..Running::default()
    }];
    Pump { stages: &mut stages, ports: Vec::new(), clock, begun, pipes: None }.run()?;
    let [mut stage] = stages;
    stage.wait(|| begun.elapsed());
    Ok(stage)
}

fn both((read, write): (OwnedFd, OwnedFd)) -> (Option<OwnedFd>, Option<OwnedFd>) {
    (Some(read), Some(write))
}

fn not_started(error: StartError, name: &OsStr) -> Halt {
    match error {
        StartError::Directory { path, source } => Halt::file(&source, path),
        StartError::Program { source, .. } if Errno::from_io_error(&source) == Some(Errno::AGAIN) => {
            Halt::internal("cannot start a process", source)
        }
        StartError::Program { source, .. } => Halt::file(&source, name),
        StartError::Nul { .. } => Halt::exception("ValueError", "embedded null byte"),
        StartError::Ended { .. } => Halt::Killed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotstart_model::{Environment, Interpreter};
    use std::sync::Arc;

    fn transcript(argv: &[&str], merges_errors: bool) -> Transcript {
        let argv = argv.iter().map(OsString::from).collect();
        let program = Program { argv, merges_errors };
        let script = Script {
            commands: Vec::new(),
            dialect: Dialect::V23,
            interpreter: Interpreter::Program(program.clone()),
            pipefail: true,
            cwd: "/".into(),
            make_dirs: Vec::new(),
            env: Arc::new([("PATH", "/usr/bin:/bin")].into_iter().collect::<Environment>()),
            timeout: None,
            tmp_base: "".into(),
            captures: false,
            lit_package_dir: None,
            lit_python: None,
            cold: Default::default(),
            wraps: Default::default(),
        };
        run(&script, &program, &Launcher::new(), &Group::new())
    }

    #[test]
    fn all_output_is_captured_apart_or_together() {
        let script = "echo out; echo err >&2; exit 3";
        let apart = transcript(&["sh", "-c", script], false);
        assert_eq!(
            (apart.stdout.as_str(), apart.stderr.as_str(), apart.exit_code),
            ("out\n", "err\n", Some(3))
        );
        let together = transcript(&["sh", "-c", script], true);
        assert_eq!((together.stdout.as_str(), together.stderr.as_str()), ("out\nerr\n", ""));
    }

    #[test]
    fn what_cannot_be_started_is_pythons_exception() {
        let fault = |name: &str| match transcript(&[name], false).fault {
            Some(Fault::Exception { kind, message }) => format!("{kind}: {message}"),
            other => panic!("{other:?}"),
        };
        assert_eq!(fault("nonesuch"), "FileNotFoundError: [Errno 2] No such file or directory: 'nonesuch'");
        assert_eq!(fault("/etc/passwd"), "PermissionError: [Errno 13] Permission denied: '/etc/passwd'");
    }
}
