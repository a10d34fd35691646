//! The process that traces: it takes scripts, and runs each in a child that it traces.
//!
//! The child runs the script with the shell, cold, but for FileChecks that pass by the matcher. So the files that the shell itself opens
//! (redirections, `cat`, `mkdir`, globs) are seen in the same way as those of tools. What is left behind in this process from one run to
//! the next is nothing but free memory; if a run leaves processes, this one ends, and they end with it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
#[cfg(target_arch = "x86_64")]
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

#[cfg(target_arch = "x86_64")]
use hotstart_launch::{Group, Launcher};
use hotstart_model::Script;
#[cfg(target_arch = "x86_64")]
use hotstart_shell::Starts;
use hotstart_shell::{FileChecks, KnownFileCheck};
#[cfg(target_arch = "x86_64")]
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, getpgrp, setpgid};

#[cfg(target_arch = "x86_64")]
use crate::traced::Record;
use crate::traced::{Answer, Order, TRACE, receive, send, send_bytes};

/// Call it in the binary's `main` before any thread is started, with the process's arguments. `None` if the arguments are not those of such
/// a process; otherwise the exit code.
pub fn enter_trace(args: &[OsString]) -> Option<u8> {
    let [_, first] = args else { return None };
    if first != OsStr::new(TRACE) {
        return None;
    }
    hotstart_launch::signals::take_over();
    Some(u8::from(serve().is_err()))
}

/// Serves until the runner has no more scripts.
fn serve() -> io::Result<()> {
    // The tests' processes get an empty input, and nothing of the runner.
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let home = getpgrp();
    let mut known = None;
    while let Ok(order) = receive::<Order<Script>>(&stream) {
        let group = Pid::from_raw(order.group).ok_or(io::ErrorKind::InvalidData)?;
        let ran = setpgid(None, Some(group)).map_err(io::Error::from).and_then(|()| run(order, &mut known));
        // The group of a test should be empty after it, so that it can be another test's.
        let is_home = setpgid(None, Some(home)).is_ok();
        match ran {
            Ok((mut answer, record)) => {
                answer.ends |= !is_home;
                send(&stream, &Ok::<_, String>(&answer))?;
                send_bytes(&stream, &record)?;
                if answer.ends {
                    return Ok(());
                }
            }
            // It may have left anything.
            Err(error) => return send(&stream, &Err::<Answer, _>(error.to_string())),
        }
    }
    Ok(())
}

/// FileChecks as they are known. To look at their files takes as long as some tests, and the child has a copy of its own.
type Known = (Vec<KnownFileCheck>, FileChecks);

/// Returns what decides FileChecks.
#[cfg(target_arch = "x86_64")]
fn decider(known: &mut Option<Known>, told: Vec<KnownFileCheck>) -> &FileChecks {
    let is_same = |(before, filechecks): &Known| *before == told && filechecks.is_fresh();
    if !known.as_ref().is_some_and(is_same) {
        *known = None;
    }
    &known.get_or_insert_with(|| (told.clone(), FileChecks::knowing(told))).1
}

/// Returns the answer, and the record as text.
#[cfg(target_arch = "x86_64")]
fn run(order: Order<Script>, known: &mut Option<Known>) -> io::Result<(Answer, Vec<u8>)> {
    let Order { script, subject, filechecks, .. } = order;
    let mut record = File::from(rustix::fs::memfd_create("record", MemfdFlags::CLOEXEC)?);
    let (launcher, group) = (Launcher::new(), Group::of_job(0));
    group.settle();
    let filechecks = filechecks.map(|told| decider(known, told));
    let run = || {
        let starts = Starts { launcher: &launcher, group: &group, filechecks, is_repeatable: true };
        let transcript = hotstart_shell::run_script_with(&script, starts);
        let uses = filechecks.map(FileChecks::uses).unwrap_or_default();
        // One write: each call of a traced process costs more than it does elsewhere.
        let text = serde_json::to_vec::<Record>(&(transcript, uses)).map_err(io::Error::from);
        u8::from(text.and_then(|text| (&record).write_all(&text)).is_err())
    };
    let traced = hotstart_inputs::trace(subject, run)?;
    if traced.code != 0 {
        return Err(io::Error::other("the traced shell failed"));
    }
    record.seek(SeekFrom::Start(0))?;
    let mut text = Vec::new();
    record.read_to_end(&mut text)?;
    Ok((Answer { inputs: traced.inputs, ends: !traced.is_over, own: traced.own }, text))
}

#[cfg(not(target_arch = "x86_64"))]
fn run(_: Order<Script>, _: &mut Option<Known>) -> io::Result<(Answer, Vec<u8>)> {
    Err(io::Error::other("tracing needs x86-64"))
}
