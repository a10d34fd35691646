//! The time limit of a diagnosis, and the share of each figure.
//!
//! On a busy machine everything takes several times as long. Then there are fewer repetitions, and the last parts are
//! reported as not measured: an answer within a minute is worth more than a complete one.

use std::ops::RangeInclusive;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use hotstart_launch::Group;

/// Runs of each part of a tool.
const RUNS: RangeInclusive<usize> = 5..=60;

/// The time at which measuring ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    end: Instant,
}

impl Patience {
    pub(super) fn new(time: Duration) -> Self {
        Patience { end: Instant::now() + time }
    }

    /// Returns the patience for one part, which takes no longer than `time`.
    pub(super) fn part(&self, time: Duration) -> Patience {
        Patience { end: self.end.min(Instant::now() + time) }
    }

    /// Returns the share of each part of one tool.
    pub(super) fn share(&self, each: Duration) -> Share<'_> {
        Share { all: self, each }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Repeats a measurement: as often as `time` allows within these bounds, and at least once if any patience is left.
    pub(super) fn repeat<T>(
        &self,
        times: RangeInclusive<usize>,
        time: Duration,
        mut once: impl FnMut() -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let (begun, mut all) = (Instant::now(), Vec::new());
        loop {
            if self.is_over() {
                return if all.is_empty() {
                    Err("the time was up: this machine is slow or busy".to_owned())
                } else {
                    Ok(all)
                };
            }
            all.push(once()?);
            if all.len() >= *times.end() || (all.len() >= *times.start() && begun.elapsed() >= time) {
                return Ok(all);
            }
        }
    }
}

/// The time for one tool, and for each of its parts.
pub(super) struct Share<'p> {
    all: &'p Patience,
    each: Duration,
}

impl Share<'_> {
    /// Repeats a measurement as often as the share of one part allows.
    pub(super) fn repeat<T>(&self, once: impl FnMut() -> Result<T, String>) -> Result<Vec<T>, String> {
        self.all.repeat(RUNS, self.each, once)
    }
}

/// Calls `run`, which starts a process of `group` and waits for it. Ends the group and returns an error if that takes longer
/// than `limit`.
pub(super) fn within<T>(limit: Duration, group: &Group, run: impl FnOnce() -> T) -> Result<T, String> {
    let (ended, end) = channel::<()>();
    std::thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let late = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                group.kill();
            }
            late
        });
        let value = run();
        drop(ended);
        let late = watch.join().expect("the watch does not panic");
        if late {
            Err(format!("it had not ended after {} s and was killed", limit.as_secs_f64()))
        } else {
            Ok(value)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_within_bounds_and_time() {
        let patience = Patience::new(Duration::from_secs(60));
        let count =
            |patience: Patience, times, time| patience.repeat(times, time, || Ok(())).map(|all| all.len());
        assert_eq!(count(patience, 3..=9, Duration::ZERO), Ok(3));
        assert_eq!(count(patience, 3..=9, Duration::from_secs(60)), Ok(9));
        assert_eq!(patience.repeat(1..=2, Duration::ZERO, || Err::<(), _>("no".into())), Err("no".into()));
        let over = patience.part(Duration::ZERO);
        assert!(count(over, 3..=9, Duration::from_secs(60)).unwrap_err().contains("the time was up"));
    }

    #[test]
    fn what_does_not_end_is_ended() {
        let group = Group::new();
        let waited = within(Duration::ZERO, &group, || {
            while !group.is_killed() {
                std::thread::yield_now();
            }
        });
        assert_eq!(waited, Err("it had not ended after 0 s and was killed".to_owned()));
        assert_eq!(within(Duration::from_secs(60), &Group::new(), || 7), Ok(7));
    }
}
