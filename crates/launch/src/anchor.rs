//! Process groups that no tool leads.
//!
//! Under lit no tool leads a process group, as all of them are in lit's own: `setsid` needs no fork, and `kill(0)` reaches
//! every stage. Here each job has a group of its own, by which it can be ended. Its leader is an anchor: a child of the
//! runner that has ended and is not reaped. Such a zombie keeps its number and its group, runs nothing, and no signal
//! changes it, SIGKILL included. Making one takes about 30 µs, so an anchor is reused if its group is empty.

use std::io;
use std::sync::{Condvar, Mutex};

use crate::sys;

/// They belong to the process, not to a launcher: any job may use them.
static ANCHORS: Mutex<Anchors> = Mutex::new(Anchors { idle: Vec::new(), in_use: 0 });
static GIVEN_BACK: Condvar = Condvar::new();

#[derive(Debug)]
struct Anchors {
    /// Those of empty groups.
    idle: Vec<i32>,
    in_use: usize,
}

/// The leader of one job's process group.
#[derive(Debug)]
pub(crate) struct Anchor(i32);

impl Anchor {
    /// An anchor that leads an empty group. Where there may be no more processes, it waits for that of another job.
    pub(crate) fn take() -> io::Result<Anchor> {
        let mut anchors = ANCHORS.lock().expect("no panic while locked");
        loop {
            let taken = anchors.idle.pop().map_or_else(sys::anchor::make, Ok);
            match taken {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && anchors.in_use > 0 => {
                    anchors = GIVEN_BACK.wait(anchors).expect("no panic while locked");
                }
                Err(error) => return Err(error),
                Ok(pid) => {
                    anchors.in_use += 1;
                    return Ok(Anchor(pid));
                }
            }
        }
    }

    /// The group's number.
    pub(crate) fn group(&self) -> i32 {
        self.0
    }
}

impl Drop for Anchor {
    /// A group with processes that the job has left behind lives on without its anchor, and keeps its number.
    fn drop(&mut self) {
        let is_alone = sys::anchor::is_alone(self.0);
        if !is_alone {
            sys::anchor::reap(self.0);
        }
        let mut anchors = ANCHORS.lock().expect("no panic while locked");
        anchors.in_use -= 1;
        if is_alone {
            anchors.idle.push(self.0);
        }
        GIVEN_BACK.notify_one();
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
