//! Starts the stages of a pipeline and wires them together.
//!
//! Each descriptor is of the kind that lit gives, because tools check it: pipes between stages and for captured output,
//! a regular file for standard error of all stages but the last, an empty pipe as the first input.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hotstart_launch::{Resource, Spec, StartError, StatCache};
use hotstart_model::Dialect;
use hotstart_python::errors;
use hotstart_python::path::{is_file, join};
use hotstart_python::repr;
use rustix::io::Errno;

use crate::ast::{Command, Pipeline, Word};
use crate::builtin::native::{Task, Written};
use crate::builtin::{self, Builtin, Call, ulimit};
use crate::executable;
use crate::expand;
use crate::halt::{Halt, Halting};
use crate::interpreter;
use crate::lookup::which;
use crate::native::watch;
use crate::pipeline::{self, Context, new_pipe};
use crate::prefix::{self, Prefix, Prefixed};
use crate::pump::{self, Pipes, Port};
use crate::redirect::{self, Opened, Slot};
use crate::stage::{Outlet, Outlets, Running};
use crate::state::{SetLimit, Shell};
use crate::wrap;

/// CPU time that this thread may spend between the starts of two stages of a pipeline; lit takes 1 to 5 ms. What is started later finds
/// what the stages before it have changed meanwhile.
const LATE: Duration = Duration::from_millis(10);

/// A pipeline whose stages are being started.
pub(crate) struct Assembly<'c, 'a> {
    pub(crate) context: &'c mut Context<'a>,
    pub(crate) pipeline: &'c Pipeline,
    pub stages: Vec<Running<'a>>,
    pub ports: Vec<Port>,
    pub opened: Vec<Opened>,
    /// The next stage's input. `None` means an empty pipe.
    pub(crate) upstream: Option<Rc<OwnedFd>>,
    pub(crate) begun: Instant,
    /// CPU time of this thread when the first process of the pipeline had been started.
    started: Option<Duration>,
    /// The stat cache, if the pipeline has several stages.
    pub stat_cache: Option<StatCache>,
}

/// The read end of a pipe, which is ours, and the write end, which is the stage's.
type Ends = (Rc<OwnedFd>, OwnedFd);

/// The pipes and files of one stage.
struct Wiring {
    /// `None` means empty input.
    stdin: Option<Rc<OwnedFd>>,
    stdout: Sink,
    /// `None`: standard error goes where standard output goes.
    stderr: Option<Sink>,
    /// The next stage reads standard error, as in `2>&1 > file`.
    errors_feed_next: bool,
}

enum Sink {
    Pipe(Ends),
    File(Rc<OwnedFd>),
    /// A temporary file, read when all stages have ended.
    Temporary,
}

/// What a stage runs.
struct Callee {
    /// The file to execute.
    program: String,
    args: Vec<String>,
    /// The native stage that replaces the process.
    task: Option<Task>,
}

impl<'c, 'a> Assembly<'c, 'a> {
    pub fn new(context: &'c mut Context<'a>, pipeline: &'c Pipeline, begun: Instant) -> Self {
        Assembly {
            context,
            pipeline,
            stages: Vec::with_capacity(pipeline.stages.len()),
            ports: Vec::new(),
            opened: Vec::new(),
            upstream: None,
            begun,
            started: None,
            stat_cache: (pipeline.stages.len() > 1).then(StatCache::begin),
        }
    }

    fn dialect(&self) -> Dialect {
        self.context.script.dialect
    }

