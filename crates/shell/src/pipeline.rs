//! Runs a pipeline: starts its stages, waits for them and collects their results.
//!
//! All stages start before any is awaited, as in lit. `assembly` alone knows which stages are processes, and which are builtins or
//! certain passes of FileCheck.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use hotstart_launch::{Group, Launcher, ProcessGroup};
use hotstart_model::{Again, Captured, Script, Stage, Status, Step};
use hotstart_python::text::{decode, decode_pipe};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::SeekFrom;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use crate::assembly::Assembly;
use crate::ast::{Command, Pipeline};
use crate::builtin;
use crate::clock::Clock;
use crate::filecheck::{FileChecks, Open};
use crate::halt::{Halt, Halting};
use crate::lookup::which;
use crate::native::program::Found;
use crate::native::{Refusal, watch};
use crate::paste;
use crate::pump::{self, Pipes, Pump};
use crate::redirect;
use crate::stage::Running;
use crate::state::Shell;

/// Grace period for the started stages of a pipeline that could not be completed.
const GRACE: Duration = Duration::from_secs(1);

/// The constant context of a running script, and its record.
pub(crate) struct Context<'a> {
    pub script: &'a Script,
    /// Whether this is a script for bash that runs here because it means the same.
    pub is_native: bool,
    pub launcher: &'a Launcher,
    pub group: &'a Group,
    /// Why bash might have gone on otherwise, if that came up while such a script ran. It has ended as a failure then.
    pub doubt: Option<Refusal>,
    /// Which files the names of programs have meant in such a script.
    pub found: Found,
    /// Its standard streams.
    pub pipes: Option<Pipes>,
    /// Decides passes of FileCheck without a process. `None` if every FileCheck runs.
    pub filechecks: Option<&'a FileChecks>,
    /// Whether the caller runs the script again, cold, if it proves nothing.
    pub is_repeatable: bool,
    /// FileChecks that passed without a process.
    pub matched: usize,
    /// `cat`s and `diff`s that ran without a process.
    pub natives: usize,
    /// Whether a FileCheck may have found other files than it would have under lit.
    pub is_outdated: bool,
    /// Whether a FileCheck was started only at the end of its input, and nothing else shows that it passes.
    pub has_late: bool,
    pub clock: Clock<'a>,
    /// Whether the script failed before its time was up because a stage could not be started. The wait for the other stages is
    /// then no timeout: lit does not wait for them.
    pub has_failed_in_time: bool,
    pub steps: Vec<Step>,
    pub announced: Vec<(usize, Option<String>)>,
    pub captured: Vec<Captured>,
    /// The number of pipelines begun so far.
    pub pipelines: usize,
    /// The last pipeline, if it failed.
    pub again: Option<Box<Again>>,
}

impl Context<'_> {
    /// Records a stage without a process.
    pub fn push_plain(
        &mut self,
        args: Vec<String>,
        done: builtin::Done,
        position: (usize, usize),
        wall: Duration,
    ) {
        self.steps.push(Step::Stage(Stage {
            args,
            stdout: done.stdout,
            stderr: done.stderr,
            status: done.status,
            process: None,
            timed_out: false,
            redirected: Vec::new(),
            pipeline: self.pipelines - 1,
            position,
            wall,
            cpu: Duration::ZERO,
        }));
    }
}

/// Returns the read end of a pipe without a writer. Each process has one of its own, since it may set flags of the pipe.
pub(crate) fn empty_input() -> Halting<OwnedFd> {
    Ok(new_pipe()?.0)
}

/// Returns a new pipe, closed on exec.
pub(crate) fn new_pipe() -> Halting<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|error| Halt::internal("cannot make a pipe", error))
}

/// Returns the process group of a job.
pub(crate) fn process_group(group: &Group) -> Halting<ProcessGroup> {
    group.process_group().map_err(|error| Halt::internal("cannot make a process group", error))
}

/// Runs a pipeline and returns its status. Keeps one that fails until another succeeds.
pub(crate) fn run(context: &mut Context<'_>, shell: &mut Shell, pipeline: &Pipeline) -> Halting<i32> {
    let result = run_stages(context, shell, pipeline);
    context.again = match result {
        Ok(0) => None,
        _ => Some(Box::new(again(shell, pipeline))),
    };
    result
}

fn again(shell: &Shell, pipeline: &Pipeline) -> Again {
    let path = shell.vars.get("PATH").map(|path| path.to_string_lossy()).unwrap_or_default();
    Again {
        command: paste::pipeline(pipeline, which("not", &path).is_some()),
        is_piped: pipeline.stages.len() > 1,
        cwd: shell.cwd_path().to_path_buf(),
        env: shell.vars.all(),
    }
}

fn run_stages(context: &mut Context<'_>, shell: &mut Shell, pipeline: &Pipeline) -> Halting<i32> {
    context.pipelines += 1;
    let count = pipeline.stages.len();
    let begun = Instant::now();
    let mut assembly = Assembly::new(context, pipeline, begun);
    for index in 0..count {
        match assembly.start(shell, index) {
            Ok(None) => {}
            Ok(Some(status)) => {
                // lit does not wait for the others, so nothing tells what they find from what lit's would.
                assembly.context.is_outdated |= has_replaced(&assembly.stages);
                abandon(assembly.stages);
                return Ok(status);
            }
            Err(halt) => {
                let stages = assembly.stages;
                let is_failure = matches!(halt, Halt::Shell { .. } | Halt::Exception { .. });
                context.has_failed_in_time = is_failure && !context.clock.is_killed();
                abandon(stages);
                return Err(report(context, halt, &pipeline.stages[index], (index, count), begun.elapsed()));
            }
        }
    }
    let Assembly { mut stages, ports, mut opened, stat_cache, .. } = assembly;
    drop(stat_cache);
    opened.iter_mut().for_each(|file| file.file = None);
    let pipes = context.pipes.as_ref();
    let pumped = Pump { stages: &mut stages, ports, clock: &context.clock, begun, pipes }.run();
    if let Err(halt) = pumped {
        // lit would have started FileCheck before its directory was removed. A timeout does not count.
        let is_internal = matches!(halt, Halt::Internal(_));
        context.is_outdated |= is_internal && stages.iter().any(|stage| stage.late.is_some());
        abandon(stages);
        return Err(halt);
    }
    stages.iter_mut().rev().for_each(|stage| stage.wait(|| begun.elapsed()));
    collect(context, pipeline, stages, &opened)
}

