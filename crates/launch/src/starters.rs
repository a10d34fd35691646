//! Maps the pid of a tool that starts others through the exec server to its test's `Group`.
//!
//! Such a start is part of the same job. It ends with the job, and is doubtful if the job is.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::Group;

/// Longest wait for an entry. A program may send its request before its starter has entered it.
const PATIENCE: Duration = Duration::from_secs(1);

/// The jobs of such programs, by process number.
#[derive(Debug, Default)]
pub(crate) struct Starters {
    groups: Mutex<HashMap<i32, Group>>,
    entered: Condvar,
}

impl Starters {
    /// Records that process `pid` was started in `group`.
    pub(crate) fn enter(&self, pid: i32, group: &Group) {
        self.groups.lock().expect("no panic while locked").insert(pid, group.clone());
        self.entered.notify_all();
    }

    /// Removes process `pid`, which has ended or will run for another job.
    pub(crate) fn leave(&self, pid: i32) {
        self.groups.lock().expect("no panic while locked").remove(&pid);
    }

    /// Returns the job of process `pid`. `None` if it is no such program, or has ended.
    pub(crate) fn group_of(&self, pid: i32) -> Option<Group> {
        let groups = self.groups.lock().expect("no panic while locked");
        let absent = |groups: &mut HashMap<i32, Group>| !groups.contains_key(&pid);
        let found = self.entered.wait_timeout_while(groups, PATIENCE, absent);
        found.expect("no panic while locked").0.get(&pid).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_asks_too_early_is_waited_for() {
        let starters = Starters::default();
        let group = Group::new();
        std::thread::scope(|scope| {
            let asks = scope.spawn(|| starters.group_of(7));
            starters.enter(7, &group);
            asks.join().unwrap().expect("it was entered").kill();
        });
        assert!(group.is_killed(), "it is the same job");
        starters.leave(7);
        assert!(starters.groups.lock().unwrap().is_empty());
    }
}
