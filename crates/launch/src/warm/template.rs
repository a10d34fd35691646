//! One stopped process, and how it is asked for copies.

use std::ffi::{CStr, CString, OsStr};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::MemfdFlags;

use super::eligible::Traits;
use super::files::Files;
use super::observe::stdio::{self, Class, Stand};
use super::observe::{Observed, counts};
use super::request::{self, Asked, Failure};
use super::worker::{Link, Origin, Worker};
use super::{key, starter, wire};
use crate::slots::{Entry, Slot, Slots};
use crate::sys::shared::Table;
use crate::sys::{channel, spawn, wait};
use crate::{Limit, ProcessGroup, Reason, Spec};

/// How long a template may take to stop before main, and to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often to look whether a template is still wanted that is made ahead.
const LOOK: Duration = Duration::from_millis(20);

/// What a template is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Means<'a> {
    pub runtime: &'a OwnedFd,
    pub slots: &'a Slots,
    pub allocator: Option<&'a Path>,
    /// Where it is kept what was observed.
    pub kept: Option<&'a Path>,
    /// Set when it is not wanted any more, if that can be before it is made.
    pub is_over: Option<&'a AtomicBool>,
}

/// A tool stopped before `main`.
#[derive(Debug)]
pub(crate) struct Template {
    pid: i32,
    socket: OwnedFd,
    files: Arc<Files>,
    /// What its constructors asked the environment for.
    pub names: Vec<Vec<u8>>,
    /// Where it keeps the number of arguments.
    counts: Vec<u64>,
    /// Starts with its memory layout, those of its workers included.
    starts: Arc<AtomicU32>,
    /// Copies made, workers not counted.
    copies: u32,
    /// With which of them the text is put on large pages.
    pub enlarge_after: u32,
    /// Whether it takes requests up on the asker's processor.
    pub near: bool,
    /// Whether it was seen to be dead.
    is_dead: bool,
    /// From its own exec until it stopped: what each copy saves.
    pub start_time: Duration,
}

/// The ends of a template's descriptors that go to it.
pub(super) struct Ends {
    socket: OwnedFd,
    slots: OwnedFd,
    runtime: OwnedFd,
    stdio: [Stand; 3],
}

impl Template {
    /// Starts `spec`'s program up to its `main`. Only the trial of the runtime does so with nothing observed.
    pub(crate) fn start(
        spec: &Spec<'_>,
        traits: &Traits,
        means: Means<'_>,
        observed: Option<&Observed>,
    ) -> Result<Self, Reason> {
        let Means { runtime, slots, allocator, is_over, .. } = means;
        let (begun, moment) = (Instant::now(), SystemTime::now());
        let (socket, theirs) = channel::pair().map_err(|_| Reason::System)?;
        let looked = observed.map_or([false; 3], |observed| observed.looks.stdio);
        let classes = stdio::classes(spec);
        let plain = [Class::Null, Class::File, Class::File];
        let class = |fd: usize| if looked[fd] { classes[fd] } else { plain[fd] };
        let ends = ends(theirs, runtime, slots, |fd| stdio::stand_in(class(fd)));
        let ends = ends.map_err(|_| Reason::System)?;
        let pid = spawn_stopped(spec, ends, allocator)?;
        let slot = slots.take();
        if let Some(slot) = &slot {
            slot.enter(Entry { pid, pgid: pid });
        }
        let mut template = Template {
            pid,
            socket,
            files: Arc::default(),
            names: Vec::new(),
            counts: Vec::new(),
            starts: Arc::default(),
            copies: 0,
            enlarge_after: 0,
            near: false,
            is_dead: false,
            start_time: Duration::ZERO,
        };
        let ready = template.await_ready(spec, traits, observed, is_over);
        if ready.is_err() {
            wait::kill(pid);
        }
        // From here on it notices by its socket that the runner is gone.
        slot.into_iter().for_each(Slot::free);
        ready?;
        if !template.files.unchanged_since(moment) || !template.files.unchanged() {
            return Err(Reason::FilesChanging);
        }
        template.start_time = begun.elapsed();
        Ok(template)
    }

