//! A zygote: one stopped process, and the requests for its forks.
//!
//! It decides nothing. The pool decides which zygote serves a start and when one is ended, so that this can be tested without processes.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::eligible::Traits;
use super::exe;
use super::files::Files;
use super::identity::Aspect;
use super::observe::stdio::{self, Class, Stand};
use super::observe::{Observed, counts};
use super::refused::Size;
use super::request::{self, Asked, Failure};
use super::script::Script;
use super::search::Search;
use super::worker::{Link, Origin, Worker};
use super::{key, starter, wire};
use crate::slots::{Entry, Slot, Slots};
use crate::sys::{channel, clock, spawn, wait};
use crate::{Limit, ProcessGroup, Reason, Spec};

/// Longest time that a zygote may take to stop before `main`, and to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often to check whether a zygote of the prefork is still wanted.
const LOOK: Duration = Duration::from_millis(20);

/// The inputs for making a zygote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Means<'a> {
    pub runtime: &'a OwnedFd,
    pub slots: &'a Slots,
    pub allocator: Option<&'a Path>,
    /// The directory in which observations are stored.
    pub kept: Option<&'a Path>,
    /// The Python script, which is stopped later than before `main`, if it is one.
    pub python: Option<&'a Script>,
    /// Set when the zygote is no longer wanted. `None` if it always is.
    pub is_over: Option<&'a AtomicBool>,
}

/// A tool stopped before `main`.
#[derive(Debug)]
pub(crate) struct Zygote {
    pid: i32,
    socket: OwnedFd,
    files: Arc<Files>,
    /// Its path in `/proc/self/exe`.
    exe: Arc<[u8]>,
    /// The path there of the program, which is a script in the case of Python.
    pub program_exe: Arc<[u8]>,
    /// Variables that its constructors asked for.
    pub names: Vec<Vec<u8>>,
    /// Addresses at which it keeps the number of arguments.
    counts: Vec<u64>,
    /// Where a cold process has something on its stack.
    residue: Vec<u64>,
    /// The Python script, if it is one.
    script: Option<Script>,
    /// Number of starts with its memory layout, those of its persistent processes included.
    starts: Arc<AtomicU32>,
    /// Number of forks, persistent processes not counted.
    copies: u32,
    /// Number of the fork before which the text is put on large pages; 0 for never.
    pub enlarge_after: u32,
    /// Its CPU time when it was last asked for.
    clock: Duration,
    /// Whether it takes up requests on the requester's processor.
    pub near: bool,
    /// Whether it was found dead.
    is_dead: bool,
    /// Time from its own exec until it stopped, which each fork saves.
    pub start_time: Duration,
}

/// The zygote's own ends of its descriptors.
pub(super) struct Ends {
    socket: OwnedFd,
    slots: OwnedFd,
    runtime: OwnedFd,
    stdio: [Stand; 3],
}

impl Zygote {
    /// Starts `spec`'s program up to its `main`. `observed` is `None` only for the test of the runtime.
    pub(crate) fn start(
        spec: &Spec<'_>,
        traits: &Traits,
        means: Means<'_>,
        observed: Option<&Observed>,
    ) -> Result<Self, Reason> {
        /// Once in some hundred starts nothing above the stack can have the same upper half of addresses (runtime/reset/strings.c).
        const REFUSED_MAX: usize = 2;
        let mut refused = 0;
        loop {
            match Zygote::start_once(spec, traits, means, observed) {
                Err(Reason::System) if refused < REFUSED_MAX => refused += 1,
                started => return started,
            }
        }
    }

