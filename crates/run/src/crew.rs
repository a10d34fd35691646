//! The threads that do a run's work, and fewer of them if the system refuses some.
//!
//! A limit on processes counts threads, too. If it is reached, most of the threads end before the first test begins, since
//! tests need processes of their own.

use std::io;
use std::sync::{Condvar, Mutex};

use hotstart_model::Severity;

use crate::schedule::Run;
use crate::worker;

/// If the limit is reached, one worker of this many stays. A pipeline of four stages and processes that a config has left
/// running need about as many processes.
const KEPT_ONE_OF: usize = 8;

/// Tells new threads how many of them stay.
#[derive(Debug, Default)]
struct Muster {
    staying: Mutex<Option<usize>>,
    settled: Condvar,
}

impl Muster {
    fn settle(&self, staying: usize) {
        *self.staying.lock().expect("no panic while locked") = Some(staying);
        self.settled.notify_all();
    }

    /// Waits for the decision. Returns whether the worker of this index stays.
    fn stays(&self, index: usize) -> bool {
        let mut staying = self.staying.lock().expect("no panic while locked");
        loop {
            match *staying {
                Some(count) => return index < count,
                None => staying = self.settled.wait(staying).expect("no panic while locked"),
            }
        }
    }
}

/// Returns how many workers stay if one more than `had` could not be started.
fn staying(had: usize, wanted: usize) -> usize {
    if had == wanted { wanted } else { (had / KEPT_ONE_OF).max(1) }
}

/// Does all of a run's work with `workers` threads, or with as many as possible. This thread alone then does `last`.
pub(crate) fn work(run: &Run<'_>, workers: usize, last: impl FnOnce(&Run<'_>)) {
    let muster = Muster::default();
    std::thread::scope(|scope| {
        let named = |name: String| std::thread::Builder::new().name(name);
        if let Err(error) = named("deadlines".to_owned()).spawn_scoped(scope, || run.watch.enforce()) {
            let text = "time limits do not hold, as no thread can be started for them";
            run.tell(Severity::Error, format!("{text}: {error}; {REMEDY}"));
        }
        let mut handles = Vec::with_capacity(workers);
        let mut refusal: Option<io::Error> = None;
        for index in 1..workers {
            let muster = &muster;
            let begin = move || {
                if muster.stays(index) {
                    worker::work(run, index)
                }
            };
            match named(format!("worker {index}")).spawn_scoped(scope, begin) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    refusal = Some(error);
                    break;
                }
            }
        }
        // This thread is a worker, so there is always one.
        let staying = staying(handles.len() + 1, workers);
        if let Some(remote) = &run.remote {
            remote.begin(staying);
        }
        muster.settle(staying);
        if let Some(error) = refusal {
            // The workers that end make room for the processes of tests.
            handles.drain(staying - 1..).for_each(join);
            let text = format!("{staying} of {workers} workers, as threads cannot be started");
            run.tell(Severity::Warning, format!("{text}: {error}; {REMEDY}"));
        }
        if let Some(remote) = &run.remote {
            if named("remote".to_owned()).spawn_scoped(scope, || remote.dispatch(run)).is_err() {
                remote.give_up("no thread can be started for it");
            }
        }
        worker::work(run, 0);
        handles.into_iter().for_each(join);
        last(run);
        run.watch.close();
    });
}

const REMEDY: &str = "allow more processes (ulimit -u)";

fn join(handle: std::thread::ScopedJoinHandle<'_, ()>) {
    handle.join().expect("workers catch panics of jobs");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_stay_unless_one_could_not_be_started() {
        assert_eq!([staying(32, 32), staying(1, 1)], [32, 1]);
        assert_eq!([staying(31, 32), staying(7, 32), staying(1, 2)], [3, 1, 1]);
    }

    #[test]
    fn threads_wait_until_it_is_settled() {
        let muster = Muster::default();
        std::thread::scope(|scope| {
            let muster = &muster;
            let threads: Vec<_> = (1..4).map(|index| scope.spawn(move || muster.stays(index))).collect();
            muster.settle(2);
            let stays: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert_eq!(stays, [true, false, false]);
        });
    }
}
