//! The pool's decisions, with processes that are counters.

mod fake;
mod random;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hotstart_model::Status;

use super::wait::Waiting;
use crate::warm::layout::Layout;
use crate::warm::observe::Tally;
use crate::warm::request::Failure;
use crate::warm::wire::Knowledge;
use crate::warm::worker::{Doubts, Ended};
use crate::warm::{Choice, OnDoubt, Policy, Retirement, Stopped, ToolStatistics};
use crate::{Reason, Usage, Via};
use fake::{MIB, Trial, policy, spec};

fn reset(differs: u32) -> Ended {
    learned(differs, 0)
}

/// Returns the end of a run whose process has deferred snapshots for these numbers of arguments.
fn learned(differs: u32, learned: u64) -> Ended {
    knowing(differs, Knowledge { learned, ..Knowledge::default() })
}

fn knowing(differs: u32, knows: Knowledge) -> Ended {
    Ended::Reset {
        status: Status::Exited(0),
        usage: Usage::default(),
        differs,
        at_point: false,
        children: 0,
        is_spoiled: false,
        knows,
        has_shown: false,
    }
}

fn statistics(trial: &Trial) -> ToolStatistics {
    trial.pool.statistics().tools.remove(0)
}

/// Starts the tool, and ends a run in a persistent process well at once. Returns how it was started.
fn run(trial: &Trial, tool: &str, key: u8) -> Via {
    let started = match trial.start(&spec(tool, key, true)) {
        Ok(started) => started,
        Err(reason) => return Via::Cold(reason),
    };
    started.run.into_iter().for_each(|run| run.finish(&reset(0)));
    started.via
}

#[test]
fn a_persistent_process_is_used_again_and_again() {
    let trial = Trial::new(policy());
    let vias: Vec<Via> = (0..4).map(|_| run(&trial, "a", 0)).collect();
    assert_eq!(vias, [Via::Fork, Via::Reset, Via::Reset, Via::Reset]);
    assert_eq!(trial.alive(), [1, 1]);
    let statistics = statistics(&trial);
    assert_eq!((statistics.zygotes, statistics.audits), (1, 3));
}

#[test]
fn another_layout_is_that_of_another_zygote() {
    let trial = Trial::new(Policy { zygotes_per_tool: 2, ..policy() });
    let spec = spec("a", 0, true);
    let run = |layout| {
        let started = fake::start(trial.lease_in(&spec, layout).unwrap(), &spec).unwrap();
        started.run.unwrap().finish(&reset(0));
        started.via
    };
    let vias = [0, 1, 2, 3].map(|starts| run(Layout::after(starts)));
    assert_eq!(vias, [Via::Fork, Via::Fork, Via::Reset, Via::Reset]);
    assert_eq!((trial.alive(), statistics(&trial).zygotes), ([2, 2], 2));
}

#[test]
fn runs_at_a_time_have_a_process_each_up_to_the_limit() {
    let trial = Trial::new(policy());
    let started: Vec<_> = (0..5).map(|_| trial.start(&spec("a", 0, true)).unwrap()).collect();
    let are_once = started.iter().map(|started| started.run.as_ref().unwrap().is_once());
    assert_eq!(are_once.collect::<Vec<_>>(), [false, false, false, true, true]);
    assert_eq!((trial.alive(), statistics(&trial).not_grown_for_room), ([1, 3], 2));
    started.into_iter().flat_map(|started| started.run).for_each(|run| run.finish(&reset(0)));
    assert_eq!((run(&trial, "a", 0), trial.alive()), (Via::Reset, [1, 3]));
}

/// Starts have one argument, which is bit 1.
const KNOWS: u64 = 0b10;

