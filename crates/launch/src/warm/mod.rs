//! Starting by copying: a pool of tools stopped before `main`.
//!
//! Whoever wants to start something takes a template out of the pool, asks it for a copy and puts it back. What
//! cannot be started so is told by a [`Reason`], and started cold; nothing is lost by it. See docs/design/fork-server.md.

mod ahead;
mod budget;
pub(crate) mod eligible;
mod identity;
pub(crate) mod image;
mod key;
mod moment;
pub(crate) mod observe;
mod place;
mod policy;
mod program;
mod request;
mod rewinding;
mod starter;
mod statistics;
mod template;
pub(crate) mod wire;
mod worker;

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

pub use ahead::Ahead;
pub use moment::Moment;
pub use policy::{Choice, Nested, NestedStarts, Policy, cache_directory};
pub use rewinding::{Retirement, Stopped};
pub use statistics::{Statistics, ToolStatistics};

use crate::history::Mark;
use crate::slots::{Entry, Slot, Slots};
use crate::spec::{IGNORABLE, Resource};
use crate::{Allocators, ProcessGroup, Reason, Spec, Via};
use budget::Budget;
use program::Plan;
pub(crate) use program::Program;
use request::Failure;
use template::Template;
pub(crate) use worker::Ended;
use worker::Worker;

/// The runtime's file, once it was tried; `None` if it does not work here.
pub(crate) type Runtime = OnceLock<Option<OwnedFd>>;

/// Tries it once on a program that does no harm if it is not stopped: without the runtime, a tool would run its `main` with
/// no arguments.
pub(crate) fn try_runtime<'r>(
    runtime: &'r Runtime,
    nested: Option<&Nested>,
    slots: &Slots,
) -> Option<&'r OwnedFd> {
    runtime.get_or_init(|| image::open_runtime(nested).filter(|image| program::probe(image, slots))).as_ref()
}

/// All templates of a runner.
#[derive(Debug)]
pub(crate) struct Pool {
    policy: Policy,
    /// Where copies are entered; without it there are none.
    slots: Option<Arc<Slots>>,
    /// The runtime, and the one by which tools make their own starts through a client.
    runtime: Arc<Runtime>,
    nesting_runtime: Runtime,
    ahead: Option<Arc<Ahead>>,
    programs: Mutex<HashMap<OsString, Arc<Program>>>,
    budget: Budget,
    clock: AtomicU64,
}

/// A template, or a worker, that nobody else uses meanwhile.
pub(crate) struct Lease<'p> {
    pool: &'p Pool,
    program: Arc<Program>,
    what: Option<What>,
}

enum What {
    Template {
        template: Template,
        /// Whether it is to make a worker, for which a place is claimed.
        grow: bool,
    },
    Worker {
        worker: Worker,
        audited: bool,
    },
}

/// A process that was started.
pub(crate) struct Started<'p> {
    pub pid: i32,
    pub via: Via,
    /// The worker that it is, if it is one.
    pub tenure: Option<Tenure<'p>>,
}

impl Started<'_> {
    /// One that was started by exec.
    pub(crate) fn cold(pid: i32, reason: Reason) -> Self {
        Started { pid, via: Via::Cold(reason), tenure: None }
    }
}

/// A worker while it runs a request.
pub(crate) struct Tenure<'p> {
    pool: &'p Pool,
    program: Arc<Program>,
    worker: Worker,
    audited: bool,
}

impl Pool {
    pub(crate) fn new(
        policy: Policy,
        slots: Option<Arc<Slots>>,
        runtime: Arc<Runtime>,
        ahead: Option<Arc<Ahead>>,
    ) -> Self {
        crate::sys::spawn::keep_inherited_private();
        let policy = Policy {
            templates_per_tool: crate::descriptors::fit(policy.templates_per_tool),
            workers_per_tool: crate::descriptors::fit(policy.workers_per_tool),
            ..policy
        };
        Pool {
            policy,
            slots,
            runtime,
            nesting_runtime: Runtime::new(),
            ahead,
            programs: Mutex::default(),
            budget: Budget::default(),
            clock: AtomicU64::new(0),
        }
    }

    /// What is known of a program.
    pub(crate) fn program(&self, path: &Path, allocators: Option<&Allocators>) -> Arc<Program> {
        let mut programs = self.programs.lock().expect("no panic while locked");
        if let Some(program) = programs.get(path.as_os_str()) {
            return Arc::clone(program);
        }
        let program = Arc::new(Program::new(path, allocators));
        programs.insert(path.into(), Arc::clone(&program));
        program
    }

