//! Tests each decision about a script that asks for bash and ran without it, with an executor that starts nothing.

use std::sync::Arc;

use super::*;
use crate::fake::{Ended, FakeExecutor, FakeSource, code, fault, run_job, settings, timeout};
use crate::{Checks, RunSettings};
use hotstart_model::Verdict;

fn by(run_by: RunBy, mut ran: Ran) -> Ran {
    ran.transcript.run_by = run_by;
    ran
}

fn native(exit_code: i32) -> Ran {
    by(RunBy::Native, code(exit_code))
}

/// Runs a test for bash. Returns its result and the counts.
fn ended(xfail: bool, executor: &FakeExecutor) -> (Ended, ShellCounts) {
    let source = FakeSource { may_be_native: true, xfail, ..FakeSource::default() };
    let shells = Arc::<Shells>::default();
    let settings = RunSettings { shells: Some(shells.clone()), ..settings() };
    let ended = run_job(&source, executor, &settings, &Checks::sampled(0.0));
    (ended, shells.counts())
}

#[test]
fn a_native_success_is_believed() {
    let executor = FakeExecutor::new(vec![native(0)], vec![code(1)]);
    let (ended, counts) = ended(false, &executor);
    assert_eq!((ended.verdict(), executor.runs(Way::Cold)), (Verdict::PASS, 0));
    assert_eq!(counts, ShellCounts { native: 1, ..ShellCounts::default() });
}

#[test]
fn a_script_that_bash_alone_can_run_is_counted_with_its_reason() {
    let executor = FakeExecutor::of_cold_tools(vec![by(RunBy::Refused("a function"), code(0))]);
    let (ended, counts) = ended(false, &executor);
    assert_eq!(ended.verdict(), Verdict::PASS);
    assert_eq!((counts.refused_total(), counts.refused.get("a function")), (1, Some(&1)));
}

#[test]
fn a_native_failure_counts_as_bash_has_it() {
    for exit_code in [1, 2] {
        let executor = FakeExecutor::new(vec![native(1)], vec![code(exit_code)]);
        let (ended, counts) = ended(false, &executor);
        assert_eq!((ended.verdict(), ended.told.len(), executor.runs(Way::Cold)), (Verdict::FAIL, 0, 1));
        assert_eq!((counts.confirmed, counts.differing), (1, 0));
    }
}

/// Nothing is compared: the shells may differ there.
#[test]
fn a_doubt_within_a_script_counts_as_bash_has_it() {
    for (doubted, exit_code, verdict) in
        [(127, 0, Verdict::PASS), (127, 1, Verdict::FAIL), (0, 1, Verdict::FAIL)]
    {
        let native = by(RunBy::Doubted("a directory"), code(doubted));
        let executor = FakeExecutor::new(vec![native], vec![code(exit_code)]);
        let (ended, counts) = ended(false, &executor);
        assert_eq!((ended.verdict(), ended.told.len(), executor.runs(Way::Cold)), (verdict, 0, 1));
        assert_eq!((counts.refused.get("a directory"), counts.confirmed, counts.native), (Some(&1), 0, 0));
    }
}

/// Each shell runs it twice, with the same result: the difference is permanent.
#[test]
fn a_failure_that_only_the_internal_shell_has_is_told_and_no_failure() {
    let executor = FakeExecutor::new(vec![native(1)], vec![code(0), native(1), code(0)]);
    let (ended, counts) = ended(false, &executor);
    assert_eq!((ended.verdict(), counts.differing), (Verdict::PASS, 1));
    assert!(ended.message().contains("by its own shell it does not"), "{}", ended.message());
}

/// The second run of bash fails: the test itself is flaky, and fails as it would with lit.
#[test]
fn a_failure_by_chance_is_no_difference_between_shells() {
    let executor = FakeExecutor::new(vec![native(1)], vec![code(0), native(1), code(1)]);
    let (ended, counts) = ended(false, &executor);
    assert_eq!((ended.verdict(), ended.told.len(), counts.differing), (Verdict::FAIL, 0, 0));
}

/// `! sleep 9`: the status of the command that was killed is turned around, but bash would have been killed.
#[test]
fn a_native_success_that_came_with_the_end_of_its_time_counts_as_bash_has_it() {
    let mut late = native(0);
    late.transcript.timed_out = true;
    let executor = FakeExecutor::new(vec![late], vec![timeout()]);
    let (ended, counts) = ended(false, &executor);
    assert_eq!((ended.verdict(), ended.told.len(), executor.runs(Way::Cold)), (Verdict::TIMEOUT, 0, 1));
    assert_eq!((counts.native, counts.confirmed, counts.differing), (0, 1, 0));
}

/// Its FileCheck has read a check file that a command of the same pipeline has written since.
#[test]
fn a_native_failure_of_an_outdated_filecheck_says_nothing() {
    let mut outdated = native(1);
    outdated.transcript.is_outdated = true;
    outdated.warm_starts = 1;
    let executor = FakeExecutor::new(vec![outdated], vec![code(0), native(0), code(0)]);
    let (ended, _) = ended(false, &executor);
    assert_eq!((ended.verdict(), ended.told.len()), (Verdict::PASS, 0), "{}", ended.message());
}

/// Such as one that looks for a file outside of its own, and makes it.
#[test]
fn a_test_that_fails_only_the_first_time_fails() {
    let mut executor = FakeExecutor::new(vec![], vec![code(0), native(0)]);
    executor.start_nothing_warm(vec![native(1)]);
    let (ended, counts) = ended(false, &executor);
    assert_eq!((ended.verdict(), ended.told.len(), counts.differing), (Verdict::FAIL, 0, 0));
}

#[test]
fn an_unexpected_native_success_counts_as_bash_has_it() {
    for (exit_code, verdict) in [(1, Verdict::XFAIL), (0, Verdict::XPASS)] {
        let executor = FakeExecutor::new(vec![native(0)], vec![code(exit_code)]);
        let (ended, counts) = ended(true, &executor);
        assert_eq!((ended.verdict(), ended.told.len()), (verdict, 0));
        assert_eq!((counts.confirmed, counts.differing, counts.native), (1, 0, 0));
    }
}

#[test]
fn an_interrupt_is_confirmed_by_nobody() {
    let interrupted = || by(RunBy::Native, fault(Fault::Interrupted));
    let executor = FakeExecutor::new(vec![interrupted()], vec![code(0)]);
    assert!(ended(false, &executor).0.outcome.is_none());
    assert_eq!(executor.runs(Way::Cold), 0);
    let executor = FakeExecutor::new(vec![native(1)], vec![interrupted()]);
    assert!(ended(false, &executor).0.outcome.is_none());
}

#[test]
fn a_script_as_asked_is_not_native() {
    let shell = |may_be_native| {
        let shell = hotstart_model::ExternalShell {
            shell: "/bin/bash".into(),
            script_path: "/t.script".into(),
            prefix: Vec::new(),
            may_be_native,
        };
        Script { interpreter: Interpreter::External(shell), ..crate::fake::script() }
    };
    let asked = as_asked(&shell(true)).expect("it may be native");
    assert!(matches!(asked.interpreter, Interpreter::External(shell) if !shell.may_be_native));
    assert!(as_asked(&shell(false)).is_none() && as_asked(&crate::fake::script()).is_none());
}
