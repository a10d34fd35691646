//! CPU time, in nanoseconds where the kernel's accounting of usage has coarser figures; and the time of files.

use std::mem::MaybeUninit;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// include/linux/posix-timers.h: the clock of a process's scheduled time is its number, inverted, with these bits behind it.
const SCHEDULED: i32 = 2;
const SHIFT: u32 = 3;

/// Returns the CPU time of all threads of a process, its children's not included. A child that has ended still has it until
/// it is reaped. Zero if there is no such process.
pub(crate) fn of_process(pid: i32) -> Duration {
    read((!pid << SHIFT) | SCHEDULED)
}

/// Returns the CPU time of this thread.
pub(crate) fn of_thread() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the time by the clock that stamps files. It advances with the timer, so it is late by a tick, and by more where a virtual
/// machine gets no time: a change after this moment may have an earlier time than the precise clock told before.
pub fn of_files() -> SystemTime {
    UNIX_EPOCH + read(libc::CLOCK_REALTIME_COARSE)
}

fn read(clock: libc::clockid_t) -> Duration {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is valid for writes of a timespec.
    let result = unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
    // SAFETY: zeros are a valid timespec, and the kernel writes only valid ones.
    let time = unsafe { time.assume_init() };
    if result == 0 { Duration::new(time.tv_sec as u64, time.tv_nsec as u32) } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::wait;

    #[test]
    fn a_file_is_never_older_than_the_clock_of_files_was() {
        let dir = tempfile::tempdir().expect("there is room");
        for number in 0..1000 {
            let (before, path) = (of_files(), dir.path().join(number.to_string()));
            std::fs::write(&path, "").expect("there is room");
            assert!(path.metadata().and_then(|data| data.modified()).expect("it is there") >= before);
        }
    }

    #[test]
    fn an_ended_child_has_its_time_until_it_is_reaped() {
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done";
        let mut child = std::process::Command::new("sh").args(["-c", busy]).spawn().expect("it runs");
        let pid = child.id() as i32;
        wait::await_end(pid);
        let clock = of_process(pid);
        // The kernel's other account of it, in ticks behind the name in parentheses.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
        let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name").1.split(' ').collect();
        let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().expect("a number")).sum();
        let total = Duration::from_millis(ticks * 10);
        assert!(child.wait().expect("it ends").success());
        assert!(
            clock > Duration::ZERO && clock.abs_diff(total) < Duration::from_millis(21),
            "{clock:?}, {total:?}"
        );
        assert_eq!(of_process(pid), Duration::ZERO);
        assert!(of_thread() > Duration::ZERO);
    }
}