    /// A template for `spec`, or why it is to be started cold.
    pub(crate) fn lease(&self, program: &Arc<Program>, spec: &Spec<'_>) -> Result<Lease<'_>, Reason> {
        if let Some(reason) = self.policy.refuses(&spec.program).or_else(|| refuses(spec)) {
            return Err(reason);
        }
        if let Some(ahead) = &self.ahead
            && program.begin(ahead, &self.budget)
        {
            self.evict();
        }
        let worn = self.policy.starts_per_template;
        loop {
            let what = match program.plan(spec, &self.policy)? {
                Plan::Rewind(worker, audited) if worker.is_current() => {
                    What::Worker { worker: *worker, audited }
                }
                Plan::Rewind(worker, _) => {
                    drop(worker);
                    program.worker_gone();
                    continue;
                }
                Plan::Use(template, grow) if template.is_current() && !template.is_worn(worn) => {
                    What::Template { template: *template, grow }
                }
                Plan::Use(template, grow) => {
                    drop(template);
                    program.retired();
                    let made = program.claim(&self.policy).and_then(|()| self.make(program, spec));
                    What::Template { template: self.or_give_up(program, grow, made)?, grow }
                }
                Plan::Make(grow) => What::Template {
                    template: self.or_give_up(program, grow, self.make(program, spec))?,
                    grow,
                },
            };
            let shadowed = match &what {
                What::Template { template, .. } => template.is_shadowed(&spec.cwd),
                What::Worker { worker, .. } => worker.is_shadowed(&spec.cwd),
            };
            let lease = Lease { pool: self, program: Arc::clone(program), what: Some(what) };
            return if shadowed { Err(Reason::RelativePath) } else { Ok(lease) };
        }
    }

    /// Without a template there is no worker either.
    fn or_give_up<T>(&self, program: &Program, grow: bool, made: Result<T, Reason>) -> Result<T, Reason> {
        if made.is_err() && grow {
            program.worker_gone();
        }
        made
    }

    fn make(&self, program: &Program, spec: &Spec<'_>) -> Result<Template, Reason> {
        let means = || {
            let slots = self.slots.as_deref()?;
            Some((self.runtime_for(&spec.program, slots)?, slots))
        };
        let made = means()
            .ok_or(Reason::System)
            .and_then(|(runtime, slots)| program.make(spec, runtime, slots, self.policy.cache.as_deref()));
        let made = made.and_then(|mut template| {
            if template.memory > self.policy.memory {
                return Err(Reason::Memory);
            }
            template.share = Some(self.budget.take(template.memory));
            Ok(template)
        });
        match &made {
            Ok(_) => self.evict(),
            Err(reason) => program.failed(*reason),
        }
        made
    }

    fn runtime_for(&self, program: &Path, slots: &Slots) -> Option<&OwnedFd> {
        let nested = self.policy.nested.as_ref().filter(|nested| nested.concerns(program));
        try_runtime(if nested.is_some() { &self.nesting_runtime } else { &self.runtime }, nested, slots)
    }

    /// Whether what `program` starts itself, once it is warm, is to be a part of its own job.
    pub(crate) fn follows(&self, program: &Path) -> bool {
        self.policy.nested.as_ref().is_some_and(|nested| nested.is_starter(program))
    }

    /// Drops the idle templates and workers that were not used for longest, while all own more than they may.
    fn evict(&self) {
        if self.budget.used() <= self.policy.memory {
            return;
        }
        let programs: Vec<_> =
            self.programs.lock().expect("no panic while locked").values().cloned().collect();
        while self.budget.used() > self.policy.memory {
            let oldest = programs.iter().filter_map(|p| Some((p.oldest_idle()?, p))).min_by_key(|(t, _)| *t);
            if !oldest.is_some_and(|(_, program)| program.drop_oldest()) {
                return;
            }
        }
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// What was started how.
    pub(crate) fn statistics(&self) -> Statistics {
        let programs = self.programs.lock().expect("no panic while locked");
        let mut tools: Vec<_> = programs.values().map(|program| program.statistics()).collect();
        tools.sort_by(|a, b| a.program.cmp(&b.program));
        Statistics { tools }
    }

    /// Notes a start and how long it took.
    pub(crate) fn record(&self, program: &Program, via: Via, took: Duration) {
        program.record(via, took);
    }
}

impl<'p> Lease<'p> {
    /// Starts `spec` in `slot`; after an error nothing was started. Without a slot nothing can be. What is started `alone` is
    /// waited for next.
    pub(crate) fn start(
        mut self,
        spec: &Spec<'_>,
        slot: Option<Slot<'_>>,
        alone: bool,
    ) -> Result<Started<'p>, Reason> {
        let slot = slot.ok_or(Reason::System)?;
        match self.what.take().expect("held until dropped") {
            What::Worker { worker, audited } => {
                self.rewind(worker, audited, spec, slot, alone && self.pool.policy.near)
            }
            What::Template { mut template, grow } => {
                template.near = self.pool.policy.near;
                template.enlarge_after = self.pool.policy.enlarge_after;
                let started =
                    if grow { self.grow(&mut template, spec, slot) } else { copy(&mut template, spec, slot) };
                self.what = Some(What::Template { template, grow: false });
                started
            }
        }
    }

    fn rewind(
        &self,
        mut worker: Worker,
        audited: bool,
        spec: &Spec<'_>,
        slot: Slot<'_>,
        near: bool,
    ) -> Result<Started<'p>, Reason> {
        // A worker tells only at the end that it could not enter the directory.
        if rustix::fs::access(spec.cwd.join("."), rustix::fs::Access::EXISTS).is_err() {
            self.program.give_back_worker(worker);
            return Err(Reason::Refused);
        }
        let pid = worker.pid();
        let pgid = if let ProcessGroup::Join(pgid) = spec.process_group { pgid } else { pid };
        // What the tool starts is in this group, and must not be missed if this process is killed now.
        slot.enter(Entry { pid, pgid });
        match worker.start(spec, audited, near) {
            Ok(()) => Ok(self.tenure(worker, audited, Via::Rewind)),
            Err(Failure::Request(reason)) => {
                self.program.give_back_worker(worker);
                Err(reason)
            }
            Err(Failure::Died | Failure::NoWorker) => {
                self.program.worker_gone();
                Err(Reason::TemplateDied)
            }
        }
    }