    fn start_once(
        spec: &Spec<'_>,
        traits: &Traits,
        means: Means<'_>,
        observed: Option<&Observed>,
    ) -> Result<Self, Reason> {
        let Means { runtime, slots, allocator, is_over, .. } = means;
        let (begun, moment) = (Instant::now(), clock::of_files());
        let (socket, theirs) = channel::pair().map_err(|_| Reason::System)?;
        let looked = observed.map_or([false; 3], |observed| observed.looks.stdio);
        let classes = stdio::classes(spec);
        let plain = [Class::Null, Class::TEMPORARY, Class::TEMPORARY];
        let class = |fd: usize| if looked[fd] { classes[fd] } else { plain[fd] };
        let ends = ends(theirs, runtime, slots, |fd| stdio::placeholder(class(fd)));
        let ends = ends.map_err(|_| Reason::System)?;
        if traits.python.is_some() {
            channel::send(&socket, &[&wire::python_mode(false)], &[]).map_err(|_| Reason::System)?;
        }
        let pid = spawn_stopped(spec, traits, ends, allocator)?;
        let slot = slots.take();
        if let Some(slot) = &slot {
            slot.enter(Entry { pid, pgid: pid });
        }
        let mut zygote = Zygote {
            pid,
            socket,
            files: Arc::default(),
            exe: Arc::default(),
            program_exe: Arc::default(),
            names: Vec::new(),
            counts: Vec::new(),
            residue: observed.map_or_else(Vec::new, |observed| observed.residue.clone()),
            script: traits.python.clone(),
            starts: Arc::default(),
            copies: 0,
            enlarge_after: 0,
            near: false,
            is_dead: false,
            start_time: Duration::ZERO,
            clock: Duration::ZERO,
        };
        let ready = zygote.await_ready(spec, traits, observed, is_over);
        if ready.is_err() {
            wait::kill(pid);
        }
        // From here on the zygote notices by its socket that the runner is gone.
        slot.into_iter().for_each(Slot::free);
        ready?;
        if !zygote.files.unchanged_since(moment) || !zygote.files.unchanged() {
            return Err(Reason::FilesChanging);
        }
        zygote.start_time = begun.elapsed();
        Ok(zygote)
    }

    /// Waits for its message that it has stopped, but gives up once `is_over`.
    fn await_message(&self, message: &mut [u8], is_over: Option<&AtomicBool>) -> Result<usize, Reason> {
        let set_patience = |time| channel::set_patience(&self.socket, time).map_err(|_| Reason::System);
        let until = Instant::now() + PATIENCE;
        set_patience(if is_over.is_some() { LOOK } else { PATIENCE })?;
        let length = loop {
            match channel::receive(&self.socket, message) {
                Ok(length) => break length,
                Err(error) if error.kind() == ErrorKind::WouldBlock && is_over.is_some() => {
                    if Instant::now() >= until || is_over.is_some_and(|over| over.load(Ordering::Relaxed)) {
                        return Err(Reason::NotStopped);
                    }
                }
                Err(_) => return Err(Reason::NotStopped),
            }
        };
        set_patience(PATIENCE)?;
        Ok(length)
    }