    /// Starts one stage. Returns a status if the pipeline has ended with this stage.
    pub fn start(&mut self, shell: &mut Shell, index: usize) -> Halting<Option<i32>> {
        let command = &self.pipeline.stages[index];
        let count = self.pipeline.stages.len();
        let (dialect, is_native) = (self.dialect(), self.context.is_native);
        if is_native {
            let Context { doubt, found, .. } = &mut *self.context;
            watch::stage(doubt, found, shell, command)?;
        }
        let mut words = command.words.clone();
        if dialect == Dialect::V23 {
            expand::readfile(&mut words, shell.cwd())?;
        }
        let mut stage = match prefix::strip(shell, words, dialect, is_native)? {
            Prefix::Command(stage) => stage,
            Prefix::PrintEnv(text) => {
                let done = builtin::Done { stdout: text, ..builtin::Done::default() };
                self.context.push_plain(command.shown(), done, (index, count), self.begun.elapsed());
                return Ok(Some(0));
            }
        };
        if let Word::Glob(pattern) = &stage.words[0] {
            if dialect == Dialect::V19 {
                return Err(Halt::exception("TypeError", "unhashable type: 'GlobItem'"));
            }
            stage.words[0] = Word::Text(expand::files(pattern, shell.cwd()).swap_remove(0));
        }
        let name = stage.words[0].text();
        match builtin::find(name, dialect).filter(|_| !is_native || builtin::is_also_bashs(name)) {
            Some(builtin) if name != "echo" || count == 1 => {
                self.builtin(shell, builtin, &stage, command).map(Some)
            }
            _ => self.program(shell, stage, index).map(|()| None),
        }
    }

    fn builtin(
        &mut self,
        shell: &mut Shell,
        builtin: Builtin,
        stage: &Prefixed,
        command: &Command,
    ) -> Halting<i32> {
        let name = stage.words[0].text();
        if stage.own.is_some() {
            return Err(Halt::shell(format!("Error: 'env' cannot call '{name}'")));
        }
        if stage.crash_words.is_some() {
            return Err(Halt::shell(format!("Error: 'not --crash' cannot call '{name}'")));
        }
        if self.pipeline.stages.len() != 1 {
            return Err(Halt::shell(format!("Unsupported: '{name}' cannot be part of a pipeline")));
        }
        let must_exist = self.context.is_native;
        let call = Call { words: &stage.words, command, shell, dialect: self.dialect(), must_exist };
        let mut done = builtin(call)
            .map_err(|halt| halt.showing(|| stage.words.iter().map(|w| w.text().to_owned()).collect()))?;
        if stage.negation.count % 2 == 1 {
            done.status = i32::from(done.status == 0);
        }
        let status = done.status;
        self.context.push_plain(command.shown(), done, (0, 1), self.begun.elapsed());
        Ok(status)
    }

    fn program(&mut self, shell: &mut Shell, stage: Prefixed, index: usize) -> Halting<()> {
        let Prefixed { mut own, mut words, negation, crash_words } = stage;
        let is_lits = matches!(words[0].text(), "cat" | "diff") && !self.context.is_native;
        if let Some(dir) = self.context.script.lit_package_dir.as_ref().filter(|_| is_lits) {
            own.as_mut().unwrap_or(shell).vars.set("PYTHONPATH", dir);
        }
        let is_lits = is_lits && crash_words.is_none();
        if let Some(crash) = crash_words {
            self.name_program(&mut words)?;
            words.splice(0..0, crash);
        }
        let command = &self.pipeline.stages[index];
        let opened_before = self.opened.len();
        let slots = redirect::process(command, shell.cwd(), self.dialect(), &mut self.opened)?;
        if let Some(stat_cache) = self.stat_cache.as_ref().filter(|_| self.opened.len() > opened_before) {
            // Opening may have truncated a file that the stage's start depends on.
            stat_cache.clear();
        }
        let path = search_path(own.as_ref(), shell, self.dialect()).map(|path| path.into_owned().into());
        let target = own.as_mut().unwrap_or(shell);
        let Callee { program, args, task } = self.callee(target, &words, is_lits, path)?;
        if self.context.is_native {
            let Context { doubt, found, .. } = &mut *self.context;
            watch::program(doubt, found, words[0].text(), &program)?;
        }
        let may_match = task.is_none() && negation.count == 0;
        let matched =
            if may_match { self.file_check(target, &program, args, slots) } else { Err((args, None)) };
        let (args, open) = match matched {
            Ok(running) => return self.add(running),
            Err(left) => left,
        };
        let wiring = self.wire(slots, task.is_some())?;
        match task {
            Some(task) => {
                let running = Running { negation, is_native: true, ..Running::default() };
                self.start_native(target, task, wiring, running)
            }
            None => {
                let running = Running { negation, open, ..Running::default() };
                self.start_process(target, program, args, wiring, running)
            }
        }
    }