#[test]
fn once_a_process_has_learned_the_others_are_clones() {
    let trial = Trial::new(policy());
    let spec = spec("a", 0, true);
    let begin = || trial.start(&spec).unwrap();
    let [one, other] = [(); 2].map(|()| begin().run.unwrap());
    one.finish(&learned(0, KNOWS));
    assert_eq!((trial.alive(), statistics(&trial).clones), ([1, 3], 0), "with the stem");
    other.finish(&reset(0));
    let known = begin();
    assert_eq!(
        (trial.alive(), statistics(&trial).clones),
        ([1, 3], 0),
        "the one that has learned goes first"
    );
    let [instead, further] = [(); 2].map(|()| begin());
    assert_eq!((trial.alive(), statistics(&trial).clones), ([1, 4], 2), "one in the place of another");
    assert_eq!([known.via, instead.via, further.via], [Via::Reset; 3]);
    assert_eq!(trial.start(&spec).unwrap().via, Via::Fork, "no more than allowed");
    [known, instead, further].into_iter().for_each(|s| s.run.unwrap().finish(&learned(0, KNOWS)));
    trial.tool(&spec).quarantine();
    assert_eq!(trial.alive(), [0, 0]);
}

/// It is as new only for the run that it was made for.
#[test]
fn a_clone_that_its_start_did_not_use_ends() {
    let trial = Trial::new(policy());
    let mut spec = spec("a", 0, true);
    trial.start(&spec).unwrap().run.unwrap().finish(&learned(0, KNOWS));
    let _known = trial.start(&spec).unwrap();
    spec.cwd = std::path::Path::new("/nowhere").into();
    assert!(trial.start(&spec).is_err());
    assert_eq!((trial.alive(), statistics(&trial).clones), ([1, 2], 1), "the one in use, and the stem");
}

#[test]
fn a_clone_that_is_unlike_ends_all_clones() {
    let trial = Trial::new(policy());
    let spec = spec("a", 0, true);
    let begin = || trial.start(&spec).unwrap().run.unwrap();
    let [one, other] = [(); 2].map(|()| begin());
    one.finish(&learned(0, KNOWS));
    let cloned = || trial.world.cloned.load(Ordering::Relaxed);
    let stems = cloned();
    // One that knows as much makes no other stem.
    other.finish(&learned(0, KNOWS));
    let runs = [(); 3].map(|()| begin());
    assert_eq!((cloned(), statistics(&trial).clones), (stems + 1, 1));
    let [one, other, third] = runs;
    one.finish(&knowing(0, Knowledge { is_unlike: true, ..Knowledge::default() }));
    assert_eq!(trial.alive(), [1, 3], "without the stem");
    [other, third].into_iter().for_each(|run| run.finish(&learned(0, KNOWS)));
    assert_eq!((trial.alive(), cloned()), ([1, 3], stems + 1), "no further one");
}

#[test]
fn a_layout_in_which_nothing_can_be_learned_is_given_up_but_not_for_ever() {
    let trial = Trial::new(policy());
    let spec = spec("a", 0, true);
    let in_the_way = |learned| knowing(0, Knowledge { learned, is_in_the_way: true, ..Knowledge::default() });
    for expected in [[1, 0], [1, 0], [1, 1]] {
        trial.start(&spec).unwrap().run.unwrap().finish(&in_the_way(0));
        assert_eq!(trial.alive(), expected);
    }
    assert_eq!(statistics(&trial).zygotes, 3);
}

#[test]
fn a_layout_in_which_something_was_learned_is_kept() {
    let trial = Trial::new(policy());
    let spec = spec("a", 0, true);
    let knows = Knowledge { learned: KNOWS, is_in_the_way: true, ..Knowledge::default() };
    (0..3).for_each(|_| trial.start(&spec).unwrap().run.unwrap().finish(&knowing(0, knows)));
    assert_eq!(statistics(&trial).zygotes, 1);
}