/// Whether one of these stages runs in the place of a process that would find its files at another time.
fn has_replaced(stages: &[Running<'_>]) -> bool {
    stages.iter().any(|stage| stage.pending.is_some() || stage.decided_on.is_some())
}

/// Records an error of the shell as lit does, as a stage of status 127.
fn report(
    context: &mut Context<'_>,
    halt: Halt,
    command: &Command,
    position: (usize, usize),
    wall: Duration,
) -> Halt {
    if let Halt::Shell { words, message } = &halt {
        let args = words.clone().unwrap_or_else(|| command.shown());
        let done = builtin::Done { stderr: message.clone(), status: 127, ..builtin::Done::default() };
        context.push_plain(args, done, position, wall);
    }
    halt
}

/// Records every stage. Returns the pipeline's status.
fn collect(
    context: &mut Context<'_>,
    pipeline: &Pipeline,
    stages: Vec<Running<'_>>,
    opened: &[redirect::Opened],
) -> Halting<i32> {
    let count = stages.len();
    let mut result = 0;
    for (index, stage) in stages.into_iter().enumerate() {
        if stage.process == Some(Status::Signaled(Signal::INT.as_raw())) && !stage.is_limited {
            // lit takes it for Ctrl-C.
            return Err(Halt::exception("KeyboardInterrupt", ""));
        }
        if stage.negation.unrunnable_fails && (stage.status < 0 || matches!(stage.status, 126 | 127)) {
            return Err(watch::not_speaks(&mut context.doubt));
        }
        let status = stage.negation.apply(stage.status);
        context.matched += usize::from(stage.is_matched);
        context.natives += usize::from(stage.is_native);
        // lit's FileCheck would have found what was there when the pipeline began, but it opens the check file some 10 ms later.
        let is_outdated = stage.late.as_ref().is_some_and(|scene| !scene.is_current())
            || stage.decided_on.as_ref().is_some_and(|scene| !scene.has_check_file());
        context.is_outdated |= is_outdated;
        let is_silent = stage.stdout.is_empty() && stage.stderr.is_empty();
        let has_passed = stage.process == Some(Status::Exited(0)) && is_silent;
        let is_remembered = stage.open.as_ref().is_some_and(Open::is_remembered);
        context.has_late |= stage.late.is_some() && !(has_passed && is_remembered);
        if let (Some(filechecks), Some(open)) = (context.filechecks, &stage.open) {
            if has_passed && stage.late.is_some() && !is_remembered {
                filechecks.has_passed_late(open);
            }
            // One that has changed is another question.
            if !has_passed && !is_outdated && matches!(stage.process, Some(Status::Exited(_))) {
                filechecks.has_failed(open, &|| pipeline.stages[index].shown().join(" "));
            }
        }
        let stderr = match &stage.stderr_file {
            Some(file) if rustix::fs::fstat(file).is_ok_and(|found| found.st_size > 0) => {
                let _ = rustix::fs::seek(file, SeekFrom::Start(0));
                decode(pump::read_all(file))
            }
            _ if stage.stderr_is_piped => decode_pipe(stage.stderr),
            _ => decode(stage.stderr),
        };
        let redirected = if status != 0 { redirect::outputs(opened)? } else { Vec::new() };
        context.steps.push(Step::Stage(Stage {
            args: pipeline.stages[index].shown(),
            stdout: decode_pipe(stage.stdout),
            stderr,
            status,
            process: stage.process,
            timed_out: context.clock.is_timed_out(),
            redirected,
            pipeline: context.pipelines - 1,
            position: (index, count),
            wall: stage.ended.unwrap_or_default(),
            cpu: stage.cpu,
        }));
        if context.script.captures && index + 1 < count {
            context.captured.push(Captured {
                pipeline: context.pipelines - 1,
                stage: index,
                data: stage.capture,
            });
        }
        if !context.script.pipefail || status != 0 {
            result = status;
        }
    }
    Ok(result)
}

/// Ends the stages of a pipeline that could not be completed. lit forgets them. Here they keep their pipes and may end
/// by themselves within `GRACE`; then they are killed.
fn abandon(stages: Vec<Running<'_>>) {
    let until = Instant::now() + GRACE;
    for mut stage in stages {
        let Some(mut child) = stage.child.take() else { continue };
        let mut event = child.end_fd().ok();
        if event.is_none() {
            child.kill();
        }
        while let Some(fd) = event {
            let rest = until.saturating_duration_since(Instant::now());
            let rest = Timespec { tv_sec: rest.as_secs() as i64, tv_nsec: i64::from(rest.subsec_nanos()) };
            let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
            if !matches!(poll(&mut fds, Some(&rest)), Ok(1)) {
                child.kill();
                break;
            }
            event = child.process_fd();
        }
        child.wait();
    }
}
