//! Ends all processes of a runner that is killed with SIGKILL, which the runner itself cannot notice.
//!
//! The guard is a second, tiny process of the same binary. It waits for the end of a pipe whose other end only the runner holds.
//! A table in shared memory (`slots`) lists the processes and process groups that are alive. A process that is started by exec
//! enters itself before its exec, and holds the pipe open until then, so the guard cannot see the end of the pipe and miss the
//! process. The kernel enters a fork of a zygote before its first instruction. A fork that is made as the runner dies ends by
//! itself, because its parent is another process. (PR_SET_PDEATHSIG alone would miss grandchildren, and a tool started by exec
//! could see it.)

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotstart_model::Environment;
use rustix::pipe::PipeFlags;
use rustix::process::Pid;

use crate::slots::{self, SLOTS, Slots};
use crate::sys::shared::Table;
use crate::{EnvBlock, ProcessGroup, Spec, cold, descendants, sys};

/// First argument by which the binary recognizes that it is the guard.
const GUARD: &str = "__hotstart-guard";
/// Numbers of the guard's descriptors.
const LIFELINE: i32 = 3;
const TABLE: i32 = 4;
const HELD: i32 = 5;

/// The runner's side: the table, and the pipe that closes when the runner ends.
#[derive(Debug)]
pub(crate) struct Guard {
    slots: Arc<Slots>,
    lifeline: OwnedFd,
    pid: i32,
}

impl Guard {
    /// Starts the guard; `None` if the system refuses, in which case the runner works without one. The guard inherits a copy
    /// of `held`, and ends only when the processes that it killed are gone.
    pub(crate) fn start(slots: &Arc<Slots>, held: Option<BorrowedFd<'_>>) -> Option<Guard> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).ok()?;
        let null = File::options().read(true).write(true).open("/dev/null").ok()?;
        let mut extra_fds = vec![(LIFELINE, read.as_fd()), (TABLE, slots.file().as_fd())];
        extra_fds.extend(held.map(|held| (HELD, held)));
        let (program, env) = (Path::new("/proc/self/exe"), EnvBlock::new(&Environment::new()));
        let spec = Spec {
            argv: vec!["hotstart".into(), GUARD.into(), std::process::id().to_string().into()],
            extra_fds,
            process_group: ProcessGroup::New,
            ..Spec::plain(program, OsString::new(), env, &null)
        };
        let pid = cold::prepare(&spec, None).ok()?.spawn(&spec, None).ok()?;
        Some(Guard { slots: Arc::clone(slots), lifeline: write, pid })
    }

    /// Has the guard remove `dir` if the runner is killed, and so cannot do it itself.
    pub(crate) fn remove(&self, dir: &Path) {
        let message = [dir.as_os_str().as_bytes(), b"\0"].concat();
        // The pipe is empty, since the guard reads all the time. If the guard is gone, nothing can be done.
        let _ = rustix::io::write(&self.lifeline, &message);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.slots.clear();
        let pid = self.pid;
        sys::wait::kill(pid);
        // Nobody has to wait for the guard. Without the thread it stays a zombie until this process ends.
        let _ = std::thread::Builder::new().name("guard".to_owned()).spawn(move || sys::wait::reap(pid));
    }
}

/// The guard's side. Call it first in the binary's `main`, with the process's arguments.
///
/// Returns `false` at once if the arguments are not the guard's. Otherwise returns when the runner is gone and its processes
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
            // No one is left to whom an error could be reported.
            let _ = std::fs::remove_dir_all(OsStr::from_bytes(dir));
        }
    }
    true
}

fn end_all(table: &Table) {
    for entry in slots::entries(table) {
        if let Some(pgid) = entry.group() {
            sys::wait::kill_group(pgid);
        }
        sys::wait::kill(entry.pid);
    }
}

/// Waits until the ended processes are gone, so that one who waits for the guard can rely on it: the runner, at whose end the
/// kernel signals its forks, and the processes in the table. Gives up after a while on a killed process that hangs in the
/// kernel (a dead network file system).
fn await_all(runner: Option<Pid>, table: &Table) {
    for _ in 0..10_000 {
        // The first process of a container may be one that waits for nobody.
        let is_gone = |pid| sys::wait::is_gone(pid) || descendants::is_zombie(pid);
        let all_gone = || slots::entries(table).all(|entry| is_gone(entry.pid));
        if rustix::process::getppid() != runner && all_gone() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
