//! Settings of a process that an exec keeps and that `/proc` does not show.

use std::thread;

/// Options of `prctl` that tell such a setting, and its usual answer (linux/prctl.h; the libc crate has not all of them).
const SETTINGS: [(libc::c_int, &str, i64); 6] = [
    (66, "PR_GET_MDWE", 0),
    (34, "PR_MCE_KILL_GET", 2),
    (68, "PR_GET_MEMORY_MERGE", 0),
    (58, "PR_GET_IO_FLUSHER", 0),
    (libc::PR_GET_TIMERSLACK, "PR_GET_TIMERSLACK", 50_000),
    (libc::PR_GET_THP_DISABLE, "PR_GET_THP_DISABLE", 0),
];
/// Readable by all instructions: what `PR_GET_TSC` tells of the time stamp counter (PR_TSC_ENABLE).
const READABLE: libc::c_int = 1;
/// Flag of a scheduling policy: children get the usual one (SCHED_RESET_ON_FORK).
const RESET_ON_FORK: libc::c_int = 0x4000_0000;
/// Most Landlock domains that a process can be in (LANDLOCK_MAX_NUM_LAYERS of Linux's security/landlock/limits.h).
const DOMAINS_MAX: u32 = 16;
/// A right that a ruleset of this module handles (LANDLOCK_ACCESS_FS_EXECUTE).
const EXECUTE: u64 = 1;

/// Returns the settings of this thread that are not the usual ones, by name and value. A kernel that does not know one cannot have it set.
pub fn unusual_settings() -> Vec<(&'static str, i64)> {
    let mut found = Vec::new();
    for (option, name, usual) in SETTINGS {
        // SAFETY: these options only tell a number.
        let value = i64::from(unsafe { libc::prctl(option, 0, 0, 0, 0) });
        if value != usual && value >= 0 {
            found.push((name, value));
        }
    }
    let mut access: libc::c_int = READABLE;
    // SAFETY: the kernel writes one number to this place.
    let told = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut access, 0, 0, 0) };
    if told == 0 && access != READABLE {
        found.push(("PR_GET_TSC", i64::from(access)));
    }
    // SAFETY: the call changes nothing.
    let policy = unsafe { libc::sched_getscheduler(0) };
    if policy >= 0 && policy & RESET_ON_FORK != 0 {
        found.push(("SCHED_RESET_ON_FORK", 1));
    }
    let mut mode: libc::c_int = 0;
    let (none, no_address) = (std::ptr::null_mut::<libc::c_ulong>(), std::ptr::null::<libc::c_void>());
    // SAFETY: the kernel writes one number to this place, and no set of nodes.
    let told = unsafe { libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, none, 0, no_address, 0) };
    if told == 0 && mode != 0 {
        found.push(("get_mempolicy", i64::from(mode)));
    }
    found
}

/// Returns in how many Landlock domains this process is; `None` if that cannot be told. The kernel does not say so. But it lets no process
/// be in more than 16, so a thread enters more until it cannot, and ends.
pub fn landlock_domains() -> Option<u32> {
    thread::Builder::new().spawn(enter_domains).ok()?.join().ok()?.map(|entered| DOMAINS_MAX - entered)
}

/// Enters Landlock domains until the kernel allows no further one. Returns how many it has entered.
fn enter_domains() -> Option<u32> {
    let handled: [u64; 1] = [EXECUTE];
    // SAFETY: this thread gets no privileges from programs that it executes. It executes none.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return None;
    }
    // SAFETY: the kernel reads the ruleset's attributes, of this size.
    let ruleset = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size_of_val(&handled), 0)
    };
    if ruleset < 0 {
        let why = std::io::Error::last_os_error().raw_os_error();
        // Then no process is in a domain.
        return matches!(why, Some(libc::ENOSYS | libc::EOPNOTSUPP)).then_some(DOMAINS_MAX);
    }
    let mut entered = 0;
    // SAFETY: the domain is this thread's, which ends right after.
    while entered < DOMAINS_MAX && unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) } == 0
    {
        entered += 1;
    }
    let is_full = std::io::Error::last_os_error().raw_os_error() == Some(libc::E2BIG);
    // SAFETY: the descriptor is this function's own.
    unsafe { libc::close(ruleset as libc::c_int) };
    (entered == DOMAINS_MAX || is_full).then_some(entered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_told_and_domains_are_counted() {
        let before = unusual_settings();
        let (then, count) = thread::spawn(|| {
            // SAFETY: both settings are this thread's.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 123, 0, 0, 0) };
            let settings = unusual_settings();
            let first = landlock_domains();
            let handled: [u64; 1] = [EXECUTE];
            // SAFETY: as above; the domain is this thread's.
            let entered = unsafe {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                let ruleset = libc::syscall(
                    libc::SYS_landlock_create_ruleset,
                    &raw const handled,
                    size_of_val(&handled),
                    0,
                );
                ruleset >= 0 && libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) == 0
            };
            (settings, (first, landlock_domains(), entered))
        })
        .join()
        .unwrap();
        assert!(!before.iter().any(|(name, _)| *name == "PR_GET_TIMERSLACK"), "{before:?}");
        assert!(then.contains(&("PR_GET_TIMERSLACK", 123)), "{then:?}");
        let (first, second, entered) = count;
        assert_eq!(second.unwrap() - first.unwrap(), u32::from(entered));
    }
}