    /// Returns what a stage runs. lit's own `cat` and `diff` may run without a process.
    fn callee(
        &self,
        shell: &Shell,
        words: &[Word],
        is_lits: bool,
        path: Halting<Cow<'_, str>>,
    ) -> Halting<Callee> {
        let mut args = expand::arguments(words, shell.cwd());
        if !is_lits {
            let program = find_program(words[0].text(), shell.cwd(), path)?;
            let task = refused_by_limits(shell, &program, &args[0]);
            return Ok(Callee { program, args, task });
        }
        path?;
        if shell.limits.iter().any(is_below_launcher) {
            let task = Some(refused_launcher());
            return Ok(Callee { program: self.python(), args, task });
        }
        let python = self.context.script.lit_python.as_deref();
        let task = Task::find(&args, self.dialect()).filter(|_| interpreter::is_plain(shell, python));
        let task = task.filter(|task| self.may_run(task, shell.cwd()));
        if task.is_none() {
            let name = std::mem::take(&mut args[0]);
            let program = self.by_python(&name)?;
            args.splice(0..1, program);
        }
        Ok(Callee { program: self.python(), args, task })
    }

    /// Whether the runner may run lit's `cat` or `diff` itself. Beside other stages a process has to: it opens its files some 20 ms after
    /// its start, and what the other stages do to them meanwhile decides what it finds.
    fn may_run(&self, task: &Task, cwd: &str) -> bool {
        // On another machine there is no Python of lit's, and a run that it would confirm is confirmed at home.
        let may_differ = self.context.is_repeatable || self.context.script.lit_python.is_none();
        self.pipeline.stages.len() == 1 && may_differ && task.has_plain_files(cwd)
    }

    /// Returns the Python that lit would start. Messages name it.
    fn python(&self) -> String {
        let python = self.context.script.lit_python.as_deref();
        python.map_or_else(|| "python".to_owned(), |python| python.to_string_lossy().into_owned())
    }

    /// Replaces the name of a `cat` or `diff` that another program starts with lit's program.
    fn name_program(&self, words: &mut Vec<Word>) -> Halting<()> {
        let name = match words[0].text() {
            name @ ("cat" | "diff") if !self.context.is_native => name,
            _ => return Ok(()),
        };
        let program = self.by_python(name)?;
        words.splice(0..1, program.map(Word::Text));
        Ok(())
    }

    /// Returns the words with which lit starts one of its programs.
    fn by_python(&self, name: &str) -> Halting<[String; 2]> {
        let script = self.context.script;
        let (Some(python), Some(package)) = (&script.lit_python, &script.lit_package_dir) else {
            return Err(Halt::internal(name, "no Python is known"));
        };
        let program = package.join("builtin_commands").join(format!("{name}.py"));
        Ok([python, &program].map(|path| path.to_string_lossy().into_owned()))
    }

