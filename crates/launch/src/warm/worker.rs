//! A persistent process: runs a tool's `main` again and again, and resets its memory after each run (runtime/reset/worker.c).
//!
//! The end of a run is a message, not a death: the process ends only if it could not be reset, with the status that the tool
//! gave. If a persistent process dies, a page shared with it shows whether `main` had begun.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hotstart_model::Status;
use rustix::event::epoll;
use rustix::fs::MemfdFlags;
use syscalls::Sysno;

use super::exe;
use super::files::Files;
use super::request::{self, Asked, Failure};
use super::wire::{End, Ending, Knowledge, Reply, Request};
use super::{starter, wire};
use crate::history::{History, Mark};
use crate::sys::anchor;
use crate::sys::channel::{self, Received};
use crate::sys::clock;
use crate::sys::shared::Table;
use crate::sys::wait;
use crate::{ProcessGroup, Reason, Spec, Usage};

/// How often to check that a silent process is alive: a child of it may hold its end of the socket.
const LOOK: Duration = Duration::from_millis(250);

/// Longest time that a process may take to make a clone, and the clone to be ready.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process that can run its tool's `main` any number of times.
#[derive(Debug)]
pub(crate) struct Worker {
    pid: i32,
    link: Link,
    /// Created when a caller wants to watch its end.
    process: Option<OwnedFd>,
    origin: Origin,
    /// Its runs, for reports.
    history: Arc<History>,
    /// Its CPU time when it was last asked for.
    clock: Duration,
    /// CPU time since then of the process whose memory it has taken over.
    carried: Duration,
    /// That process, until it is reaped.
    former: Option<i32>,
    is_dead: bool,
}

/// How a persistent process is to run a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct How {
    /// Everything is compared with the snapshot before the end is reported.
    pub audit: bool,
    /// It begins on the requester's processor.
    pub near: bool,
    /// It gets a process number that no run before has had (runtime/reset/number.c).
    pub renumber: bool,
    /// Its number of arguments is learned, though that may not pay.
    pub learn: bool,
}

/// The properties that a persistent process has from its zygote.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub files: Arc<Files>,
    /// The path in `/proc/self/exe`.
    pub exe: Arc<[u8]>,
    /// Number of starts with its memory layout.
    pub starts: Arc<AtomicU32>,
}

/// The runner's ends of the channels that it shares with a persistent process.
#[derive(Debug)]
pub(crate) struct Link {
    pub socket: OwnedFd,
    /// `struct hs_page`: whether `main` has begun, and `enum hs_run_doubt`; the number of the last clone.
    pub page: Arc<Table>,
}

impl Link {
    /// Makes the channels between the runner and a persistent process: the runner's ends, the process's socket, and its page.
    pub(super) fn new() -> std::io::Result<(Link, OwnedFd, OwnedFd)> {
        let (socket, theirs) = channel::pair()?;
        let memory = rustix::fs::memfd_create("hotstart-page", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&memory, Table::bytes(2) as u64)?;
        let page = Arc::new(Table::map(&memory, 2)?);
        Ok((Link { socket, page }, theirs, memory))
    }

    /// Returns the number of the last process that this one has made; 0 if there is none.
    fn last_made(&self) -> i32 {
        self.page.slots()[1].load(Ordering::SeqCst) as i32
    }

    /// Waits until a process that `may_answer` does; `None` if it does not.
    fn await_reply(&self, may_answer: impl Fn() -> bool) -> Option<Reply> {
        let until = Instant::now() + PATIENCE;
        let mut message = [0; wire::REPLY_SIZE];
        loop {
            match channel::receive_patiently(&self.socket, &mut message) {
                Received::Message(length) => return Reply::decode(&message[..length]),
                Received::Nothing if may_answer() && Instant::now() < until => {}
                Received::End | Received::Nothing => return None,
            }
        }
    }
}

/// The end of a run in a persistent process.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The process can be used again, unless an audit found differences (`enum hs_difference`), or one of its `children` was no
    /// job of a server.
    Reset {
        status: Status,
        usage: Usage,
        differs: u32,
        at_point: bool,
        children: u32,
        is_spoiled: bool,
        knows: Knowledge,
        /// Whether the run has looked at the process's number: the next one needs another.
        has_shown: bool,
    },
    /// The process has ended with this status, or is about to. `retired` has the reasons (`enum hs_retirement`), 0 if it just
    /// died.
    Process { retired: u32, doubts: Doubts },
    /// `main` was not run.
    NotRun,
}

