//! The processes of one job, so that a deadline or Ctrl-C can end them from another thread.
//!
//! A process is in the set from its start until it has been reaped. Both happen under the set's lock. So no signal goes to a
//! number that the kernel has given to another process.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::anchor::Anchor;
use crate::history::{Mark, Visit};
use crate::warm::{Layout, Tool};
use crate::{ProcessGroup, descendants, sys, terminal};

/// Longest time to wait for processes that a run has left.
const LEFT_FOR: Duration = Duration::from_secs(1);

/// The processes of one job. Cheap to create. Clones refer to the same job, for the threads that may have to end it.
#[derive(Clone, Debug, Default)]
pub struct Group {
    state: Arc<Mutex<State>>,
    job: Option<u32>,
}

#[derive(Debug, Default)]
struct State {
    /// Process and process group of each process not yet reaped; group 0 is the runner's own.
    live: Vec<(i32, i32)>,
    /// The leader of the job's own process group, once the job has one.
    anchor: Option<Anchor>,
    /// Whether the job is in the runner's process group, once that is decided.
    is_beside_runner: Option<bool>,
    killed: bool,
    doubtful: bool,
    lost: bool,
    /// The tool of each warm start.
    warm: Vec<Arc<Tool>>,
    /// Runs in persistent processes.
    visits: Vec<Mark>,
}

impl State {
    fn is_beside_runner(&mut self, job: Option<u32>) -> bool {
        *self.is_beside_runner.get_or_insert_with(|| job.is_some() && terminal::is_in_foreground())
    }
}

/// Sends a signal to a process that has not been reaped; if `all`, to its process group, unless that is the runner's own.
fn send((pid, pgid): (i32, i32), signal: i32, all: bool) {
    // A new fork may not have joined its group yet.
    let all = all && pgid > 0 && sys::wait::is_in_group(pid, pgid);
    sys::wait::signal(if all { -pgid } else { pid }, signal);
}

impl Group {
    /// Creates a group without processes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a group without processes, for the test with this number. If the runner is in the foreground of its terminal, so
    /// are the test's processes.
    pub fn of_job(job: u32) -> Self {
        Group { job: Some(job), ..Self::default() }
    }

    pub(crate) fn job(&self) -> Option<u32> {
        self.job
    }

    /// Ends every process of the job with SIGKILL, and what these have started: within their process group, or, in the runner's
    /// group, what still has its parent. Nothing can be started in this group afterwards.
    pub fn kill(&self) {
        let mut state = self.state.lock().expect("no panic while locked");
        state.killed = true;
        for &(pid, pgid) in &state.live {
            let found = if pgid > 0 { Vec::new() } else { descendants::of(pid) };
            // Parents first: one that saw its child end could go on, and succeed.
            sys::wait::kill(pid);
            if pgid > 0 {
                sys::wait::kill_group(pgid);
            }
            found.into_iter().for_each(sys::wait::kill);
        }
    }

    /// Returns whether both are the same job.
    pub fn is_same(&self, other: &Group) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Returns the process group for the job's processes. None of them leads it. A test's is the runner's own where that is the
    /// foreground group of the terminal.
    pub fn process_group(&self) -> io::Result<ProcessGroup> {
        let mut state = self.state.lock().expect("no panic while locked");
        if state.is_beside_runner(self.job) {
            return Ok(ProcessGroup::Inherit);
        }
        let anchor = match &mut state.anchor {
            Some(anchor) => anchor,
            none => none.insert(Anchor::take()?),
        };
        Ok(ProcessGroup::Join(anchor.group()))
    }

    /// Counts a process that runs for this job, and is no start of its own, among the job's processes until [`Group::release`]. What it
    /// starts is in the process group `pgid`, or in the runner's own (0). It must not be reaped before. Returns whether the job still goes
    /// on.
    pub fn lend(&self, pid: i32, pgid: i32) -> bool {
        let mut state = self.state.lock().expect("no panic while locked");
        if !state.killed {
            state.live.push((pid, pgid));
        }
        !state.killed
    }

    /// Ends what [`Group::lend`] began.
    pub fn release(&self, pid: i32) {
        self.state.lock().expect("no panic while locked").live.retain(|&(live, _)| live != pid);
    }

