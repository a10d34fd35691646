//! Tests each decision about which run to believe, with an executor that starts nothing. `flaky_tests.rs` has those that end
//! in doubt.

use hotstart_model::Verdict;

use super::*;
use crate::CheckCounts;
use crate::fake::{
    Ended, FakeExecutor, FakeSource, code, doubtful, fault as faulty, run_job, settings, timeout, wrote,
};

fn ended(executor: &FakeExecutor, checks: &Checks) -> Ended {
    run_job(&FakeSource::default(), executor, &settings(), checks)
}

fn made(executor: &FakeExecutor) -> (usize, usize) {
    (executor.runs(Way::Warm), executor.runs(Way::Cold))
}

fn no_room() -> Ran {
    faulty(Fault::Internal("no descriptors".into()))
}

fn interrupted() -> Ran {
    faulty(Fault::Interrupted)
}

#[test]
fn a_run_without_warm_starts_is_believed() {
    for checks in [Checks::sampled(1.0), Checks::parity()] {
        for (ran, verdict) in
            [(code(0), Verdict::PASS), (code(1), Verdict::FAIL), (timeout(), Verdict::TIMEOUT)]
        {
            let executor = FakeExecutor::of_cold_tools(vec![ran]);
            assert_eq!(ended(&executor, &checks).verdict(), verdict);
            assert_eq!((made(&executor), checks.counts()), ((1, 0), CheckCounts::default()));
        }
    }
}

#[test]
fn of_a_doubtful_run_only_the_cold_one_counts() {
    let runs = [code(0), code(1), timeout()];
    let verdicts = [Verdict::PASS, Verdict::FAIL, Verdict::TIMEOUT];
    for checks in [Checks::sampled(1.0), Checks::parity()] {
        for warm in &runs {
            for (cold, verdict) in runs.iter().zip(verdicts) {
                let executor = FakeExecutor::new(vec![doubtful(warm.clone())], vec![cold.clone()]);
                let ended = ended(&executor, &checks);
                let [passed, passes] = [warm, cold].map(|ran| ran.transcript.exit_code == Some(0));
                if passed == passes {
                    assert_eq!((ended.verdict(), ended.told.len()), (verdict, 0), "{warm:?}");
                    assert_eq!((made(&executor), executor.quarantined()), ((1, 1), 0));
                    continue;
                }
                // Either is told, and no failure is dropped.
                let verdict = if passes { Verdict::FLAKYPASS } else { verdict };
                let told = (ended.verdict(), ended.told.len(), executor.quarantined());
                assert_eq!(told, (verdict, 1, 0), "{warm:?}");
            }
        }
        assert_eq!((checks.counts().faults, checks.counts().flaky), (0, 2));
    }
}

/// The first run may have left something outside the test's own files, by which the cold run passes.
#[test]
fn a_doubtful_failure_that_a_cold_run_does_not_have_is_flaky() {
    for again in [doubtful(code(0)), code(0), doubtful(code(3))] {
        let checks = Checks::sampled(0.0);
        let executor = FakeExecutor::new(vec![doubtful(code(1)), again], vec![code(0)]);
        let ended = ended(&executor, &checks);
        assert_eq!((ended.verdict(), ended.told.len(), executor.quarantined()), (Verdict::FLAKYPASS, 1, 0));
        assert!(ended.message().contains("or on files that its first run left"), "{}", ended.message());
    }
    let stays = FakeExecutor::new(vec![doubtful(code(1))], vec![code(0)]);
    let ended_so = ended(&stays, &Checks::sampled(0.0));
    assert_eq!((ended_so.verdict(), stays.quarantined()), (Verdict::FLAKYPASS, 0));
    assert!(ended_so.message().contains("calls that hotstart does not know"), "{}", ended_so.message());
    let lost = Ran { is_lost: true, ..doubtful(code(1)) };
    let ended = ended(&FakeExecutor::new(vec![lost], vec![code(0)]), &Checks::sampled(0.0));
    assert_eq!((ended.verdict(), ended.told.len()), (Verdict::PASS, 0));
    // One whose FileCheck could not be started has not failed by itself.
    for (first, told) in [(code(1), 1), (no_room(), 0)] {
        let mut outdated = doubtful(first);
        outdated.transcript.is_outdated = true;
        let ended = self::ended(&FakeExecutor::new(vec![outdated], vec![code(0)]), &Checks::sampled(0.0));
        assert_eq!((ended.verdict(), ended.told.len()), (Verdict::PASS, told));
    }
}

#[test]
fn a_cold_run_that_proves_nothing_settles_nothing() {
    for warm in [doubtful(code(0)), code(1), timeout()] {
        let checks = Checks::sampled(0.0);
        let executor = FakeExecutor::new(vec![warm.clone()], vec![no_room()]);
        let unresolved = ended(&executor, &checks);
        assert_eq!((unresolved.verdict(), unresolved.told.len()), (Verdict::UNRESOLVED, 0));
        assert_eq!(executor.quarantined(), 0);
        let executor = FakeExecutor::new(vec![warm], vec![interrupted()]);
        assert!(ended(&executor, &checks).outcome.is_none());
    }
}

#[test]
fn an_interrupted_run_has_no_outcome_and_is_not_repeated() {
    let executor = FakeExecutor::new(vec![interrupted()], vec![code(0)]);
    assert!(ended(&executor, &Checks::parity()).outcome.is_none());
    assert_eq!(made(&executor), (1, 0));
}

#[test]
fn a_time_limit_that_both_reach_is_a_timeout() {
    let (checks, executor) = (Checks::sampled(0.0), FakeExecutor::new(vec![timeout()], vec![timeout()]));
    let ended = ended(&executor, &checks);
    assert_eq!((ended.verdict(), ended.told.len(), made(&executor)), (Verdict::TIMEOUT, 0, (1, 1)));
    assert_eq!(checks.counts(), CheckCounts { confirmed: 1, ..CheckCounts::default() });
}

