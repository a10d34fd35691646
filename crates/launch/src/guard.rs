//! Ends what the runner started if the runner itself is killed with SIGKILL, which it cannot notice.
//!
//! A second, tiny process of the same binary waits for the end of a pipe whose other end only the runner holds.
//! A table in shared memory tells it which processes and process groups are alive at that moment. A process that is
//! started by exec enters itself before its exec, and holds the pipe open until then: the guard cannot see the end of
//! the pipe and miss the process. (PR_SET_PDEATHSIG in each child would miss grandchildren, and a tool can see it.)

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hotstart_model::Environment;
use rustix::fs::MemfdFlags;
use rustix::pipe::PipeFlags;
use rustix::process::Pid;

use crate::sys::shared::Table;
use crate::{EnvBlock, ProcessGroup, Spec, cold, sys};

/// First argument by which the binary knows that it is to be the guard.
const GUARD: &str = "__hotstart-guard";
/// Numbers that the guard's two descriptors have.
const LIFELINE: i32 = 3;
const TABLE: i32 = 4;
const HELD: i32 = 5;
/// Processes that can be alive at once; more are not guarded, but run.
const SLOTS: usize = 4096;

/// The runner's side: the table, and the pipe whose end tells that the runner is gone.
#[derive(Debug)]
pub(crate) struct Guard {
    table: Table,
    lifeline: OwnedFd,
    pid: i32,
}

/// A place in the table: taken before a process is started, free again once it is freed.
#[derive(Debug)]
#[must_use = "a slot that is not freed stays taken"]
pub(crate) struct Slot<'g>(&'g AtomicI64);

/// In a slot: taken, but no process yet.
const TAKEN: i64 = -1;

impl Guard {
    /// Starts the guard; `None` if the system refuses, in which case the runner works without one.
    pub(crate) fn start() -> Option<Guard> {
        Self::start_holding(None)
    }

    /// The same; the guard has a copy of `held`, and ends only when all that it ended is gone.
    pub(crate) fn start_holding(held: Option<BorrowedFd<'_>>) -> Option<Guard> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).ok()?;
        let memory = rustix::fs::memfd_create("hotstart-guard", MemfdFlags::CLOEXEC).ok()?;
        rustix::fs::ftruncate(&memory, Table::bytes(SLOTS) as u64).ok()?;
        let table = Table::map(&memory, SLOTS).ok()?;
        let null = File::options().read(true).write(true).open("/dev/null").ok()?;
        let mut extra_fds = vec![(LIFELINE, read.as_fd()), (TABLE, memory.as_fd())];
        extra_fds.extend(held.map(|held| (HELD, held)));
        let spec = Spec {
            program: "/proc/self/exe".into(),
            argv: vec!["hotstart".into(), GUARD.into(), std::process::id().to_string().into()],
            env: EnvBlock::new(&Environment::new()),
            cwd: Path::new("/").into(),
            stdio: [null.as_fd(), null.as_fd(), null.as_fd()],
            extra_fds,
            umask: None,
            limits: Vec::new(),
            keep_cold: false,
            process_group: ProcessGroup::New,
        };
        let pid = cold::prepare(&spec, None).ok()?.spawn(&spec, None).ok()?;
        Some(Guard { table, lifeline: write, pid })
    }

    /// Has `dir` removed should the runner be killed: it could not do so itself any more.
    pub(crate) fn remove(&self, dir: &Path) {
        let message = [dir.as_os_str().as_bytes(), b"\0"].concat();
        // The pipe is empty, and the guard reads all the time; one that is gone can do nothing.
        let _ = rustix::io::write(&self.lifeline, &message);
    }

    /// Takes a slot for a process that is to be started; `None` if there are too many.
    pub(crate) fn slot(&self) -> Option<Slot<'_>> {
        let take =
            |slot: &AtomicI64| slot.compare_exchange(0, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        self.table.slots().iter().find(|slot| take(slot)).map(Slot)
    }
}

impl Slot<'_> {
    /// Where a process enters itself.
    pub(crate) fn cell(&self) -> &AtomicI64 {
        self.0
    }

    /// Puts a process and its group (0 for none of its own) under guard.
    pub(crate) fn enter(&self, pid: i32, pgid: i32) {
        self.0.store(sys::spawn::slot_value(pid, pgid), Ordering::Release);
    }

    /// Takes the process out again; to be called before it is reaped.
    pub(crate) fn free(self) {
        self.0.store(0, Ordering::Release);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        for slot in self.table.slots() {
            slot.store(0, Ordering::Release);
        }
        sys::wait::kill(self.pid);
        sys::wait::reap(self.pid);
    }
}

/// The guard's side: to be called first thing in the binary's `main` with the process's arguments.
///
/// Returns `false` at once if the arguments are not the guard's; else when the runner is gone and its processes
/// have been ended.
pub fn enter_guard(args: &[OsString]) -> bool {
    if args.get(1).map(OsString::as_os_str) != Some(OsStr::new(GUARD)) {
        return false;
    }
    let runner = args.get(2).and_then(|pid| pid.to_str()?.parse().ok()).and_then(Pid::from_raw);
    let (lifeline, memory) = (sys::shared::inherited(LIFELINE), sys::shared::inherited(TABLE));
    if let (Some(lifeline), Some(memory)) = (lifeline, memory) {
        // Reading ends when the runner's end is closed.
        let mut directories = Vec::new();
        let _ = File::from(lifeline).read_to_end(&mut directories);
        if let Ok(table) = Table::map(&memory, SLOTS) {
            end_all(&table);
            await_all(runner, &table);
        }
        for dir in directories.split(|&byte| byte == 0).filter(|dir| !dir.is_empty()) {
            // Nobody is left to be told.
            let _ = std::fs::remove_dir_all(OsStr::from_bytes(dir));
        }
    }
    true
}

fn end_all(table: &Table) {
    for slot in table.slots() {
        let value = slot.load(Ordering::Acquire);
        let (pid, pgid) = ((value >> 32) as i32, value as i32);
        if pgid > 0 {
            sys::wait::kill_group(pgid);
        }
        if pid > 0 {
            sys::wait::kill(pid);
        }
    }
}

/// Waits until nothing is left of what was ended, so that whoever waits for the guard can rely on it: neither the
/// runner, at whose end the kernel signals the copies it knows of, nor the processes in the table. A killed process
/// that hangs in the kernel (a dead network file system) is given up after a while.
fn await_all(runner: Option<Pid>, table: &Table) {
    let is_gone = |pid: i32| pid <= 0 || sys::wait::is_gone(pid);
    for _ in 0..10_000 {
        let mut pids = table.slots().iter().map(|slot| (slot.load(Ordering::Acquire) >> 32) as i32);
        if rustix::process::getppid() != runner && pids.all(is_gone) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