    /// Decides whether the job is in the runner's process group, which looks at the terminal. The first call of
    /// [`Group::process_group`] does so otherwise; in a traced process it would count as a file that the test has used.
    pub fn settle(&self) {
        self.state.lock().expect("no panic while locked").is_beside_runner(self.job);
    }

    /// Gives up the process group while the job waits to be run again, since its leader counts as a process.
    pub fn give_up_process_group(&self) {
        let mut state = self.state.lock().expect("no panic while locked");
        if state.live.is_empty() {
            state.anchor = None;
        }
    }

    /// Waits a while for the processes that a run has left in its group, so that one that still cleans up does not meet the next run of the
    /// job. None is ended: it may be a server that other jobs use.
    pub fn await_left(&self) {
        self.await_left_for(LEFT_FOR, || true);
    }

    /// The same for at most `longest`, and while `goes_on`.
    pub fn await_left_for(&self, longest: Duration, goes_on: impl Fn() -> bool) {
        let (until, mut pause) = (Instant::now() + longest, Duration::from_millis(1));
        while self.has_left() && Instant::now() < until && goes_on() {
            std::thread::sleep(pause);
            // Each look reads the table of processes.
            pause = (2 * pause).min(Duration::from_millis(20));
        }
    }

    /// Ends the processes that a run has left in the job's own group: the run does not count, and the next one starts its own.
    pub fn end_left(&self) {
        let state = self.state.lock().expect("no panic while locked");
        if let Some(anchor) =
            state.anchor.as_ref().filter(|anchor| state.live.is_empty() && !anchor.is_alone())
        {
            sys::wait::kill_group(anchor.group());
        }
    }

    fn has_left(&self) -> bool {
        let state = self.state.lock().expect("no panic while locked");
        let anchor = state.anchor.as_ref().filter(|_| state.live.is_empty());
        anchor.is_some_and(|anchor| !anchor.is_alone() && descendants::are_in_group(anchor.group()))
    }

    /// Sends a signal to one process of the job; if `all`, to its process group.
    pub(crate) fn signal(&self, pid: i32, signal: i32, all: bool) {
        let state = self.state.lock().expect("no panic while locked");
        let live = state.live.iter().filter(|(live, _)| *live == pid);
        live.for_each(|&process| send(process, signal, all));
    }

    /// Continues what has stopped in the process group of one process of the job, if that is the job's own.
    pub(crate) fn go_on(&self, pid: i32) {
        let state = self.state.lock().expect("no panic while locked");
        let live = state.live.iter().filter(|(live, pgid)| *live == pid && *pgid > 0);
        let stopped = live.flat_map(|&(_, pgid)| descendants::stopped_in_group(pgid));
        stopped.for_each(|stopped| sys::wait::signal(stopped, libc::SIGCONT));
    }

    /// Sends a signal to every process of the job, and to what these have started or left in their process group. Unlike [`Group::kill`],
    /// it lets them clean up.
    pub fn pass_on(&self, signal: i32) {
        let state = self.state.lock().expect("no panic while locked");
        state.live.iter().for_each(|&process| send(process, signal, true));
        if let Some(anchor) =
            state.anchor.as_ref().filter(|anchor| state.live.is_empty() && !anchor.is_alone())
        {
            sys::wait::signal(-anchor.group(), signal);
        }
    }

    /// Returns whether [`Group::kill`] was called.
    pub fn is_killed(&self) -> bool {
        self.state.lock().expect("no panic while locked").killed
    }

    /// Returns how many of the job's processes were started warm.
    pub fn warm_starts(&self) -> usize {
        self.state.lock().expect("no panic while locked").warm.len()
    }

    /// Returns whether the job proves nothing, because one of its starts was doubtful ([`crate::Exit::doubtful`]), killed from outside, or
    /// had to wait while others of the job ran. It has to run again, cold.
    pub fn is_doubtful(&self) -> bool {
        self.state.lock().expect("no panic while locked").doubtful
    }

    pub(crate) fn doubt(&self) {
        self.state.lock().expect("no panic while locked").doubtful = true;
    }

    /// Returns whether one of its warm starts was lost, before `main` or by a kill from outside. Such a job may have failed by that.
    pub fn is_lost(&self) -> bool {
        self.state.lock().expect("no panic while locked").lost
    }

    /// Records a lost start, after which the job is doubtful.
    pub(crate) fn lose(&self) {
        let mut state = self.state.lock().expect("no panic while locked");
        state.doubtful = true;
        state.lost = true;
    }

