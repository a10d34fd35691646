//! Traced runs of scripts, each in a child of a process that is kept from one run to the next (`tracer`).
//!
//! To start a process of this size for each test would cost more than to trace the test. The process belongs to the test's processes
//! while it serves one, so a deadline ends both, and then there is another one.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use hotstart_inputs::{Input, Subject};
use hotstart_launch::{Child, EnvBlock, Group, Launcher, ProcessGroup, Spec};
use hotstart_model::{Script, Transcript};
use hotstart_shell::{FileCheckUses, KnownFileCheck};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// First argument by which the binary recognizes that it is such a process. Orders come on its standard input.
pub(crate) const TRACE: &str = "__hotstart-trace";

/// What a traced run has shown.
#[derive(Debug)]
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

/// An order to such a process.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order<S> {
    pub script: S,
    pub subject: Subject,
    /// The process group to run it in.
    pub group: i32,
    /// What is known of FileChecks. `None` if every FileCheck runs.
    pub filechecks: Option<Vec<KnownFileCheck>>,
}

/// What the traced child writes down: the transcript, and what it has done with FileChecks.
pub(crate) type Record = (Transcript, FileCheckUses);

/// The beginning of the answer. The record follows it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Answer {
    pub inputs: Result<Vec<Input>, String>,
    /// Whether the process ends, because the run has left processes behind.
    pub ends: bool,
    /// Paths that the test has made, emptied or removed.
    pub own: Vec<PathBuf>,
}

/// Runs a script traced. The directories that it needs are made before, so that they do not count as its own.
pub fn trace(script: &Script, launcher: &Launcher, group: &Group) -> Result<Traced, TraceError> {
    once(script, How::default(), launcher, group)
}

/// Runs a program traced, and returns its inputs if it passes without output and they can be told. One that runs longer than the script's
/// timeout is ended, and has none.
pub fn inputs_of_program(
    script: &Script,
    launcher: &Launcher,
    group: &Group,
    subject: Subject,
) -> Option<Vec<Input>> {
    let how = How { subject, filechecks: None, limit: script.timeout };
    let Traced { transcript, inputs } = once(script, how, launcher, group).ok()?;
    let is_silent = transcript.stdout.is_empty() && transcript.stderr.is_empty();
    (transcript.exit_code == Some(0) && is_silent).then_some(inputs.ok()?)
}

fn once(script: &Script, how: How, launcher: &Launcher, group: &Group) -> Result<Traced, TraceError> {
    let home = Group::new();
    Tracers::new(launcher, &home).run(script, how, group).map(|(traced, _)| traced)
}

/// How a script is run traced.
#[derive(Debug, Default)]
pub(crate) struct How {
    pub subject: Subject,
    /// What is known of FileChecks. `None` if every FileCheck runs.
    pub filechecks: Option<Vec<KnownFileCheck>>,
    /// The longest that it may take. `None` if somebody else watches over the group.
    pub limit: Option<Duration>,
}

/// What a traced run has done besides.
#[derive(Debug)]
pub(crate) struct Did {
    pub uses: FileCheckUses,
    /// Paths that it has made, emptied or removed.
    pub own: Vec<PathBuf>,
}

/// What a tracing process tells of a run.
struct Told {
    /// Whether the process ends now.
    ends: bool,
    traced: Traced,
    did: Did,
}

/// Processes that trace, one for each test that is traced at a time.
#[derive(Debug)]
pub(crate) struct Tracers<'l> {
    launcher: &'l Launcher,
    home: &'l Group,
    idle: Mutex<Vec<Tracer<'l>>>,
}

#[derive(Debug)]
struct Tracer<'l> {
    child: Option<Child<'l>>,
    stream: UnixStream,
}

impl<'l> Tracers<'l> {
    /// No processes yet. They are started by `launcher` and belong to `home` while they serve nobody.
    pub(crate) fn new(launcher: &'l Launcher, home: &'l Group) -> Self {
        Tracers { launcher, home, idle: Mutex::default() }
    }