    /// Makes the pipes that a stage needs.
    fn wire(&mut self, slots: [Slot; 3], is_native: bool) -> Halting<Wiring> {
        let (index, last) = (self.stages.len(), self.pipeline.stages.len() - 1);
        let pipe = || new_pipe().map(|(read, write)| Sink::Pipe((Rc::new(read), write)));
        let file = |index: usize| -> Rc<OwnedFd> {
            self.opened[index].file.clone().expect("open until all stages have started")
        };
        let shared = self.context.pipes.as_ref();
        // The output of a native stage for the transcript needs no pipe.
        let captured = |of_script: fn(&Pipes) -> &Rc<OwnedFd>| match shared {
            Some(pipes) => Ok(Sink::File(of_script(pipes).clone())),
            None if is_native => Ok(Sink::Temporary),
            None => pipe(),
        };
        let stdin = match slots[0] {
            Slot::File(index) => Some(file(index)),
            _ => self.upstream.clone().or_else(|| shared.map(|pipes| pipes.stdin.clone())),
        };
        let stdout = match slots[1] {
            Slot::File(index) => Sink::File(file(index)),
            _ if index == last => captured(|pipes| &pipes.stdout_end)?,
            _ => pipe()?,
        };
        let stderr = match (slots[2], &self.upstream) {
            (Slot::File(index), _) => Some(Sink::File(file(index))),
            (Slot::Upstream, Some(upstream)) => Some(Sink::File(upstream.clone())),
            (Slot::Stdout, _) if slots[1] == Slot::Pipe => None,
            (Slot::Stdout, _) if index == last => Some(captured(|pipes| &pipes.stdout_end)?),
            (Slot::Stdout, _) => Some(pipe()?),
            _ if shared.is_some() || self.errors_are_piped() => Some(captured(|pipes| &pipes.stderr_end)?),
            _ => Some(Sink::Temporary),
        };
        let errors_feed_next = slots[2] == Slot::Stdout && slots[1] != Slot::Pipe;
        Ok(Wiring { stdin, stdout, stderr, errors_feed_next })
    }

    fn start_process(
        &mut self,
        shell: &mut Shell,
        program: String,
        args: Vec<String>,
        wiring: Wiring,
        mut running: Running<'a>,
    ) -> Halting<()> {
        let number = (self.context.pipelines, self.stages.len() + 1);
        let (program, args, is_wrapped) = wrap::wrapped(self.context.script, program, args, number);
        let stdin = match wiring.stdin {
            Some(fd) => fd,
            None => Rc::new(pipeline::empty_input()?),
        };
        if let Some(Sink::Temporary) = wiring.stderr {
            let file = hotstart_python::tempfile::nameless()
                .map_err(|error| Halt::internal("cannot make a temporary file", error))?;
            running.stderr_file = Some(file);
        }
        let mut limits = shell.process_limits();
        let (mut program, mut args) = (program, args);
        if !limits.is_empty() && !shell.limits.iter().all(is_plain_limit) {
            // What Python makes of such a number differs between its versions.
            args.splice(0..0, self.by_python("_launch_with_limit")?);
            program = self.python();
            limits.clear();
        }
        running.is_limited = !limits.is_empty();
        let stdout = sink_fd(&wiring.stdout, running.stderr_file.as_ref());
        let stderr =
            wiring.stderr.as_ref().map_or(stdout, |sink| sink_fd(sink, running.stderr_file.as_ref()));
        let umask = shell.process_umask()?;
        if umask.is_some() && !running.is_limited {
            executable::check(&program).map_err(|error| could_not_create(&error, &program, &program))?;
        }
        let process_group = pipeline::process_group(self.context.group)?;
        let spec = Spec {
            program: program.clone().into(),
            argv: args.into_iter().map(OsString::from).collect(),
            umask,
            // Limits are set by a Python of lit's.
            env: if running.is_limited { shell.vars.block_behind_python() } else { shell.vars.block() },
            cwd: shell.cwd_path(),
            stdio: [stdin.as_fd(), stdout, stderr],
            extra_fds: Vec::new(),
            limits,
            ignored: None,
            keep_cold: is_wrapped || self.context.script.cold.covers(Path::new(&program)),
            process_group,
        };
        // A long check file was read and parsed, for one, before its FileCheck is left to itself.
        let is_late = self.started.is_some_and(|since| own_time().saturating_sub(since) > LATE);
        self.context.is_outdated |= is_late && self.context.is_repeatable;
        let started = self.context.launcher.start(&spec, self.context.group);
        if self.pipeline.stages.len() > 1 {
            self.started.get_or_insert_with(own_time);
        }
        let child = started.map_err(|error| match running.is_limited {
            // lit starts a Python for it.
            true => not_started(error, &self.python(), shell.cwd()),
            false => not_started(error, &program, shell.cwd()),
        })?;
        running.child = Some(child);
        running.errors_feed_next = wiring.errors_feed_next;
        let end = |sink| if let Sink::Pipe((read, _)) = sink { Some(read) } else { None };
        (running.stdout_end, running.stderr_end) = (end(wiring.stdout), wiring.stderr.and_then(end));
        running.stderr_is_piped = running.stderr_end.is_some() || self.context.pipes.is_some();
        self.add(running)
    }

