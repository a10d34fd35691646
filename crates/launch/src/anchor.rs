//! Leads process groups, so that no tool does.
//!
//! Under lit no tool leads a process group, since all of them are in lit's own: `setsid` needs no fork, and `kill(0)` reaches
//! every stage. Here each job has a group of its own, so that hotstart can end it. The group's leader is an anchor: a child
//! of the runner that has ended and is not reaped. Such a zombie keeps its number and its group, runs nothing, and no signal
//! changes it, SIGKILL included. An anchor takes about 30 µs to make, so it is reused once its group is empty.

use std::io;
use std::sync::Mutex;

use crate::sys;

/// Anchors of empty groups. They belong to the process, not to a launcher: any job may use them.
static IDLE: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// The leader of one job's process group.
#[derive(Debug)]
pub(crate) struct Anchor(i32);

impl Anchor {
    /// Returns an anchor that leads an empty group.
    pub(crate) fn take() -> io::Result<Anchor> {
        let idle = IDLE.lock().expect("no panic while locked").pop();
        idle.map_or_else(sys::anchor::make, Ok).map(Anchor)
    }

    /// Returns the group's number.
    pub(crate) fn group(&self) -> i32 {
        self.0
    }

    /// Returns whether no other process is in the group. An orphan of which nobody takes notice stays there as a zombie.
    pub(crate) fn is_alone(&self) -> bool {
        sys::anchor::is_alone(self.0)
    }
}

/// Reaps unused anchors, since each counts as a process. Returns whether there were any.
pub(crate) fn free_idle() -> bool {
    let idle = std::mem::take(&mut *IDLE.lock().expect("no panic while locked"));
    idle.iter().for_each(|&pid| sys::anchor::reap(pid));
    !idle.is_empty()
}

impl Drop for Anchor {
    /// A group in which the job has left processes lives on without its anchor, and keeps its number.
    fn drop(&mut self) {
        if self.is_alone() {
            IDLE.lock().expect("no panic while locked").push(self.0);
        } else {
            sys::anchor::reap(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::sys::wait;

    fn cat_in(anchor: &Anchor) -> std::process::Child {
        let mut cat = Command::new("cat");
        cat.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(anchor.group()).spawn().unwrap()
    }

    #[test]
    fn an_anchor_outlives_what_kills_its_group() {
        let anchor = Anchor::take().unwrap();
        for _ in 0..2 {
            let mut cat = cat_in(&anchor);
            wait::kill_group(anchor.group());
            assert!(!cat.wait().unwrap().success());
        }
        assert!(sys::anchor::is_alone(anchor.group()));
    }

    #[test]
    fn a_group_with_a_process_left_is_not_reused() {
        let anchor = Anchor::take().unwrap();
        let group = anchor.group();
        let mut cat = cat_in(&anchor);
        assert!(!sys::anchor::is_alone(group));
        drop(anchor);
        let others: Vec<_> = (0..8).map(|_| Anchor::take().unwrap()).collect();
        assert!(others.iter().all(|other| other.group() != group), "its number is taken");
        wait::kill_group(group);
        assert!(!cat.wait().unwrap().success());
    }
}
