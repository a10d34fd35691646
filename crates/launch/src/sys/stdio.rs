//! Records whether standard output was open when this process was started.
//!
//! Rust's runtime opens `/dev/null` in place of a closed standard stream, so the record is made before the runtime starts.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// libc calls it before `main`, and so before Rust's runtime.
#[used]
// SAFETY: the section is a list of functions without result that libc calls once; `look` needs nothing of Rust's runtime.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: asking for a descriptor's flags changes nothing, also if there is none of this number.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Returns whether standard output was closed.
pub(crate) fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}