    fn start_native(
        &mut self,
        shell: &Shell,
        task: Task,
        wiring: Wiring,
        mut running: Running<'a>,
    ) -> Halting<()> {
        let cwd = shell.cwd().to_owned();
        enterable(&cwd).map_err(|error| could_not_create(&error, &self.python(), &cwd))?;
        let Wiring { stdin, stdout, stderr, errors_feed_next } = wiring;
        let (stdout, stdout_end) = outlet(stdout);
        let (stderr, stderr_end) = stderr.map_or((Outlet::Stdout, None), outlet);
        let outlets = Outlets { stdout, stderr };
        let text = stdin.filter(|_| task.reads_stdin(&cwd)).map_or_else(Vec::new, |fd| pump::read_all(&fd));
        self.ports.extend(running.deliver(task.run(text, &cwd)?, outlets));
        running.ended = Some(self.begun.elapsed());
        (running.stdout_end, running.stderr_end) = (stdout_end, stderr_end);
        running.errors_feed_next = errors_feed_next;
        running.stderr_is_piped = errors_feed_next || self.errors_are_piped();
        self.add(running)
    }

    /// Whether the stage about to start has a pipe for its errors, as the last one has. lit compares the stage with the
    /// last by value, so an equal one has a pipe, too.
    fn errors_are_piped(&self) -> bool {
        let (index, last) = (self.stages.len(), self.pipeline.stages.len() - 1);
        index == last || self.pipeline.stages[index].same_to_lit(&self.pipeline.stages[last])
    }

    /// Adds a started stage. The next one reads its standard output, or the pipe of `2>&1 > file`.
    fn add(&mut self, mut running: Running<'a>) -> Halting<()> {
        let is_last = self.stages.len() + 1 == self.pipeline.stages.len();
        let feeds_next = if running.errors_feed_next && running.stdout_end.is_none() {
            &mut running.stderr_end
        } else {
            &mut running.stdout_end
        };
        if let (true, Some(end)) = (self.context.script.captures && !is_last, feeds_next.as_mut()) {
            let (read, write) = new_pipe()?;
            let from = std::mem::replace(end, Rc::new(read));
            self.ports.push(Port::capture(self.stages.len(), from, write));
        }
        self.upstream = feeds_next.clone();
        self.stages.push(running);
        Ok(())
    }
}

fn sink_fd<'s>(sink: &'s Sink, temporary: Option<&'s OwnedFd>) -> BorrowedFd<'s> {
    match (sink, temporary) {
        (Sink::Pipe((_, write)), _) => write.as_fd(),
        (Sink::File(file), _) => file.as_fd(),
        (Sink::Temporary, file) => file.expect("made before it is used").as_fd(),
    }
}

/// Returns where a native stage writes, and our end of it.
fn outlet(sink: Sink) -> (Outlet, Option<Rc<OwnedFd>>) {
    match sink {
        Sink::Pipe((read, write)) => (Outlet::Pipe(write), Some(read)),
        Sink::File(file) => (Outlet::File(file), None),
        Sink::Temporary => (Outlet::Capture, None),
    }
}

