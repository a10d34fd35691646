//! Makes the pool's real processes, of programs that the runtime can stop.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::ahead::{Ahead, Made};
use super::eligible::Traits;
use super::observe::{self, Observed, Refusal, Tally, numbers};
use super::pool::{self, Findings};
use super::request::Failure;
use super::script::Script;
use super::search::Search;
use super::worker::{How, Worker};
use super::zygote::{Means, Zygote};
use super::{Policy, Runtime, eligible, try_runtime};
use crate::slots::{Slot, Slots};
use crate::{Reason, Spec};

/// How long a first start waits for a zygote that the prefork has begun: a cold start would take as long as the rest of that
/// does, unless the tool does not get to `main`.
const AHEAD_WAIT: Duration = Duration::from_millis(500);

/// The inputs for making processes.
#[derive(Debug)]
pub(crate) struct Maker {
    pub policy: Policy,
    /// The table in which processes are entered; without it there are none.
    pub slots: Option<Arc<Slots>>,
    /// The runtime. With a policy for nested starts, nobody has tried it before.
    pub runtime: Arc<Runtime>,
    pub ahead: Option<Arc<Ahead>>,
}

impl Maker {
    fn means<'a>(&'a self, allocator: Option<&'a Path>) -> Option<Means<'a>> {
        let slots = self.slots.as_deref()?;
        let runtime = try_runtime(&self.runtime, self.policy.nested.as_ref(), slots)?;
        let kept = self.policy.cache.as_deref();
        Some(Means { runtime, slots, allocator, kept, python: None, is_over: None })
    }

    fn traits(&self, spec: &Spec<'_>) -> Result<Traits, Reason> {
        let script = Script::of(spec, &self.policy).and_then(|script| eligible::examine_python(script).ok());
        script.map_or_else(|| eligible::examine(&spec.program), Ok)
    }
}

impl pool::Make for Maker {
    type Zygote = Zygote;
    type Worker = Worker;

    fn made_ahead(&self, program: &Path) -> Option<Made<Zygote>> {
        self.ahead.as_ref()?.take(program, AHEAD_WAIT)
    }

    fn time_of_observations(&self) -> Duration {
        observe::spent()
    }

    fn is_known(&self, spec: &Spec<'_>, allocator: Option<&Path>) -> bool {
        let (Some(means), Ok(traits)) = (self.means(allocator), self.traits(spec)) else {
            return true;
        };
        observe::is_known(spec, Means { python: traits.python.as_ref(), ..means })
    }

    fn tally(&self, program: &Path, allocator: Option<&Path>) -> Tally {
        self.policy.cache.as_deref().map(|kept| observe::tally(program, allocator, kept)).unwrap_or_default()
    }

    fn count(&self, program: &Path, allocator: Option<&Path>, spent: Option<Duration>) {
        if let Some(kept) = &self.policy.cache {
            observe::count(program, allocator, kept, spent);
        }
    }

    fn observe(&self, spec: &Spec<'_>, allocator: Option<&Path>) -> Result<Findings, Reason> {
        // Each time, since the program may have been replaced by one that would run past the runtime.
        let traits = self.traits(spec)?;
        if traits.python.is_some() && self.policy.refuses_seed(spec) {
            return Err(Reason::HashSeed);
        }
        let means = self.means(allocator).ok_or(Reason::System)?;
        let means = Means { python: traits.python.as_ref(), ..means };
        if means.python.is_some() && !Search::of(&spec.env).relative().is_empty() {
            return Err(Reason::LibraryPath);
        }
        let (observed, is_new) = observe::observe(spec, &numbers::needed(spec), means);
        Ok(Findings { traits, observed, is_new })
    }

    fn extend(
        &self,
        observed: &Observed,
        numbers: &[usize],
        spec: &Spec<'_>,
        allocator: Option<&Path>,
    ) -> Result<(), Refusal> {
        let none = || Refusal { reason: Reason::System, detail: String::new() };
        let means = self.means(allocator).ok_or_else(none)?;
        observe::extend(observed, numbers, spec, means)
    }

    fn zygote(
        &self,
        spec: &Spec<'_>,
        allocator: Option<&Path>,
        findings: &Findings,
    ) -> Result<Zygote, Reason> {
        let means = self.means(allocator).ok_or(Reason::System)?;
        let mut zygote = Zygote::start(spec, &findings.traits, means, Some(&findings.observed))?;
        zygote.enlarge_after = self.policy.enlarge_after;
        Ok(zygote)
    }
}

impl pool::Process for Zygote {
    fn spent(&mut self) -> Duration {
        Zygote::spent(self)
    }

    fn is_current(&self) -> bool {
        Zygote::is_current(self)
    }

    fn is_worn(&self, starts: u32) -> bool {
        Zygote::is_worn(self, starts)
    }

    fn is_shadowed(&self, cwd: &Path) -> bool {
        Zygote::is_shadowed(self, cwd)
    }

    fn mapped(&self) -> u64 {
        pool::memory::mapped(self.pid())
    }
}

impl pool::Zygote for Zygote {
    type Worker = Worker;

    fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    fn program_exe(&self) -> &[u8] {
        &self.program_exe
    }

    fn start_time(&self) -> Duration {
        self.start_time
    }

    fn fork(&mut self, spec: &Spec<'_>, slot: Slot<'_>, near: bool) -> Result<i32, Failure> {
        self.near = near;
        self.copy(spec, slot)
    }

    fn once(&mut self, spec: &Spec<'_>, slot: Slot<'_>, near: bool) -> Result<Worker, Failure> {
        self.near = near;
        Zygote::worker(self, spec, slot, true)
    }

    fn worker(&mut self, spec: &Spec<'_>, slot: Slot<'_>, near: bool) -> Result<Worker, Failure> {
        self.near = near;
        Zygote::worker(self, spec, slot, false)
    }
}

impl pool::Process for Worker {
    fn spent(&mut self) -> Duration {
        Worker::spent(self)
    }

    fn is_current(&self) -> bool {
        Worker::is_current(self)
    }

    fn is_worn(&self, starts: u32) -> bool {
        self.starts() >= starts
    }

    fn is_shadowed(&self, cwd: &Path) -> bool {
        Worker::is_shadowed(self, cwd)
    }

    fn mapped(&self) -> u64 {
        pool::memory::mapped(self.pid())
    }
}

impl pool::Worker for Worker {
    fn pid(&self) -> i32 {
        Worker::pid(self)
    }

    fn wear_out(&mut self) {
        Worker::wear_out(self);
    }

    fn start(&mut self, spec: &Spec<'_>, how: How) -> Result<(), Failure> {
        Worker::start(self, spec, how)
    }

    fn settle(&mut self) {
        Worker::settle(self);
    }

    fn private(&self) -> Option<u64> {
        pool::memory::private(Worker::pid(self))
    }

    fn clone_process(&mut self) -> Result<Worker, Failure> {
        Worker::clone_process(self)
    }
}
