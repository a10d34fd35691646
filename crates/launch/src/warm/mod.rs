//! Starting by copying: a pool of tools stopped before `main`.
//!
//! Whoever wants to start something takes a template out of the pool, asks it for a copy and puts it back. What
//! cannot be started so is told by a [`Reason`], and started cold; nothing is lost by it. See docs/design/warm.md.

mod eligible;
mod identity;
mod image;
mod key;
mod policy;
mod program;
mod starter;
mod statistics;
mod template;
mod wire;

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

pub use policy::{Choice, Policy};
pub use statistics::{Statistics, ToolStatistics};

use crate::spec::Resource;
use crate::{Reason, Spec, Via};
use program::Plan;
pub(crate) use program::Program;
use template::{Failure, Template};

/// All templates of a runner.
#[derive(Debug)]
pub(crate) struct Pool {
    policy: Policy,
    image: OnceLock<Option<OwnedFd>>,
    programs: Mutex<HashMap<OsString, Arc<Program>>>,
    memory: AtomicU64,
    clock: AtomicU64,
}

/// A template that nobody else uses meanwhile.
pub(crate) struct Lease<'p> {
    pool: &'p Pool,
    program: Arc<Program>,
    template: Option<Template>,
}

impl Pool {
    pub(crate) fn new(policy: Policy) -> Self {
        crate::sys::spawn::keep_inherited_private();
        Pool {
            policy,
            image: OnceLock::new(),
            programs: Mutex::default(),
            memory: AtomicU64::new(0),
            clock: AtomicU64::new(0),
        }
    }

    /// What is known of the program of `spec`.
    pub(crate) fn program(&self, spec: &Spec<'_>) -> Arc<Program> {
        let mut programs = self.programs.lock().expect("no panic while locked");
        if let Some(program) = programs.get(spec.program.as_os_str()) {
            return Arc::clone(program);
        }
        let program = Arc::new(Program::new(&spec.program));
        programs.insert(spec.program.clone().into(), Arc::clone(&program));
        program
    }

    /// A template for `spec`, or why it is to be started cold.
    pub(crate) fn lease(&self, program: &Arc<Program>, spec: &Spec<'_>) -> Result<Lease<'_>, Reason> {
        if let Some(reason) = self.policy.refuses(&spec.program).or_else(|| refuses(spec)) {
            return Err(reason);
        }
        let template = match program.plan(spec, &self.policy)? {
            Plan::Use(template) => {
                if template.is_current() {
                    *template
                } else {
                    self.retire(program, *template);
                    program.claim(&self.policy)?;
                    self.make(program, spec)?
                }
            }
            Plan::Make => self.make(program, spec)?,
        };
        Ok(Lease { pool: self, program: Arc::clone(program), template: Some(template) })
    }

    fn make(&self, program: &Program, spec: &Spec<'_>) -> Result<Template, Reason> {
        let made = self.image().ok_or(Reason::System).and_then(|image| program.make(spec, image));
        match &made {
            Ok(template) => {
                let total = self.memory.fetch_add(template.memory, Ordering::Relaxed) + template.memory;
                if total > self.policy.memory {
                    self.evict(total - self.policy.memory);
                }
            }
            Err(reason) => program.failed(*reason),
        }
        made
    }

    /// The runtime's file, tried once on a program that does no harm if it is not stopped: without the runtime, a
    /// tool would run its `main` with no arguments.
    fn image(&self) -> Option<&OwnedFd> {
        let open = || image::open().filter(program::probe);
        self.image.get_or_init(open).as_ref()
    }

    /// Drops the idle templates that were not used for longest.
    fn evict(&self, mut excess: u64) {
        let programs: Vec<_> =
            self.programs.lock().expect("no panic while locked").values().cloned().collect();
        while excess > 0 {
            let oldest = programs.iter().filter_map(|p| Some((p.oldest_idle()?, p))).min_by_key(|(t, _)| *t);
            let Some(template) = oldest.and_then(|(_, program)| program.take_oldest()) else { return };
            excess = excess.saturating_sub(template.memory);
            self.memory.fetch_sub(template.memory, Ordering::Relaxed);
        }
    }

    fn retire(&self, program: &Program, template: Template) {
        self.memory.fetch_sub(template.memory, Ordering::Relaxed);
        program.retired();
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

impl Lease<'_> {
    /// Makes a copy that runs `spec`; after an error there is none.
    pub(crate) fn start(&mut self, spec: &Spec<'_>) -> Result<i32, Reason> {
        let template = self.template.as_mut().expect("held until dropped");
        match template.copy(spec) {
            Ok(pid) => Ok(pid),
            Err(Failure::Request(reason)) => Err(reason),
            Err(Failure::Died) => {
                template.starts = u32::MAX;
                Err(Reason::TemplateDied)
            }
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let Some(mut template) = self.template.take() else { return };
        if template.starts >= self.pool.policy.starts_per_template {
            self.pool.retire(&self.program, template);
        } else {
            template.last_use = self.pool.clock.fetch_add(1, Ordering::Relaxed);
            self.program.give_back(template);
        }
    }
}

/// Why this request, whatever the program, is to be started cold.
fn refuses(spec: &Spec<'_>) -> Option<Reason> {
    if spec.keep_cold {
        return Some(Reason::OptOut);
    }
    let unfit = |limit: &crate::Limit| matches!(limit.resource, Resource::AddressSpace | Resource::Stack);
    if spec.limits.iter().any(unfit) || spec.limits.len() > 8 {
        return Some(Reason::Limits);
    }
    let fits = |fd: &i32| (3..wire::TARGET_MAX).contains(fd);
    if spec.extra_fds.len() + 3 > wire::FDS_MAX || !spec.extra_fds.iter().all(|(to, _)| fits(to)) {
        return Some(Reason::ManyDescriptors);
    }
    key::refuses(spec)
}
