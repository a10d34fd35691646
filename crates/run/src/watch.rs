//! The processes of all running jobs, and the deadlines by which they must have ended.
//!
//! One thread sleeps until the earliest deadline. It ends a job by killing its processes. The worker, which waits for these,
//! then continues. A run without deadlines never wakes the thread.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use hotstart_launch::Group;

/// Running jobs' process groups. One per run.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<Entry>,
    next_id: u64,
    killed: bool,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    deadline: Option<Instant>,
    group: Arc<Group>,
}

/// Ends the watch over one job when dropped.
pub(crate) struct Watched<'a> {
    watch: &'a Watch,
    id: u64,
}

impl Watch {
    /// Watches `group` until the returned value is dropped.
    pub(crate) fn over(&self, group: &Arc<Group>, deadline: Option<Instant>) -> Watched<'_> {
        let mut state = self.state.lock().expect("no panic while locked");
        let id = state.next_id;
        state.next_id += 1;
        state.entries.push(Entry { id, deadline, group: Arc::clone(group) });
        if state.killed {
            group.kill();
        }
        if deadline.is_some() {
            self.changed.notify_one();
        }
        Watched { watch: self, id }
    }

    /// Kills the processes of every job, now and in future.
    pub(crate) fn kill_all(&self) {
        let mut state = self.state.lock().expect("no panic while locked");
        state.killed = true;
        for entry in &state.entries {
            entry.group.kill();
        }
    }

    /// Returns whether [`Watch::kill_all`] was called.
    pub(crate) fn is_killed(&self) -> bool {
        self.state.lock().expect("no panic while locked").killed
    }

    /// Has [`Watch::enforce`] return.
    pub(crate) fn close(&self) {
        self.state.lock().expect("no panic while locked").closed = true;
        self.changed.notify_one();
    }

    /// Kills jobs as their deadlines pass, until the watch is closed. The body of the watching thread.
    pub(crate) fn enforce(&self) {
        let mut state = self.state.lock().expect("no panic while locked");
        while !state.closed {
            let now = Instant::now();
            for entry in &mut state.entries {
                if entry.deadline.is_some_and(|at| at <= now) {
                    entry.deadline = None;
                    entry.group.kill();
                }
            }
            let next = state.entries.iter().filter_map(|entry| entry.deadline).min();
            state = match next {
                None => self.changed.wait(state).expect("no panic while locked"),
                Some(at) => {
                    let pause = at.saturating_duration_since(now);
                    self.changed.wait_timeout(state, pause).expect("no panic while locked").0
                }
            };
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let mut state = self.watch.state.lock().expect("no panic while locked");
        state.entries.retain(|entry| entry.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_past_its_deadline_is_killed_and_others_are_not() {
        let watch = Watch::default();
        let (late, calm) = (Arc::new(Group::new()), Arc::new(Group::new()));
        std::thread::scope(|scope| {
            scope.spawn(|| watch.enforce());
            let _calm = watch.over(&calm, None);
            let _late = watch.over(&late, Some(Instant::now()));
            while !late.is_killed() {
                std::thread::yield_now();
            }
            watch.close();
        });
        assert!(!calm.is_killed());
    }

    #[test]
    fn a_job_that_comes_after_the_kill_is_killed_too() {
        let watch = Watch::default();
        watch.kill_all();
        let group = Arc::new(Group::new());
        let _guard = watch.over(&group, None);
        assert!(group.is_killed());
    }
}