/// Returns the PATH for finding programs. lit 23 falls back on the script's if `env` has removed it.
fn search_path<'v>(own: Option<&'v Shell>, shell: &'v Shell, dialect: Dialect) -> Halting<Cow<'v, str>> {
    let of = |shell: &'v Shell| shell.vars.get("PATH");
    let path = match (own, dialect) {
        (None, _) => of(shell),
        (Some(own), Dialect::V19) => of(own),
        (Some(own), Dialect::V23) => of(own).or_else(|| of(shell)),
    };
    path.map(|path| path.to_string_lossy()).ok_or_else(|| Halt::exception("KeyError", "'PATH'"))
}

fn find_program(name: &str, cwd: &str, path: Halting<Cow<'_, str>>) -> Halting<String> {
    if name.starts_with('.') {
        let file = join(cwd, name);
        if is_file(&file) {
            return Ok(file);
        }
    }
    which(name, &path?).ok_or_else(|| Halt::shell(format!("{}: command not found", repr(name))))
}

/// Under `ulimit`, lit starts programs through one of its own, which dies of an exception if the exec fails.
fn refused_by_limits(shell: &Shell, program: &str, name: &str) -> Option<Task> {
    if shell.limits.is_empty() {
        return None;
    }
    if shell.limits.iter().any(is_below_launcher) {
        return Some(refused_launcher());
    }
    let error = executable::check(program).err()?;
    let (kind, message) = (errors::kind(&error), errors::message(&error, Some(&repr(name))));
    let text = format!("Traceback (most recent call last):\n{kind}: {message}\n");
    Some(Task::Refused(Written::error(text)))
}

/// Whether each Python gives the kernel this number.
fn is_plain_limit(limit: &SetLimit) -> bool {
    limit.2 == ulimit::UNLIMITED || (0..=i128::from(i64::MAX)).contains(&limit.2)
}

/// Under such a limit lit's program has no descriptors left for its pipe to the child.
fn is_below_launcher(limit: &SetLimit) -> bool {
    const NEEDED: i128 = 5;
    matches!(limit, (Resource::OpenFiles, _, count) if (0..NEEDED).contains(count))
}

fn refused_launcher() -> Task {
    let text = "Traceback (most recent call last):\nOSError: [Errno 24] Too many open files\n";
    Task::Refused(Written::error(text.to_owned()))
}

/// Whether a process could have been started in this directory.
pub(crate) fn enterable(cwd: &str) -> io::Result<()> {
    if !fs::metadata(cwd)?.is_dir() {
        return Err(errors::io_error(Errno::NOTDIR));
    }
    let (access, as_process) = (rustix::fs::Access::EXEC_OK, rustix::fs::AtFlags::EACCESS);
    rustix::fs::accessat(rustix::fs::CWD, cwd, access, as_process).map_err(errors::io_error)
}

fn could_not_create(error: &io::Error, program: &str, path: &str) -> Halt {
    let reason = errors::message(error, Some(&repr(path)));
    Halt::shell(format!("Could not create process ({program}) due to {reason}"))
}

fn not_started(error: StartError, program: &str, cwd: &str) -> Halt {
    match error {
        StartError::Directory { source, .. } => could_not_create(&source, program, cwd),
        StartError::Program { source, .. } => match Errno::from_io_error(&source) {
            // We lack resources. The next attempt may not, and it is never the test's fault.
            Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => {
                Halt::internal("cannot start a process", source)
            }
            _ => could_not_create(&source, program, program),
        },
        StartError::Nul { .. } => Halt::exception("ValueError", "embedded null byte"),
        StartError::Ended { .. } => Halt::Killed,
    }
}

/// CPU time of this thread.
fn own_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
