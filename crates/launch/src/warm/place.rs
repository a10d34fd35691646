//! Has a request taken up on the processor of who asks, who waits next (runtime/place.c).

use std::sync::OnceLock;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The processor that this thread runs on; `None` where there is no choice.
pub(crate) fn here() -> Option<usize> {
    static HAVE_CHOICE: OnceLock<bool> = OnceLock::new();
    let have_choice = HAVE_CHOICE.get_or_init(|| sched_getaffinity(None).is_ok_and(|set| set.count() > 1));
    have_choice.then(sched_getcpu).filter(|cpu| *cpu < CpuSet::MAX_CPU)
}

/// Binds the waiting process `pid` to the processor `cpu`, until it frees itself; whether it is bound.
pub(crate) fn bind(pid: i32, cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(Pid::from_raw(pid), &set).is_ok()
}
