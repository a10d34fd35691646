//! Finds the processes that a process has started, for jobs without a process group of their own.

use std::collections::HashMap;
use std::fs;

/// Returns the children of `pid`, their children, and so on. Those of a parent that has ended are not found, as with psutil, by
/// which lit ends a test.
pub(crate) fn of(pid: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for number in all() {
        if let Some(parent) = parent(number) {
            children.entry(parent).or_default().push(number);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(next) = open.pop() {
        for child in children.remove(&next).unwrap_or_default() {
            found.push(child);
            open.push(child);
        }
    }
    found
}

/// Returns whether a process group has members that have not ended.
pub(crate) fn are_in_group(pgid: i32) -> bool {
    all().any(|pid| state(pid).is_some_and(|found| found.group == pgid) && !is_zombie(pid))
}

/// The numbers of fields of `/proc/PID/stat`, by proc(5).
const GROUP: usize = 5;
const EXIT_CODE: usize = 52;

/// Returns the members of a process group that have stopped, but by SIGSTOP, as far as the kernel tells by what.
pub(crate) fn stopped_in_group(pgid: i32) -> Vec<i32> {
    let is_stopped =
        |found: State| found.group == pgid && found.letter == "T" && found.exit_code != libc::SIGSTOP;
    all().filter(|&pid| state(pid).is_some_and(is_stopped)).collect()
}

fn all() -> impl Iterator<Item = i32> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a process has ended with all its threads, though its parent has not asked how.
pub(crate) fn is_zombie(pid: i32) -> bool {
    let is_alone = || fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() == 1);
    state(pid).is_some_and(|found| matches!(&*found.letter, "Z" | "X")) && is_alone()
}

fn parent(pid: i32) -> Option<i32> {
    Some(state(pid)?.parent)
}

/// The first fields of `/proc/PID/stat` behind the name.
struct State {
    letter: String,
    parent: i32,
    group: i32,
    /// The signal that has stopped it. 0 once its parent has asked.
    exit_code: i32,
}

fn state(pid: i32) -> Option<State> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and parentheses.
    let mut words = stat.rsplit_once(") ")?.1.split(' ');
    let letter = words.next()?.to_owned();
    let mut number = || words.next()?.parse().ok();
    let (parent, group) = (number()?, number()?);
    let exit_code = words.nth(EXIT_CODE - GROUP - 1).and_then(|word| word.trim().parse().ok()).unwrap_or(0);
    Some(State { letter, parent, group, exit_code })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::sys::wait;

    #[test]
    fn a_child_that_nobody_has_waited_for_is_a_zombie() {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        let ended = WaitId::Pid(Pid::from_child(&child));
        waitid(ended, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(is_zombie(pid) && !is_zombie(std::process::id() as i32));
        child.wait().unwrap();
        assert!(!is_zombie(pid));
    }

    #[test]
    fn children_of_children_are_found() {
        let mut shell = Command::new("sh")
            .args(["-c", "(sleep 60 & echo $!; wait) & wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = shell.id() as i32;
        let found = of(pid);
        assert!(found.contains(&line.trim().parse().unwrap()), "{found:?} {line}");
        found.iter().for_each(|&child| wait::kill(child));
        shell.kill().unwrap();
        shell.wait().unwrap();
    }

    #[test]
    fn what_has_stopped_by_sigstop_does_not_count_as_stopped() {
        use std::os::unix::process::CommandExt;

        use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
        for (signal, counts) in [(Signal::STOP, false), (Signal::TTIN, true)] {
            let mut child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
            let (pid, number) = (Pid::from_child(&child), child.id() as i32);
            assert_eq!(stopped_in_group(number), []);
            kill_process(pid, signal).unwrap();
            waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT).unwrap();
            let stopped = stopped_in_group(number);
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(stopped, if counts { vec![number] } else { vec![] }, "{signal:?}");
        }
    }
}
