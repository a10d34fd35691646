//! A command as a candidate: one process, started directly, never through a shell.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hotstart_launch::{EnvBlock, Exit, Launcher, ProcessGroup, Spec};
use hotstart_model::{Environment, Status};

use super::output::{self, Budget};
use super::{Candidate, Digest, Failure, Halt, Phase, Sample};
use crate::command::Command;

/// The settings that all commands of a comparison share.
#[derive(Debug)]
pub struct ProcessSettings {
    /// Starts the commands.
    pub launcher: Launcher,
    /// Ends the commands.
    pub halt: Halt,
    /// Their environment variables.
    pub env: EnvBlock,
    /// Their working directory.
    pub cwd: Arc<Path>,
    /// The file for standard input; `None` is the null device.
    pub input: Option<PathBuf>,
    /// A run is ended after this time.
    pub timeout: Option<Duration>,
    /// The accepted ends of a run.
    pub accepted: Accepted,
    /// Whether the outputs are compared.
    pub same_output: bool,
    /// Most bytes that a command may print in the check.
    pub output_limit: u64,
    /// Commands to run before and after the runs.
    pub hooks: Hooks,
}

impl ProcessSettings {
    /// Returns settings with this process's environment and directory, exit code 0, and neither hooks nor limits.
    pub fn here() -> std::io::Result<Self> {
        Ok(ProcessSettings {
            launcher: Launcher::new(),
            halt: Halt::new(),
            env: EnvBlock::new(&std::env::vars_os().collect::<Environment>()),
            cwd: std::env::current_dir()?.into(),
            input: None,
            timeout: None,
            accepted: Accepted::Codes(vec![0]),
            same_output: false,
            output_limit: u64::MAX,
            hooks: Hooks::default(),
        })
    }
}

impl Drop for ProcessSettings {
    fn drop(&mut self) {
        self.halt.finish();
    }
}

/// The accepted ends of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// With one of these exit codes.
    Codes(Vec<i32>),
    /// With any exit code. Death by a signal is never accepted.
    AnyCode,
}

impl Accepted {
    fn holds(&self, status: Status) -> bool {
        match (self, status) {
            (Accepted::Codes(codes), Status::Exited(code)) => codes.contains(&code),
            (Accepted::AnyCode, Status::Exited(_)) => true,
            (_, Status::Signaled(_)) => false,
        }
    }

    fn text(&self) -> String {
        match self {
            Accepted::Codes(codes) => {
                let codes: Vec<String> = codes.iter().map(i32::to_string).collect();
                format!("exit code {}", codes.join(" or "))
            }
            Accepted::AnyCode => "any exit code".to_owned(),
        }
    }
}

/// Command lines for `sh -c`, to run before and after each run, untimed.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    /// Before each run.
    pub prepare: Option<String>,
    /// After each run.
    pub conclude: Option<String>,
}

/// A command that can be run as a candidate.
pub struct Process<'s> {
    command: Command,
    settings: &'s ProcessSettings,
    null: File,
}

impl<'s> Process<'s> {
    /// Creates the candidate. Fails if /dev/null cannot be opened.
    pub fn new(command: Command, settings: &'s ProcessSettings) -> Result<Self, Failure> {
        let path = Path::new("/dev/null");
        let null = File::options().read(true).write(true).open(path);
        let null = null.map_err(|source| Failure::File { path: path.into(), source })?;
        Ok(Process { command, settings, null })
    }

    /// Starts the command and waits for its end. After a timeout or an interrupt, returns an error.
    fn execute(
        &self,
        out: [BorrowedFd<'_>; 2],
        phase: Phase,
        running: &super::halt::Running,
    ) -> Result<Exit, Failure> {
        let settings = self.settings;
        let open = |path: &PathBuf| {
            File::open(settings.cwd.join(path)).map_err(|source| Failure::File { path: path.clone(), source })
        };
        let input = settings.input.as_ref().map(open).transpose()?;
        let spec = Spec {
            program: self.command.program.clone(),
            argv: self.command.argv.clone(),
            env: settings.env.clone(),
            cwd: Arc::clone(&settings.cwd),
            stdio: [input.as_ref().unwrap_or(&self.null).as_fd(), out[0], out[1]],
            extra_fds: Vec::new(),
            umask: None,
            limits: Vec::new(),
            process_group: ProcessGroup::New,
            ignored: None,
            keep_cold: false,
        };
        let child = settings.launcher.start(&spec, &running.group);
        let name = || self.command.name.clone();
        let exit = child.map(|child| child.wait());
        if running.timed_out() {
            let limit = settings.timeout.unwrap_or_default();
            return Err(Failure::Timeout { name: name(), phase, limit });
        }
        if settings.halt.is_interrupted() {
            return Err(Failure::Interrupted);
        }
        exit.map_err(|source| Failure::Start { name: name(), phase, source })
    }

    fn accept(&self, exit: &Exit, phase: Phase, said: String) -> Result<(), Failure> {
        if self.settings.accepted.holds(exit.status) {
            return Ok(());
        }
        let expected = self.settings.accepted.text();
        Err(Failure::Status { name: self.command.name.clone(), phase, status: exit.status, expected, said })
    }

    fn hook(&self, hook: &'static str, command: Option<&str>) -> Result<(), Failure> {
        command.map_or(Ok(()), |command| run_hook(self.settings, hook, command))
    }
}

impl Candidate for Process<'_> {
    fn name(&self) -> &str {
        &self.command.name
    }