    fn await_ready(
        &mut self,
        spec: &Spec<'_>,
        traits: &Traits,
        observed: Option<&Observed>,
        is_over: Option<&AtomicBool>,
    ) -> Result<(), Reason> {
        let mut message = vec![0; wire::READY_MAX];
        let length = self.await_message(&mut message, is_over)?;
        let message = &message[..length];
        let ready = wire::Ready::decode(message).ok_or(Reason::NotStopped)?;
        if ready.pid != self.pid {
            return Err(Reason::NotStopped);
        }
        if let Some(reason) = doubt(ready.doubts) {
            return Err(reason);
        }
        let mut strings = message[wire::READY_SIZE..].split(|&b| b == 0);
        if ready.place != observed.map_or(0, |observed| observed.place) {
            return Err(Reason::ConstructorsDiffer);
        }
        let mut files = Files::default();
        files.watch(traits.python.as_ref().map_or(&spec.program, |script| &script.interpreter));
        self.learn_exe(spec, observed)?;
        let objects = strings.by_ref().take(ready.object_count as usize);
        let objects: Vec<_> = objects.map(|object| Path::new(OsStr::from_bytes(object))).collect();
        objects.iter().for_each(|object| files.watch(object));
        if !files.are_mapped(ready.object_count as usize + 1, self.pid) {
            return Err(Reason::FilesChanging);
        }
        // A mount may forbid it from now on, and no file changes by that.
        files.watch_for(&spec.program, Aspect::Access(libc::X_OK as u8));
        traits.python.iter().for_each(|script| files.watch_exe(&script.interpreter, &self.exe));
        observed.iter().for_each(|observed| files.join(&observed.files));
        let mut traits = traits.clone();
        objects.iter().try_for_each(|object| traits.add_library(object))?;
        let names = objects.iter().filter_map(|object| object.file_name()).map(OsStr::to_owned);
        let mut libraries: BTreeSet<OsString> = names.collect();
        libraries.extend(observed.iter().flat_map(|observed| observed.libraries.iter().cloned()));
        let search = Search::of(&spec.env);
        files.beware(search.relative(), &libraries);
        if files.shadowed_in(Path::new("/")) {
            return Err(Reason::LibraryPath);
        }
        let mut dirs = search.absolute().iter().chain(&traits.search);
        if !dirs.all(|dir| files.watch_way(dir)) {
            return Err(Reason::LibraryPath);
        }
        let mut searched = Files::default();
        search.watch(&libraries, &mut searched);
        files.join(&searched);
        // The directories of the variable that the observation is without are still idle.
        if observed.is_some_and(|observed| !observed.serves(spec)) {
            return Err(Reason::FilesChanging);
        }
        files.beware(&traits.relative, &libraries);
        let relative = observed.map_or(&[][..], |observed| &observed.relative);
        if files.shadowed_in(Path::new("/")) || !relative.iter().all(|path| files.shadows(path)) {
            return Err(Reason::RelativePath);
        }
        if files.stamp_accesses() {
            return Err(Reason::AccessTimes);
        }
        self.files = Arc::new(files);
        let kept = observed.map_or(&[][..], |observed| &observed.counts);
        self.counts = counts::addresses(kept, self.pid).ok_or(Reason::KeepsArguments)?;
        self.names = strings.take(ready.name_count as usize).map(<[u8]>::to_vec).collect();
        if self.names.iter().any(|n| n == b"LD_PRELOAD") {
            return Err(Reason::ReadsEnvironment);
        }
        if self.names.iter().any(|n| n == b"LLVM_PROFILE_FILE") {
            return Err(Reason::Instrumented);
        }
        Ok(())
    }

