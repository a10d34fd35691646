//! Tests each decision about a test whose format judges by itself, with an executor that starts nothing. The fake's format
//! reports a failure if its script writes "bad".

use hotstart_model::{Fault, Severity, Verdict};

use crate::execute::Way;
use crate::fake::{
    Ended, FakeExecutor, FakeSource, code, doubtful, fault, run_job, settings, timeout, wrote,
};
use crate::{CheckCounts, Checks};

fn ended(executor: &FakeExecutor, checks: &Checks) -> Ended {
    let source = FakeSource { delegated: true, ..FakeSource::default() };
    run_job(&source, executor, &settings(), checks)
}

#[test]
fn a_pass_is_believed() {
    let executor = FakeExecutor::new(vec![wrote(0, "good")], vec![wrote(0, "bad")]);
    assert_eq!(ended(&executor, &Checks::sampled(0.0)).verdict(), Verdict::PASS);
    assert_eq!(executor.runs(Way::Cold), 0);
}

#[test]
fn a_failure_without_warm_starts_is_believed() {
    let executor = FakeExecutor::of_cold_tools(vec![wrote(0, "bad")]);
    let checks = Checks::sampled(0.0);
    assert_eq!(ended(&executor, &checks).verdict(), Verdict::FAIL);
    assert_eq!((executor.runs(Way::Warm), executor.runs(Way::Cold)), (1, 0));
    assert_eq!(checks.counts(), CheckCounts::default());
}

/// The script's failure was confirmed already, so the format does not run again.
#[test]
fn a_failed_script_is_confirmed_once() {
    let executor = FakeExecutor::new(vec![code(1)], vec![code(1)]);
    let checks = Checks::sampled(0.0);
    let ended = ended(&executor, &checks);
    assert_eq!((ended.verdict(), ended.told.len(), executor.runs(Way::Cold)), (Verdict::FAIL, 0, 1));
    assert_eq!(checks.counts().confirmed, 1);
}

#[test]
fn a_doubtful_script_is_run_cold_before_the_format_judges() {
    let executor = FakeExecutor::new(vec![doubtful(wrote(0, "bad"))], vec![wrote(0, "good")]);
    let ended = ended(&executor, &Checks::sampled(0.0));
    assert_eq!((ended.verdict(), ended.told.len(), executor.quarantined()), (Verdict::PASS, 0, 0));
}

#[test]
fn a_failure_that_a_cold_run_has_too_is_nondeterministic() {
    let executor = FakeExecutor::new(vec![wrote(0, "bad")], vec![wrote(0, "good"), wrote(0, "bad")]);
    let checks = Checks::sampled(0.0);
    let ended = ended(&executor, &checks);
    assert_eq!((ended.verdict(), executor.quarantined()), (Verdict::FLAKYPASS, 0));
    assert!(ended.message().contains("1 of 2 cold runs failed"), "{}", ended.message());
    assert_eq!(checks.counts().nondeterministic, 1);
}

#[test]
fn a_failure_that_comes_once_leaves_tools_warm() {
    let executor = FakeExecutor::new(vec![wrote(0, "bad"), wrote(0, "good")], vec![wrote(0, "good")]);
    let ended = ended(&executor, &Checks::sampled(0.0));
    assert_eq!((ended.verdict(), executor.quarantined()), (Verdict::FLAKYPASS, 0));
    assert!(ended.message().contains("A second warm run did not fail in this way"), "{}", ended.message());
}

/// The format's own verdicts differ. The cold one counts. It is a fault if the difference stays.
#[test]
fn of_failures_that_differ_the_cold_one_counts() {
    for (again, faults) in [(wrote(0, "bad"), 1), (wrote(0, "good"), 0)] {
        let checks = Checks::sampled(0.0);
        let executor = FakeExecutor::new(vec![wrote(0, "bad"), again], vec![timeout()]);
        let ended = ended(&executor, &checks);
        assert_eq!((ended.verdict(), ended.told.len()), (Verdict::TIMEOUT, faults));
        assert_eq!(
            (checks.counts().faults, checks.counts().nondeterministic),
            (faults as u64, 1 - faults as u64)
        );
        assert_eq!(executor.quarantined(), faults);
        assert!(
            ended
                .told
                .iter()
                .all(|told| told.0 == Severity::Doubt && told.1.contains("verdict of its format"))
        );
    }
}

#[test]
fn an_interrupt_at_any_run_leaves_no_outcome() {
    let interrupted = || fault(Fault::Interrupted);
    let runs = [
        (vec![interrupted()], vec![wrote(0, "good")]),
        (vec![wrote(0, "bad")], vec![interrupted()]),
        (vec![wrote(0, "bad"), interrupted()], vec![timeout()]),
    ];
    for (warm, cold) in runs {
        let executor = FakeExecutor::new(warm, cold);
        assert!(ended(&executor, &Checks::sampled(0.0)).outcome.is_none());
        assert_eq!(executor.quarantined(), 0);
    }
}

#[test]
fn what_a_chosen_script_wrote_is_compared_and_the_cold_text_is_judged() {
    let executor = FakeExecutor::new(vec![wrote(0, "good")], vec![wrote(0, "bad")]);
    let checks = Checks::sampled(1.0);
    let ended = ended(&executor, &checks);
    assert_eq!((ended.verdict(), executor.quarantined() > 0), (Verdict::FAIL, true));
    assert_eq!((checks.counts().compared, checks.counts().faults), (1, 1));
}
