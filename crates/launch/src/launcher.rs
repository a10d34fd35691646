//! The only public way to start a process.
//!
//! A caller says what to start, and learns from the exit whether it was cold or warm; both look the same to it. So everything that a cold
//! and a warm start have in common is here: the group, the guard's table, the wait.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotstart_model::Status;

use crate::guard::Guard;
use crate::served::Served;
use crate::slots::{Entry, Slot, Slots};
use crate::warm::script;
use crate::warm::{
    self, ActiveRun, Ahead, Ended, KnownDoubts, Lease, Outcome, Policy, Pool, Request, Runtime, Started,
    Statistics, Tool,
};
use crate::{Allocators, Change, Exit, Group, Reason, Spec, Usage, Via, cold, sys};

/// How a process ends that was killed.
const KILLED: Status = Status::Signaled(sys::wait::SIGKILL);

/// How long a start may wait for a zygote or a persistent process while others of its job run. Under lit a stage of a pipeline
/// starts 1 ms after the one before it, 5 to 20 in the slowest hundredth. A later one finds what the others have changed meanwhile,
/// so its job proves nothing.
const LATE: Duration = Duration::from_millis(10);

/// Starts processes. Shared by all workers.
#[derive(Debug, Default)]
pub struct Launcher {
    /// Table of live processes; `None` unless a guard or a pool needs it.
    slots: Option<Arc<Slots>>,
    guard: Option<Arc<Guard>>,
    pool: Option<Pool>,
    /// Shared with the thread that tries the runtime before there is a pool.
    runtime: Arc<Runtime>,
    ahead: Option<Arc<Ahead>>,
    allocators: Option<Arc<Allocators>>,
    /// The clients of running tools that a server has served.
    served: Served,
}

/// The reason for which a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The working directory cannot be entered.
    #[error("cannot enter directory '{}': {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The program cannot be executed.
    #[error("cannot execute '{}': {source}", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// An argument, a variable or a path contains a NUL, which exec cannot pass.
    #[error("an argument or variable of '{}' contains a NUL character", path.display())]
    Nul {
        /// The program.
        path: PathBuf,
    },
    /// The job was ended before it started this process.
    #[error("the job was ended before '{}' was started", path.display())]
    Ended {
        /// The program.
        path: PathBuf,
    },
}

