//! One process that runs a tool's `main` again and again, and puts its memory back in between (runtime/worker.c).
//!
//! Its end is a message, not a death: only what could not be put back ends the process, with the status that the tool gave.
//! What a dead worker leaves open is whether `main` had begun; a page shared with it tells.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hotstart_model::Status;
use rustix::event::epoll;

use super::budget::{Budget, Share};
use super::identity::Files;
use super::request::{self, Asked, Failure};
use super::template::owned_memory;
use super::wire::{End, Ending};
use super::{place, starter, wire};
use crate::history::{History, Mark};
use crate::sys::channel::{self, Received};
use crate::sys::shared::Table;
use crate::sys::wait;
use crate::{Spec, Usage};

/// How often to look whether a silent worker lives: something it started may hold its end of the socket.
const LOOK: Duration = Duration::from_millis(250);

/// A process that can run its tool's `main` any number of times.
#[derive(Debug)]
pub(crate) struct Worker {
    pid: i32,
    link: Link,
    /// `/proc/PID/statm`, which tells how many pages all its mappings have.
    sizes: Option<File>,
    /// Made when somebody wants to watch it end.
    process: Option<OwnedFd>,
    /// Its memory, counted with that of all others once it has run.
    pub share: Option<Share>,
    /// Whether it was entered where options are parsed, for which it keeps a second snapshot.
    pub has_point: bool,
    pub origin: Origin,
    pub last_use: u64,
    /// The processor of who last had it run something.
    pub asked_on: usize,
    /// What it ran, for reports.
    history: Arc<History>,
    is_dead: bool,
}

/// What a worker has of its template.
#[derive(Debug)]
pub(crate) struct Origin {
    pub key: Vec<u8>,
    pub files: Arc<Files>,
    /// Starts with its memory layout.
    pub starts: Arc<AtomicU32>,
}

/// The runner's ends of what it shares with a worker.
#[derive(Debug)]
pub(crate) struct Link {
    pub socket: OwnedFd,
    /// `struct hs_page`: whether `main` has begun.
    pub page: Table,
}

/// How a run in a worker ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The worker can be used again, unless an audit found differences (`enum hs_difference`), or something was mapped
    /// unseen: then its process is being ended, for this reason (`enum hs_retirement`, else 0).
    Rewound { status: Status, usage: Usage, differs: u32, at_point: bool, retired: u32 },
    /// The process has ended or is about to: with this status. Why it retired (`enum hs_retirement`), 0 if it just died.
    Process { retired: u32 },
    /// `main` was not run.
    NotRun,
}

impl Ended {
    /// Whether the process has ended with the run, or is about to.
    pub(crate) fn is_of_process(&self) -> bool {
        matches!(self, Ended::Process { .. } | Ended::Rewound { retired: 1.., .. })
    }
}

impl Worker {
    /// A worker just made, which runs its first request.
    pub(crate) fn new(pid: i32, link: Link, origin: Origin) -> Self {
        // Without patience a death could be missed; setting it fails for no socket.
        let _ = channel::set_patience(&link.socket, LOOK);
        Worker {
            pid,
            link,
            sizes: File::open(format!("/proc/{pid}/statm")).ok(),
            process: None,
            share: None,
            has_point: false,
            origin,
            last_use: 0,
            asked_on: place::current(),
            history: Arc::default(),
            is_dead: false,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Takes note of a run that was started for `job`.
    pub(crate) fn note(&self, spec: &Spec<'_>, job: Option<u32>) -> Mark {
        self.history.add(self.pid, spec, job)
    }

    /// Whether a cold start in `cwd` might load other files, whatever became of these.
    pub(crate) fn is_shadowed(&self, cwd: &Path) -> bool {
        self.origin.files.shadowed_in(cwd)
    }

    /// Whether it may be used: a cold start would still load the very files it was made of, and nobody doubts it.
    pub(crate) fn is_current(&self) -> bool {
        !self.history.is_doubted() && self.origin.files.unchanged()
    }

    /// Counts the memory it owns now. What it still shares with its template is counted with both.
    pub(crate) fn measure(&mut self, budget: &Budget) {
        let memory = owned_memory(self.pid);
        match &mut self.share {
            Some(share) => share.resize(memory),
            none => *none = Some(budget.take(memory)),
        }
    }

    /// Has it run `spec`, at first on this processor if it is `near`.
    pub(crate) fn start(&mut self, spec: &Spec<'_>, audit: bool, near: bool) -> Result<(), Failure> {
        self.asked_on = place::current();
        self.link.page.slots()[0].store(0, Ordering::SeqCst);
        let flags = if audit { wire::REQUEST_AUDIT } else { 0 };
        let bind = near.then_some(self.pid);
        request::send(&self.link.socket, spec, Asked { flags, bind, ..Asked::default() })?;
        self.origin.starts.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Waits for the end of the run. After anything but a rewind, the process is to be reaped by the caller.
    pub(crate) fn await_end(&mut self) -> Ended {
        let mut message = [0; wire::END_SIZE];
        let end = loop {
            match channel::receive_patiently(&self.link.socket, &mut message) {
                Received::Message(length) => break End::decode(&message[..length]),
                Received::End => break None,
                Received::Nothing if wait::has_ended(self.pid) => break None,
                Received::Nothing => {}
            }
        };
        match end {
            Some(end) if end.ending == Ending::Rewound => {
                let usage = usage(&end);
                let status = Status::Exited(end.status);
                // One that differs ends by itself.
                let retired =
                    if end.differs != 0 || self.has_pages(end.pages) { 0 } else { self.end_unseen() };
                Ended::Rewound { status, usage, differs: end.differs, at_point: end.at_point, retired }
            }
            Some(end) if end.ending == Ending::Retired => {
                self.is_dead = true;
                Ended::Process { retired: end.retired }
            }
            _ => {
                self.is_dead = true;
                let begun = self.link.page.slots()[0].load(Ordering::SeqCst) as i32 != 0;
                if end.is_some() || !begun {
                    wait::kill(self.pid);
                    return Ended::NotRun;
                }
                Ended::Process { retired: 0 }
            }
        }
    }

    /// Whether all its mappings together have so many pages, or none any more: a process that has been killed since shows when
    /// it is asked next. ld.so, and whatever calls the kernel by itself, maps without being seen by the runtime. Asked from
    /// here, as a process that asks for its own takes three calls instead of one.
    fn has_pages(&self, pages: u64) -> bool {
        let mut text = [0; 64];
        let Some(Ok(length)) = self.sizes.as_ref().map(|sizes| sizes.read_at(&mut text, 0)) else {
            return wait::has_ended(self.pid);
        };
        let first = text[..length].split(|byte| *byte == b' ').next().unwrap_or_default();
        str::from_utf8(first)
            .is_ok_and(|number| matches!(number.parse::<u64>(), Ok(found) if found == pages || found == 0))
    }

    /// Ends a process whose mappings cannot be put back, nobody knowing which they are. With them go the files that they keep
    /// open, and locked.
    fn end_unseen(&mut self) -> u32 {
        self.is_dead = true;
        wait::kill(self.pid);
        wire::RETIRED_MAPPINGS
    }

    /// A descriptor that becomes readable when the run, or the process, ends. Good only while the worker is held.
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
