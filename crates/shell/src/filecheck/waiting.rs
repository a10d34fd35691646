//! A FileCheck that waits for its input. It then passes without a process, or is started.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use hotstart_launch::{Child, EnvBlock, Group, Launcher, Spec, StartError};

use super::{FileChecks, Open, Question, Scene};
use crate::halt::{Halt, Halting};
use crate::pipeline::{new_pipe, process_group};

/// Everything that is needed to decide a FileCheck, or to start it.
pub(crate) struct Waiting<'g> {
    pub question: Option<Question>,
    /// The question, if FileCheck itself has to answer it.
    pub open: Option<Open>,
    pub scene: Scene,
    pub filechecks: &'g FileChecks,
    pub launcher: &'g Launcher,
    pub group: &'g Group,
    pub program: String,
    pub args: Vec<String>,
    pub env: EnvBlock,
    pub cwd: Arc<Path>,
    /// Standard error goes where standard output goes.
    pub merges_errors: bool,
}

/// A FileCheck that was started, and our ends of its pipes.
pub(crate) struct Started<'g> {
    pub child: Child<'g>,
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: Option<OwnedFd>,
    pub open: Option<Open>,
}

impl<'g> Waiting<'g> {
    /// Whether it passes with this input. Call it once.
    pub fn passes(&mut self, input: &[u8]) -> bool {
        let Some(question) = self.question.take() else { return false };
        self.open = self.filechecks.decide(question, input).err();
        self.open.is_none()
    }

    /// Starts it. The caller then writes its input.
    pub fn start(self) -> Halting<Started<'g>> {
        if self.question.is_some() {
            self.filechecks.leave("size");
        }
        let (stdin_read, stdin) = new_pipe()?;
        let (stdout, stdout_write) = new_pipe()?;
        let errors = if self.merges_errors { None } else { Some(new_pipe()?) };
        let stderr_write = errors.as_ref().map_or(&stdout_write, |(_, write)| write);
        let spec = Spec {
            program: self.program.into(),
            argv: self.args.into_iter().map(OsString::from).collect(),
            env: self.env,
            cwd: self.cwd,
            stdio: [stdin_read.as_fd(), stdout_write.as_fd(), stderr_write.as_fd()],
            extra_fds: Vec::new(),
            umask: None,
            ignored: None,
            limits: Vec::new(),
            keep_cold: false,
            process_group: process_group(self.group)?,
        };
        let child = self.launcher.start(&spec, self.group).map_err(|error| match error {
            StartError::Ended { .. } => Halt::Killed,
            error => Halt::internal("cannot start FileCheck", error),
        })?;
        Ok(Started { child, stdin, stdout, stderr: errors.map(|(read, _)| read), open: self.open })
    }
}