/// A started process, which must be waited for.
#[derive(Debug)]
#[must_use = "a process that is not waited for stays a zombie"]
pub struct Child<'g> {
    pid: i32,
    via: Via,
    begun: Instant,
    group: &'g Group,
    slot: Option<Slot<'g>>,
    /// Its run, if it runs behind the gate and reports its end by a message.
    run: Option<ActiveRun<'g>>,
    /// The end that was already awaited by [`Child::process_fd`].
    ended: Option<Ended>,
    /// The table that counts its clients, if it was started by [`Launcher::start_warm`].
    served: Option<&'g Served>,
    /// Its tool, if CPU times are compared and no run measures this process.
    measured: Option<Arc<Tool>>,
    /// Its tool, if it is cold because that is not observed yet.
    unobserved: Option<(&'g Pool, Arc<Tool>)>,
    /// Its request, if it is remembered when its run is doubtful.
    request: Option<(&'g KnownDoubts, Request)>,
}

impl Launcher {
    /// Creates a launcher that starts everything cold.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a guard: a second process that ends every started process if this one is killed. Only for binaries whose `main`
    /// calls [`crate::enter_guard`].
    pub fn with_guard(self) -> Self {
        self.guarded(None)
    }

    /// Like [`Launcher::with_guard`]; the guard also keeps `held` open until all processes of a killed runner are gone. If
    /// `held` is a locked file, others can wait for that.
    pub fn with_guard_holding(self, held: BorrowedFd<'_>) -> Self {
        self.guarded(Some(held))
    }

    /// Continues without a guard if the system refuses one.
    fn guarded(mut self, held: Option<BorrowedFd<'_>>) -> Self {
        self.guard = self.slots().and_then(|slots| Guard::start(&slots, held)).map(Arc::new);
        self
    }

    fn slots(&mut self) -> Option<Arc<Slots>> {
        if self.slots.is_none() {
            self.slots = Slots::new().map(Arc::new);
        }
        self.slots.clone()
    }

    /// Has the guard remove `dir` if this process is killed before it does. Without a guard, `dir` is left.
    pub fn remove_if_killed(&self, dir: &Path) {
        if let Some(guard) = &self.guard {
            guard.remove(dir);
        }
    }

    /// Tests in the background whether warm starts work on this system. Otherwise the first warm start does this test.
    pub fn prepare_warm(&mut self) {
        let runtime = Arc::clone(&self.runtime);
        if let Some(slots) = self.slots() {
            let name = "runtime".to_owned();
            // Best effort: without the thread, the first warm start runs the test.
            let _ = std::thread::Builder::new().name(name).spawn(move || {
                warm::try_runtime(&runtime, None, &slots);
            });
        }
    }

    /// Creates a prefork, which makes zygotes before the final policy is known; `policy` is provisional. `None` if the system
    /// refuses the memory for the table of processes.
    pub fn ahead(&mut self, policy: Policy) -> Option<Arc<Ahead>> {
        let slots = self.slots()?;
        self.ahead = Some(Ahead::new(policy, slots, Arc::clone(&self.runtime)));
        self.ahead.clone()
    }

    /// Starts tools warm where `policy` and the tool allow it.
    pub fn with_policy(mut self, policy: Policy) -> Self {
        let ahead = self.ahead.take();
        ahead.iter().for_each(|ahead| ahead.settle(&policy));
        self.pool = Some(warm::pool(policy, self.slots(), Arc::clone(&self.runtime), ahead));
        self
    }

    /// Gives tools the chosen allocators, whether they start cold or warm.
    pub fn with_allocators(mut self, allocators: Allocators) -> Self {
        self.allocators = Some(Arc::new(allocators));
        self
    }

    /// Returns a launcher that starts everything cold, with the same guard and allocators. Warm starts are compared with it.
    pub fn cold(&self) -> Launcher {
        Launcher {
            slots: self.slots.clone(),
            guard: self.guard.clone(),
            pool: None,
            runtime: Arc::default(),
            ahead: None,
            allocators: self.allocators.clone(),
            served: Served::default(),
        }
    }

    /// Quarantines every program that was started warm in `group`, because a warm start was seen to differ from a cold one.
    pub fn quarantine(&self, group: &Group) {
        group.quarantine();
    }

    /// Returns whether `program` lies where tests write, so that it is always started cold.
    pub fn is_test_output(&self, program: &Path) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.policy().is_test_output(program))
    }

    /// Returns how often each tool was started in which way. Empty without a policy.
    pub fn statistics(&self) -> Statistics {
        self.pool.as_ref().map(Pool::statistics).unwrap_or_default()
    }

    /// Starts `spec` as a part of `group`.
    pub fn start<'g>(&'g self, spec: &Spec<'_>, group: &'g Group) -> Result<Child<'g>, StartError> {
        let begun = Instant::now();
        let ended = || StartError::Ended { path: spec.program.clone() };
        if spec.env.has_nul() {
            return Err(StartError::Nul { path: spec.program.clone() });
        }
        let Some(pool) = &self.pool else {
            let reason = if cold::needs_trampoline(spec) { Reason::Limits } else { Reason::OnlyWay };
            let start = |slot: Option<Slot<'_>>, _| Ok(Started::cold(self.start_cold(spec, slot)?, reason));
            return self.start_in(group, spec, begun, start).ok_or_else(ended)?;
        };
        let tool = pool.tool(&script::tool(spec, pool.policy()), self.allocators.as_deref());
        let request = pool.doubts().request(spec);
        let lease = match pool.doubts().expects(request) {
            true => Err(Reason::KnownDoubtful),
            false => pool.lease(&tool, spec, group.layout_of(&tool)),
        };
        let has_waited = begun.elapsed() > LATE;
        let mut is_beside = false;
        let child = self.start_in(group, spec, begun, |slot, alone| {
            is_beside = !alone;
            match lease.and_then(|lease| lease.start(spec, slot, alone)) {
                Ok(started) => Ok(started),
                Err(reason) => Ok(Started::cold(self.start_cold(spec, slot)?, reason)),
            }
        });
        let mut child = child.ok_or_else(ended)??;
        // A zygote may have taken long to make its fork, too. A cold start takes what it takes under lit.
        let is_late = has_waited || (!matches!(child.via, Via::Cold(_)) && begun.elapsed() > LATE);
        if is_late && is_beside {
            group.doubt();
        }
        tool.record(child.via, begun.elapsed());
        child.request = request.filter(|_| child.run.is_some()).map(|request| (pool.doubts(), request));
        if child.via == Via::Cold(Reason::Unobserved) {
            child.unobserved = Some((pool, Arc::clone(&tool)));
        }
        note_warm(spec, group, &child, tool);
        Ok(child)
    }

    /// Starts `program` warm from its next start on, under each key, where it can be warm.
    pub fn make_eager(&self, program: &Path) {
        if let Some(pool) = &self.pool {
            pool.tool(program, self.allocators.as_deref()).make_eager();
        }
    }

    /// Starts `spec` as a part of `group`, warm, or cold to compare CPU times ([`Policy::compare`]). On an error nothing was
    /// started.
    pub fn start_warm<'g>(&'g self, spec: &Spec<'_>, group: &'g Group) -> Result<Child<'g>, Reason> {
        let begun = Instant::now();
        let pool = self.pool.as_ref().ok_or(Reason::OnlyWay)?;
        let tool = pool.tool(&script::tool(spec, pool.policy()), self.allocators.as_deref());
        let start = |lease: Option<Lease<'g>>| {
            let child = self.start_in(group, spec, begun, |slot, alone| match lease {
                Some(lease) => lease.start(spec, slot, alone),
                None => self.start_compared(spec, slot),
            });
            child.unwrap_or(Err(Reason::Refused))
        };
        let child = match pool.lease(&tool, spec, group.layout_of(&tool)) {
            Ok(lease) => start(Some(lease)),
            Err(Reason::Compared) => start(None),
            Err(reason) => Err(reason),
        };
        let via = child.as_ref().map_or_else(|reason| Via::Cold(*reason), |child| child.via);
        tool.record(via, begun.elapsed());
        let mut child = child?;
        if pool.policy().compare && child.run.is_none() {
            child.measured = Some(Arc::clone(&tool));
        }
        if child.run.is_some() {
            // A client that comes before this is not counted, and the process is not used again.
            self.served.begin(child.pid);
            child.served = Some(&self.served);
        }
        note_warm(spec, group, &child, tool);
        Ok(child)
    }

    /// Counts a client of a server whose job was started. `parent` is the process that has started the client.
    pub fn client_was_served(&self, parent: i32) {
        self.served.add(parent);
    }

    /// Records that a client was refused, so that its command runs as a child of `parent`, or of an unknown process.
    pub fn client_was_refused(&self, parent: Option<i32>) {
        self.served.refuse(parent);
    }

    /// Starts a process under the group's lock; `None` if the job had already been ended.
    fn start_in<'g, E>(
        &'g self,
        group: &'g Group,
        spec: &Spec<'_>,
        begun: Instant,
        start: impl FnOnce(Option<Slot<'_>>, bool) -> Result<Started<'g>, E>,
    ) -> Option<Result<Child<'g>, E>> {
        let mut child = None;
        let started = group.start(|alone| {
            let slot = self.slots.as_deref().and_then(Slots::take);
            let Started { pid, via, run } = match start(slot, alone) {
                Ok(started) => started,
                Err(error) => {
                    slot.into_iter().for_each(Slot::free);
                    return Err(error);
                }
            };
            let pgid = spec.process_group.number(pid);
            if let Some(slot) = &slot {
                slot.enter(Entry { pid, pgid });
            }
            child = Some(Child {
                pid,
                via,
                begun,
                group,
                slot,
                run,
                ended: None,
                served: None,
                measured: None,
                unobserved: None,
                request: None,
            });
            Ok((pid, pgid))
        })?;
        Some(started.map(|_| child.expect("made when it was started")))
    }

    /// Starts `spec` cold, with no second exec that would be measured, too. If that fails, its caller's own start will tell why.
    fn start_compared<'p>(&self, spec: &Spec<'_>, slot: Option<Slot<'_>>) -> Result<Started<'p>, Reason> {
        let prepared = cold::prepare_direct(spec).map_err(|_| Reason::Refused)?;
        let pid = prepared.spawn(spec, slot).map_err(|_| Reason::Refused)?;
        Ok(Started::cold(pid, Reason::Compared))
    }

    fn start_cold(&self, spec: &Spec<'_>, slot: Option<Slot<'_>>) -> Result<i32, StartError> {
        let preload =
            self.allocators.as_ref().and_then(|allocators| allocators.of(&spec.program).ok().flatten());
        let prepared = cold::prepare(spec, preload.as_deref())?;
        prepared.spawn(spec, slot).map_err(|errno| cold::explain(spec, errno))
    }
}

