//! Decides whether a warm run can be believed. The cold run is the specification.
//!
//! A failure of commands that were started warm is confirmed cold. A test that then passes is flaky (`flaky`). A sample of the
//! passes, or all of them (`--parity`), runs again both ways with the pipes between stages captured, and is compared byte for
//! byte. A difference is hotstart's fault, unless two cold runs differ as well: then the test is nondeterministic, which is only
//! counted.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hotstart_model::{Fault, JobId, Script, Severity, Transcript};

use crate::difference::{self, Difference, Seen};
use crate::execute::{Ran, Way};
use crate::flaky::{self, Doubt, end};
use crate::own_files;
use crate::schedule::Run;

/// Cold runs that must agree before a warm one that differs is called a fault: the least number, the most, and the time after
/// which no more than the least start. (If a tool's output takes two forms equally often, six runs in a row agree in one of
/// 64 cases, and a folder of LLVM's has dozens of such tests.)
const COLD_RUNS: u32 = 6;
const MORE_COLD_RUNS: u32 = 60;
const MORE_FOR: Duration = Duration::from_secs(5);

/// Chooses the warm runs that are compared with cold ones, and counts the results.
#[derive(Debug)]
pub struct Checks {
    /// Share of passing tests that are compared, from 0 to 1.
    verify: f64,
    /// Whether every test is compared and each difference reported as an error.
    parity: bool,
    chance: RandomState,
    confirmed: AtomicU64,
    foreseen: AtomicU64,
    unrepeatable: AtomicU64,
    compared: AtomicU64,
    nondeterministic: AtomicU64,
    faults: AtomicU64,
    /// Names of tests that failed warm and passed cold.
    flaky: Mutex<Vec<String>>,
}

/// Counts of the checks in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// Failures confirmed by a cold run.
    pub confirmed: u64,
    /// Tests that were only run cold, because they would probably fail.
    pub foreseen: u64,
    /// Tests that were only run cold, because files of earlier runs could not be restored for another run.
    pub unrepeatable: u64,
    /// Tests run both ways and compared.
    pub compared: u64,
    /// Of these, nondeterministic tests: two cold runs differ as well.
    pub nondeterministic: u64,
    /// Differences that are hotstart's fault.
    pub faults: u64,
    /// Tests that failed with warm starts and passed cold, for whatever reason.
    pub flaky: u64,
}

impl Checks {
    /// Compares this share (0 to 1) of passing tests.
    pub fn sampled(verify: f64) -> Self {
        Checks {
            verify,
            parity: false,
            chance: RandomState::new(),
            confirmed: AtomicU64::new(0),
            foreseen: AtomicU64::new(0),
            unrepeatable: AtomicU64::new(0),
            compared: AtomicU64::new(0),
            nondeterministic: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            flaky: Mutex::default(),
        }
    }

    /// Compares every test.
    pub fn parity() -> Self {
        Checks { parity: true, ..Self::sampled(1.0) }
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> CheckCounts {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CheckCounts {
            confirmed: get(&self.confirmed),
            foreseen: get(&self.foreseen),
            unrepeatable: get(&self.unrepeatable),
            compared: get(&self.compared),
            nondeterministic: get(&self.nondeterministic),
            faults: get(&self.faults),
            flaky: self.flaky.lock().expect("no panic while locked").len() as u64,
        }
    }

    /// Returns the names of the tests that failed when their tools were started warm, and passed cold.
    pub fn flaky(&self) -> Vec<String> {
        self.flaky.lock().expect("no panic while locked").clone()
    }

    /// Records such a test, and whether it is a fault of hotstart or nondeterministic.
    pub(crate) fn note_flaky(&self, label: &str, is_fault: bool, is_nondeterministic: bool) {
        self.flaky.lock().expect("no panic while locked").push(label.to_owned());
        self.faults.fetch_add(u64::from(is_fault), Ordering::Relaxed);
        self.nondeterministic.fetch_add(u64::from(is_nondeterministic), Ordering::Relaxed);
    }

    /// Returns whether every test is compared.
    pub fn is_parity(&self) -> bool {
        self.parity
    }

    /// Returns whether a passing test is compared.
    pub(crate) fn chooses(&self, job: JobId) -> bool {
        // 53 bits, so that the quotient is exact and 1.0 chooses every job.
        let draw = (self.chance.hash_one(job) >> 11) as f64 / (1u64 << 53) as f64;
        self.parity || draw < self.verify
    }
}

/// The believed result of an attempt.
#[derive(Debug)]
pub(crate) struct Believed {
    pub transcript: Transcript,
    /// The attempt's first run, without its transcript.
    pub first: Ran,
    /// Set if the first run failed and a cold one did not.
    pub doubt: Option<Doubt>,
}

impl Believed {
    /// Believes the first run as it is.
    pub(crate) fn first(mut ran: Ran) -> Self {
        let transcript = std::mem::take(&mut ran.transcript);
        Believed { transcript, first: ran, doubt: None }
    }

