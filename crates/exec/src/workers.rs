//! The threads that serve connections. All wait in `accept`. The last idle one never takes a job, so that a client that is
//! one too many runs cold at once and never waits for another client's job.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::SocketFlags;

use crate::job::{self, Buffer};
use crate::server::Server;

/// 128 jobs at a time, and one worker that refuses more.
const MOST: usize = 129;
/// Most idle workers that are kept.
const KEPT: usize = 8;

/// Starts the first worker.
pub(crate) fn start(server: &Arc<Server>) -> io::Result<()> {
    let mut state = server.lock();
    add(server)?;
    state.workers = 1;
    state.idle = 1;
    Ok(())
}

/// Starts a worker, which the caller counts.
fn add(server: &Arc<Server>) -> io::Result<()> {
    let server = Arc::clone(server);
    let thread = std::thread::Builder::new().name("worker".into()).stack_size(256 << 10);
    let work = move || {
        // Nobody would wait for the job of a worker that is gone. On abort the guard ends all jobs, and the clients see it.
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
            // Descriptors or memory are short; other workers are about to free some.
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

/// Marks this worker busy and ensures that another is idle. Returns `true` if none can be: this worker must refuse.
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
