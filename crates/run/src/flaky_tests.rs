//! Tests the conclusions from warm and cold runs, with an executor that starts nothing.

use super::*;
use crate::fake::{Ended, FakeExecutor, FakeSource, code, fault, run_job, settings, wrote};
use crate::{CheckCounts, Checks, RunSettings};
use hotstart_launch::Served;
use hotstart_model::Fault;

fn ended(executor: &FakeExecutor) -> Ended {
    run_job(&FakeSource::default(), executor, &settings(), &Checks::sampled(0.0))
}

fn quarantined(executor: &FakeExecutor) -> usize {
    executor.quarantined.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn a_warm_pass_is_believed() {
    let executor = FakeExecutor::new(vec![code(0)], vec![code(1)]);
    let ended = ended(&executor);
    assert_eq!((ended.verdict(), ended.told.len()), (Verdict::PASS, 0));
    assert_eq!(executor.runs(Way::Cold), 0);
}

#[test]
fn a_failure_that_the_cold_run_has_is_a_failure() {
    let executor = FakeExecutor::new(vec![code(1)], vec![code(1)]);
    let checks = Checks::sampled(0.0);
    let ended = run_job(&FakeSource::default(), &executor, &settings(), &checks);
    assert_eq!((ended.verdict(), ended.told.len()), (Verdict::FAIL, 0));
    assert_eq!(checks.counts(), CheckCounts { confirmed: 1, ..CheckCounts::default() });
    assert!(checks.flaky().is_empty());
}

#[test]
fn one_warm_failure_and_a_cold_pass_is_flaky_and_told() {
    let executor = FakeExecutor::new(vec![wrote(1, "warm text"), code(0)], vec![wrote(0, "cold text")]);
    let checks = Checks::sampled(0.0);
    let ended = run_job(&FakeSource::default(), &executor, &settings(), &checks);
    assert_eq!(ended.verdict(), Verdict::FLAKYPASS);
    let message = ended.message();
    assert!(message.starts_with("t :: 0 failed when its tools were started warm, and not when cold."));
    assert!(message.contains("may depend on what its workers ran before"), "{message}");
    assert!(message.contains("--- warm\nExit Code: Some(1)\nwarm text\n--- cold\n"), "{message}");
    assert!(message.contains("cold text\n--- no worker took part that had run anything before\n---"));
    let outcome = ended.outcome.unwrap();
    assert_eq!(outcome.attempts, (2, 2));
    assert!(outcome.output.contains("warm text"));
    assert_eq!(checks.flaky(), ["t :: 0"]);
    let doubted = executor.doubted.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!((quarantined(&executor), doubted, executor.runs(Way::Cold)), (0, 1, COLD_RUNS as usize));
    let expected = CheckCounts { confirmed: 1, flaky: 1, ..CheckCounts::default() };
    assert_eq!(checks.counts(), expected);
}

#[test]
fn a_failure_of_every_warm_run_is_a_fault_and_flaky_all_the_same() {
    let executor = FakeExecutor::new(vec![code(1)], vec![code(0)]);
    let checks = Checks::sampled(0.0);
    let ended = run_job(&FakeSource::default(), &executor, &settings(), &checks);
    assert_eq!(ended.verdict(), Verdict::FLAKYPASS);
    assert!(ended.message().contains("a fault of hotstart"), "{}", ended.message());
    assert_eq!(ended.told[0].0, Severity::Doubt);
    assert_eq!((checks.counts().faults, quarantined(&executor)), (1, 1));
    let in_parity = run_job(&FakeSource::default(), &executor, &settings(), &Checks::parity());
    assert_eq!((in_parity.verdict(), in_parity.told[0].0), (Verdict::FLAKYPASS, Severity::Error));
}

#[test]
fn a_test_that_fails_cold_sometimes_is_nondeterministic_by_itself() {
    let executor = FakeExecutor::new(vec![code(1)], vec![code(0), code(0), code(1)]);
    let checks = Checks::sampled(0.0);
    let ended = run_job(&FakeSource::default(), &executor, &settings(), &checks);
    assert_eq!(ended.verdict(), Verdict::FLAKYPASS);
    assert!(ended.message().contains("nondeterministic by itself: 1 of 3 cold runs failed"));
    assert_eq!((checks.counts().nondeterministic, checks.counts().faults, quarantined(&executor)), (1, 0, 0));
}

#[test]
fn a_timeout_that_comes_once_leaves_tools_warm() {
    let mut late = code(-9);
    late.transcript.timed_out = true;
    let executor = FakeExecutor::new(vec![late, code(0)], vec![code(0)]);
    let ended = ended(&executor);
    assert_eq!((ended.verdict(), quarantined(&executor)), (Verdict::FLAKYPASS, 0));
    assert!(ended.message().contains("It reached its time limit once"));
}

#[test]
fn a_lost_worker_or_a_fault_of_ours_is_no_failure_of_the_test() {
    let lost = crate::execute::Ran { is_doubtful: true, is_lost: true, ..code(1) };
    let internal = fault(Fault::Internal("no descriptors".into()));
    for (first, warm_runs) in [(lost, 1), (internal, 2)] {
        let executor = FakeExecutor::new(vec![first], vec![code(0)]);
        let ended = ended(&executor);
        assert_eq!((ended.verdict(), ended.told.len()), (Verdict::PASS, 0));
        assert_eq!((executor.runs(Way::Warm), executor.runs(Way::Cold)), (warm_runs, 1));
    }
}

#[test]
fn a_run_that_had_no_room_is_made_again() {
    let internal = || fault(Fault::Internal("no descriptors".into()));
    let executor = FakeExecutor::new(vec![internal(), code(0)], vec![code(1)]);
    assert_eq!(ended(&executor).verdict(), Verdict::PASS);
    assert_eq!((executor.runs(Way::Warm), executor.runs(Way::Cold)), (2, 0));
    let never = FakeExecutor::new(vec![internal()], vec![internal()]);
    assert_eq!(ended(&never).verdict(), Verdict::UNRESOLVED);
}

#[test]
fn an_interrupt_while_the_cause_is_looked_for_keeps_the_doubt() {
    let executor = FakeExecutor::new(vec![code(1)], vec![code(0), fault(Fault::Interrupted)]);
    let ended = ended(&executor);
    assert_eq!(ended.verdict(), Verdict::FLAKYPASS);
    assert!(ended.message().contains("The run ended before the cause could be looked for."));
    let executor = FakeExecutor::new(vec![code(1)], vec![fault(Fault::Interrupted)]);
    assert!(run_job(&FakeSource::default(), &executor, &settings(), &Checks::sampled(0.0)).outcome.is_none());
}

#[test]
fn fail_flaky_counts_it_as_a_failure() {
    let settings = RunSettings { fail_flaky: true, ..settings() };
    let executor = FakeExecutor::new(vec![code(1)], vec![code(0)]);
    let ended = run_job(&FakeSource::default(), &executor, &settings, &Checks::sampled(0.0));
    assert_eq!((ended.verdict(), ended.told.len()), (Verdict::FAIL, 1));
    let outcome = ended.outcome.unwrap();
    assert!(outcome.blame.contains("--fail-flaky") && outcome.output.contains("--- warm\n"), "{outcome:#?}");
}

#[test]
fn a_test_expected_to_fail_keeps_its_code_and_is_told() {
    let source = FakeSource { xfail: true, ..FakeSource::default() };
    let unexpected = || FakeExecutor::new(vec![code(0)], vec![code(1)]);
    let ended = run_job(&source, &unexpected(), &settings(), &Checks::sampled(0.0));
    assert_eq!((ended.verdict(), ended.told.len()), (Verdict::XFAIL, 1));
    let settings = RunSettings { fail_flaky: true, ..settings() };
    let ended = run_job(&source, &unexpected(), &settings, &Checks::sampled(0.0));
    assert_eq!(ended.verdict(), Verdict::FAIL);
}

#[test]
fn failures_that_differ_are_a_fault_only_if_they_stay() {
    let checks = Checks::sampled(0.0);
    let executor = FakeExecutor::new(vec![code(2)], vec![code(1)]);
    let ended = run_job(&FakeSource::default(), &executor, &settings(), &checks);
    assert_eq!((ended.verdict(), checks.counts().faults, quarantined(&executor)), (Verdict::FAIL, 1, 1));
    let executor = FakeExecutor::new(vec![code(2), code(1)], vec![code(1)]);
    let ended = run_job(&FakeSource::default(), &executor, &settings(), &checks);
    assert_eq!((ended.verdict(), ended.told.len()), (Verdict::FAIL, 0));
    assert_eq!((checks.counts().nondeterministic, quarantined(&executor)), (1, 0));
}

#[test]
fn a_retry_is_cold_and_not_compared() {
    let source = FakeSource { retries: 1, ..FakeSource::default() };
    let executor = FakeExecutor::new(vec![code(1)], vec![code(1), code(0)]);
    let ended = run_job(&source, &executor, &settings(), &Checks::sampled(0.0));
    assert_eq!((ended.verdict(), ended.told.len()), (Verdict::FLAKYPASS, 0));
    assert_eq!((executor.runs(Way::Warm), executor.runs(Way::Cold)), (1, 2));
}

#[test]
fn parity_compares_passes_and_a_difference_is_a_fault() {
    let executor = FakeExecutor::new(vec![wrote(0, "a")], vec![wrote(0, "b")]);
    let checks = Checks::parity();
    let ended = run_job(&FakeSource::default(), &executor, &settings(), &checks);
    assert_eq!((ended.verdict(), ended.told[0].0), (Verdict::PASS, Severity::Error));
    let expected = CheckCounts { compared: 1, faults: 1, ..CheckCounts::default() };
    assert_eq!((checks.counts(), quarantined(&executor)), (expected, 1));
    let steady = FakeExecutor::new(vec![wrote(0, "a")], vec![wrote(0, "a")]);
    let ended = run_job(&FakeSource::default(), &steady, &settings(), &Checks::parity());
    assert_eq!((ended.told.len(), quarantined(&steady)), (0, 0));
}

#[test]
fn parity_forgives_a_difference_that_two_cold_runs_have() {
    let executor = FakeExecutor::new(vec![wrote(0, "a")], vec![wrote(0, "b"), wrote(0, "b"), wrote(0, "c")]);
    let checks = Checks::parity();
    let ended = run_job(&FakeSource::default(), &executor, &settings(), &checks);
    assert_eq!((ended.verdict(), ended.told[0].0), (Verdict::PASS, Severity::Note));
    assert_eq!((checks.counts().nondeterministic, checks.counts().faults, quarantined(&executor)), (1, 0, 0));
}

#[test]
fn parity_says_nothing_of_a_lost_run() {
    let lost = crate::execute::Ran { is_doubtful: true, ..wrote(0, "") };
    let executor = FakeExecutor::new(vec![wrote(0, "a"), lost], vec![wrote(0, "a")]);
    let checks = Checks::parity();
    let ended = run_job(&FakeSource::default(), &executor, &settings(), &checks);
    assert_eq!((ended.verdict(), ended.told.len(), checks.counts().compared), (Verdict::PASS, 0, 0));
}

#[test]
fn a_verdict_of_a_format_that_is_not_confirmed_is_flaky() {
    let source = FakeSource { delegated: true, ..FakeSource::default() };
    let executor = FakeExecutor::new(vec![wrote(0, "bad")], vec![wrote(0, "good")]);
    let ended = run_job(&source, &executor, &settings(), &Checks::sampled(0.0));
    assert_eq!((ended.verdict(), quarantined(&executor)), (Verdict::FLAKYPASS, 1));
    assert!(ended.message().contains("--- warm\nbad\n--- cold\ngood\n"), "{}", ended.message());
    let executor = FakeExecutor::new(vec![code(1)], vec![code(0)]);
    let ended = run_job(&source, &executor, &settings(), &Checks::sampled(0.0));
    assert_eq!((ended.verdict(), ended.told.len()), (Verdict::FLAKYPASS, 1));
    let executor = FakeExecutor::new(vec![wrote(0, "bad")], vec![wrote(0, "bad")]);
    let ended = run_job(&source, &executor, &settings(), &Checks::sampled(0.0));
    assert_eq!((ended.verdict(), ended.told.len()), (Verdict::FAIL, 0));
}

#[test]
fn a_native_failure_that_only_a_warm_run_has_is_flaky_and_no_difference_between_shells() {
    let source = FakeSource { may_be_native: true, ..FakeSource::default() };
    let shells = std::sync::Arc::<crate::Shells>::default();
    let settings = RunSettings { shells: Some(shells.clone()), ..settings() };
    let mut fails = code(1);
    fails.transcript.run_by = hotstart_model::RunBy::Native;
    let executor = FakeExecutor::new(vec![fails.clone(), code(0)], vec![code(0)]);
    let ended = run_job(&source, &executor, &settings, &Checks::sampled(0.0));
    assert_eq!((ended.verdict(), ended.told.len()), (Verdict::FLAKYPASS, 1));
    assert_eq!((shells.counts().confirmed, shells.counts().differing), (1, 0));
    // With its own shell it passes. Natively it fails, cold as well.
    let executor = FakeExecutor::new(vec![fails.clone()], vec![code(0), fails, code(0)]);
    let ended = run_job(&source, &executor, &settings, &Checks::sampled(0.0));
    assert!(ended.message().contains("run natively it fails"), "{ended:#?}");
    assert_eq!((ended.verdict(), shells.counts().differing), (Verdict::PASS, 1));
}

#[test]
fn earlier_runs_are_told_with_a_command_that_repeats_them_in_order() {
    let served = |job, command: &str| Served { job, command: command.into() };
    let last = vec![
        served(Some(7), "opt -S"),
        served(None, "opt --version"),
        served(Some(3), "opt a"),
        served(Some(7), "opt b"),
        served(Some(0), "opt c"),
    ];
    let visit = Visit { worker: 42, command: "opt it's".into(), earlier: 9, last };
    let mut executor = FakeExecutor::new(vec![code(1)], vec![code(0)]);
    executor.visits = vec![visit];
    let settings = RunSettings {
        replay: Some(Replay { before: "hotstart lit".into(), after: "-v .".into() }),
        ..settings()
    };
    let ended = run_job(&FakeSource::default(), &executor, &settings, &Checks::sampled(0.0));
    let message = ended.message();
    let earlier =
        "worker 42 ran `opt it's` after 9 runs:\n  t :: 7: opt -S\n  opt --version\n  t :: 3: opt a\n";
    assert!(message.contains(earlier), "{message}");
    let again = "\nhotstart lit --replay='t :: 7' --replay='t :: 3' --replay='t :: 0' -v .\n---";
    assert!(message.ends_with(again), "{message}");
}

#[test]
fn long_outputs_are_shortened_and_words_are_quoted() {
    let text = "ä".repeat(5000);
    let shown = shorten(&text);
    assert!(shown.len() < OUTPUT_MAX + 100 && shown.contains(" bytes left out ...\nä"), "{shown}");
    assert_eq!(shorten("short"), "short");
    assert_eq!(quote("it's"), r"'it'\''s'");
}