/// A stem of one test's environment would otherwise have its clones replaced after each second run.
#[test]
fn a_clone_that_is_outdated_ends_the_stem_and_becomes_another() {
    let trial = Trial::new(policy());
    let spec = spec("a", 0, true);
    let begin = || trial.start(&spec).unwrap().run.unwrap();
    let [one, other] = [(); 2].map(|()| begin());
    one.finish(&learned(0, KNOWS));
    let stems = trial.world.cloned.load(Ordering::Relaxed);
    other.finish(&learned(0, KNOWS));
    let runs = [(); 3].map(|()| begin());
    let cloned = || trial.world.cloned.load(Ordering::Relaxed) - stems;
    assert_eq!(cloned(), 1, "a third process");
    let [one, other, third] = runs;
    third.finish(&knowing(0, Knowledge { is_outdated: true, ..Knowledge::default() }));
    assert_eq!(trial.alive(), [1, 3], "without the stem");
    let third = begin();
    assert_eq!(cloned(), 1, "it is not replaced");
    third.finish(&learned(0, KNOWS));
    assert_eq!((trial.alive(), cloned()), ([1, 4], 2), "it has a stem now");
    [one, other].into_iter().for_each(|run| run.finish(&learned(0, KNOWS)));
}

#[test]
fn a_stem_makes_no_clone_when_files_have_changed_or_its_memory_is_worn() {
    let trial = Trial::new(Policy { starts_per_zygote: 5, ..policy() });
    let spec = spec("a", 0, true);
    trial.start(&spec).unwrap().run.unwrap().finish(&learned(0, KNOWS));
    trial.world.generation.fetch_add(1, Ordering::Relaxed);
    let run = trial.start(&spec).unwrap();
    assert_eq!((run.via, statistics(&trial).zygotes, trial.alive()), (Via::Fork, 2, [1, 1]));
    run.run.unwrap().finish(&learned(0, KNOWS));
    let [first, second] = [(); 2].map(|()| trial.start(&spec).unwrap());
    assert_eq!((first.via, second.via, trial.alive()), (Via::Reset, Via::Reset, [1, 3]));
    *trial.world.fails.lock().unwrap() = Some(Failure::Died);
    assert_eq!(trial.start(&spec).unwrap().via, Via::Fork, "the stem has died");
    assert_eq!(trial.alive(), [1, 2]);
}

#[test]
fn where_many_run_at_a_time_one_learns_first() {
    let trial = Trial::new(Policy { workers_at_once: 8, workers_per_tool: 16, ..policy() });
    let (spec, begun) = (spec("a", 0, true), Instant::now());
    let after = |ms| begun + Duration::from_millis(ms);
    let first = trial.start(&spec).unwrap().run.unwrap();
    let [mut one, mut other] = [Waiting::default(), Waiting::default()];
    assert!(trial.try_lease(&spec, &mut one, begun).unwrap().is_none());
    assert!(trial.try_lease(&spec, &mut other, after(1400)).unwrap().is_none());
    assert_eq!(
        trial.try_lease(&spec, &mut one, after(1600)).unwrap().unwrap().holds(),
        [1, 0, 1],
        "no longer"
    );
    first.finish(&learned(0, KNOWS));
    let leases = [(); 3].map(|()| trial.lease(&spec).unwrap());
    assert_eq!(leases.each_ref().map(|lease| lease.holds()), [[0, 1, 0]; 3]);
    assert_eq!(statistics(&trial).clones, 2);
}

#[test]
fn in_a_crowd_a_start_waits_while_processes_come_back() {
    let processors = Policy::default().jobs;
    let trial = Trial::new(Policy { workers_at_once: 1, jobs: 4 * processors, ..policy() });
    let (spec, begun) = (spec("a", 0, true), Instant::now());
    let after = |ms| begun + Duration::from_millis(ms);
    let first = trial.start(&spec).unwrap();
    let mut waiting = Waiting::default();
    assert!(trial.try_lease(&spec, &mut waiting, begun).unwrap().is_none());
    let mut later = Waiting::default();
    first.run.unwrap().finish(&reset(0));
    assert!(trial.try_lease(&spec, &mut later, after(1)).unwrap().is_none(), "not before its turn");
    let lease = trial.try_lease(&spec, &mut waiting, after(2)).unwrap().unwrap();
    assert_eq!(lease.holds(), [0, 1, 0]);
    assert!(trial.try_lease(&spec, &mut later, after(30)).unwrap().is_none());
    // The processes in use were not busy at two checks.
    assert!(trial.try_lease(&spec, &mut later, after(60)).unwrap().is_none());
    let lease = trial.try_lease(&spec, &mut later, after(80)).unwrap().unwrap();
    assert_eq!(lease.holds(), [1, 0, 1]);
}

