//! The runner's own SIGINT, SIGTERM and SIGHUP: one thread waits for them, and no handler runs. SIGXFSZ is ignored, as in
//! lit's Python: a write beyond the limit on file size fails, and does not end the runner. Children get its default.
//!
//! Every test process ignores SIGINT, because lit's workers ignore it and children inherit that. Linux still queues a signal
//! that is both ignored and blocked. So the runner can ignore it for its children and receive it here.
//!
//! A signal that the caller of the runner ignores (`nohup`, `&` in a script) does not stop the runner, as it does not stop lit.

use std::sync::OnceLock;

use crate::sys::signal;

/// The stop signals that were not ignored when this process began.
static STOPS: OnceLock<Vec<i32>> = OnceLock::new();

/// A request by the user or the system to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM or SIGHUP, with its number.
    Terminate(i32),
}

impl Stop {
    /// Returns the signal's number.
    pub fn signal(self) -> i32 {
        match self {
            Stop::Interrupt => libc::SIGINT,
            Stop::Terminate(signal) => signal,
        }
    }
}

/// Takes over the stop signals. Call it in `main` before any thread is started. A write beyond the limit on file size
/// (SIGXFSZ) becomes an error of the writer. Children get the default action of that signal.
pub fn take_over() {
    note_ignored();
    signal::ignore(libc::SIGINT);
    signal::ignore(libc::SIGXFSZ);
    signal::block(&stop_set());
}

/// Like [`take_over`], but children inherit this process's action for SIGINT: for a server, whose jobs are not tests. Each of
/// the signals stops it, since the client that started it may have ignored them for its own job. Nor do its jobs inherit what
/// that client had blocked.
pub fn serve() {
    signal::unblock_inherited();
    hold();
}

/// Like [`take_over`], but children inherit this process's action for SIGINT: for a command that runs others, and goes on where its caller
/// ignores a signal (`nohup`).
pub fn hold_unignored() {
    note_ignored();
    hold();
}

/// Blocks the stop signals. Children inherit this process's action for SIGINT.
fn hold() {
    signal::ignore(libc::SIGXFSZ);
    signal::block(&stop_set());
}

/// Notes which signals the caller ignores, so that they do not stop this process.
fn note_ignored() {
    STOPS.get_or_init(|| STOP_SIGNALS.into_iter().filter(|&number| !signal::is_ignored(number)).collect());
}

/// Returns the signals that were blocked when this process was started, and SIGCHLD if it was ignored. Tools are given the same, and
/// if there are any, each start is cold.
pub fn inherited() -> Vec<i32> {
    signal::inherited().signals()
}

/// Blocks until a stop signal comes, for ever if all are ignored. [`take_over`], [`serve`] or [`hold_unignored`] must have been called.
pub fn wait_for_stop() -> Stop {
    match signal::wait(&stop_set()) {
        libc::SIGINT => Stop::Interrupt,
        other => Stop::Terminate(other),
    }
}

/// Ends this process by `signal`, as if it had not been taken over.
pub fn die_of(signal: i32) -> ! {
    signal::die_of(signal)
}

const STOP_SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

fn stop_set() -> libc::sigset_t {
    let mut set = signal::empty_set();
    for &number in STOPS.get().map_or(&STOP_SIGNALS[..], Vec::as_slice) {
        signal::add(&mut set, number);
    }
    set
}
