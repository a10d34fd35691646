//! This process's limits, by their numbers.

use std::mem::MaybeUninit;

/// Returns the soft and hard value of a limit; `None` is unlimited, or not known.
pub(crate) fn own(number: u32) -> [Option<u64>; 2] {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the pointer is valid for writes of an rlimit; an unknown number is refused.
    if unsafe { libc::getrlimit(number as _, limit.as_mut_ptr()) } != 0 {
        return [None; 2];
    }
    // SAFETY: the call has succeeded, and has filled it.
    let limit = unsafe { limit.assume_init() };
    [limit.rlim_cur, limit.rlim_max].map(|value| (value != libc::RLIM_INFINITY).then_some(value))
}