#[test]
fn one_lost_start_costs_one_process() {
    let trial = Trial::new(policy());
    run(&trial, "a", 0);
    *trial.world.fails.lock().unwrap() = Some(Failure::Died);
    assert_eq!(run(&trial, "a", 0), Via::Cold(Reason::ZygoteDied));
    assert_eq!(trial.alive(), [1, 0]);
    *trial.world.fails.lock().unwrap() = Some(Failure::Died);
    assert_eq!(run(&trial, "a", 0), Via::Cold(Reason::ZygoteDied));
    assert_eq!(trial.alive(), [0, 0]);
    assert_eq!(run(&trial, "a", 0), Via::Fork);
}

#[test]
fn a_tool_of_which_no_persistent_process_can_be_made_is_forked() {
    let trial = Trial::new(policy());
    *trial.world.fails.lock().unwrap() = Some(Failure::NoWorker);
    assert_eq!([run(&trial, "a", 0), run(&trial, "a", 0)], [Via::Fork; 2]);
    assert_eq!((trial.alive(), statistics(&trial).only_forked), ([1, 0], Some(Stopped::Impossible)));
}

#[test]
fn a_difference_or_calls_that_nobody_repeats_end_persistent_processes() {
    let trial = Trial::new(policy());
    let [one, other] = [(); 2].map(|()| trial.start(&spec("a", 0, true)).unwrap().run.unwrap());
    one.finish(&reset(1));
    other.finish(&reset(0));
    assert_eq!((run(&trial, "a", 0), trial.alive()), (Via::Fork, [1, 0]));
    assert_eq!(statistics(&trial).only_forked, Some(Stopped::Differs("memory".to_owned())));
    let trial = Trial::new(Policy { on_doubt: OnDoubt::Stop, ..policy() });
    let run = trial.start(&spec("a", 0, true)).unwrap().run.unwrap();
    run.finish(&Ended::Process { retired: 1 << 7, doubts: Doubts::new(1) });
    assert_eq!(self::run(&trial, "a", 0), Via::Cold(Reason::Doubtful));
}

#[test]
fn a_tool_whose_forks_are_doubtful_is_cold_for_a_while() {
    let trial = Trial::new(policy());
    let retired = |retired, doubts| Ended::Process { retired, doubts: Doubts::new(doubts) };
    for _ in 0..2 {
        trial.start(&spec("a", 0, true)).unwrap().run.unwrap().finish(&retired(1, 0));
    }
    assert_eq!(statistics(&trial).only_forked, Some(Stopped::Retires(Retirement::Threads)));
    for _ in 0..2 {
        let fork = trial.start(&spec("a", 0, true)).unwrap();
        assert_eq!((fork.via, fork.run.as_ref().unwrap().is_once()), (Via::Fork, true));
        fork.run.unwrap().finish(&retired(0, 1));
    }
    let vias: Vec<Via> = (0..17).map(|_| run(&trial, "a", 0)).collect();
    assert_eq!(vias[..16], [Via::Cold(Reason::Doubtful); 16]);
    assert_eq!((vias[16], trial.alive()), (Via::Fork, [1, 0]), "its zygote has waited");
}

#[test]
fn outdated_and_worn_processes_are_replaced() {
    let trial = Trial::new(Policy { starts_per_zygote: 4, ..policy() });
    run(&trial, "a", 0);
    trial.world.generation.fetch_add(1, Ordering::Relaxed);
    let vias: Vec<Via> = (0..6).map(|_| run(&trial, "a", 0)).collect();
    assert_eq!(vias[..2], [Via::Fork, Via::Reset]);
    assert_eq!(vias[4], Via::Fork, "four starts for each zygote");
    assert_eq!((trial.alive(), trial.world.made.load(Ordering::Relaxed)), ([1, 1], 3));
}

