//! Random sequences of all events in a pool: no claim is lost, and none is given twice.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hotstart_model::Status;
use proptest::prelude::*;

use super::fake::{MIB, Maker, Trial, policy, spec, start};
use crate::warm::layout::Layout;
use crate::warm::pool::wait::Waiting;
use crate::warm::pool::{ActiveRun, Lease};
use crate::warm::request::Failure;
use crate::warm::wire::Knowledge;
use crate::warm::worker::{Doubts, Ended};
use crate::warm::{Choice, Clones, OnDoubt, Policy};
use crate::{Reason, Spec, Usage};

const TOOLS: [&str; 3] = ["a", "b", "asks"];

/// One event. Its numbers choose among the existing processes.
#[derive(Clone, Debug)]
enum Event {
    Ask { tool: usize, key: u8, layout: usize, may_reset: bool },
    AskAgain(usize),
    Start(usize),
    GiveUp(usize),
    End(usize, Way),
    Fail(Fault),
    Pass(u64),
    FilesChange,
    Quarantine(usize),
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Well { at_point: bool, learned: u64 },
    Differs,
    Retired(u32),
    Doubtful,
    NotRun,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Died,
    NoWorker,
    Request,
    NoZygote(Reason),
}

fn event() -> impl Strategy<Value = Event> {
    let tool = 0..TOOLS.len();
    let way = prop_oneof![
        12 => (any::<bool>(), 0..4u64).prop_map(|(at_point, learned)| Way::Well { at_point, learned }),
        1 => Just(Way::Differs),
        2 => (0..9u32).prop_map(|bit| Way::Retired(1 << bit >> 1)),
        1 => Just(Way::Doubtful),
        1 => Just(Way::NotRun),
    ];
    let reason = prop_oneof![Just(Reason::FilesChanging), Just(Reason::Limits), Just(Reason::Script)];
    let fault = prop_oneof![
        4 => Just(Fault::Died),
        1 => Just(Fault::NoWorker),
        4 => Just(Fault::Request),
        4 => reason.prop_map(Fault::NoZygote),
    ];
    prop_oneof![
        20 => (tool.clone(), 0..3u8, 0..2usize, prop::bool::weighted(0.8))
            .prop_map(|(tool, key, layout, may_reset)| Event::Ask { tool, key, layout, may_reset }),
        10 => any::<usize>().prop_map(Event::AskAgain),
        20 => any::<usize>().prop_map(Event::Start),
        3 => any::<usize>().prop_map(Event::GiveUp),
        20 => (any::<usize>(), way).prop_map(|(which, way)| Event::End(which, way)),
        4 => fault.prop_map(Event::Fail),
        8 => (0..80u64).prop_map(Event::Pass),
        1 => Just(Event::FilesChange),
        1 => tool.prop_map(Event::Quarantine),
    ]
}

fn settings() -> impl Strategy<Value = Policy> {
    let choice = prop_oneof![Just(Choice::Eager), (0..3u32).prop_map(|after| Choice::Auto { after })];
    let limits = (1..4usize, 1..5usize, 1..5usize, prop_oneof![Just(1), Just(1000)]);
    let clones = prop_oneof![Just(Clones::None), Just(Clones::OfLearned), Just(Clones::Each)];
    (choice, limits, 0..12u64, 1..30u32, any::<bool>(), clones).prop_map(
        |(
            choice,
            (zygotes_per_tool, workers_per_tool, workers_at_once, jobs),
            memory,
            starts,
            repeats,
            clones,
        )| {
            Policy {
                choice,
                zygotes_per_tool,
                workers_per_tool,
                workers_at_once,
                jobs,
                clones,
                memory: memory * MIB,
                starts_per_zygote: starts,
                on_doubt: if repeats { OnDoubt::Repeat } else { OnDoubt::Stop },
                ..policy()
            }
        },
    )
}

/// All leases and processes that are held.
struct Run<'p> {
    trial: &'p Trial,
    now: Instant,
    waiting: Vec<(Spec<'static>, Layout, Waiting)>,
    leases: Vec<(Spec<'static>, Lease<'p, Maker>)>,
    active: Vec<(Spec<'static>, ActiveRun<'p, Maker>)>,
}

fn pick<T>(from: &mut Vec<T>, number: usize) -> Option<T> {
    (!from.is_empty()).then(|| from.swap_remove(number % from.len()))
}