/// The reasons for which a run may differ from one in a fresh process (`enum hs_run_doubt`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubts(u32);

impl Doubts {
    /// No doubt.
    #[cfg(test)]
    pub(crate) const NONE: Doubts = Doubts(0);

    /// From bits of `enum hs_run_doubt`.
    pub(crate) fn new(bits: u32) -> Self {
        Doubts(bits)
    }

    pub(crate) fn any(self) -> bool {
        self.0 != 0
    }

    /// Returns whether the run had children.
    pub(crate) fn of_children(self) -> bool {
        self.0 & wire::RUN_CHILDREN != 0
    }

    /// Returns whether the run executed another program, in a process with earlier runs. The next one, in a process of its own, is not
    /// in doubt for that.
    pub(crate) fn of_past(self) -> bool {
        self.0 & wire::RUN_PAST != 0
    }

    /// Returns whether a run in a process of its own would be doubtful as well.
    pub(crate) fn of_run(self) -> bool {
        self.0 & !(wire::RUN_PAST | wire::RUN_NUMBER) != 0
    }

    /// Returns whether what the program does makes it doubtful: it had children, or made an unknown call.
    pub(crate) fn of_nature(self) -> bool {
        self.of_children() || self.of_calls()
    }

    /// Returns whether the run made a system call whose answer may differ in a fresh process.
    pub(crate) fn of_calls(self) -> bool {
        self.0 & wire::RUN_CALLS != 0
    }

    /// Returns the name of the first such call.
    pub(crate) fn call(self) -> Option<&'static str> {
        let number = (self.0 >> wire::RUN_CALL_SHIFT).checked_sub(1)?;
        Some(Sysno::new(number as usize)?.name())
    }
}

/// The words of the shared page (`struct hs_page`).
struct Marks {
    has_begun: bool,
    doubts: Doubts,
}

impl Ended {
    /// Compares the children of a run with the number of its clients that a server has served; `None` if that is not known.
    pub(crate) fn check_children(&mut self, served: Option<u32>) {
        if let Ended::Reset { children, is_spoiled, .. } = self {
            *is_spoiled = *children > 0 && served != Some(*children);
        }
    }

    /// Returns whether the process has ended with the run, or is about to.
    pub(crate) fn is_of_process(&self) -> bool {
        matches!(self, Ended::Process { .. })
    }
}

