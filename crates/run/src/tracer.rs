//! The process that traces: it takes scripts, and runs each in a child that it traces.
//!
//! The child runs the script with the shell, cold. So the files that the shell itself opens (redirections, `cat`, `mkdir`, globs) are
//! seen in the same way as those of tools. What is left behind in this process from one run to the next is nothing but free memory; if a
//! run leaves processes, this one ends, and they end with it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use hotstart_launch::{Group, Launcher};
use hotstart_model::Script;
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, getpgrp, setpgid};

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
    while let Ok((script, is_known, group)) = receive::<Order<Script>>(&stream) {
        let group = Pid::from_raw(group).ok_or(io::ErrorKind::InvalidData)?;
        let ran = setpgid(None, Some(group)).map_err(io::Error::from).and_then(|()| run(&script, is_known));
        // The group of a test should be empty after it, so that it can be another test's.
        let is_home = setpgid(None, Some(home)).is_ok();
        match ran {
            Ok((mut answer, transcript)) => {
                answer.ends |= !is_home;
                send(&stream, &Ok::<_, String>(&answer))?;
                send_bytes(&stream, &transcript)?;
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

/// Returns the answer, and the transcript as text.
#[cfg(target_arch = "x86_64")]
fn run(script: &Script, is_known: bool) -> io::Result<(Answer, Vec<u8>)> {
    let mut record = File::from(rustix::fs::memfd_create("record", MemfdFlags::CLOEXEC)?);
    let (launcher, group) = (Launcher::new(), Group::of_job(0));
    group.settle();
    let run = || {
        let transcript = hotstart_shell::run_script(script, &launcher, &group);
        // One write: each call of a traced process costs more than it does elsewhere.
        let text = serde_json::to_vec(&transcript).map_err(io::Error::from);
        u8::from(text.and_then(|text| (&record).write_all(&text)).is_err())
    };
    let traced = if is_known { hotstart_inputs::trace_known(run)? } else { hotstart_inputs::trace(run)? };
    if traced.code != 0 {
        return Err(io::Error::other("the traced shell failed"));
    }
    record.seek(SeekFrom::Start(0))?;
    let mut transcript = Vec::new();
    record.read_to_end(&mut transcript)?;
    Ok((Answer { inputs: traced.inputs, ends: !traced.is_over }, transcript))
}

#[cfg(not(target_arch = "x86_64"))]
fn run(_script: &Script, _is_known: bool) -> io::Result<(Answer, Vec<u8>)> {
    Err(io::Error::other("tracing needs x86-64"))
}
