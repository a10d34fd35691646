//! Distinguishes a deadline from an interruption.

use std::time::{Duration, Instant};

use hotstart_launch::Group;

/// The deadline's clock may have started slightly before the script's.
const SLACK: Duration = Duration::from_millis(50);

/// The time since a script began, together with the group of its processes.
pub(crate) struct Clock<'a> {
    begun: Instant,
    timeout: Option<Duration>,
    group: &'a Group,
}

impl<'a> Clock<'a> {
    pub fn start(timeout: Option<Duration>, group: &'a Group) -> Self {
        Clock { begun: Instant::now(), timeout, group }
    }

    /// Whether the script was ended from outside.
    pub fn is_killed(&self) -> bool {
        self.group.is_killed()
    }

    /// Whether the script was ended because its time was up.
    pub fn is_timed_out(&self) -> bool {
        self.timeout.is_some_and(|limit| self.begun.elapsed() + SLACK >= limit) && self.is_killed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_before_the_limit_is_an_interruption() {
        let group = Group::new();
        let (soon, late) =
            (Clock::start(Some(Duration::ZERO), &group), Clock::start(Some(Duration::MAX / 4), &group));
        assert!(!soon.is_timed_out());
        group.kill();
        assert!(soon.is_timed_out() && !late.is_timed_out() && late.is_killed());
    }
}