    /// Runs a script traced, as a part of `group`.
    pub(crate) fn run(&self, script: &Script, how: How, group: &Group) -> Result<(Traced, Did), TraceError> {
        for dir in &script.make_dirs {
            std::fs::create_dir_all(dir).map_err(refused)?;
        }
        let idle = self.idle.lock().expect("no panic while locked").pop();
        let mut tracer = idle.map_or_else(|| Tracer::start(self.launcher, self.home), Ok)?;
        let Told { ends, traced, did } = tracer.run(script, how, group)?;
        if !ends {
            self.idle.lock().expect("no panic while locked").push(tracer);
        }
        Ok((traced, did))
    }
}

fn refused(error: impl ToString) -> TraceError {
    TraceError::Refused(error.to_string())
}

impl<'l> Tracer<'l> {
    fn start(launcher: &'l Launcher, home: &'l Group) -> Result<Self, TraceError> {
        let null = File::options().read(true).write(true).open("/dev/null").map_err(refused)?;
        let (stream, theirs) = UnixStream::pair().map_err(refused)?;
        let environment = std::env::vars_os().collect();
        let spec = Spec {
            argv: vec!["hotstart".into(), TRACE.into()],
            cwd: std::env::current_dir().map_err(refused)?.into(),
            process_group: home.process_group().map_err(refused)?,
            stdio: [theirs.as_fd(), null.as_fd(), null.as_fd()],
            ..Spec::plain(Path::new("/proc/self/exe"), OsString::new(), EnvBlock::new(&environment), &null)
        };
        let child = launcher.start(&spec, home).map_err(refused)?;
        Ok(Tracer { child: Some(child), stream })
    }

    fn run(&mut self, script: &Script, how: How, group: &Group) -> Result<Told, TraceError> {
        let (pgid, number) = match group.process_group().map_err(refused)? {
            ProcessGroup::Join(pgid) => (pgid, pgid),
            _ => (0, rustix::process::getpgrp().as_raw_nonzero().get()),
        };
        let How { subject, filechecks, limit } = how;
        // One that does not answer in time is lost, and ends when this is dropped.
        self.stream.set_read_timeout(limit).map_err(refused)?;
        let pid = self.child.as_ref().map_or(0, Child::pid);
        if !group.lend(pid, pgid) {
            return Err(TraceError::Lost);
        }
        let told = self.tell(&Order { script, subject, group: number, filechecks });
        group.release(pid);
        match told {
            _ if group.is_killed() => Err(TraceError::Lost),
            Ok(Ok((Answer { inputs, ends, own }, (transcript, uses)))) => {
                Ok(Told { ends, traced: Traced { transcript, inputs }, did: Did { uses, own } })
            }
            Ok(Err(why)) => Err(TraceError::Refused(why)),
            Err(_) => Err(TraceError::Lost),
        }
    }

    fn tell(&mut self, order: &Order<&Script>) -> io::Result<Result<(Answer, Record), String>> {
        send(&self.stream, order)?;
        Ok(match receive::<Result<Answer, String>>(&self.stream)? {
            Ok(answer) => Ok((answer, receive(&self.stream)?)),
            Err(why) => Err(why),
        })
    }
}

impl Drop for Tracer<'_> {
    /// Ends the process, and with it all that it still traces.
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            child.kill();
            let _ = child.wait();
        }
    }
}

/// Sends a value with its length before it.
pub(crate) fn send(to: impl Write, value: &impl Serialize) -> io::Result<()> {
    send_bytes(to, &serde_json::to_vec(value)?)
}

pub(crate) fn send_bytes(to: impl Write, bytes: &[u8]) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

/// Receives a value.
pub(crate) fn receive<T: DeserializeOwned>(mut from: impl Read) -> io::Result<T> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    // Not all memory at once, whatever the number says.
    let mut bytes = Vec::new();
    let length = u64::from_le_bytes(length);
    // Nor with a buffer, which would take the beginning of the next value.
    from.take(length).read_to_end(&mut bytes)?;
    serde_json::from_slice(&bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_received() {
        let (one, other) = UnixStream::pair().unwrap();
        send(&one, &("text", 5)).unwrap();
        send(&one, &[0; 3]).unwrap();
        assert_eq!(receive::<(String, i32)>(&other).unwrap(), ("text".to_owned(), 5));
        assert_eq!(receive::<Vec<i32>>(&other).unwrap(), [0; 3]);
        drop(one);
        assert!(receive::<i32>(&other).is_err());
    }
}