    /// Believes another run instead of the first.
    pub(crate) fn other(mut first: Ran, transcript: Transcript) -> Self {
        first.transcript = Transcript::default();
        Believed { transcript, first, doubt: None }
    }
}

/// Decides what to believe of a run in which processes may have been started warm.
pub(crate) fn check(run: &Run<'_>, job: JobId, attempt: u32, script: &Script, ran: Ran) -> Believed {
    if ran.is_interrupted() || ran.warm_starts == 0 {
        return Believed::first(ran);
    }
    let fails = |transcript: &Transcript| run.source.would_fail(job, attempt, transcript);
    if ran.is_doubtful || ran.had_no_room() {
        return repeat(run, job, script, ran, &fails);
    }
    if ran.transcript.exit_code != Some(0) || fails(&ran.transcript) {
        return confirm(run, job, script, ran, &fails);
    }
    if run.checks.chooses(job) {
        compare(run, job, script, Believed::first(ran))
    } else {
        Believed::first(ran)
    }
}

/// Repeats a run cold that proves nothing: a start was lost, or made a call that the gate does not know, or hotstart could not
/// run it. Its output is not believed, but the files that it has left outside its own may decide how the cold run ends.
fn repeat(
    run: &Run<'_>,
    job: JobId,
    script: &Script,
    first: Ran,
    fails: &dyn Fn(&Transcript) -> bool,
) -> Believed {
    let cold = run.again(job, script, Way::Cold);
    let decides = |ran: &Ran| !ran.is_interrupted() && !ran.had_no_room() && !ran.is_void();
    if decides(&first) && decides(&cold) {
        match (fails(&first.transcript), fails(&cold.transcript)) {
            (true, false) => {
                // Even if it fails in each warm run: what a run leaves outside its own files may be undone by the next one.
                return contradicted(run, job, script, first, cold, fails);
            }
            (false, true) => tell_second_run(run, job),
            _ => {}
        }
    } else if first.transcript.is_outdated && first.transcript.fault.is_none() {
        // What has made it fail is not known: the files that FileCheck has found, or what only the second run of the test does not meet.
        if fails(&first.transcript) && !fails(&cold.transcript) && !cold.is_interrupted() {
            tell_first_run(run, job);
        }
    }
    Believed::other(first, cold.transcript)
}

/// Decides on a test whose first run failed and whose cold run did not.
fn contradicted(
    run: &Run<'_>,
    job: JobId,
    script: &Script,
    first: Ran,
    cold: Ran,
    fails: &dyn Fn(&Transcript) -> bool,
) -> Believed {
    // The next attempt, or the next invocation, finds what the believed run has left.
    let left = run.files_now(job, &script.tmp_base);
    let doubt = flaky::report_script(run, job, script, [&first, &cold], fails, left.is_some());
    if let Some(left) = left {
        run.leave_files(job, &script.tmp_base, &left);
    }
    Believed { doubt: Some(doubt), ..Believed::other(first, cold.transcript) }
}

fn tell_first_run(run: &Run<'_>, job: JobId) {
    let text = format!(
        "{}: it failed while its files changed or a command started late, so it ran again, cold, and passed. If it passes \
         only where it runs twice, as it leaves something outside its %t files, run it with --cold.",
        run.source.label(job)
    );
    run.tell(Severity::Doubt, text);
}

fn tell_second_run(run: &Run<'_>, job: JobId) {
    let text = format!(
        "{}: it passed, but in a way that is not known to be harmless, so it ran again, cold, and failed. If it \
         fails wherever it runs twice, as it leaves something outside its %t files, run it with --cold.",
        run.source.label(job)
    );
    run.tell(Severity::Doubt, text);
}

/// Confirms a failure: only the cold run's result counts.
fn confirm(
    run: &Run<'_>,
    job: JobId,
    script: &Script,
    warm: Ran,
    fails: &dyn Fn(&Transcript) -> bool,
) -> Believed {
    confirmed(run);
    let cold = run.again(job, script, Way::Cold);
    if cold.is_interrupted() || cold.had_no_room() {
        return Believed::other(warm, cold.transcript);
    }
    if end(&cold.transcript) == end(&warm.transcript) {
        let counts = Believed::other(warm, cold.transcript);
        return if run.checks.parity { compare(run, job, script, counts) } else { counts };
    }
    if fails(&warm.transcript) && !fails(&cold.transcript) {
        return contradicted(run, job, script, warm, cold, fails);
    }
    // Both fail, but differently. The test may be nondeterministic, so each runs once more.
    let warm_again = run.again(job, script, Way::Warm);
    let cold_again = run.again(job, script, Way::Cold);
    if end(&warm_again.transcript) == end(&warm.transcript)
        && end(&cold_again.transcript) == end(&cold.transcript)
    {
        let seen = |ran: &Ran| Seen { transcript: ran.transcript.clone(), files: Default::default() };
        let found = difference::between(script, &seen(&warm), &seen(&cold));
        fault(run, job, &[&warm], &found.expect("their ends differ"));
    } else {
        nondeterministic(run);
        if run.checks.parity {
            let text = format!(
                "{}: it ended differently when started warm, and not each time again",
                run.source.label(job)
            );
            run.tell(Severity::Note, text);
        }
    }
    Believed::other(warm, cold.transcript)
}

/// Runs the script warm and cold, and compares the runs. `believed` counts if there is no difference.
fn compare(run: &Run<'_>, job: JobId, script: &Script, believed: Believed) -> Believed {
    // If the files cannot be restored, those that count have to stay.
    let left = run.files_now(job, &script.tmp_base);
    if left.is_none() && !run.checks.parity {
        return believed;
    }
    let script = Script { captures: true, ..script.clone() };
    let (warm, ran) = see(run, job, &script, Way::Warm);
    let (cold, _) = see(run, job, &script, Way::Cold);
    let interrupted = |seen: &Seen| seen.transcript.fault == Some(Fault::Interrupted);
    if interrupted(&warm) || interrupted(&cold) {
        let transcript = Transcript { fault: Some(Fault::Interrupted), ..believed.transcript };
        return Believed { transcript, ..believed };
    }
    let lacked = |seen: &Seen| match &seen.transcript.fault {
        Some(Fault::Internal(why)) => Some(why.clone()),
        _ => None,
    };
    if let Some(why) = lacked(&warm).or_else(|| lacked(&cold)) {
        run.tell(Severity::Doubt, format!("{}: it was not compared: {why}", run.source.label(job)));
        if let Some(left) = left {
            run.leave_files(job, &script.tmp_base, &left);
        }
        return believed;
    }
    if ran.is_doubtful {
        return believed;
    }
    run.checks.compared.fetch_add(1, Ordering::Relaxed);
    let Some(found) = difference::between(&script, &warm, &cold) else { return believed };
    // Address-dependent output has few variants, so two cold runs may match by chance; try several.
    let begun = Instant::now();
    let differing =
        (0..MORE_COLD_RUNS).take_while(|&n| n < COLD_RUNS || begun.elapsed() < MORE_FOR).find_map(|_| {
            let (more, _) = see(run, job, &script, Way::Cold);
            difference::between(&script, &cold, &more)
        });
    if let Some(differing) = differing {
        nondeterministic(run);
        if run.checks.parity {
            let text = format!("{}: two cold runs differ, too, in {}", run.source.label(job), differing.what);
            run.tell(Severity::Note, text);
        }
        return believed;
    }
    fault(run, job, &[&ran], &found);
    Believed { transcript: cold.transcript, ..believed }
}

/// Runs the script once more and reads its files.
fn see(run: &Run<'_>, job: JobId, script: &Script, way: Way) -> (Seen, Ran) {
    let mut ran = run.again(job, script, way);
    let transcript = std::mem::take(&mut ran.transcript);
    (Seen { transcript, files: own_files::read(script) }, ran)
}

/// Counts a confirmed failure.
pub(crate) fn confirmed(run: &Run<'_>) {
    run.checks.confirmed.fetch_add(1, Ordering::Relaxed);
}

/// Counts a test that is only run cold, because it will probably fail.
pub(crate) fn foreseen(run: &Run<'_>) {
    run.checks.foreseen.fetch_add(1, Ordering::Relaxed);
}

/// Counts a test that is only run cold, because another run could not find the same files.
pub(crate) fn unrepeatable(run: &Run<'_>) {
    run.checks.unrepeatable.fetch_add(1, Ordering::Relaxed);
}

/// Counts a nondeterministic test.
pub(crate) fn nondeterministic(run: &Run<'_>) {
    run.checks.nondeterministic.fetch_add(1, Ordering::Relaxed);
}

/// Reports a difference that two cold runs do not have, and quarantines the programs of the warm runs.
pub(crate) fn fault(run: &Run<'_>, job: JobId, warm: &[&Ran], found: &Difference) {
    run.checks.faults.fetch_add(1, Ordering::Relaxed);
    let label = run.source.label(job);
    for ran in warm {
        run.executor.quarantine(ran);
        if found.may_be_a_wrong_match() {
            run.executor.quarantine_matches(ran, &label);
        }
    }
    let Difference { what, first, second } = found;
    let text = format!(
        "a fault of hotstart, not of the test: {label}: started warm and cold, it differs in {what}. The cold run \
         counts, and its tools are started cold from now on. Please report this.\n--- warm\n{first}\n--- cold\n{second}\n---"
    );
    run.tell(if run.checks.parity { Severity::Error } else { Severity::Doubt }, text);
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
