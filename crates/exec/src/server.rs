//! The server: one for each user, from its first use until it is idle for long.
//!
//! It outlives the build that started it, because the next build has the same compilers. Nobody starts or ends it by hand, so it has to
//! end itself: when it is idle, when it is of no use any more, or when a client needs another one.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hotstart_launch::Launcher;
use rustix::net::Shutdown;

use crate::context::Context;
use crate::counts::Counts;
use crate::refusal::Aspect;
use crate::socket_dir::SocketDir;
use crate::wire;

/// The time between two checks whether the server is still of use.
const LOOK: Duration = Duration::from_secs(20);
/// If no job started for this long, the server exits when a client with other settings comes, so that a matching one can start.
const QUIET: Duration = Duration::from_secs(5);

/// The state that all workers share.
#[derive(Debug)]
pub(crate) struct Server {
    pub socket_dir: SocketDir,
    pub listener: OwnedFd,
    pub launcher: Launcher,
    pub context: Context,
    pub counts: Counts,
    pub begun: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
pub(crate) struct State {
    pub workers: usize,
    pub idle: usize,
    pub last_use: Instant,
    pub last_served: Instant,
    /// The server was asked to end and takes no new connections.
    ending: bool,
    /// Connections of clients that wait for the end; they close with the process.
    waiting: Vec<OwnedFd>,
}

impl Server {
    /// A server without workers, on a socket that listens. `None` if `/proc/self` cannot be read.
    pub(crate) fn new(socket_dir: SocketDir, listener: OwnedFd, launcher: Launcher) -> Option<Arc<Server>> {
        let context = Context::own()?;
        let now = Instant::now();
        let state = State {
            workers: 0,
            idle: 0,
            last_use: now,
            last_served: now,
            ending: false,
            waiting: Vec::new(),
        };
        Some(Arc::new(Server {
            socket_dir,
            listener,
            launcher,
            context,
            counts: Counts::default(),
            begun: now,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while locked")
    }

    /// Accepts no more connections. `waiting` is closed when the server has ended.
    pub(crate) fn end(&self, waiting: Option<OwnedFd>) {
        let mut state = self.lock();
        state.ending = true;
        state.waiting.extend(waiting);
        self.changed.notify_all();
    }

    /// Accounts for a worker that ends.
    pub(crate) fn worker_left(&self, state: &mut State) {
        state.workers -= 1;
        self.changed.notify_all();
    }

    /// Handles a client that does not match this server but would match one that it started: exits if no other client is served.
    pub(crate) fn met(&self, aspect: Aspect) {
        let quiet = {
            let state = self.lock();
            // The one busy worker is the one that serves this client.
            state.workers - state.idle <= 1 && state.last_served.elapsed() > QUIET
        };
        if aspect.is_of_habit() && quiet {
            self.end(None);
        }
    }

    pub(crate) fn await_end(&self, idle: Duration) {
        let own = own_file();
        let mut state = self.lock();
        while !state.ending {
            let look = LOOK.min(idle);
            state = self.changed.wait_timeout(state, look).expect("no panic while locked").0;
            let is_idle = state.idle == state.workers && state.last_use.elapsed() >= idle;
            state.ending |= is_idle || own_file() != own;
        }
        drop(state);
        self.close();
    }

    /// Removes the socket, so that new clients find none. Serves the waiting ones, and returns when all workers have ended.
    pub(crate) fn close(&self) {
        let _ = std::fs::remove_file(self.socket_dir.socket());
        let _ = rustix::net::shutdown(&self.listener, Shutdown::Both);
        let mut state = self.lock();
        while state.workers > 0 {
            state = self.changed.wait(state).expect("no panic while locked");
        }
    }
}

/// Identifies the file that a client would start as a server now: device, inode, modification time.
fn own_file() -> Option<(u64, u64, i64)> {
    let path: PathBuf = std::env::current_exe().ok()?;
    let found = File::open(path).and_then(|file| file.metadata()).ok()?;
    Some((found.dev(), found.ino(), found.mtime()))
}

/// The protocol's version, as in the socket's file name and in the status.
pub(crate) const PROTOCOL: u32 = wire::VERSION;
