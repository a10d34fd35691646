//! The threads that serve connections. All wait in `accept`; the last idle one never takes a job, so that a client
//! that is one too many is told at once to run cold, and never waits for somebody else's job.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::SocketFlags;

use crate::job::{self, Buffer};
use crate::server::Server;

/// Jobs at a time, and one worker who refuses.
const MOST: usize = 129;
/// Idle workers that are kept.
const KEPT: usize = 8;

/// Starts the first worker.
pub(crate) fn start(server: &Arc<Server>) -> io::Result<()> {
    let mut state = server.lock();
    add(server)?;
    state.workers = 1;
    state.idle = 1;
    Ok(())
}

/// The caller counts it.
fn add(server: &Arc<Server>) -> io::Result<()> {
    let server = Arc::clone(server);
    let thread = std::thread::Builder::new().name("worker".into()).stack_size(256 << 10);
    let work = move || {
        // A job whose worker is gone would never be waited for. The guard ends all jobs, and the clients know.
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&server))).is_err() {
            std::process::abort();
        }
    };
    thread.spawn(work)?;
    Ok(())
}

fn work(server: &Arc<Server>) {
    let mut buffer = Buffer::default();
    loop {
        let connection = match rustix::net::accept_with(&server.listener, SocketFlags::CLOEXEC) {
            Ok(connection) => connection,
            // Descriptors or memory are short: others are about to give some back.
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(Errno::INTR | Errno::CONNABORTED) => continue,
            Err(_) => return server.worker_left(&mut leave_idle(server)),
        };
        let is_last = take(server);
        job::serve(server, connection, &mut buffer, is_last);
        let mut state = server.lock();
        state.last_use = Instant::now();
        state.idle += 1;
        if state.idle > KEPT {
            state.idle -= 1;
            return server.worker_left(&mut state);
        }
    }
}

fn leave_idle(server: &Server) -> std::sync::MutexGuard<'_, crate::server::State> {
    let mut state = server.lock();
    state.idle -= 1;
    state
}

/// Becomes busy; makes sure that another worker is idle, or tells that none can be.
fn take(server: &Arc<Server>) -> bool {
    let mut state = server.lock();
    state.idle -= 1;
    if state.idle > 0 {
        return false;
    }
    if state.workers >= MOST || add(server).is_err() {
        return true;
    }
    state.workers += 1;
    state.idle += 1;
    false
}
