//! A persistent process: runs a tool's `main` again and again, and resets its memory after each run (runtime/reset/worker.c).
//!
//! The end of a run is a message, not a death: the process ends only if it could not be reset, with the status that the tool
//! gave. If a persistent process dies, a page shared with it shows whether `main` had begun.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hotstart_model::Status;
use rustix::event::epoll;

use super::exe;
use super::files::Files;
use super::request::{self, Asked, Failure};
use super::wire::{End, Ending};
use super::{starter, wire};
use crate::history::{History, Mark};
use crate::sys::anchor;
use crate::sys::channel::{self, Received};
use crate::sys::clock;
use crate::sys::shared::Table;
use crate::sys::wait;
use crate::{ProcessGroup, Spec, Usage};

/// How often to check that a silent process is alive: a child of it may hold its end of the socket.
const LOOK: Duration = Duration::from_millis(250);

/// A process that can run its tool's `main` any number of times.
#[derive(Debug)]
pub(crate) struct Worker {
    pid: i32,
    /// The process in whose place it goes on after the last run; that one has ended, or is about to, and is not reaped.
    predecessor: Option<i32>,
    link: Link,
    /// Created when a caller wants to watch its end.
    process: Option<OwnedFd>,
    origin: Origin,
    /// Its runs, for reports.
    history: Arc<History>,
    /// Its CPU time when it was last asked for.
    clock: Duration,
    /// The part of its last run's that its predecessor has used.
    carried: Duration,
    is_dead: bool,
}

/// The properties that a persistent process has from its zygote.
#[derive(Debug)]
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
    /// `struct hs_page`: whether `main` has begun, `enum hs_run_doubt`, and the number of the process's successor.
    pub page: Table,
}

/// The end of a run in a persistent process.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The process can be used again, unless an audit found differences (`enum hs_difference`), or one of its `children` was no
    /// job of a server.
    Reset { status: Status, usage: Usage, differs: u32, at_point: bool, children: u32, is_spoiled: bool },
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

    /// Returns whether the run made a system call whose answer may differ in a fresh process.
    pub(crate) fn of_calls(self) -> bool {
        self.0 & wire::RUN_CALLS != 0
    }
}

/// The words of the shared page (`struct hs_page`).
struct Marks {
    has_begun: bool,
    doubts: Doubts,
}

impl Ended {
    /// Removes the doubt about children: the tool was known to start others.
    pub(crate) fn expect_children(&mut self) {
        if let Ended::Process { doubts, .. } = self {
            doubts.0 &= !wire::RUN_CHILDREN;
        }
    }

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
            predecessor: None,
            link,
            process: None,
            origin,
            history: Arc::default(),
            clock: Duration::ZERO,
            carried: Duration::ZERO,
            is_dead: false,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the CPU time since the last call: after the end of a run that of the run, and of the reset before it.
    pub(crate) fn spent(&mut self) -> Duration {
        let before = std::mem::replace(&mut self.clock, clock::of_process(self.pid));
        self.clock.saturating_sub(before) + std::mem::take(&mut self.carried)
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

    /// Starts `spec` in it, at first on this processor if it is `near`.
    pub(crate) fn start(&mut self, spec: &Spec<'_>, audit: bool, near: bool) -> Result<(), Failure> {
        self.link.page.slots().iter().for_each(|word| word.store(0, Ordering::SeqCst));
        let flags = if audit { wire::REQUEST_AUDIT } else { 0 };
        let bind = near.then_some(self.pid);
        self.join(spec.process_group)?;
        let sent = request::send(&self.link.socket, spec, Asked { flags, bind, ..Asked::default() });
        if let Err(failure) = sent {
            self.join(ProcessGroup::New)?;
            return Err(failure);
        }
        self.origin.starts.fetch_add(1, Ordering::Relaxed);
        Ok(())
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

    /// Waits for the end of the run. After any end but a reset, the caller reaps the process.
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
                Received::Nothing if wait::has_ended(self.successor().unwrap_or(self.pid)) => break None,
                Received::Nothing => {}
            }
        };
        let is_reset = end.as_ref().is_some_and(|end| end.ending == Ending::Reset);
        match self.successor() {
            Some(next) if is_reset => self.give_way(next),
            // It has not taken over.
            Some(next) => {
                wait::kill(next);
                wait::reap(next);
            }
            None => {}
        }
        match end {
            Some(end) if end.ending == Ending::Reset => {
                let usage = usage(&end);
                let status = Status::Exited(end.status);
                let End { differs, at_point, children, .. } = end;
                Ended::Reset { status, usage, differs, at_point, children, is_spoiled: false }
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
                // Without the gate, a run ends as any process does.
                let retired = if doubts.of_calls() { wire::RETIRED_CALLS } else { 0 };
                Ended::Process { retired, doubts }
            }
        }
    }

    /// Returns the number of the process that goes on in place of this one. The kernel has written it, but the tool can write
    /// there as well: only a child can be meant.
    fn successor(&self) -> Option<i32> {
        let pid = self.link.page.slots()[1].load(Ordering::SeqCst) as i32;
        (pid > 0 && pid != self.pid && wait::is_child(pid)).then_some(pid)
    }

    /// Goes on as the process `next`, which shares this one's memory.
    fn give_way(&mut self, next: i32) {
        self.carried = clock::of_process(self.pid).saturating_sub(std::mem::take(&mut self.clock));
        self.predecessor = Some(std::mem::replace(&mut self.pid, next));
        self.process = None;
    }

    /// Reaps the process that has run the last run, if another one has taken over. Whoever waits for the run may ask next whether
    /// its number is still in use.
    pub(crate) fn reap_predecessor(&mut self) {
        if let Some(pid) = self.predecessor.take() {
            // It may have been stopped on its way.
            wait::kill(pid);
            wait::reap(pid);
        }
    }

    fn marks(&self) -> Marks {
        let page = self.link.page.slots()[0].load(Ordering::SeqCst);
        Marks { has_begun: page as i32 != 0, doubts: Doubts((page >> 32) as u32) }
    }

    /// Returns a descriptor that becomes readable when the run, or the process, ends. Valid only while the process is held.
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
        self.reap_predecessor();
        if self.is_dead {
            return;
        }
        let pid = self.pid;
        starter::tell(move || {
            wait::kill(pid);
            wait::reap(pid);
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
