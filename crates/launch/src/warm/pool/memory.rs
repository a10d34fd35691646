//! The memory that all processes of a pool own together, and its limit.
//!
//! A page counts once. Pages that a zygote shares with the processes made from it count as the zygote's, for as long as any
//! of them exists. A persistent process counts with the pages that it has written to since.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The sum of all shares, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Budget(Arc<AtomicU64>);

/// The memory that one process owns. No longer counted when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    used: Arc<AtomicU64>,
    bytes: AtomicU64,
}

/// The memory that a zygote and the processes made from it share.
#[derive(Debug)]
pub(crate) struct Base {
    share: Share,
    /// The last use of the zygote or of one of those processes.
    last_use: AtomicU64,
    /// Bytes that a persistent process of each kind maps without owning them, once measured.
    common: [AtomicU64; 3],
}

/// Persistent processes that own about the same memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Owns {
    /// Before it has a deferred snapshot.
    #[default]
    Plain,
    /// With one of its own.
    Deferred,
    /// A clone, which has the snapshots together with others.
    Clone,
}

/// Not measured yet.
const UNKNOWN: u64 = u64::MAX;

impl Budget {
    /// Counts `bytes` until the share is dropped.
    pub(crate) fn take(&self, bytes: u64) -> Share {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Share { used: Arc::clone(&self.0), bytes: AtomicU64::new(bytes) }
    }

    /// Returns the sum of all shares.
    pub(crate) fn used(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Returns the memory that is counted.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts `bytes` from now on.
    pub(crate) fn resize(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.used.fetch_sub(self.bytes.swap(bytes, Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

impl Base {
    pub(crate) fn new(share: Share) -> Arc<Base> {
        let common = [UNKNOWN; 3].map(AtomicU64::new);
        Arc::new(Base { share, last_use: AtomicU64::new(0), common })
    }

    /// Records that the zygote owns `bytes` from now on.
    pub(crate) fn resize(&self, bytes: u64) {
        self.share.resize(bytes);
    }

    pub(crate) fn last_use(&self) -> u64 {
        self.last_use.load(Ordering::Relaxed)
    }

    pub(crate) fn touch(&self, now: u64) {
        self.last_use.fetch_max(now, Ordering::Relaxed);
    }

    /// Returns the memory owned by a process that maps `mapped` bytes of private memory. `exact` asks the kernel, which walks
    /// all of the process's page tables: 3 ms for LLVM's opt. So it is called once, and its answer holds for all processes of
    /// a zygote.
    pub(super) fn owned(&self, mapped: u64, kind: Owns, exact: impl FnOnce() -> Option<u64>) -> u64 {
        let common = &self.common[kind as usize];
        let known = common.load(Ordering::Relaxed);
        if known != UNKNOWN {
            return mapped.saturating_sub(known);
        }
        let owned = exact().unwrap_or(mapped);
        common.store(mapped.saturating_sub(owned), Ordering::Relaxed);
        owned
    }
}

/// Returns the private memory that a process maps, shared with a zygote or not. Cheap.
pub(crate) fn mapped(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: Vec<u64> = text.split_ascii_whitespace().filter_map(|n| n.parse().ok()).collect();
    let pages = pages.get(1).copied().unwrap_or(0).saturating_sub(pages.get(2).copied().unwrap_or(0));
    pages * rustix::param::page_size() as u64
}

/// Returns the memory that only this process has. [`Base::owned`] describes the cost.
pub(crate) fn private(pid: i32) -> Option<u64> {
    kib(&std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Private_Dirty:")
}

/// Returns the default limit: a quarter of the memory that was free at the first call.
pub(crate) fn default_budget() -> u64 {
    static BUDGET: OnceLock<u64> = OnceLock::new();
    *BUDGET.get_or_init(|| budget_for(free()))
}

/// Returns a quarter of the free memory, but at least what two large tools need.
fn budget_for(free: Option<u64>) -> u64 {
    const LEAST: u64 = 256 << 20;
    const UNKNOWN: u64 = 512 << 20;
    free.map_or(UNKNOWN, |free| (free / 4).max(LEAST))
}

/// Returns the free memory of the machine and of this process's control groups, whichever is less.
fn free() -> Option<u64> {
    let machine = kib(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    Some(groups.lines().filter_map(group_directory).filter_map(|dir| left_in(&dir)).fold(machine, u64::min))
}

/// Returns the directory of a group that may limit memory, from a line of `/proc/self/cgroup`.
fn group_directory(line: &str) -> Option<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let root = match controllers {
        "" => "/sys/fs/cgroup",
        named if named.split(',').any(|name| name == "memory") => "/sys/fs/cgroup/memory",
        _ => return None,
    };
    Some(format!("{root}{path}"))
}

/// Returns the least free memory of this group and those around it. In a container the path may be the host's; only existing
/// groups count.
fn left_in(directory: &str) -> Option<u64> {
    const FILES: [(&str, &str); 2] =
        [("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")];
    let number = |dir: &Path, name: &str| -> Option<u64> {
        std::fs::read_to_string(dir.join(name)).ok()?.trim().parse().ok()
    };
    let around = Path::new(directory).ancestors().take_while(|dir| dir.starts_with("/sys/fs/cgroup"));
    let left = |dir: &Path| {
        FILES.iter().find_map(|(most, used)| Some(number(dir, most)?.saturating_sub(number(dir, used)?)))
    };
    around.filter_map(left).min()
}

/// Returns a figure from a file that has a name, a number and `kB` on each line.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_share_is_free_again() {
        let budget = Budget::default();
        let (first, second) = (budget.take(3), budget.take(4));
        assert_eq!(budget.used(), 7);
        drop(first);
        assert_eq!(budget.used(), 4);
        second.resize(9);
        assert_eq!(budget.used(), 9);
        drop(second);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_is_shared_counts_once_and_until_the_last_is_gone() {
        let budget = Budget::default();
        let base = Base::new(budget.take(100));
        let of_worker = Arc::clone(&base);
        let owned = of_worker.owned(110, Owns::Plain, || Some(10));
        let again = of_worker.owned(115, Owns::Plain, || unreachable!("asked once"));
        let share = budget.take(owned + again);
        assert_eq!((owned, again, budget.used()), (10, 15, 125));
        assert_eq!(of_worker.owned(130, Owns::Deferred, || None), 130, "as if all of it were its own");
        drop(base);
        assert_eq!(budget.used(), 125);
        drop((share, of_worker));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_quarter_of_what_is_free_is_the_default() {
        assert_eq!(budget_for(Some(8 << 30)), 2 << 30);
        assert_eq!(budget_for(Some(1 << 20)), 256 << 20);
        assert_eq!(budget_for(None), 512 << 20);
        assert!(default_budget() >= 256 << 20);
    }

    #[test]
    fn the_kernels_files_are_understood() {
        assert_eq!(kib("MemFree:  1 kB\nMemAvailable:       20 kB\n", "MemAvailable:"), Some(20 << 10));
        assert_eq!(kib("MemFree:  1 kB\n", "MemAvailable:"), None);
        assert_eq!(group_directory("0::/a/b"), Some("/sys/fs/cgroup/a/b".to_owned()));
        assert_eq!(group_directory("4:cpu,memory:/x"), Some("/sys/fs/cgroup/memory/x".to_owned()));
        assert_eq!(group_directory("4:cpuset:/x"), None);
        let own = std::process::id() as i32;
        assert!(mapped(own) > 0 && private(own).unwrap() > 0);
    }
}