impl Child<'_> {
    /// Returns how it was started.
    pub fn via(&self) -> Via {
        self.via
    }

    /// Returns the process's number.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns a descriptor that becomes readable when the run has ended, or when only the process can tell its end: then
    /// [`Child::process_fd`] has another descriptor. It is valid until [`Child::wait`].
    pub fn end_fd(&mut self) -> io::Result<OwnedFd> {
        match &mut self.run {
            Some(run) => run.worker_mut().end_fd(),
            None => sys::wait::pidfd(self.pid),
        }
    }

    /// Call this once [`Child::end_fd`] is readable. Returns a descriptor that becomes readable when the process ends, if it
    /// has not ended with its run: for example a persistent process that has exec'ed another program or is retired.
    pub fn process_fd(&mut self) -> Option<OwnedFd> {
        let run = self.run.as_mut().filter(|_| self.ended.is_none())?;
        let ended = run.worker_mut().await_end();
        let process = ended.is_of_process().then(|| sys::wait::pidfd(self.pid).ok()).flatten();
        self.ended = Some(ended);
        process
    }

    /// Returns whether the process has stopped or been continued since the last call.
    pub fn change(&self) -> Option<Change> {
        sys::wait::change(self.pid)
    }

    /// Ends the process with SIGKILL.
    pub fn kill(&self) {
        self.signal(sys::wait::SIGKILL);
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: i32) {
        self.group.signal(self.pid, signal, false);
    }

    /// Sends a signal to its whole process group, which must be the runner's or the job's own.
    pub fn signal_group(&self, signal: i32) {
        self.group.signal(self.pid, signal, true);
    }

    /// Continues the processes of its process group that have stopped, and sends no signal to others. Reads the table of processes.
    pub fn continue_group(&self) {
        self.group.go_on(self.pid);
    }

    /// Waits for the end of the process or of its run.
    pub fn wait(mut self) -> Exit {
        let (pid, begun, via) = (self.pid, self.begun, self.via);
        let exit =
            |status, usage| Exit { status, usage, wall: begun.elapsed(), via, lost: false, doubtful: false };
        let Some(mut run) = self.run.take() else {
            sys::wait::await_end(pid);
            self.measure();
            let (status, usage) = self.reap();
            self.note_killed(status);
            if let Some((pool, tool)) = &self.unobserved {
                pool.ran_unobserved(tool, usage.user + usage.system);
            }
            return exit(status, usage);
        };
        let mut ended = self.ended.take().unwrap_or_else(|| run.worker_mut().await_end());
        if !matches!(ended, Ended::Reset { .. }) {
            sys::wait::await_end(pid);
            run.worker().look_again(&mut ended);
        }
        let served = self.served.take().and_then(|served| served.end(pid));
        ended.check_children(served);
        if let Ended::Reset { status, usage, .. } = ended {
            let ((), killed) = self.leave(|| run.worker_mut().settle());
            run.measure(Some(&usage));
            if killed {
                // The persistent process as well.
                run.finish(&Ended::NotRun);
                return exit(KILLED, usage);
            }
            run.finish(&ended);
            self.remember(Outcome::Harmless);
            return exit(status, usage);
        }
        run.measure(None);
        let (status, usage) = self.reap();
        run.finish(&ended);
        let lost = matches!(ended, Ended::NotRun);
        // After a crash it is unknown how the process would have behaved without the gate.
        let crashed = matches!(status, Status::Signaled(_)) && !self.group.is_killed();
        let is_doubted = matches!(ended, Ended::Process { doubts, .. } if doubts.any());
        let doubtful = lost || crashed || is_doubted;
        let is_of_command = matches!(ended, Ended::Process { doubts, .. } if doubts.of_run());
        if !lost && !self.group.is_killed() && (!doubtful || is_of_command || crashed && status != KILLED) {
            let is_by_nature = matches!(ended, Ended::Process { doubts, .. } if doubts.of_nature());
            self.remember(match doubtful {
                false => Outcome::Harmless,
                true if is_by_nature && !crashed => Outcome::ByNature,
                true => Outcome::Doubtful,
            });
        }
        // Nobody but the system or a user kills a tool, as a rule.
        if lost || (crashed && status == KILLED) {
            self.group.lose();
        } else if doubtful {
            self.group.doubt();
        }
        Exit { lost, doubtful, ..exit(status, usage) }
    }

    /// Records how this run of its command has ended.
    fn remember(&self, outcome: Outcome) {
        if let Some((doubts, request)) = self.request {
            doubts.ran(request, outcome);
        }
    }

    /// Reaps the process, which has ended.
    fn reap(&mut self) -> (Status, Usage) {
        let pid = self.pid;
        let ((status, usage), killed) = self.leave(|| sys::wait::reap(pid));
        (if killed { KILLED } else { status }, usage)
    }

    /// Accounts for the CPU time of a process that has ended, and that no run measures.
    fn measure(&self) {
        let Some(tool) = &self.measured else { return };
        let spent = sys::clock::of_process(self.pid);
        if self.via.is_warm() { tool.ran_warm(Some(spent), Duration::ZERO) } else { tool.ran_cold(spent) }
    }

    /// A warm process that was killed, but not with its job, may have been mistaken for an idle one. So the job is doubtful.
    fn note_killed(&self, status: Status) {
        if self.via.is_warm() && status == KILLED && !self.group.is_killed() {
            self.group.lose();
        }
    }

    /// Removes the process from the job, and calls `reap` under the job's lock. Also returns whether the job was killed before.
    fn leave<R>(&mut self, reap: impl FnOnce() -> R) -> (R, bool) {
        let slot = self.slot.take();
        self.group.reap(self.pid, || {
            slot.into_iter().for_each(Slot::free);
            reap()
        })
    }
}

/// Records a warm start of `tool` in `group`.
fn note_warm(spec: &Spec<'_>, group: &Group, child: &Child<'_>, tool: Arc<Tool>) {
    if !child.via.is_warm() {
        return;
    }
    group.started_warm(tool);
    if let Some(run) = &child.run {
        group.visited(run.worker().note(spec, group.job()));
    }
}