/// One fails and the other reaches its time limit. The cold one counts. It is a fault if the difference stays.
#[test]
fn of_failures_that_differ_the_cold_one_counts() {
    for (warm, cold, verdict) in [(timeout(), code(1), Verdict::FAIL), (code(1), timeout(), Verdict::TIMEOUT)]
    {
        let (checks, executor) =
            (Checks::sampled(0.0), FakeExecutor::new(vec![warm.clone()], vec![cold.clone()]));
        let stays = ended(&executor, &checks);
        assert_eq!((stays.verdict(), stays.told[0].0), (verdict, Severity::Doubt));
        assert_eq!((executor.quarantined(), checks.counts().faults), (1, 1));
        for (warm, cold) in
            [(vec![warm.clone(), cold.clone()], vec![cold.clone()]), (vec![warm.clone()], vec![cold, warm])]
        {
            let (checks, executor) = (Checks::parity(), FakeExecutor::new(warm, cold));
            let once = ended(&executor, &checks);
            assert_eq!((once.verdict(), once.told[0].0), (verdict, Severity::Note));
            assert_eq!(
                (executor.quarantined(), checks.counts().faults, checks.counts().nondeterministic),
                (0, 0, 1)
            );
        }
    }
}

#[test]
fn a_pass_that_is_not_chosen_is_not_repeated() {
    let executor = FakeExecutor::new(vec![code(0)], vec![code(1)]);
    assert_eq!(ended(&executor, &Checks::sampled(0.0)).verdict(), Verdict::PASS);
    assert_eq!(made(&executor), (1, 0));
}

#[test]
fn a_pass_that_is_chosen_counts_as_the_cold_run_has_it_and_its_tools_are_given_up() {
    let checks = Checks::sampled(1.0);
    let executor = FakeExecutor::new(vec![wrote(0, "same")], vec![wrote(1, "same")]);
    let ended = ended(&executor, &checks);
    assert_eq!((ended.verdict(), ended.told[0].0), (Verdict::FAIL, Severity::Doubt));
    assert!(ended.message().contains("The cold run counts"), "{}", ended.message());
    assert_eq!((executor.quarantined(), made(&executor)), (1, (2, 1 + MORE_COLD_RUNS as usize)));
    assert_eq!(checks.counts(), CheckCounts { compared: 1, faults: 1, ..CheckCounts::default() });
}

#[test]
fn a_comparison_that_cannot_be_made_leaves_the_pass() {
    for (again, cold, told) in
        [(no_room(), code(1), 1), (doubtful(code(1)), code(1), 0), (code(0), no_room(), 1)]
    {
        let (checks, executor) = (Checks::parity(), FakeExecutor::new(vec![code(0), again], vec![cold]));
        let ended = ended(&executor, &checks);
        assert_eq!((ended.verdict(), ended.told.len(), executor.quarantined()), (Verdict::PASS, told, 0));
        assert_eq!(checks.counts(), CheckCounts::default());
    }
    for (again, cold) in [(interrupted(), code(0)), (code(0), interrupted())] {
        let executor = FakeExecutor::new(vec![code(0), again], vec![cold]);
        assert!(ended(&executor, &Checks::parity()).outcome.is_none());
    }
}

/// Failures are compared as well, once they are confirmed.
#[test]
fn parity_compares_what_failures_wrote() {
    for (cold, faults) in [("a", 0), ("b", 1)] {
        let checks = Checks::parity();
        let executor = FakeExecutor::new(vec![wrote(1, "a")], vec![wrote(1, cold)]);
        let ended = ended(&executor, &checks);
        assert_eq!(
            (ended.verdict(), ended.told.len(), executor.quarantined()),
            (Verdict::FAIL, faults, faults)
        );
        let expected =
            CheckCounts { confirmed: 1, compared: 1, faults: faults as u64, ..CheckCounts::default() };
        assert_eq!(checks.counts(), expected);
    }
    let executor = FakeExecutor::new(vec![wrote(1, "a")], vec![wrote(1, "b")]);
    let sampled = ended(&executor, &Checks::sampled(1.0));
    assert_eq!((sampled.verdict(), sampled.told.len(), made(&executor)), (Verdict::FAIL, 0, (1, 1)));
}

/// For a test that is expected to fail, success is the failure that must be confirmed.
#[test]
fn an_unexpected_pass_is_confirmed() {
    let source = FakeSource { xfail: true, ..FakeSource::default() };
    for (warm, cold, verdict, runs) in
        [(0, 0, Verdict::XPASS, 1), (1, 1, Verdict::XFAIL, 1), (1, 0, Verdict::XPASS, 2)]
    {
        let executor = FakeExecutor::new(vec![code(warm)], vec![code(cold)]);
        let ended = run_job(&source, &executor, &settings(), &Checks::sampled(0.0));
        assert_eq!((ended.verdict(), executor.runs(Way::Cold)), (verdict, runs), "{warm} {cold}");
    }
}

#[test]
fn the_sample_has_the_share_that_is_asked_for() {
    let chosen = |checks: &Checks| (0..10_000).filter(|&job| checks.chooses(JobId(job))).count();
    assert_eq!(chosen(&Checks::sampled(0.0)), 0);
    assert_eq!(chosen(&Checks::sampled(1.0)), 10_000);
    assert_eq!(chosen(&Checks::parity()), 10_000);
    let checks = Checks::sampled(0.2);
    assert!((1700..2300).contains(&chosen(&checks)), "{}", chosen(&checks));
    // Each test and run has one draw.
    assert_eq!(chosen(&checks), chosen(&checks));
}