    /// Reads the path that it shows. Its program must have been observed with that path, and a start now must have it: where names differ
    /// in case only, the kernel may show another one than the name by which a file is found.
    fn learn_exe(&mut self, spec: &Spec<'_>, observed: Option<&Observed>) -> Result<(), Reason> {
        self.exe = exe::of_process(self.pid).map_err(|_| Reason::System)?.into();
        self.program_exe = match &self.script {
            Some(_) => exe::of_file(&spec.program).into(),
            None => Arc::clone(&self.exe),
        };
        let is_observed = observed.is_none_or(|observed| observed.exe == *self.program_exe);
        if is_observed && exe::of_file(&spec.program) == *self.program_exe {
            Ok(())
        } else {
            Err(Reason::FilesChanging)
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the CPU time since the last call, the first time that of its own start.
    pub(crate) fn spent(&mut self) -> Duration {
        let before = std::mem::replace(&mut self.clock, clock::of_process(self.pid));
        self.clock.saturating_sub(before)
    }

    /// Returns whether it can serve no more: its memory layout was used `starts` times, or it is dead.
    pub(crate) fn is_worn(&self, starts: u32) -> bool {
        self.is_dead || self.starts.load(Ordering::Relaxed) >= starts
    }

    /// Returns whether a cold start in `cwd` might load other files, even if these are unchanged.
    pub(crate) fn is_shadowed(&self, cwd: &Path) -> bool {
        self.files.shadowed_in(cwd)
    }

    /// Returns whether a cold start would still load the files that it was made of, and it still shows the path that is in its key.
    pub(crate) fn is_current(&self) -> bool {
        exe::is_shown(&self.exe, self.pid) && self.files.unchanged()
    }

    /// Makes a fork that runs `spec` without the gate. After an error there is no fork.
    pub(crate) fn copy(&mut self, spec: &Spec<'_>, slot: Slot<'_>) -> Result<i32, Failure> {
        slot.expect(spec.process_group);
        let flags = self.count_fork();
        self.ask(spec, slot, Asked { pgid: request::group(spec), flags, ..Asked::default() })
    }

    /// Counts a fork. Returns the flags of its request.
    fn count_fork(&mut self) -> u32 {
        self.copies += 1;
        if self.copies == self.enlarge_after { wire::REQUEST_ENLARGE } else { 0 }
    }

    /// Makes a persistent process, which runs `spec` first. If it `is_once`, it runs nothing else. After an error there is
    /// none.
    pub(crate) fn worker(
        &mut self,
        spec: &Spec<'_>,
        slot: Slot<'_>,
        is_once: bool,
    ) -> Result<Worker, Failure> {
        let (link, theirs, page) = Link::new().map_err(|_| Failure::Request(Reason::System))?;
        let own = [theirs.as_raw_fd(), page.as_raw_fd()];
        let kind = if is_once { self.count_fork() | wire::REQUEST_ONCE } else { 0 };
        let flags = wire::REQUEST_WORKER | kind;
        let asked = Asked { pgid: request::group(spec), own: &own, flags, ..Asked::default() };
        slot.expect(spec.process_group);
        let pid = self.ask(spec, slot, asked)?;
        let origin = Origin {
            files: Arc::clone(&self.files),
            exe: Arc::clone(&self.exe),
            starts: Arc::clone(&self.starts),
        };
        Ok(Worker::new(pid, link, origin))
    }

    fn ask(&mut self, spec: &Spec<'_>, slot: Slot<'_>, asked: Asked<'_>) -> Result<i32, Failure> {
        let bind = self.near.then_some(self.pid);
        let (counts, residue) = (&self.counts[..], &self.residue[..]);
        let asked = Asked { slot: slot.index(), bind, counts, residue, ..asked };
        let as_script = self.script.as_ref().map(|script| script.as_interpreter(spec));
        let sent = match request::send(&self.socket, as_script.as_ref().unwrap_or(spec), asked) {
            Err(Failure::Died) => None,
            Err(other) => return Err(other),
            Ok(()) => Some(()),
        };
        self.starts.fetch_add(1, Ordering::Relaxed);
        let mut answer = [0; wire::REPLY_SIZE];
        let reply = sent
            .and_then(|()| channel::receive(&self.socket, &mut answer).ok())
            .and_then(|length| wire::Reply::decode(&answer[..length]));
        let pid = match reply {
            Some(reply) if reply.pid > 0 => reply.pid,
            Some(reply) if reply.stage == wire::STAGE_RESET => {
                return Err(Failure::NoWorker);
            }
            Some(_) => return Err(Failure::Request(Reason::Refused)),
            None => self.bury(slot)?,
        };
        Ok(pid)
    }

    /// Ends a zygote that did not answer, and detects whether it had made a fork: the kernel records a fork before it runs.
    fn bury(&mut self, slot: Slot<'_>) -> Result<i32, Failure> {
        wait::kill(self.pid);
        wait::await_end(self.pid);
        self.is_dead = true;
        match slot.entry().pid {
            0 => Err(Failure::Died),
            pid => Ok(pid),
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        let pid = self.pid;
        // Ending a large process takes a while, so it is left to the starter's thread.
        starter::tell(move || {
            wait::kill(pid);
            wait::reap(pid);
        });
    }
}

/// Returns the descriptors of a zygote, with `placeholder` for each of its standard descriptors.
pub(super) fn ends(
    socket: OwnedFd,
    runtime: &OwnedFd,
    slots: &Slots,
    placeholder: impl Fn(usize) -> io::Result<Stand>,
) -> io::Result<Ends> {
    // Duplicates above the numbers that they get, so that none overwrites another.
    let high = |fd: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(fd, wire::RUNTIME_FD + 1);
    Ok(Ends {
        socket: high(&socket)?,
        slots: high(slots.file())?,
        runtime: high(runtime)?,
        stdio: [placeholder(0)?, placeholder(1)?, placeholder(2)?],
    })
}

/// Returns the environment of a zygote, and the number of its variables.
pub(super) fn environment(spec: &Spec<'_>, allocator: Option<&Path>) -> (Vec<u8>, usize) {
    // By this name the runtime knows that the library behind it is an allocator of the user's choice.
    let dir = if allocator.is_some() { wire::CHOSEN_NEXT } else { "/" };
    key::zygote_environment(spec, &format!("/proc/self/fd{dir}{}", wire::RUNTIME_FD), allocator)
}

/// Returns the invoked name.
pub(super) fn name(spec: &Spec<'_>) -> io::Result<CString> {
    Ok(CString::new(spec.argv.first().map_or(&b""[..], |name| name.as_bytes()))?)
}

/// Returns an argument of this length.
pub(super) fn long_argument(length: usize) -> CString {
    CString::new(vec![b'x'; length]).expect("it has no NUL")
}

/// Settings that a zygote has from its own exec, and each fork from it.
pub(super) struct Inherited {
    pub limits: Vec<Limit>,
    pub ignored: Option<u64>,
}

impl Inherited {
    pub(super) fn of(spec: &Spec<'_>) -> Inherited {
        let limits = spec.limits.iter().filter(|limit| limit.resource.is_of_zygote()).copied();
        Inherited { limits: limits.collect(), ignored: spec.ignored }
    }
}

/// Starts a process in the way a zygote is started. If `traced`, the calling thread traces it.
pub(super) fn spawn(
    program: &CStr,
    argv: &[CString],
    env: &[u8],
    env_count: usize,
    ends: &Ends,
    inherited: &Inherited,
    traced: bool,
) -> Result<i32, i32> {
    let extra = [
        (wire::SLOTS_FD, ends.slots.as_fd()),
        (wire::CONTROL_FD, ends.socket.as_fd()),
        (wire::RUNTIME_FD, ends.runtime.as_fd()),
    ];
    let request = spawn::Request {
        program,
        argv,
        env,
        env_count,
        cwd: c"/",
        stdio: ends.stdio.each_ref().map(|stand| stand.fd.as_fd()),
        extra_fds: &extra,
        process_group: ProcessGroup::New,
        limits: &inherited.limits,
        ignored: inherited.ignored,
        traced,
    };
    // No slot: a zygote notices by its socket that the runner is gone, and a traced process ends with its tracer.
    spawn::vfork_exec(&request, None)
}

fn spawn_stopped(
    spec: &Spec<'_>,
    traits: &Traits,
    ends: Ends,
    allocator: Option<&Path>,
) -> Result<i32, Reason> {
    // Python has read all arguments when it stops, so there are none of the script's.
    let command = traits.python.as_ref().map(|script| script.command(spec));
    let (program, first) = command.unwrap_or_else(|| (spec.program.clone(), Vec::new()));
    let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| Reason::System);
    let mut argv = first.iter().map(|word| text(word)).collect::<Result<Vec<_>, _>>()?;
    if argv.is_empty() {
        argv = vec![name(spec).map_err(|_| Reason::System)?];
    }
    let program = text(program.as_os_str())?;
    let (env, count) = environment(spec, allocator);
    if traits.python.is_none() {
        let size = Size::of(spec);
        argv.resize(size.arguments(), CString::default());
        let others =
            env.len() + argv.iter().map(|argument| argument.as_bytes_with_nul().len()).sum::<usize>();
        argv[size.arguments() - 1] = long_argument(size.filling(others));
    }
    let inherited = Inherited::of(spec);
    let start = move || spawn(&program, &argv, &env, count, &ends, &inherited, false);
    starter::ask(start).ok_or(Reason::System)?.map_err(|_| Reason::NotStopped)
}

/// Returns the reason for the first doubt of `enum hs_doubt`.
fn doubt(bits: u32) -> Option<Reason> {
    const REASONS: [Reason; 16] = [
        Reason::Threads,
        Reason::Descriptors,
        Reason::SharedMemory,
        Reason::Timers,
        Reason::ReadsEnvironment,
        Reason::Stdio,
        Reason::Children,
        Reason::KeepsArguments,
        Reason::ReadsEnvironment,
        Reason::ReadsDirectory,
        Reason::ReadsIdentity,
        Reason::ReadsClock,
        Reason::System,
        Reason::ReadsEnvironment,
        Reason::Signals,
        Reason::LibcFunctions,
    ];
    (bits != 0).then(|| REASONS.get(bits.trailing_zeros() as usize).copied().unwrap_or(Reason::System))
}