    fn check(&mut self) -> Result<Option<Digest>, Failure> {
        let (halt, phase) = (&self.settings.halt, Phase::Check);
        let running = halt.begin(self.settings.timeout);
        let budget = Arc::new(Budget { limit: self.settings.output_limit, ..Budget::default() });
        let mut readers = Vec::new();
        let mut ends = Vec::new();
        for _ in 0..2 {
            let (from, to) = output::pipe().map_err(Failure::Pipe)?;
            let running = Arc::clone(&running);
            readers.push(output::read(from, Arc::clone(&budget), move || running.group.kill()));
            ends.push(to);
        }
        let result = self.execute([ends[0].as_fd(), ends[1].as_fd()], phase, &running);
        halt.end();
        drop(ends);
        budget.ended.store(true, Ordering::SeqCst);
        let mut streams = readers.into_iter().map(|reader| reader.join().expect("readers do not panic"));
        let (out, err) = (streams.next().unwrap_or_default(), streams.next().unwrap_or_default());
        if budget.is_exceeded() {
            return Err(Failure::Output { name: self.command.name.clone(), phase, limit: budget.limit });
        }
        self.accept(&result?, phase, err.said())?;
        Ok(self.settings.same_output.then_some(out))
    }

    fn prepare(&mut self) -> Result<(), Failure> {
        self.hook("prepare", self.settings.hooks.prepare.as_deref())
    }

    fn run(&mut self, phase: Phase) -> Result<Sample, Failure> {
        let running = self.settings.halt.begin(self.settings.timeout);
        let result = self.execute([self.null.as_fd(), self.null.as_fd()], phase, &running);
        self.settings.halt.end();
        let exit = result?;
        self.accept(&exit, phase, String::new())?;
        Ok(Sample::from(&exit))
    }

    fn conclude(&mut self) -> Result<(), Failure> {
        self.hook("conclude", self.settings.hooks.conclude.as_deref())
    }
}

/// Runs a command line with `sh`, untimed. Returns an error if it fails.
pub fn run_hook(settings: &ProcessSettings, hook: &'static str, line: &str) -> Result<(), Failure> {
    let command = Command {
        name: format!("the {hook} command"),
        program: "/bin/sh".into(),
        argv: ["sh", "-c", line].map(OsString::from).to_vec(),
    };
    match Process::new(command, settings)?.check_any() {
        Err(Failure::Status { status, said, .. }) => {
            Err(Failure::Hook { hook, command: line.to_owned(), status, said })
        }
        other => other,
    }
}

impl Process<'_> {
    /// Runs a hook like a check. It must succeed, whichever ends the settings accept of candidates.
    fn check_any(&self) -> Result<(), Failure> {
        let running = self.settings.halt.begin(self.settings.timeout);
        let (from, to) = output::pipe().map_err(Failure::Pipe)?;
        let budget = Arc::new(Budget { limit: u64::MAX, ..Budget::default() });
        let reader = output::read(from, Arc::clone(&budget), || {});
        let result = self.execute([to.as_fd(), to.as_fd()], Phase::Check, &running);
        self.settings.halt.end();
        drop(to);
        budget.ended.store(true, Ordering::SeqCst);
        let said = reader.join().expect("readers do not panic").said();
        let exit = result?;
        if exit.status.success() {
            return Ok(());
        }
        let expected = "exit code 0".to_owned();
        Err(Failure::Status {
            name: self.command.name.clone(),
            phase: Phase::Check,
            status: exit.status,
            expected,
            said,
        })
    }
}
