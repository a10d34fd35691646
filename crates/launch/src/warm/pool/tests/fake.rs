//! A pool whose processes are counters, and the start of one tool under one key.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use crate::slots::{Slot, Slots};
use crate::warm::ahead::Made;
use crate::warm::eligible::Traits;
use crate::warm::layout::Layout;
use crate::warm::observe::{Observed, Refusal, Tally};
use crate::warm::pool::decide::Start;
use crate::warm::pool::wait::Waiting;
use crate::warm::pool::{Findings, Lease, Make, Pool, Process, Started, Tool, Worker, Zygote};
use crate::warm::request::Failure;
use crate::warm::worker::How;
use crate::warm::{Choice, Clones, OnDoubt, Policy};
use crate::{EnvBlock, ProcessGroup, Reason, Spec};

/// Memory of each process.
pub(super) const MIB: u64 = 1 << 20;

/// The state that all fake processes share.
#[derive(Debug, Default)]
pub(super) struct World {
    /// Processes that exist.
    pub zygotes: AtomicI64,
    pub workers: AtomicI64,
    /// Processes that exist for one run.
    pub forks: AtomicI64,
    /// The current generation. Processes of an earlier one are outdated.
    pub generation: AtomicU64,
    /// The failure of the next attempt to make a zygote, and of the next request.
    pub refuses: Mutex<Option<Reason>>,
    pub fails: Mutex<Option<Failure>>,
    /// CPU time of every process for everything.
    pub spends: Mutex<Duration>,
    /// Whether the program was observed before, and the starts of earlier runs if it was not.
    pub is_known: AtomicBool,
    pub tally: Mutex<Tally>,
    /// Number of zygotes made.
    pub made: AtomicU64,
    /// Number of clones made, stems among them.
    pub cloned: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Maker(pub Arc<World>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Zygote,
    Worker,
    Fork,
}

/// A process of any kind.
#[derive(Debug)]
pub(super) struct Fake {
    world: Arc<World>,
    kind: Kind,
    names: Vec<Vec<u8>>,
    generation: u64,
    starts: Arc<AtomicU32>,
    is_dead: bool,
}

impl Fake {
    fn new(world: &Arc<World>, kind: Kind, names: Vec<Vec<u8>>, of: Option<&Fake>) -> Fake {
        let fake = Fake {
            world: Arc::clone(world),
            kind,
            names,
            generation: world.generation.load(Ordering::Relaxed),
            starts: of.map(|of| Arc::clone(&of.starts)).unwrap_or_default(),
            is_dead: false,
        };
        fake.count().fetch_add(1, Ordering::Relaxed);
        fake
    }

    fn count(&self) -> &AtomicI64 {
        match self.kind {
            Kind::Zygote => &self.world.zygotes,
            Kind::Worker => &self.world.workers,
            Kind::Fork => &self.world.forks,
        }
    }

    fn ask(&mut self) -> Result<(), Failure> {
        let failure = self.world.fails.lock().unwrap().take();
        self.is_dead |= matches!(failure, Some(Failure::Died));
        self.starts.fetch_add(1, Ordering::Relaxed);
        failure.map_or(Ok(()), Err)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.count().fetch_sub(1, Ordering::Relaxed);
    }
}

impl Process for Fake {
    fn is_current(&self) -> bool {
        self.generation == self.world.generation.load(Ordering::Relaxed)
    }

    fn is_worn(&self, starts: u32) -> bool {
        self.is_dead || self.starts.load(Ordering::Relaxed) >= starts
    }

    fn is_shadowed(&self, _: &Path) -> bool {
        false
    }

    fn mapped(&self) -> u64 {
        MIB
    }

    fn spent(&mut self) -> Duration {
        *self.world.spends.lock().unwrap()
    }
}

impl Zygote for Fake {
    type Worker = Fake;

    fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    fn program_exe(&self) -> &[u8] {
        &[]
    }

    fn start_time(&self) -> Duration {
        Duration::from_millis(20)
    }

    fn fork(&mut self, _: &Spec<'_>, _: Slot<'_>, _: bool) -> Result<i32, Failure> {
        self.ask().map(|()| 1)
    }

    fn once(&mut self, _: &Spec<'_>, _: Slot<'_>, _: bool) -> Result<Fake, Failure> {
        self.ask().map(|()| Fake::new(&self.world, Kind::Fork, Vec::new(), Some(self)))
    }

    fn worker(&mut self, _: &Spec<'_>, _: Slot<'_>, _: bool) -> Result<Fake, Failure> {
        self.ask().map(|()| Fake::new(&self.world, Kind::Worker, Vec::new(), Some(self)))
    }
}

impl Worker for Fake {
    fn pid(&self) -> i32 {
        1
    }

    fn wear_out(&mut self) {
        self.starts.store(u32::MAX / 2, Ordering::Relaxed);
    }

    fn settle(&mut self) {}

    fn start(&mut self, _: &Spec<'_>, _: How) -> Result<(), Failure> {
        self.ask()
    }

    fn private(&self) -> Option<u64> {
        Some(MIB)
    }

    fn clone_process(&mut self) -> Result<Fake, Failure> {
        let failure = self.world.fails.lock().unwrap().take();
        self.is_dead |= matches!(failure, Some(Failure::Died));
        self.world.cloned.fetch_add(u64::from(failure.is_none()), Ordering::Relaxed);
        failure.map_or_else(|| Ok(Fake::new(&self.world, Kind::Worker, Vec::new(), Some(self))), Err)
    }
}

impl Make for Maker {
    type Zygote = Fake;
    type Worker = Fake;

    fn made_ahead(&self, _: &Path) -> Option<Made<Fake>> {
        None
    }

    fn time_of_observations(&self) -> Duration {
        Duration::ZERO
    }

