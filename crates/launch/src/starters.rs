//! Maps the pid of a tool that starts others through the exec server to its test's `Group`.
//!
//! Such a start is part of the same job. It ends with the job, and is doubtful if the job is.
//!
//! A program that such a tool starts in another way, or that no server starts, is the tool's child, and may look at its parent. Then the
//! tool's run is doubtful. It rests where it is to start such a program, so that few tests run twice.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::warm::Doubted;
use crate::{Group, Spec};

/// Longest wait for an entry. A program may send its request before its starter has entered it.
const PATIENCE: Duration = Duration::from_secs(1);

/// The jobs of such programs, by process number.
#[derive(Debug, Default)]
pub(crate) struct Starters {
    groups: Mutex<HashMap<i32, Group>>,
    entered: Condvar,
    /// By the program that they start, as it is named in their arguments.
    doubted: Mutex<HashMap<OsString, Doubted>>,
}

/// Returns the program that such a tool is to start: its first argument that is no option (`not --crash PROGRAM`).
pub(crate) fn started(spec: &Spec<'_>) -> OsString {
    let is_option = |word: &&OsString| word.as_encoded_bytes().starts_with(b"--");
    spec.argv.iter().skip(1).find(|word| !is_option(word)).cloned().unwrap_or_default()
}

impl Starters {
    /// Counts a start. Returns whether it is to be cold, as the program that it starts was a stranger too often.
    pub(crate) fn rests(&self, spec: &Spec<'_>) -> bool {
        let mut doubted = self.doubted.lock().expect("no panic while locked");
        doubted.get_mut(&started(spec)).is_some_and(Doubted::rests)
    }

    /// Records whether a warm run that started `program`, or was started as that, is doubtful for it.
    pub(crate) fn ran(&self, program: &OsStr, is_doubtful: bool) {
        let mut doubted = self.doubted.lock().expect("no panic while locked");
        doubted.entry(program.to_owned()).or_default().ran(is_doubtful);
    }

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