    /// Returns this job's runs in persistent processes that had run other commands before, with at most `most` of those for
    /// each.
    pub fn visits(&self, most: usize) -> Vec<Visit> {
        let state = self.state.lock().expect("no panic while locked");
        state.visits.iter().map(|mark| mark.visit(most)).filter(|visit| visit.earlier > 0).collect()
    }

    /// Marks the persistent processes that ran tools of this job as not to be used again, since one of them may be corrupt.
    pub fn doubt_workers(&self) {
        self.state.lock().expect("no panic while locked").visits.iter().for_each(Mark::doubt);
    }

    /// Records a run in a persistent process.
    pub(crate) fn visited(&self, mark: Mark) {
        self.state.lock().expect("no panic while locked").visits.push(mark);
    }

    /// Records a warm start.
    pub(crate) fn started_warm(&self, tool: Arc<Tool>) {
        self.state.lock().expect("no panic while locked").warm.push(tool);
    }

    /// Returns the layout for the job's next start of this tool.
    pub(crate) fn layout_of(&self, tool: &Arc<Tool>) -> Layout {
        let state = self.state.lock().expect("no panic while locked");
        Layout::after(state.warm.iter().filter(|other| Arc::ptr_eq(other, tool)).count())
    }

    /// Quarantines every program that this job started warm.
    pub(crate) fn quarantine(&self) {
        for tool in &self.state.lock().expect("no panic while locked").warm {
            tool.quarantine();
        }
    }

    /// Starts a process under the lock. `start` is given whether it is the job's only one. `None` if the job had already been
    /// ended.
    pub(crate) fn start<E>(
        &self,
        start: impl FnOnce(bool) -> Result<(i32, i32), E>,
    ) -> Option<Result<(i32, i32), E>> {
        let mut state = self.state.lock().expect("no panic while locked");
        if state.killed {
            return None;
        }
        let started = start(state.live.is_empty());
        if let Ok(ids) = &started {
            state.live.push(*ids);
        }
        Some(started)
    }

    /// Reaps a process under the lock. It must have ended already, so that the lock is held only briefly. Also returns whether
    /// [`Group::kill`] found the process running: then it counts as killed, whatever its status. That can be 0, if it ended by
    /// itself in this moment, or because one of its children was killed first.
    pub(crate) fn reap<R>(&self, pid: i32, reap: impl FnOnce() -> R) -> (R, bool) {
        let mut state = self.state.lock().expect("no panic while locked");
        state.live.retain(|&(live, _)| live != pid);
        (reap(), state.killed)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    fn cat() -> std::process::Child {
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn what_a_run_has_left_is_waited_for_and_not_ended() {
        let group = Group::new();
        let ProcessGroup::Join(pgid) = group.process_group().unwrap() else { panic!("a group of its own") };
        let left = "exec 3<&0; cat <&3 & echo $!";
        let mut shell = Command::new("sh");
        shell.args(["-c", left]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(pgid);
        let mut shell = shell.spawn().unwrap();
        let (stdin, mut line) = (shell.stdin.take(), String::new());
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid: i32 = line.trim().parse().unwrap();
        assert!(shell.wait().unwrap().success());
        group.await_left();
        assert!(group.has_left() && !sys::wait::is_gone(pid), "it waits for its input");
        drop(stdin);
        group.await_left();
        assert!(!group.has_left());
    }

    #[test]
    fn what_a_run_that_does_not_count_has_left_is_ended() {
        let group = Group::new();
        let ProcessGroup::Join(pgid) = group.process_group().unwrap() else { panic!("a group of its own") };
        let mut cat = Command::new("cat").stdin(Stdio::piped()).process_group(pgid).spawn().unwrap();
        group.end_left();
        assert!(!cat.wait().unwrap().success());
        assert!(!group.is_killed(), "the job may be run again");
    }

    #[test]
    fn a_process_is_killed_with_the_job_that_it_is_lent_to() {
        let (first, second) = (Group::new(), Group::new());
        let mut cat = cat();
        let pid = i32::try_from(cat.id()).unwrap();
        assert!(first.lend(pid, 0));
        first.release(pid);
        first.kill();
        assert!(cat.try_wait().unwrap().is_none());
        assert!(second.lend(pid, 0));
        second.kill();
        assert!(!cat.wait().unwrap().success());
        assert!(!second.lend(pid, 0), "the job has been ended");
    }
}
