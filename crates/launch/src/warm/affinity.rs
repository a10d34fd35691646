//! Pins the target to the requester's processor while it takes up a request; the requester is about to sleep
//! (runtime/fork/affinity.c).

use std::sync::OnceLock;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use super::wire;

/// A processor to which other processes can be bound without a trace once they are free again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processor {
    cpu: usize,
    pub way_back: WayBack,
}

/// How a bound process restores its affinity. The wrong way would be visible in `Cpus_allowed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WayBack {
    /// It allows itself every processor of its cpuset, like a process without restrictions.
    Anywhere,
    /// It restores the affinity that it started with, as below `taskset`.
    Noted,
}

impl WayBack {
    /// Returns the flags of a request to a bound process.
    pub(crate) fn flags(self) -> u32 {
        match self {
            WayBack::Anywhere => wire::REQUEST_BOUND | wire::REQUEST_ANYWHERE,
            WayBack::Noted => wire::REQUEST_BOUND,
        }
    }
}

impl Processor {
    /// Binds the waiting process `pid` to this processor until it frees itself. Returns whether it is bound.
    pub(crate) fn bind(self, pid: i32) -> bool {
        sched_setaffinity(Pid::from_raw(pid), &only(self.cpu)).is_ok()
    }
}

/// Returns the processor that this thread runs on. `None` if there is only one, or if a bound process could not restore its
/// affinity without a trace.
pub(crate) fn here() -> Option<Processor> {
    static WAY_BACK: OnceLock<Option<WayBack>> = OnceLock::new();
    let way_back = (*WAY_BACK.get_or_init(try_ways_back))?;
    Some(current()).filter(|cpu| *cpu < CpuSet::MAX_CPU).map(|cpu| Processor { cpu, way_back })
}

/// Returns the number of the processor that this thread runs on.
pub(crate) fn current() -> usize {
    sched_getcpu()
}

fn only(cpu: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(cpu);
    set
}

/// Tests the ways on a thread of its own.
fn try_ways_back() -> Option<WayBack> {
    std::thread::Builder::new().spawn(way_back).ok()?.join().ok()?
}

fn way_back() -> Option<WayBack> {
    let noted = sched_getaffinity(None).ok().filter(|set| set.count() > 1)?;
    let cpus = 0..CpuSet::MAX_CPU;
    let one = only(cpus.clone().find(|cpu| noted.is_set(*cpu))?);
    let mut all = CpuSet::new();
    cpus.for_each(|cpu| all.set(cpu));
    let before = allowed()?;
    let leaves_no_trace = |set: &CpuSet| {
        let is_tried = sched_setaffinity(None, &one).and_then(|()| sched_setaffinity(None, set)).is_ok();
        is_tried && allowed().as_ref() == Some(&before)
    };
    if leaves_no_trace(&all) {
        return Some(WayBack::Anywhere);
    }
    leaves_no_trace(&noted).then_some(WayBack::Noted)
}

/// Returns the one view of a process's affinity beside `sched_getaffinity`.
fn allowed() -> Option<String> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    status.lines().find(|line| line.starts_with("Cpus_allowed:")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn restricted_to(cpus: usize) -> Option<WayBack> {
        std::thread::spawn(move || {
            let mut given = CpuSet::new();
            let inherited = sched_getaffinity(None).unwrap();
            (0..CpuSet::MAX_CPU)
                .filter(|cpu| inherited.is_set(*cpu))
                .take(cpus)
                .for_each(|cpu| given.set(cpu));
            sched_setaffinity(None, &given).unwrap();
            try_ways_back()
        })
        .join()
        .unwrap()
    }

    #[test]
    fn one_processor_is_no_choice() {
        assert_eq!(restricted_to(1), None);
    }

    #[test]
    fn a_restriction_is_given_back_and_nothing_more() {
        let processors = sched_getaffinity(None).unwrap().count() as usize;
        let all = allowed();
        if processors < 3 {
            // Past the test harness, which keeps the output of tests that pass.
            let why = format!("not tried: {processors} processors cannot be restricted to two\n");
            std::io::stderr().write_all(why.as_bytes()).unwrap();
        } else {
            assert_eq!(restricted_to(2), Some(WayBack::Noted));
        }
        if processors > 1 {
            assert!(restricted_to(usize::MAX).is_some());
        }
        assert_eq!(allowed(), all, "this thread is as it was");
    }
}
