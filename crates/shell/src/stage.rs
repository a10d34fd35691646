//! One running stage of a pipeline: a process, or a native command that may still wait for its input.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use hotstart_launch::Child;
use hotstart_model::Status;

use crate::builtin::native::{Task, Written};
use crate::prefix::Negation;
use crate::pump::{self, Port};

/// A stage that has been started.
#[derive(Default)]
pub(crate) struct Running<'g> {
    pub child: Option<Child<'g>>,
    /// A native command that reads standard input, until it has all of it.
    pub pending: Option<Pending>,
    /// lit's number for how it ended, before negation.
    pub status: i32,
    /// How the process ended.
    pub process: Option<Status>,
    pub negation: Negation,
    /// Started under `ulimit`: lit's launcher stands between, and turns a signal into an exit code.
    pub is_limited: bool,
    /// What was captured, as bytes.
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Standard error of a stage that is not the last.
    pub stderr_file: Option<OwnedFd>,
    /// Standard error came through a pipe, and so with line ends translated.
    pub stderr_is_piped: bool,
    /// Standard error is what the next stage reads.
    pub errors_feed_next: bool,
    /// Our ends of its pipes.
    pub stdout_end: Option<Rc<OwnedFd>>,
    pub stderr_end: Option<Rc<OwnedFd>>,
    pub ended: Option<Duration>,
}

/// A native command that waits for its input.
pub(crate) struct Pending {
    pub task: Task,
    pub cwd: String,
    pub outlets: Outlets,
}

/// Where a native command's output goes.
pub(crate) struct Outlets {
    pub stdout: Outlet,
    pub stderr: Outlet,
}

/// Where one stream of a native command goes.
pub(crate) enum Outlet {
    /// To the transcript.
    Capture,
    /// Into a pipe to the next stage.
    Pipe(OwnedFd),
    /// Into a file that a redirection opened.
    File(Rc<OwnedFd>),
    /// Where standard output goes.
    Stdout,
}

impl Running<'_> {
    /// Sends what a native command has written to its places; what does not fit a pipe yet becomes a port.
    pub fn deliver(&mut self, mut written: Written, outlets: Outlets) -> Vec<Port> {
        self.status = written.status;
        if let Outlet::Stdout = outlets.stderr {
            let (first, second) = if written.errors_first {
                (&mut written.stderr, &mut written.stdout)
            } else {
                (&mut written.stdout, &mut written.stderr)
            };
            first.append(second);
            let all = std::mem::take(first);
            return send(outlets.stdout, all, &mut self.stdout).into_iter().collect();
        }
        let mut ports = Vec::new();
        if written.errors_first {
            ports.extend(send(outlets.stderr, written.stderr, &mut self.stderr));
            ports.extend(send(outlets.stdout, written.stdout, &mut self.stdout));
        } else {
            ports.extend(send(outlets.stdout, written.stdout, &mut self.stdout));
            ports.extend(send(outlets.stderr, written.stderr, &mut self.stderr));
        }
        ports
    }

    /// Takes note of the end of the process, if there was one.
    pub fn wait(&mut self, since_start: impl Fn() -> Duration) {
        if let Some(child) = self.child.take() {
            let exit = child.wait();
            self.process = Some(exit.status);
            self.status = match exit.status {
                Status::Signaled(signal) if self.is_limited => 256 - signal,
                status => status.code(),
            };
        }
        self.ended.get_or_insert_with(since_start);
    }
}

fn send(outlet: Outlet, data: Vec<u8>, capture: &mut Vec<u8>) -> Option<Port> {
    match outlet {
        Outlet::Capture => *capture = data,
        Outlet::Pipe(end) => return Port::feed(end, data),
        // A full disk is no error of the test's shell; lit's program would only lose its output, too.
        Outlet::File(file) => {
            let _ = pump::write_all(&file, &data);
        }
        Outlet::Stdout => {}
    }
    None
}
