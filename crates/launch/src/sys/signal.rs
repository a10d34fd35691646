//! Signal sets, and the runner's own handling of signals.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// As this process was before it first changed a signal itself.
static INHERITED: OnceLock<Inherited> = OnceLock::new();

/// Returns an empty set.
pub(crate) fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set and cannot fail for a valid pointer.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Returns the set of all signals.
pub(crate) fn full_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the set and cannot fail for a valid pointer.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Adds a signal.
pub(crate) fn add(set: &mut libc::sigset_t, signal: i32) {
    // SAFETY: the set is initialised; a wrong number is refused by an error return.
    unsafe { libc::sigaddset(set, signal) };
}

/// What children get back of the signals of this process, since it changes its own.
#[derive(Clone, Copy)]
pub(crate) struct Inherited {
    /// The signals that whoever started this process had blocked.
    pub(crate) mask: libc::sigset_t,
    /// Whether SIGCHLD was ignored. The kernel would then reap the children of this process, and nobody would know how they ended.
    pub(crate) ignores_children: bool,
    is_plain: bool,
}

impl Inherited {
    /// Returns the signals that were blocked, and SIGCHLD if it was ignored.
    pub(crate) fn signals(&self) -> Vec<i32> {
        let is_one = |&number: &i32| {
            is_member(&self.mask, number) || (number == libc::SIGCHLD && self.ignores_children)
        };
        (1..=LAST).filter(is_one).collect()
    }
}

fn is_member(set: &libc::sigset_t, signal: i32) -> bool {
    // SAFETY: the set is initialised; a number that does not exist is refused by an error return, which is not 1.
    unsafe { libc::sigismember(set, signal) == 1 }
}

/// Returns what this process was started with. The first call lets SIGCHLD come; it must precede any change of the mask that this
/// module does not make.
pub(crate) fn inherited() -> &'static Inherited {
    INHERITED.get_or_init(|| {
        let mut mask = empty_set();
        // SAFETY: without a new mask the call only writes the present one, to a pointer that is valid for it.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut mask) };
        let ignores_children = accept_children();
        let is_blocked = (1..=LAST).any(|number| is_member(&mask, number));
        Inherited { mask, ignores_children, is_plain: !is_blocked && !ignores_children }
    })
}

/// Returns whether a signal was blocked, or SIGCHLD ignored, when this process was started.
pub(crate) fn is_inherited() -> bool {
    !inherited().is_plain
}

/// The last signal of Linux on x86-64 and AArch64.
const LAST: i32 = 64;

/// Unblocks all signals in the calling thread and lets SIGCHLD come, for children as well. It has no effect on them once
/// [`inherited`] was called.
pub(crate) fn unblock_inherited() {
    let mask = empty_set();
    // SAFETY: the set is initialised; the old mask is not requested.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut()) };
    accept_children();
    let _ = INHERITED.set(Inherited { mask, ignores_children: false, is_plain: true });
}

/// Restores the default action of SIGCHLD if it is ignored. Returns whether it was.
fn accept_children() -> bool {
    let was_ignored = is_ignored(libc::SIGCHLD);
    if was_ignored {
        // SAFETY: the default disposition installs no code.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
    was_ignored
}

/// Blocks the set in the calling thread and in those that it starts from now on.
pub(crate) fn block(set: &libc::sigset_t) {
    inherited();
    // SAFETY: the set is initialised; the old mask is not requested.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set, std::ptr::null_mut()) };
}

/// Lets the set through again in the calling thread.
#[cfg(target_arch = "x86_64")]
pub(crate) fn unblock(set: &libc::sigset_t) {
    // SAFETY: the set is initialised; the old mask is not requested.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, set, std::ptr::null_mut()) };
}

/// Ignores a signal, here and in every child.
pub(crate) fn ignore(signal: i32) {
    // SAFETY: SIG_IGN is a valid disposition and installs no code.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Whether this process ignores a signal.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call only writes the present one, to a pointer that is valid for it.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Waits for a signal of the set, which must be blocked in every thread. Returns its number.
pub(crate) fn wait(set: &libc::sigset_t) -> i32 {
    let mut signal = 0;
    loop {
        // SAFETY: the set is initialised and the pointer valid for writes.
        if unsafe { libc::sigwait(set, &mut signal) } == 0 {
            return signal;
        }
    }
}

/// Ends this process by a signal's default action, so that its parent sees how it ended.
pub(crate) fn die_of(signal: i32) -> ! {
    let mut set = empty_set();
    add(&mut set, signal);
    // SAFETY: default disposition and unblocking install no code; raise then ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::raise(signal);
    }
    std::process::exit(128 + signal)
}
