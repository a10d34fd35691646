//! The order of jobs. They start in the source's order; jobs that must be alone come last; a fixed order assigns each job to
//! its worker.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Interval at which a waiter checks whether the whole run was ended.
const LOOK: Duration = Duration::from_millis(50);

/// The fixed part of the order of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Jobs from this number on run one by one, after all others.
    pub together: Option<u32>,
    /// The worker of each job, as in an earlier run. Jobs then also start in the order of their numbers.
    pub workers: Option<Vec<usize>>,
}

/// Hands out jobs.
#[derive(Debug)]
pub(crate) struct Turns {
    count: u32,
    order: Order,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    started: u32,
    ended: u32,
}

impl Turns {
    pub(crate) fn new(count: u32, order: Order) -> Self {
        Turns { count, order, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Returns the next job of this worker, once it may start. `None` if there is none, or the run is over.
    pub(crate) fn take(&self, worker: usize, is_over: impl Fn() -> bool) -> Option<u32> {
        let mut state = self.state.lock().expect("no panic while locked");
        loop {
            if is_over() {
                return None;
            }
            let next = self.next(worker, state.started).filter(|next| *next < self.count)?;
            let is_alone = self.order.together.is_some_and(|together| next >= together);
            if next == state.started && (!is_alone || state.ended == next) {
                state.started += 1;
                if self.order.workers.is_some() {
                    self.changed.notify_all();
                }
                return Some(next);
            }
            state = self.changed.wait_timeout(state, LOOK).expect("no panic while locked").0;
        }
    }

    fn next(&self, worker: usize, started: u32) -> Option<u32> {
        match &self.order.workers {
            None => Some(started),
            Some(workers) => (started..self.count).find(|job| workers.get(*job as usize) == Some(&worker)),
        }
    }

    /// Records that a job has ended, in whatever way.
    pub(crate) fn ended(&self) {
        self.state.lock().expect("no panic while locked").ended += 1;
        if self.order != Order::default() {
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Runs all jobs with three workers. Returns each job and its worker, in the order of starts.
    fn run(turns: &Turns, during: impl Fn(u32) + Sync) -> Vec<(u32, usize)> {
        let started = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for worker in 0..3 {
                let (started, during) = (&started, &during);
                scope.spawn(move || {
                    while let Some(job) = turns.take(worker, || false) {
                        started.lock().unwrap().push((job, worker));
                        during(job);
                        turns.ended();
                    }
                });
            }
        });
        started.into_inner().unwrap()
    }

    #[test]
    fn those_that_must_be_alone_are() {
        let turns = Turns::new(60, Order { together: Some(40), workers: None });
        let inside = AtomicU32::new(0);
        let jobs = run(&turns, |job| {
            let others = inside.fetch_add(1, Ordering::SeqCst);
            assert!(job < 40 || others == 0, "job {job} beside {others}");
            std::thread::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
        });
        assert_eq!(jobs.len(), 60);
    }

    #[test]
    fn each_job_is_its_workers() {
        let workers: Vec<usize> = (0..50).map(|job| [2, 0, 0, 1][job % 4]).collect();
        let turns = Turns::new(50, Order { together: None, workers: Some(workers.clone()) });
        let mut jobs = run(&turns, |_| {});
        jobs.sort_unstable();
        assert_eq!(jobs, (0..50).zip(workers).collect::<Vec<_>>());
    }

    #[test]
    fn nobody_waits_when_the_run_is_over() {
        let turns = Turns::new(2, Order { together: None, workers: Some(vec![0, 1]) });
        assert_eq!(turns.take(1, || true), None);
        assert_eq!(turns.take(0, || false), Some(0));
        assert_eq!(turns.take(1, || false), Some(1));
        assert_eq!(turns.take(1, || false), None);
    }
}
