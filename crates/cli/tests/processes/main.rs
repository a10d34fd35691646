//! Processes and files after the end of a run, and runs whose zygotes are killed.
//!
//! This process adopts everything that a run leaves behind (it is a "subreaper"), so that nothing can hide. Therefore only
//! one test runs at a time.

#[path = "../lit/suite.rs"]
#[allow(dead_code, reason = "shared with the other end-to-end tests")]
mod suite;

mod killed;
mod left_behind;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Returns the children of a process, as the kernel lists them; none if it is gone.
pub fn children_of(pid: u32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

/// Reaps every child that has ended, and returns the others.
fn living_children() -> Vec<i32> {
    while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
    children_of(std::process::id())
}

/// Held by the only running test; orphans below it are adopted.
pub struct Alone(#[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Alone {
    /// Waits until no other test runs.
    pub fn begin() -> Self {
        static LOCK: Mutex<()> = Mutex::new(());
        let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).expect("Linux can");
        Alone(lock)
    }

    /// Waits until no process is left. The caller must have waited for the runner itself.
    pub fn await_nobody(&self) {
        let begun = Instant::now();
        loop {
            let left = living_children();
            if left.is_empty() {
                return;
            }
            if begun.elapsed() > Duration::from_secs(10) {
                let name = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
                panic!("left behind: {:?}", left.iter().map(name).collect::<Vec<_>>());
            }
            std::thread::yield_now();
        }
    }
}

/// A generator of numbers that look random and are the same in each run.
pub struct Random(u64);

impl Random {
    /// Creates a generator; equal seeds give equal numbers.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns the next number, below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