    /// Waits for what it tells when it has stopped; not any longer once `is_over`.
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
        let mut files = Files::default();
        files.watch(&spec.program);
        let objects = strings.by_ref().take(ready.object_count as usize);
        let objects: Vec<_> = objects.map(|object| Path::new(OsStr::from_bytes(object))).collect();
        objects.iter().for_each(|object| files.watch(object));
        if !files.are_mapped(ready.object_count as usize + 1, self.pid) {
            return Err(Reason::FilesChanging);
        }
        observed.iter().for_each(|observed| files.join(&observed.files));
        let mut traits = traits.clone();
        objects.iter().try_for_each(|object| traits.add_library(object))?;
        files.beware(&traits.relative, &objects);
        let relative = observed.map_or(&[][..], |observed| &observed.relative);
        if files.shadowed_in(Path::new("/")) || !relative.iter().all(|path| files.shadows(path)) {
            return Err(Reason::RelativePath);
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

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it can serve no more: its memory layout was used so often, or it is dead.
    pub(crate) fn is_worn(&self, starts: u32) -> bool {
        self.is_dead || self.starts.load(Ordering::Relaxed) >= starts
    }

    /// Whether a cold start in `cwd` might load other files, whatever became of these.
    pub(crate) fn is_shadowed(&self, cwd: &Path) -> bool {
        self.files.shadowed_in(cwd)
    }

    /// Whether a cold start would still load the very files it was made of.
    pub(crate) fn is_current(&self) -> bool {
        self.files.unchanged()
    }

    /// Makes a fork that runs `spec` without the gate. After an error there is none.
    pub(crate) fn copy(&mut self, spec: &Spec<'_>, slot: Slot<'_>) -> Result<i32, Failure> {
        slot.expect(spec.process_group);
        let flags = self.count_fork();
        self.ask(spec, slot, Asked { pgid: request::group(spec), flags, ..Asked::default() })
    }

    /// Counts a fork; flags of the request for it.
    fn count_fork(&mut self) -> u32 {
        self.copies += 1;
        if self.copies == self.enlarge_after { wire::REQUEST_ENLARGE } else { 0 }
    }

    /// Makes a worker, which runs `spec` first, or, if it `is_once`, nothing else. After an error there is none.
    pub(crate) fn worker(
        &mut self,
        spec: &Spec<'_>,
        slot: Slot<'_>,
        is_once: bool,
    ) -> Result<Worker, Failure> {
        let (link, theirs, page) = link().map_err(|_| Failure::Request(Reason::System))?;
        let own = [theirs.as_raw_fd(), page.as_raw_fd()];
        let kind = if is_once { self.count_fork() | wire::REQUEST_ONCE } else { 0 };
        let flags = wire::REQUEST_WORKER | kind;
        let asked = Asked { pgid: request::group(spec), own: &own, flags, ..Asked::default() };
        slot.expect(spec.process_group);
        let pid = self.ask(spec, slot, asked)?;
        let origin = Origin { files: Arc::clone(&self.files), starts: Arc::clone(&self.starts) };
        Ok(Worker::new(pid, link, origin))
    }

    fn ask(&mut self, spec: &Spec<'_>, slot: Slot<'_>, asked: Asked<'_>) -> Result<i32, Failure> {
        let bind = self.near.then_some(self.pid);
        let asked = Asked { slot: slot.index(), bind, counts: &self.counts, ..asked };
        let sent = match request::send(&self.socket, spec, asked) {
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
            Some(reply) if reply.stage == wire::STAGE_REWIND => {
                return Err(Failure::NoWorker);
            }
            Some(_) => return Err(Failure::Request(Reason::Refused)),
            None => self.bury(slot)?,
        };
        Ok(pid)
    }

    /// Finds out whether a template that did not answer had made a copy: the kernel notes it before the copy runs.
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

impl Drop for Template {
    fn drop(&mut self) {
        let pid = self.pid;
        // Taking down a large process takes a while: not on the time of whoever wants to start something.
        starter::tell(move || {
            wait::kill(pid);
            wait::reap(pid);
        });
    }
}

/// What runner and worker share: the runner's ends, the worker's socket, and its page.
fn link() -> std::io::Result<(Link, OwnedFd, OwnedFd)> {
    let (socket, theirs) = channel::pair()?;
    let memory = rustix::fs::memfd_create("hotstart-page", MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&memory, Table::bytes(1) as u64)?;
    let page = Table::map(&memory, 1)?;
    Ok((Link { socket, page }, theirs, memory))
}

/// What a template is given, `stand_in` for each of its standard descriptors.
pub(super) fn ends(
    socket: OwnedFd,
    runtime: &OwnedFd,
    slots: &Slots,
    stand_in: impl Fn(usize) -> io::Result<Stand>,
) -> io::Result<Ends> {
    // Copies above the numbers they get, so that none of them is in another's way.
    let high = |fd: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(fd, wire::RUNTIME_FD + 1);
    Ok(Ends {
        socket: high(&socket)?,
        slots: high(slots.file())?,
        runtime: high(runtime)?,
        stdio: [stand_in(0)?, stand_in(1)?, stand_in(2)?],
    })
}

/// The environment of a template, and how many variables there are.
pub(super) fn environment(spec: &Spec<'_>, allocator: Option<&Path>) -> (Vec<u8>, usize) {
    key::template_environment(spec, &format!("/proc/self/fd/{}", wire::RUNTIME_FD), allocator)
}

/// The name that it is called by.
pub(super) fn name(spec: &Spec<'_>) -> io::Result<CString> {
    Ok(CString::new(spec.argv.first().map_or(&b""[..], |name| name.as_bytes()))?)
}

/// What a template has from its own exec, and each copy from it.
pub(super) struct Inherited {
    limits: Vec<Limit>,
    ignored: Option<u64>,
}

impl Inherited {
    pub(super) fn of(spec: &Spec<'_>) -> Inherited {
        let limits = spec.limits.iter().filter(|limit| limit.resource.is_of_template()).copied();
        Inherited { limits: limits.collect(), ignored: spec.ignored }
    }
}

/// Starts a process as a template is started; `traced`, the thread that calls this traces it.
pub(super) fn spawn(
    program: &CStr,
    argv: &[CString],
    (env, env_count): (&[u8], usize),
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
    // A template sees by its socket that the runner is gone, and what is traced ends with its tracer.
    spawn::vfork_exec(&request, None)
}

fn spawn_stopped(spec: &Spec<'_>, ends: Ends, allocator: Option<&Path>) -> Result<i32, Reason> {
    let program = CString::new(spec.program.as_os_str().as_bytes()).map_err(|_| Reason::System)?;
    let mut argv = vec![CString::default(); wire::ROOM];
    argv[0] = name(spec).map_err(|_| Reason::System)?;
    let (env, count) = environment(spec, allocator);
    let inherited = Inherited::of(spec);
    let start = move || spawn(&program, &argv, (&env, count), &ends, &inherited, false);
    starter::ask(start).ok_or(Reason::System)?.map_err(|_| Reason::NotStopped)
}

/// The reason of the first doubt of `enum hs_doubt`.
fn doubt(bits: u32) -> Option<Reason> {
    const REASONS: [Reason; 15] = [
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
    ];
    (bits != 0).then(|| REASONS.get(bits.trailing_zeros() as usize).copied().unwrap_or(Reason::System))
}