#[test]
fn a_tool_that_cannot_have_a_zygote_is_cold_for_ever_unless_it_was_the_request() {
    let trial = Trial::new(policy());
    *trial.world.refuses.lock().unwrap() = Some(Reason::Limits);
    assert_eq!([run(&trial, "a", 0), run(&trial, "a", 0)], [Via::Cold(Reason::Limits), Via::Fork]);
    *trial.world.refuses.lock().unwrap() = Some(Reason::Script);
    assert_eq!([run(&trial, "b", 0), run(&trial, "b", 0)], [Via::Cold(Reason::Script); 2]);
}

#[test]
fn starts_of_this_and_earlier_runs_pay_for_an_observation() {
    let trial = Trial::new(Policy { observe_after: Duration::from_millis(20), ..policy() });
    let start = |key| {
        let via = run(&trial, "a", key);
        let tool = trial.tool(&spec("a", key, true));
        if via == Via::Cold(Reason::Unobserved) {
            trial.pool.ran_unobserved(&tool, Duration::from_millis(1));
        }
        via
    };
    (0..5).for_each(|_| trial.world.tally.lock().unwrap().add(Duration::from_millis(1)));
    let cold = (0..15).filter(|_| start(0) == Via::Cold(Reason::Unobserved)).count();
    assert_eq!((cold, start(0), start(0)), (15, Via::Fork, Via::Reset));
    assert_eq!(*trial.world.tally.lock().unwrap(), Tally::default());
    // Under another key it must be observed again.
    assert_eq!(start(1), Via::Cold(Reason::Unobserved));
    trial.world.is_known.store(true, Ordering::Relaxed);
    assert_eq!(start(1), Via::Fork);
    let many = Policy { observe_after: Duration::from_millis(20), choice: Choice::Eager, ..policy() };
    let many = Trial::new(many);
    assert_eq!(run(&many, "a", 0), Via::Cold(Reason::Unobserved));
    many.world.is_known.store(true, Ordering::Relaxed);
    assert_eq!(run(&many, "a", 0), Via::Fork);
    many.world.is_known.store(false, Ordering::Relaxed);
    let vias = [1, 1].map(|key| run(&many, "a", key));
    assert_eq!(vias, [Via::Cold(Reason::FewStarts), Via::Fork]);
    let asked = Trial::new(Policy { observe_after: Duration::from_millis(20), ..policy() });
    asked.tool(&spec("a", 0, true)).make_eager();
    assert_eq!(run(&asked, "a", 0), Via::Fork);
}

#[test]
fn starts_pay_for_a_zygote_under_each_key() {
    let trial = Trial::new(Policy { choice: Choice::Eager, ..policy() });
    let vias = [0, 1, 1, 0].map(|key| run(&trial, "a", key));
    assert_eq!(vias, [Via::Fork, Via::Cold(Reason::FewStarts), Via::Fork, Via::Reset]);
}

#[test]
fn what_was_not_used_for_longest_goes_first_and_a_process_before_its_zygote() {
    let trial = Trial::new(Policy { memory: 4 * MIB, ..policy() });
    ["a", "b", "a"].iter().for_each(|tool| _ = run(&trial, tool, 0));
    assert_eq!((trial.alive(), trial.pool.budget.used()), ([2, 2], 4 * MIB));
    assert_eq!(run(&trial, "c", 0), Via::Fork);
    let tools = ["a", "b", "c"].map(|tool| trial.tool(&spec(tool, 0, true)).census());
    assert_eq!(tools, [[[1, 1]; 2], [[0, 0]; 2], [[1, 1]; 2]]);
    assert_eq!(trial.pool.budget.used(), 4 * MIB);
}

#[test]
fn a_tool_whose_process_went_for_its_memory_is_forked_for_a_while() {
    // Each has its zygote. There is no room for both persistent processes.
    let trial = Trial::new(Policy { memory: 3 * MIB, ..policy() });
    for _ in 0..100 {
        run(&trial, "a", 0);
        run(&trial, "b", 0);
    }
    let all = trial.pool.statistics().tools;
    let ended: u64 = all.iter().map(|tool| tool.ended_for_memory).sum();
    let spared: u64 = all.iter().map(|tool| tool.not_grown_for_memory).sum();
    assert!((2..12).contains(&ended) && spared > 20, "{ended} ended, {spared} spared");
    assert!(trial.pool.budget.used() <= 3 * MIB);
}