    fn is_known(&self, _: &Spec<'_>, _: Option<&Path>) -> bool {
        self.0.is_known.load(Ordering::Relaxed)
    }

    fn tally(&self, _: &Path, _: Option<&Path>) -> Tally {
        *self.0.tally.lock().unwrap()
    }

    fn count(&self, _: &Path, _: Option<&Path>, spent: Option<Duration>) {
        let mut tally = self.0.tally.lock().unwrap();
        match spent {
            Some(spent) => tally.add(spent),
            None => *tally = Tally::default(),
        }
    }

    fn observe(&self, _: &Spec<'_>, _: Option<&Path>) -> Result<Findings, Reason> {
        match self.0.refuses.lock().unwrap().take() {
            Some(reason) => Err(reason),
            None => Ok(Findings {
                traits: Traits::default(),
                observed: Arc::new(Observed::nothing()),
                is_new: false,
            }),
        }
    }

    fn extend(&self, _: &Observed, _: &[usize], _: &Spec<'_>, _: Option<&Path>) -> Result<(), Refusal> {
        unreachable!("all numbers are observed")
    }

    fn zygote(&self, spec: &Spec<'_>, _: Option<&Path>, _: &Findings) -> Result<Fake, Reason> {
        self.0.made.fetch_add(1, Ordering::Relaxed);
        // One of the tools asks for a variable.
        let asks = spec.program.ends_with("asks");
        Ok(Fake::new(&self.0, Kind::Zygote, asks.then(|| b"MODE".to_vec()).into_iter().collect(), None))
    }
}

/// A pool, and the counts of its processes.
pub(super) struct Trial {
    pub pool: Pool<Maker>,
    pub world: Arc<World>,
}

impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.world.fmt(f)
    }
}

/// Everything is warm at once, and nothing is crowded.
pub(super) fn policy() -> Policy {
    Policy {
        choice: Choice::Auto { after: 0 },
        memory: 1000 * MIB,
        zygotes_per_tool: 2,
        workers_per_tool: 3,
        workers_at_once: 3,
        jobs: 1,
        audit_one_in: 0,
        on_doubt: OnDoubt::Repeat,
        clones: Clones::OfLearned,
        ..Policy::default()
    }
}

impl Trial {
    pub(super) fn new(policy: Policy) -> Trial {
        let world = Arc::<World>::default();
        Trial { pool: Pool::new(policy, Maker(Arc::clone(&world))), world }
    }

    pub(super) fn tool(&self, spec: &Spec<'_>) -> Arc<Tool<Maker>> {
        self.pool.tool(&spec.program, None)
    }

    /// Like [`Pool::lease`], but returns `None` where that would wait.
    pub(super) fn try_lease(
        &self,
        spec: &Spec<'_>,
        waiting: &mut Waiting,
        now: Instant,
    ) -> Result<Option<Lease<'_, Maker>>, Reason> {
        self.try_lease_in(spec, Layout::default(), waiting, now)
    }

    /// The same, for this layout.
    pub(super) fn try_lease_in(
        &self,
        spec: &Spec<'_>,
        layout: Layout,
        waiting: &mut Waiting,
        now: Instant,
    ) -> Result<Option<Lease<'_, Maker>>, Reason> {
        let (tool, policy) = (self.tool(spec), self.pool.policy());
        while let Some(plan) = tool.try_plan(
            Start {
                spec,
                layout,
                policy,
                exe: &[],
                here: 0,
                now,
                looks: false,
                busy: |_| false,
                learning: |_| true,
            },
            waiting,
        )? {
            if let Some(lease) = self.pool.carry_out(&tool, spec, layout, plan)? {
                return Ok(Some(lease));
            }
        }
        Ok(None)
    }

    /// Leases a process without a wait.
    pub(super) fn lease(&self, spec: &Spec<'_>) -> Result<Lease<'_, Maker>, Reason> {
        self.lease_in(spec, Layout::default())
    }

    /// Leases a process of this layout without a wait.
    pub(super) fn lease_in(&self, spec: &Spec<'_>, layout: Layout) -> Result<Lease<'_, Maker>, Reason> {
        Ok(self
            .try_lease_in(spec, layout, &mut Waiting::default(), Instant::now())?
            .expect("without waiting"))
    }

    /// Starts `spec` without a wait.
    pub(super) fn start(&self, spec: &Spec<'_>) -> Result<Started<'_, Maker>, Reason> {
        start(self.lease(spec)?, spec)
    }

    /// Returns the numbers of existing processes.
    pub(super) fn alive(&self) -> [i64; 2] {
        [&self.world.zygotes, &self.world.workers].map(|count| count.load(Ordering::Relaxed))
    }
}

/// Has the process of `lease` run `spec`.
pub(super) fn start<'p>(lease: Lease<'p, Maker>, spec: &Spec<'_>) -> Result<Started<'p, Maker>, Reason> {
    static SLOTS: LazyLock<Slots> = LazyLock::new(|| Slots::new().expect("a table"));
    let slot = SLOTS.take();
    let started = lease.start(spec, slot, true);
    slot.into_iter().for_each(Slot::free);
    started
}

/// Returns a start of a tool under the name `key`, in a persistent process if it `may_reset`.
pub(super) fn spec(tool: &str, key: u8, may_reset: bool) -> Spec<'static> {
    static NULL: LazyLock<File> = LazyLock::new(|| File::open("/dev/null").expect("a null device"));
    let env = EnvBlock::new(&hotstart_model::Environment::new());
    let program = PathBuf::from(format!("/tools/{tool}"));
    let mut spec = Spec::plain(&program, format!("name-{key}").into(), env, &*NULL);
    spec.process_group = if may_reset { ProcessGroup::New } else { ProcessGroup::Inherit };
    spec
}