impl Worker {
    /// Wraps a new persistent process, which runs its first request.
    pub(crate) fn new(pid: i32, link: Link, origin: Origin) -> Self {
        // Without a time limit a death could be missed. Setting it fails for no socket.
        let _ = channel::set_patience(&link.socket, LOOK);
        Worker {
            pid,
            link,
            process: None,
            origin,
            history: Arc::default(),
            clock: Duration::ZERO,
            carried: Duration::ZERO,
            former: None,
            is_dead: false,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the CPU time since the last call: after the end of a run that of the run, and of the reset before it.
    pub(crate) fn spent(&mut self) -> Duration {
        let before = std::mem::replace(&mut self.clock, clock::of_process(self.pid));
        std::mem::take(&mut self.carried) + self.clock.saturating_sub(before)
    }

    /// Records a run that was started for `job`.
    pub(crate) fn note(&self, spec: &Spec<'_>, job: Option<u32>) -> Mark {
        self.history.add(self.pid, spec, job)
    }

    /// Returns whether a cold start in `cwd` might load other files, even if these are unchanged.
    pub(crate) fn is_shadowed(&self, cwd: &Path) -> bool {
        self.origin.files.shadowed_in(cwd)
    }

    /// Returns whether it may be used: a cold start would still load the files that it was made of, and none of its runs is
    /// doubted.
    pub(crate) fn is_current(&self) -> bool {
        !self.history.is_doubted()
            && exe::is_shown(&self.origin.exe, self.pid)
            && self.origin.files.unchanged()
    }

    /// Returns the number of starts with its memory layout.
    pub(crate) fn starts(&self) -> u32 {
        self.origin.starts.load(Ordering::Relaxed)
    }

    /// Has its memory layout count as used up.
    pub(crate) fn wear_out(&mut self) {
        // Others add their starts to it.
        self.origin.starts.store(u32::MAX / 2, Ordering::Relaxed);
    }

    /// Starts `spec` in it.
    pub(crate) fn start(&mut self, spec: &Spec<'_>, how: How) -> Result<(), Failure> {
        self.link.page.slots()[0].store(0, Ordering::SeqCst);
        let audit = if how.audit { wire::REQUEST_AUDIT } else { 0 };
        let renumber = if how.renumber { wire::REQUEST_RENUMBER } else { 0 };
        let learn = if how.learn { wire::REQUEST_LEARN } else { 0 };
        let bind = how.near.then_some(self.pid);
        self.join(spec.process_group)?;
        let asked =
            Asked { pgid: request::group(spec), flags: audit | renumber | learn, bind, ..Asked::default() };
        self.link.page.slots()[1].store(0, Ordering::SeqCst);
        if let Err(failure) = request::send(&self.link.socket, spec, asked) {
            self.join(ProcessGroup::New)?;
            return Err(failure);
        }
        self.origin.starts.fetch_add(1, Ordering::Relaxed);
        if how.renumber { self.adopt() } else { Ok(()) }
    }

    /// Waits until the process has another number. The old one is reaped by [`Worker::settle`].
    fn adopt(&mut self) -> Result<(), Failure> {
        let Some(reply) = self.link.await_reply(|| !self.has_ended()).filter(|reply| reply.pid > 0) else {
            self.bury();
            return Err(Failure::Died);
        };
        self.follow(reply.pid);
        Ok(())
    }

    /// Records that process `pid` has taken over the memory.
    fn follow(&mut self, pid: i32) {
        if pid != self.pid {
            self.former = Some(self.pid);
            self.pid = pid;
            self.process = None;
        }
    }

    /// Returns the process that has taken over the memory, if there is one that is not known yet.
    fn successor(&self) -> Option<i32> {
        Some(self.link.last_made()).filter(|pid| *pid > 0 && *pid != self.pid)
    }

    /// Returns whether the process has ended, and the one that may have taken over its memory.
    fn has_ended(&self) -> bool {
        wait::has_ended(self.pid) && self.successor().is_none_or(wait::has_ended)
    }

    /// Reaps the process whose memory this one has taken over. Nobody may use its number from then on.
    pub(crate) fn settle(&mut self) {
        if let Some(former) = self.former.take() {
            let (_, usage) = wait::reap(former);
            self.carried += (usage.user + usage.system).saturating_sub(std::mem::take(&mut self.clock));
        }
    }

    /// Has the process, which waits for a request, make a clone that waits, too. If it does not answer, it is killed.
    pub(crate) fn clone_process(&mut self) -> Result<Worker, Failure> {
        let failed = |_| Failure::Request(Reason::System);
        let (link, theirs, page) = Link::new().map_err(failed)?;
        self.link.page.slots()[1].store(0, Ordering::SeqCst);
        let fds = [theirs.as_raw_fd(), page.as_raw_fd()];
        let sent = channel::send(&self.link.socket, &[&Request::for_clone().encode()], &fds).ok();
        drop((theirs, page));
        let Some(reply) = sent.and_then(|()| self.link.await_reply(|| !wait::has_ended(self.pid))) else {
            self.bury();
            return Err(Failure::Died);
        };
        // The clone is on its own now.
        self.link.page.slots()[1].store(0, Ordering::SeqCst);
        if reply.pid <= 0 {
            return Err(Failure::Request(Reason::System));
        }
        let mut clone = Worker::new(reply.pid, link, self.origin.clone());
        clone.history = History::after(&self.history);
        let is_ready = clone
            .link
            .await_reply(|| !wait::has_ended(clone.pid))
            .is_some_and(|ready| ready.pid == clone.pid);
        // Otherwise it is killed when it is dropped.
        if is_ready { Ok(clone) } else { Err(Failure::Request(Reason::System)) }
    }

    /// Ends a process that did not answer, and the one that it may have made: the kernel has noted that before it ran. The first is reaped
    /// when this is dropped.
    fn bury(&self) {
        wait::kill(self.pid);
        wait::await_end(self.pid);
        let clone = self.link.last_made();
        if clone > 0 {
            wait::kill(clone);
            wait::reap(clone);
            self.link.page.slots()[1].store(0, Ordering::SeqCst);
        }
    }

    /// Enters the process group of a run. When the run ends, the process returns to its own group before it reports the end.
    /// Later signals to the run's group do not reach it.
    fn join(&self, group: ProcessGroup) -> Result<(), Failure> {
        let pgid = match group {
            ProcessGroup::Inherit => rustix::process::getpgrp().as_raw_nonzero().get(),
            ProcessGroup::New => self.pid,
            ProcessGroup::Join(pgid) => pgid,
        };
        if anchor::set_group(self.pid, pgid) { Ok(()) } else { Err(Failure::Died) }
    }

    /// Waits for the end of the run, or until it is not followed any more. After any end but a reset, the caller waits for the process, and
    /// reaps it.
    pub(crate) fn await_end(&mut self) -> Ended {
        let mut message = [0; wire::END_SIZE];
        let end = loop {
            match channel::receive_patiently(&self.link.socket, &mut message) {
                Received::Message(length) => {
                    let end = End::decode(&message[..length]);
                    if end.is_none() {
                        // The tool has written to a socket that is not its own.
                        wait::kill(self.pid);
                    }
                    break end;
                }
                Received::End => break None,
                Received::Nothing if self.has_ended() => break None,
                Received::Nothing => {}
            }
        };
        if let Some(successor) = self.successor() {
            self.follow(successor);
            if end.is_none() {
                // It has died before it could tell the end. It is reaped when it is dropped, and the former one by the caller.
                self.former = None;
                return Ended::NotRun;
            }
        }
        match end {
            // One that has closed its connection cannot tell its end: another process has.
            Some(end) if end.ending == Ending::Reset && self.marks().doubts.of_calls() => {
                self.is_dead = true;
                wait::kill(self.pid);
                Ended::Process { retired: wire::RETIRED_CALLS, doubts: self.marks().doubts }
            }
            Some(end) if end.ending == Ending::Reset => {
                let usage = usage(&end);
                let status = Status::Exited(end.status);
                let End { differs, at_point, children, knows, has_shown, .. } = end;
                Ended::Reset {
                    status,
                    usage,
                    differs,
                    at_point,
                    children,
                    is_spoiled: false,
                    knows,
                    has_shown,
                }
            }
            Some(end) if end.ending == Ending::Retired => {
                self.is_dead = true;
                Ended::Process { retired: end.retired, doubts: self.marks().doubts }
            }
            _ => {
                self.is_dead = true;
                let Marks { has_begun, doubts } = self.marks();
                if end.is_some() || !has_begun {
                    wait::kill(self.pid);
                    return Ended::NotRun;
                }
                // What is not followed any more ends as any process does.
                Ended::Process { retired: 0, doubts }
            }
        }
    }

    /// Looks again at the doubts of a run that has ended with its process. It may have gone on since [`Worker::await_end`].
    pub(crate) fn look_again(&self, ended: &mut Ended) {
        let Ended::Process { retired, doubts } = ended else { return };
        *doubts = self.marks().doubts;
        if *retired == 0 && doubts.of_calls() {
            *retired = wire::RETIRED_CALLS;
        } else if *retired == 0 && doubts.of_children() {
            *retired = wire::RETIRED_CHILDREN;
        }
    }

    fn marks(&self) -> Marks {
        let page = self.link.page.slots()[0].load(Ordering::SeqCst);
        let doubts = (page >> 32) as u32;
        Marks { has_begun: page as i32 != 0, doubts: Doubts(doubts) }
    }

    /// Returns a descriptor that becomes readable when the run, or the process, ends, or when the run is not followed any more. Valid only
    /// while the process is held.
    pub(crate) fn end_fd(&mut self) -> std::io::Result<OwnedFd> {
        let process = match &mut self.process {
            Some(process) => process,
            none => none.insert(wait::pidfd(self.pid)?),
        };
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for fd in [self.link.socket.as_fd(), process.as_fd()] {
            epoll::add(&set, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        Ok(set)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.is_dead {
            return;
        }
        let (pid, former, page) = (self.pid, self.former, Arc::clone(&self.link.page));
        starter::tell(move || {
            wait::kill(pid);
            // It may be about to be replaced.
            wait::await_end(pid);
            let successor = page.slots()[1].load(Ordering::SeqCst) as i32;
            let successor = Some(successor).filter(|made| *made > 0 && *made != pid);
            successor.into_iter().for_each(wait::kill);
            for ended in [former, Some(pid), successor].into_iter().flatten() {
                wait::reap(ended);
            }
        });
    }
}

fn usage(end: &End) -> Usage {
    Usage {
        user: Duration::from_micros(end.user_us),
        system: Duration::from_micros(end.system_us),
        max_rss_kib: end.max_rss_kib,
        minor_faults: end.minor_faults,
        major_faults: end.major_faults,
        voluntary_switches: end.voluntary,
        involuntary_switches: end.involuntary,
    }
}
