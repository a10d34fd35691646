//! Experiments for `hotstart doctor`: the costs of starts, page faults and allocations on this machine.
//!
//! They need interfaces that no safe library offers: fork, clone, mappings, and malloc itself. Each leaves no process and no
//! mapping behind. The caller chooses the experiments and the number of repetitions, and draws the conclusions.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use crate::sys::probe as sys;

/// A way to start a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `posix_spawn`.
    PosixSpawn,
    /// `clone` with the memory shared and the parent stopped, as `vfork` does, then exec.
    Vfork,
    /// `fork`, then exec.
    ForkExec,
    /// `fork`; the child ends at once.
    Fork,
}

impl Way {
    /// All ways.
    pub const ALL: [Way; 4] = [Way::PosixSpawn, Way::Vfork, Way::ForkExec, Way::Fork];
}

/// Costs of one start.
#[derive(Clone, Copy, Debug, Default)]
pub struct StartCost {
    /// Time until the call returned.
    pub call: Duration,
    /// Time until the child had ended and was waited for.
    pub ended: Duration,
}

/// Starts `program`, which should end at once, and waits for it.
pub fn start(way: Way, program: &Path) -> io::Result<StartCost> {
    sys::start(way, program)
}

/// Memory of this process. All its pages are present, so that its size is real. It is freed when dropped.
#[derive(Debug)]
pub struct Ballast(sys::Region);

impl Ballast {
    /// Allocates `bytes` in small pages.
    pub fn take(bytes: usize) -> io::Result<Ballast> {
        let region = sys::Region::anonymous(bytes, Some(false))?;
        region.touch_all();
        Ok(Ballast(region))
    }

    /// Writes to each page again.
    pub fn touch(&self) {
        self.0.touch_all();
    }
}

/// The ways in which a page becomes present.
#[derive(Clone, Copy, Debug)]
pub enum Fault<'fd> {
    /// Zeroed memory, in small pages.
    Fresh,
    /// Zeroed memory, in huge pages where the kernel provides them.
    FreshHuge,
    /// Zeroed memory, made present by one call for all of it (`MADV_POPULATE_WRITE`, Linux 5.14).
    Bulk,
    /// Memory written to for the first time after a fork.
    Copied,
    /// A file in the page cache, read through a mapping. It must be as long as the memory.
    File(BorrowedFd<'fd>),
}

/// The processes or threads that fault pages in at the same time, each in memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// Threads of one process.
    Threads(usize),
    /// Processes.
    Processes(usize),
}

/// Costs of a fault experiment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faulted {
    /// Time from the start of the first worker to the end of the last.
    pub elapsed: Duration,
    /// Page faults of all workers, as the kernel counted them.
    pub faults: u64,
}

/// Lets each worker touch each small page of `bytes` of its own memory.
pub fn fault(kind: Fault<'_>, workers: Workers, bytes: usize) -> io::Result<Faulted> {
    sys::fault(kind, workers, bytes)
}

/// Costs of filling memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filled {
    /// Time of the first pass, faults included.
    pub first: Duration,
    /// Time of the second pass.
    pub again: Duration,
    /// Page faults of the first pass.
    pub faults: u64,
}

/// Fills `bytes` of new memory, twice.
pub fn fill(bytes: usize, huge: bool) -> io::Result<Filled> {
    sys::fill(bytes, huge)
}

/// Allocates and frees with the process's `malloc`, in `threads` threads at once. In each, a block of 16 to 1039 bytes
/// replaces an older one, `count` times. Returns the time from the first thread's start to the last one's end.
pub fn allocate(threads: usize, count: usize) -> Duration {
    sys::allocate(threads, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    const MIB: usize = 1 << 20;

    #[test]
    fn every_way_starts_a_process() {
        for way in Way::ALL {
            let cost = start(way, Path::new("/bin/true")).unwrap();
            assert!(cost.ended >= cost.call && cost.call > Duration::ZERO, "{way:?}: {cost:?}");
        }
        for way in [Way::PosixSpawn, Way::Vfork, Way::ForkExec] {
            assert!(start(way, Path::new("/nonexistent")).is_err(), "{way:?}");
        }
    }

    #[test]
    fn each_page_is_a_fault() {
        let pages = (4 * MIB / rustix::param::page_size()) as u64;
        for workers in [Workers::Threads(1), Workers::Threads(2), Workers::Processes(2)] {
            let count = match workers {
                Workers::Threads(n) | Workers::Processes(n) => n as u64,
            };
            for kind in [Fault::Fresh, Fault::Copied] {
                let faulted = fault(kind, workers, 4 * MIB).unwrap();
                assert!(faulted.faults >= pages * count, "{kind:?} {workers:?}: {faulted:?}");
                assert!(faulted.elapsed > Duration::ZERO);
            }
        }
    }

    #[test]
    fn a_file_is_read_and_a_short_one_refused() {
        let file = tempfile::tempfile().unwrap();
        assert!(fault(Fault::File(file.as_fd()), Workers::Threads(1), MIB).is_err());
        file.set_len(MIB as u64).unwrap();
        assert!(fault(Fault::File(file.as_fd()), Workers::Processes(1), MIB).unwrap().faults > 0);
    }

    #[test]
    fn memory_is_filled_and_blocks_are_allocated() {
        let filled = fill(4 * MIB, false).unwrap();
        assert!(filled.faults >= 1024 * 4096 / rustix::param::page_size() as u64, "{filled:?}");
        assert!(allocate(2, 1000) > Duration::ZERO);
        assert!(Ballast::take(0).is_err());
        Ballast::take(MIB).unwrap().touch();
    }
}