#[test]
fn a_zygote_larger_than_all_may_be_is_not_kept() {
    let trial = Trial::new(Policy { memory: MIB - 1, ..policy() });
    assert_eq!([run(&trial, "a", 0), run(&trial, "a", 0)], [Via::Cold(Reason::Memory); 2]);
    assert_eq!((trial.alive(), trial.pool.budget.used()), ([0, 0], 0));
}

/// Starts a tool whose processes spend 10 ms on everything, and `cold` if they are cold. Returns how the starts were made.
fn compare(trial: &Trial, cold: Duration) -> Vec<Via> {
    *trial.world.spends.lock().unwrap() = Duration::from_millis(10);
    let spec = spec("a", 0, true);
    let start = |_| match trial.start(&spec) {
        Ok(started) => {
            started.run.into_iter().for_each(|mut run| {
                run.measure(Some(&Usage::default()));
                run.finish(&reset(0));
            });
            started.via
        }
        Err(reason) => {
            if reason == Reason::Compared {
                trial.tool(&spec).ran_cold(cold);
            }
            Via::Cold(reason)
        }
    };
    (0..200).map(start).collect()
}

#[test]
fn a_tool_whose_warm_starts_take_more_is_left_cold() {
    let policy = Policy { compare: true, choice: Choice::Auto { after: 1 }, ..policy() };
    let trial = Trial::new(policy.clone());
    let vias = compare(&trial, Duration::from_millis(2));
    assert_eq!(vias.last(), Some(&Via::Cold(Reason::DoesNotPay)));
    assert_eq!((vias.iter().filter(|via| via.is_warm()).count() < 30, trial.alive()), (true, [0, 0]));
    let cpu = statistics(&trial).cpu;
    assert_eq!((cpu.cold.0, cpu.saved() < 0.0), (3, true));
    let gains = Trial::new(policy.clone());
    let vias = compare(&gains, Duration::from_millis(40));
    assert_eq!(vias.last(), Some(&Via::Reset));
    let of = |why| vias.iter().filter(|via| **via == Via::Cold(why)).count();
    assert_eq!((of(Reason::FewStarts), of(Reason::DoesNotPay), of(Reason::Compared) < 9), (1, 0, true));
    // Nothing is compared of a tool that is asked for, nor where the first start is warm.
    let asked = Trial::new(policy.clone());
    asked.tool(&spec("a", 0, true)).make_eager();
    assert!(compare(&asked, Duration::from_millis(2)).iter().all(|via| via.is_warm()));
    let at_once = Trial::new(Policy { choice: Choice::Auto { after: 0 }, ..policy });
    assert!(compare(&at_once, Duration::from_millis(2)).iter().all(|via| via.is_warm()));
}

#[test]
fn a_tool_whose_zygotes_keep_dying_rests_for_longer_each_time() {
    let trial = Trial::new(policy());
    let mut vias = Vec::new();
    for _ in 0..40 {
        *trial.world.fails.lock().unwrap() = Some(Failure::Died);
        vias.push(run(&trial, "a", 0));
    }
    assert!(vias.iter().all(|via| *via == Via::Cold(Reason::ZygoteDied)));
    let made = trial.world.made.load(Ordering::Relaxed);
    assert_eq!(made, 7, "after 0, 1, 2, 4, 8 and 16 starts");
}

#[test]
fn a_zygote_that_is_not_paid_for_makes_the_next_one_dearer_where_that_is_measured() {
    let zygotes = |compare| {
        let trial = Trial::new(Policy { compare, choice: Choice::Auto { after: 1 }, ..policy() });
        *trial.world.spends.lock().unwrap() = Duration::from_millis(10);
        for key in 0..8 {
            (0..4).for_each(|_| _ = run(&trial, "a", key));
        }
        trial.world.made.load(Ordering::Relaxed)
    };
    assert_eq!([zygotes(false), zygotes(true)], [8, 3]);
}
