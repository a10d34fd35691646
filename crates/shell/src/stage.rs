//! One running stage of a pipeline: a process, a FileCheck that waits for its input, or a native command.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use hotstart_launch::Child;
use hotstart_model::Status;
use rustix::process::Signal;

use crate::builtin::native::Written;
use crate::filecheck::{Open, Scene, Waiting};
use crate::prefix::Negation;
use crate::pump::{self, Port};

/// Python's exit code when it could not write its last output.
const PYTHON_OUTPUT_LOST: i32 = 120;

/// A stage that has been started.
#[derive(Default)]
pub(crate) struct Running<'g> {
    pub child: Option<Child<'g>>,
    /// The FileCheck that may pass without a process, and waits for its input until it has all of it.
    pub pending: Option<Box<Waiting<'g>>>,
    /// lit's number for how it ended, before negation.
    pub status: i32,
    /// How the process ended.
    pub process: Option<Status>,
    pub negation: Negation,
    /// Started under `ulimit`: lit's launcher runs between, and turns a signal into an exit code.
    pub is_limited: bool,
    /// The captured bytes.
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Standard error of a stage that is not the last.
    pub stderr_file: Option<OwnedFd>,
    /// Standard error came through a pipe, so its line ends are translated.
    pub stderr_is_piped: bool,
    /// The next stage reads standard error.
    pub errors_feed_next: bool,
    /// Our ends of its pipes.
    pub stdout_end: Option<Rc<OwnedFd>>,
    pub stderr_end: Option<Rc<OwnedFd>>,
    pub ended: Option<Duration>,
    pub cpu: Duration,
    /// The pipe capture: the bytes for the next stage, if they are recorded.
    pub capture: Vec<u8>,
    /// A FileCheck that passed without a process.
    pub is_matched: bool,
    /// A `cat` or `diff` that runs without a process.
    pub is_native: bool,
    /// The question that a FileCheck answers.
    pub open: Option<Open>,
    /// What a FileCheck that passed without a process was decided on, beside other stages.
    pub decided_on: Option<Scene>,
    /// What a FileCheck would have found, if it was started only when its input was complete.
    pub late: Option<Scene>,
}

/// The destinations of a native command's output.
pub(crate) struct Outlets {
    pub stdout: Outlet,
    pub stderr: Outlet,
}

/// The destination of one stream of a native command.
pub(crate) enum Outlet {
    /// To the transcript.
    Capture,
    /// Into a pipe to the next stage.
    Pipe(OwnedFd),
    /// Into a file that a redirection opened.
    File(Rc<OwnedFd>),
    /// The destination of standard output.
    Stdout,
}

impl<'g> Running<'g> {
    /// Sends the output of a native command to its destinations, and records its end as that of a process. A rest that does not fit into a
    /// pipe becomes a port.
    pub fn deliver(&mut self, written: Written, outlets: Outlets) -> Vec<Port> {
        let Written { mut stdout, stderr, status, output_before_errors } = written;
        let mut lost = false;
        let before = output_before_errors.min(stdout.len());
        let ports = if let Outlet::Stdout = outlets.stderr {
            stdout.splice(before..before, stderr);
            [send(outlets.stdout, stdout, &mut self.stdout, &mut lost), None]
        } else {
            let rest = stdout.split_off(before);
            if let Outlet::File(file) = &outlets.stdout {
                lost |= pump::write_all(file, &stdout).is_err();
                stdout.clear();
            }
            let err = send(outlets.stderr, stderr, &mut self.stderr, &mut lost);
            stdout.extend(rest);
            [send(outlets.stdout, stdout, &mut self.stdout, &mut lost), err]
        };
        self.status = if lost { PYTHON_OUTPUT_LOST } else { status };
        // In a cold run it may be a process.
        self.process = Some(Status::Exited(self.status));
        ports.into_iter().flatten().collect()
    }

    /// Makes a FileCheck wait. If the job ends first, it counts as killed, as its process would.
    pub fn wait_for_input(&mut self, waiting: Waiting<'g>) {
        self.pending = Some(Box::new(waiting));
        self.process = Some(Status::Signaled(Signal::KILL.as_raw()));
        self.status = -Signal::KILL.as_raw();
    }

    /// Records that a FileCheck has passed, as if a process had.
    pub fn has_matched(&mut self) {
        (self.is_matched, self.status, self.process) = (true, 0, Some(Status::OK));
    }

    /// Records the end of the process, if there was one.
    pub fn wait(&mut self, since_start: impl Fn() -> Duration) {
        if let Some(child) = self.child.take() {
            let exit = child.wait();
            if exit.doubtful {
                // Its result is not believed, and the script runs again.
                self.open = None;
            }
            self.process = Some(exit.status);
            self.cpu = exit.usage.user + exit.usage.system;
            self.status = match exit.status {
                Status::Signaled(signal) if self.is_limited => 256 - signal,
                status => status.code(),
            };
        }
        self.ended.get_or_insert_with(since_start);
    }
}

fn send(outlet: Outlet, data: Vec<u8>, capture: &mut Vec<u8>, lost: &mut bool) -> Option<Port> {
    match outlet {
        Outlet::Capture => *capture = data,
        Outlet::Pipe(end) => return Port::feed(end, data),
        Outlet::File(file) => *lost |= pump::write_all(&file, &data).is_err(),
        Outlet::Stdout => {}
    }
    None
}
