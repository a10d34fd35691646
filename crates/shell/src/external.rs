//! The external shell: the commands become a script file as lit writes it, and the suite's shell runs that.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Instant;

use hotstart_launch::{EnvBlock, Group, Launcher, ProcessGroup, Spec, StartError};
use hotstart_model::{Dialect, ExternalShell, Fault, Script, Status, Transcript};
use rustix::process::Signal;

use crate::clock::Clock;
use crate::expand::readfile_external;
use crate::halt::{Halt, Halting};
use crate::interp::make_dirs;
use crate::lookup::which;
use crate::pipeline::new_pipe;
use crate::pump::Pump;
use crate::python::text::{decode, is_space, repr_bytes, shell_quote};
use crate::stage::Running;

/// Runs one attempt.
pub(crate) fn run(script: &Script, shell: &ExternalShell, launcher: &Launcher, group: &Group) -> Transcript {
    let clock = Clock::start(script.timeout, group);
    let mut transcript = Transcript::default();
    if let Err(fault) = make_dirs(script) {
        transcript.fault = Some(fault);
        return transcript;
    }
    match run_shell(script, shell, launcher, group, &clock) {
        Ok(ended) => {
            transcript.timed_out = clock.is_timed_out();
            transcript.exit_code = Some(ended.status);
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

/// lit 19 shows what is not UTF-8 as Python would show the bytes.
fn text(bytes: Vec<u8>, dialect: Dialect) -> String {
    match (dialect, std::str::from_utf8(&bytes)) {
        (Dialect::V19, Err(_)) => repr_bytes(&bytes),
        _ => decode(bytes),
    }
}

fn run_shell<'g>(
    script: &Script,
    shell: &ExternalShell,
    launcher: &'g Launcher,
    group: &'g Group,
    clock: &Clock<'g>,
) -> Halting<Running<'g>> {
    fs::write(&shell.script_path, compose(script)).map_err(|error| Halt::file(&error, &shell.script_path))?;
    let begun = Instant::now();
    let (stdin, _) = new_pipe()?;
    let (stdout, stdout_write) = new_pipe()?;
    let (stderr, stderr_write) = new_pipe()?;
    let stdio = [stdin.as_fd(), stdout_write.as_fd(), stderr_write.as_fd()];
    let mut argv: Vec<OsString> = shell.prefix.iter().map(OsString::from).collect();
    argv.extend([shell.shell.clone().into(), shell.script_path.clone().into()]);
    let spec = Spec {
        program: program(script, shell, &argv).into(),
        argv,
        env: EnvBlock::new(&script.env),
        cwd: script.cwd.as_path().into(),
        stdio,
        extra_fds: Vec::new(),
        umask: None,
        limits: Vec::new(),
        keep_cold: script.cold.covers(&shell.shell),
        process_group: ProcessGroup::New,
    };
    let child = launcher.start(&spec, group).map_err(not_started)?;
    drop((stdin, stdout_write, stderr_write));
    let end = |fd: OwnedFd| Some(Rc::new(fd));
    let mut stages = [Running {
        child: Some(child),
        stdout_end: end(stdout),
        stderr_end: end(stderr),
        ..Running::default()
    }];
    Pump { stages: &mut stages, ports: Vec::new(), clock, begun }.run()?;
    let [mut stage] = stages;
    stage.wait(|| begun.elapsed());
    Ok(stage)
}

/// What to execute: the shell, or what stands before it (valgrind), sought along PATH.
fn program(script: &Script, shell: &ExternalShell, argv: &[OsString]) -> OsString {
    if shell.prefix.is_empty() {
        return shell.shell.clone().into();
    }
    let path = script.env.get("PATH").map(|path| path.to_string_lossy()).unwrap_or_default();
    which(&argv[0].to_string_lossy(), &path).map_or_else(|| argv[0].clone(), OsString::from)
}

fn not_started(error: StartError) -> Halt {
    match error {
        StartError::Directory { path, source } | StartError::Program { path, source } => {
            Halt::file(&source, path)
        }
        StartError::Nul { .. } => Halt::exception("ValueError", "embedded null byte"),
        StartError::Ended { .. } => Halt::Killed,
    }
}

/// The script file's text. Each command is announced on standard error without the shell's own trace of that.
fn compose(script: &Script) -> String {
    let mut out = String::with_capacity(4096);
    if script.pipefail {
        out.push_str("set -o pipefail;");
    }
    if script.dialect == Dialect::V23 {
        out.push_str(&loader_exports(script));
    }
    out.push_str("set -x;{ ");
    for (index, command) in script.commands.iter().enumerate() {
        if index > 0 {
            out.push_str("; } &&\n{ ");
        }
        let text = match script.dialect {
            Dialect::V19 => Cow::Borrowed(command.text.as_str()),
            Dialect::V23 => Cow::Owned(readfile_external(&command.text)),
        };
        let text = text.trim_start_matches(is_space);
        let label = &command.label;
        let message = match (text.is_empty(), script.dialect) {
            (true, _) => format!("'{label}' has no command after substitutions"),
            (false, Dialect::V19) => format!("'{label}': {}", shell_quote(text)),
            (false, Dialect::V23) => format!("{} \\# '{label}'", shell_quote(text)),
        };
        let _ = write!(out, "{{ set +x; }} 2>/dev/null && echo {message} >&2 && {{ set -x; }} 2>/dev/null");
        if !text.is_empty() {
            let _ = write!(out, " && {{  {text}; }}");
        }
    }
    out.push_str("; }\n");
    out
}

/// Variables that some systems' loaders hide from a shell's children unless it exports them itself.
fn loader_exports(script: &Script) -> String {
    let vars = script.env.iter().filter(|(key, _)| key.to_string_lossy().starts_with("DYLD_"));
    let export = |(key, value): (&std::ffi::OsStr, &std::ffi::OsStr)| {
        format!("export {}={};", key.to_string_lossy(), shell_quote(&value.to_string_lossy()))
    };
    vars.map(export).collect::<Vec<_>>().join("\n")
}