impl Run<'_> {
    fn happen(&mut self, event: &Event) {
        match event {
            Event::Ask { tool, key, layout, may_reset } => {
                let spec = spec(TOOLS[*tool], *key, *may_reset);
                self.ask(spec, Layout::after(*layout), Waiting::default());
            }
            Event::AskAgain(number) => {
                if let Some((spec, layout, waiting)) = pick(&mut self.waiting, *number) {
                    self.ask(spec, layout, waiting);
                }
            }
            Event::Start(number) => {
                let Some((spec, lease)) = pick(&mut self.leases, *number) else { return };
                let started = start(lease, &spec);
                self.active.extend(started.ok().and_then(|started| started.run).map(|run| (spec, run)));
            }
            Event::GiveUp(number) => drop(pick(&mut self.leases, *number)),
            Event::End(number, way) => {
                if let Some((_, run)) = pick(&mut self.active, *number) {
                    run.finish(&ended(*way));
                }
            }
            Event::Fail(Fault::NoZygote(reason)) => {
                *self.trial.world.refuses.lock().unwrap() = Some(*reason);
            }
            Event::Fail(fault) => {
                *self.trial.world.fails.lock().unwrap() = Some(match fault {
                    Fault::NoWorker => Failure::NoWorker,
                    Fault::Request => Failure::Request(Reason::LargeRequest),
                    Fault::Died | Fault::NoZygote(_) => Failure::Died,
                });
            }
            Event::Pass(ms) => self.now += Duration::from_millis(*ms),
            Event::FilesChange => _ = self.trial.world.generation.fetch_add(1, Ordering::Relaxed),
            Event::Quarantine(tool) => self.trial.tool(&spec(TOOLS[*tool], 0, true)).quarantine(),
        }
    }

    fn ask(&mut self, spec: Spec<'static>, layout: Layout, mut waiting: Waiting) {
        match self.trial.try_lease_in(&spec, layout, &mut waiting, self.now) {
            Ok(Some(lease)) => self.leases.push((spec, lease)),
            Ok(None) => self.waiting.push((spec, layout, waiting)),
            Err(_) => {}
        }
    }

    /// Checks that each process is idle or held once, that each place has a process or a claim on one, and that none is above
    /// the limit.
    fn check(&self) -> Result<(), TestCaseError> {
        let policy = self.trial.pool.policy();
        let (mut zygotes, mut workers) = (0, 0);
        for name in TOOLS {
            let is_of = |spec: &Spec<'_>| spec.program.ends_with(name);
            let leases = self.leases.iter().filter(|(spec, _)| is_of(spec)).map(|(_, lease)| lease.holds());
            let held = leases.fold([0; 3], |sum, held| [0, 1, 2].map(|at| sum[at] + held[at]));
            let active = self.active.iter().filter(|(spec, run)| is_of(spec) && !run.is_once()).count();
            let [[places, idle], [worker_places, idle_workers]] =
                self.trial.tool(&spec(name, 0, true)).census();
            prop_assert_eq!(places, idle + held[0], "zygotes of {}", name);
            prop_assert_eq!(worker_places, idle_workers + held[1] + held[2] + active, "workers of {}", name);
            prop_assert!(places <= policy.zygotes_per_tool && worker_places <= policy.workers_per_tool);
            let stems = self.trial.tool(&spec(name, 0, true)).stems();
            prop_assert!(stems <= policy.zygotes_per_tool);
            zygotes += places;
            workers += worker_places - held[2] + stems;
        }
        prop_assert_eq!(self.trial.alive(), [zygotes as i64, workers as i64]);
        let once = self.active.iter().filter(|(_, run)| run.is_once()).count();
        prop_assert_eq!(self.trial.world.forks.load(Ordering::Relaxed), once as i64);
        Ok(())
    }

    /// Ends the run. Once nobody holds anything, only idle processes within the budget are left; and then none is left.
    fn end(mut self) -> Result<(), TestCaseError> {
        self.waiting.clear();
        self.leases.clear();
        self.active
            .drain(..)
            .for_each(|(_, run)| run.finish(&ended(Way::Well { at_point: false, learned: 0 })));
        self.check()?;
        prop_assert!(self.trial.pool.budget.used() <= self.trial.pool.policy().memory);
        TOOLS.iter().for_each(|name| self.trial.tool(&spec(name, 0, true)).quarantine());
        self.check()?;
        prop_assert_eq!(self.trial.alive(), [0, 0]);
        prop_assert_eq!(self.trial.pool.budget.used(), 0);
        prop_assert_eq!(Arc::strong_count(&self.trial.tool(&spec("a", 0, true))), 2);
        Ok(())
    }
}

fn ended(way: Way) -> Ended {
    let reset = |differs, at_point, learned| Ended::Reset {
        status: Status::Exited(0),
        usage: Usage::default(),
        differs,
        at_point,
        children: 0,
        is_spoiled: false,
        knows: Knowledge { learned, ..Knowledge::default() },
        has_shown: false,
    };
    match way {
        Way::Well { at_point, learned } => reset(0, at_point, learned),
        Way::Differs => reset(1, false, 0),
        Way::Retired(retired) => Ended::Process { retired, doubts: Doubts::new(0) },
        Way::Doubtful => Ended::Process { retired: 1 << 7, doubts: Doubts::new(1) },
        Way::NotRun => Ended::NotRun,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_claim_is_lost_or_doubled(policy in settings(), events in prop::collection::vec(event(), 1..48)) {
        let trial = Trial::new(policy);
        let mut run = Run { trial: &trial, now: Instant::now(), waiting: vec![], leases: vec![], active: vec![] };
        for event in &events {
            run.happen(event);
            run.check()?;
        }
        run.end()?;
    }
}
