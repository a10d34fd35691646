//! One traced run of a script, in a process of its own.
//!
//! The process is this program once more. It forks: one half runs the script with the shell, cold; the other traces it, and so sees the
//! files that the shell itself opens (redirections, `cat`, `mkdir`, globs) in the same way as those of tools. Script and result are
//! files in memory, which both sides open by their paths, so that no tool inherits them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use hotstart_inputs::Input;
use hotstart_launch::{EnvBlock, Group, Launcher, Spec};
use hotstart_model::{Script, Status, Transcript};
use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};

/// First argument by which the binary recognizes that it is such a process.
const TRACE: &str = "__hotstart-trace";

/// What a traced run has shown.
#[derive(Debug, Serialize, Deserialize)]
pub struct Traced {
    /// Its record.
    pub transcript: Transcript,
    /// The test's inputs, or the reason why they cannot be told.
    pub inputs: Result<Vec<Input>, String>,
}

/// The reason why there was no traced run.
#[derive(Debug)]
pub enum TraceError {
    /// The run was ended from outside, or its processes failed.
    Lost,
    /// The system allows no tracing, or the script cannot be handed over.
    Refused(String),
}

/// Runs a script traced. The directories that it needs are made before, so that they do not count as its own.
pub fn trace(script: &Script, launcher: &Launcher, group: &Group) -> Result<Traced, TraceError> {
    watched(script, false, launcher, group)
}

/// Runs a known program traced, and returns its inputs if it passes without output and they can be told.
pub fn inputs_of_known(script: &Script, launcher: &Launcher, group: &Group) -> Option<Vec<Input>> {
    let Traced { transcript, inputs } = watched(script, true, launcher, group).ok()?;
    let is_silent = transcript.stdout.is_empty() && transcript.stderr.is_empty();
    (transcript.exit_code == Some(0) && is_silent).then_some(inputs.ok()?)
}

fn watched(
    script: &Script,
    is_known: bool,
    launcher: &Launcher,
    group: &Group,
) -> Result<Traced, TraceError> {
    let refused = |error: std::io::Error| TraceError::Refused(error.to_string());
    for dir in &script.make_dirs {
        std::fs::create_dir_all(dir).map_err(refused)?;
    }
    let text =
        serde_json::to_vec(&(script, is_known)).map_err(|error| TraceError::Refused(error.to_string()))?;
    let (mut order, mut result) =
        (in_memory("order").map_err(refused)?, in_memory("result").map_err(refused)?);
    order.write_all(&text).map_err(refused)?;
    let null = File::options().read(true).write(true).open("/dev/null").map_err(refused)?;
    let environment = std::env::vars_os().collect();
    let process_group = group.process_group().map_err(refused)?;
    let path = |file: &File| OsString::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    let spec = Spec {
        argv: vec!["hotstart".into(), TRACE.into(), path(&order), path(&result)],
        cwd: std::env::current_dir().map_err(refused)?.into(),
        process_group,
        ..Spec::plain(Path::new("/proc/self/exe"), OsString::new(), EnvBlock::new(&environment), &null)
    };
    let child = launcher.start(&spec, group).map_err(|error| TraceError::Refused(error.to_string()))?;
    let exit = child.wait();
    if group.is_killed() || exit.status != Status::OK {
        return Err(TraceError::Lost);
    }
    result.seek(SeekFrom::Start(0)).map_err(refused)?;
    let answer: Result<Traced, String> =
        serde_json::from_reader(std::io::BufReader::new(&result)).map_err(|_| TraceError::Lost)?;
    answer.map_err(TraceError::Refused)
}

fn in_memory(name: &str) -> std::io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?))
}

/// The other end. Call it in the binary's `main` before any thread is started, with the process's arguments. `None` if the arguments are
/// not those of a traced run; otherwise the exit code.
pub fn enter_trace(args: &[OsString]) -> Option<u8> {
    let [_, first, order, result] = args else { return None };
    if first != OsStr::new(TRACE) {
        return None;
    }
    hotstart_launch::signals::take_over();
    let answer = run(Path::new(order)).map_err(|error| error.to_string());
    let written = File::options().write(true).open(result).map_err(std::io::Error::other).and_then(|file| {
        serde_json::to_writer(std::io::BufWriter::new(file), &answer).map_err(std::io::Error::other)
    });
    Some(u8::from(written.is_err()))
}

#[cfg(target_arch = "x86_64")]
fn run(order: &Path) -> std::io::Result<Traced> {
    let (script, is_known): (Script, bool) =
        serde_json::from_reader(std::io::BufReader::new(File::open(order)?))?;
    let mut record = in_memory("record")?;
    let (launcher, group) = (Launcher::new(), Group::of_job(0));
    group.settle();
    let run = || {
        let transcript = hotstart_shell::run_script(&script, &launcher, &group);
        u8::from(serde_json::to_writer(&record, &transcript).is_err())
    };
    let traced = if is_known { hotstart_inputs::trace_known(run)? } else { hotstart_inputs::trace(run)? };
    if traced.code != 0 {
        return Err(std::io::Error::other("the traced shell failed"));
    }
    record.seek(SeekFrom::Start(0))?;
    let transcript = serde_json::from_reader(std::io::BufReader::new(&record))?;
    Ok(Traced { transcript, inputs: traced.inputs })
}

#[cfg(not(target_arch = "x86_64"))]
fn run(_order: &Path) -> std::io::Result<Traced> {
    Err(std::io::Error::other("tracing needs x86-64"))
}