    fn grow(&self, template: &mut Template, spec: &Spec<'_>, slot: Slot<'_>) -> Result<Started<'p>, Reason> {
        let failure = match template.worker(spec, slot) {
            Ok(worker) => return Ok(self.tenure(worker, false, Via::Fork)),
            Err(failure) => failure,
        };
        self.program.worker_gone();
        match failure {
            Failure::NoWorker => {
                self.program.cannot_rewind();
                copy(template, spec, slot)
            }
            Failure::Request(reason) => Err(reason),
            Failure::Died => {
                template.is_dead = true;
                Err(Reason::TemplateDied)
            }
        }
    }

    fn tenure(&self, worker: Worker, audited: bool, via: Via) -> Started<'p> {
        let pid = worker.pid();
        let tenure = Tenure { pool: self.pool, program: Arc::clone(&self.program), worker, audited };
        Started { pid, via, tenure: Some(tenure) }
    }
}

/// Makes a copy that runs `spec`; after an error there is none.
fn copy<'p>(template: &mut Template, spec: &Spec<'_>, slot: Slot<'_>) -> Result<Started<'p>, Reason> {
    match template.copy(spec, slot) {
        Ok(pid) => Ok(Started { pid, via: Via::Fork, tenure: None }),
        Err(Failure::Request(reason)) => Err(reason),
        Err(Failure::Died | Failure::NoWorker) => {
            template.is_dead = true;
            Err(Reason::TemplateDied)
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        match self.what.take() {
            None => {}
            Some(What::Template { mut template, grow }) => {
                if grow {
                    self.program.worker_gone();
                }
                if template.is_worn(self.pool.policy.starts_per_template) {
                    drop(template);
                    self.program.retired();
                } else {
                    template.last_use = self.pool.tick();
                    self.program.give_back(template);
                    self.pool.evict();
                }
            }
            Some(What::Worker { worker, .. }) => self.program.give_back_worker(worker),
        }
    }
}

impl std::fmt::Debug for Tenure<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tenure").field(&self.worker).finish()
    }
}

impl Tenure<'_> {
    /// Takes note of what the worker runs, for reports.
    pub(crate) fn note(&self, spec: &Spec<'_>, job: Option<u32>) -> Mark {
        self.worker.note(spec, job)
    }

    /// Waits for the end of the run.
    pub(crate) fn await_end(&mut self) -> Ended {
        self.worker.await_end()
    }

    /// A descriptor that becomes readable then.
    pub(crate) fn end_fd(&mut self) -> std::io::Result<OwnedFd> {
        self.worker.end_fd()
    }

    /// Gives the worker back after `ended`, which it has told; only then may it serve others.
    pub(crate) fn finish(self, ended: &Ended) {
        let Tenure { pool, program, mut worker, audited } = self;
        let again = match ended {
            Ended::Rewound { differs, at_point, .. } => program.rewound(audited, *differs, *at_point),
            Ended::Process { retired, doubts } => {
                return program.worker_retired(*retired, doubts.of_calls() && !pool.policy.repeats_doubtful);
            }
            Ended::NotRun => false,
        };
        if !again || worker.origin.starts.load(Ordering::Relaxed) >= pool.policy.starts_per_template {
            return program.worker_gone();
        }
        // Its second snapshot takes as much as the first.
        let grown = matches!(ended, Ended::Rewound { at_point: true, .. }) && !worker.has_point;
        if grown || worker.share.is_none() {
            worker.has_point |= grown;
            worker.measure(&pool.budget);
        }
        worker.last_use = pool.tick();
        program.give_back_worker(worker);
        pool.evict();
    }
}

/// Why this request, whatever the program, is to be started cold.
fn refuses(spec: &Spec<'_>) -> Option<Reason> {
    if spec.keep_cold {
        return Some(Reason::OptOut);
    }
    if spec.limits.iter().any(|limit| limit.resource == Resource::AddressSpace) || spec.limits.len() > 8 {
        return Some(Reason::Limits);
    }
    if spec.ignored.is_some_and(|set| set & !IGNORABLE != 0) {
        return Some(Reason::Signals);
    }
    let fits = |fd: &i32| (3..wire::TARGET_MAX).contains(fd);
    if spec.extra_fds.len() + 3 > wire::FDS_MAX || !spec.extra_fds.iter().all(|(to, _)| fits(to)) {
        return Some(Reason::ManyDescriptors);
    }
    key::refuses(spec)
}
