//! Whether a warm run can be believed: cold is the specification.
//!
//! A failure of commands that were started warm is confirmed cold before anybody hears of it. Some of the passes,
//! or all of them (`--parity`), are run again both ways, with everything that passes between stages recorded, and
//! compared byte for byte. A disagreement is hotstart's fault, unless two cold runs disagree as well: then the
//! tool is not deterministic, which is only counted.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hotstart_launch::{Group, Launcher};
use hotstart_model::{Diagnostic, Event, Fault, JobId, Script, Severity, Transcript};

use crate::difference::{self, Difference, Seen};
use crate::own_files;
use crate::schedule::Run;
use crate::worker::run_once;

/// Cold runs that must agree before a warm one that differs is called a fault: so many, and more of them as long as they
/// take no longer than that together. (Of two forms that a tool's output takes by half, six runs in a row are one in one of
/// 64 cases, and a folder of LLVM's has dozens of such tests.)
const COLD_RUNS: u32 = 6;
const MORE_COLD_RUNS: u32 = 60;
const MORE_FOR: Duration = Duration::from_secs(5);

/// Which warm runs are compared with cold ones, and what came of it.
#[derive(Debug)]
pub struct Checks {
    /// Share of passing tests that are compared, from 0 to 1.
    verify: f64,
    /// Whether every test is compared and each difference reported as an error.
    parity: bool,
    chance: RandomState,
    confirmed: AtomicU64,
    compared: AtomicU64,
    unsteady: AtomicU64,
    faults: AtomicU64,
}

/// What was checked in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// Failures confirmed by a cold run.
    pub confirmed: u64,
    /// Tests run both ways and compared.
    pub compared: u64,
    /// Of these, tests of which two cold runs differ as well.
    pub unsteady: u64,
    /// Disagreements that are hotstart's fault.
    pub faults: u64,
}

impl Checks {
    /// Compares this share (0 to 1) of passing tests.
    pub fn sampled(verify: f64) -> Self {
        Checks {
            verify,
            parity: false,
            chance: RandomState::new(),
            confirmed: AtomicU64::new(0),
            compared: AtomicU64::new(0),
            unsteady: AtomicU64::new(0),
            faults: AtomicU64::new(0),
        }
    }

    /// Compares every test.
    pub fn parity() -> Self {
        Checks { parity: true, ..Self::sampled(1.0) }
    }

    /// What was checked so far.
    pub fn counts(&self) -> CheckCounts {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CheckCounts {
            confirmed: get(&self.confirmed),
            compared: get(&self.compared),
            unsteady: get(&self.unsteady),
            faults: get(&self.faults),
        }
    }

    fn chooses(&self, job: JobId) -> bool {
        // 53 bits, so that the quotient is exact and 1.0 chooses every job.
        let draw = (self.chance.hash_one(job) >> 11) as f64 / (1u64 << 53) as f64;
        self.parity || draw < self.verify
    }
}

/// The transcript to believe, given one of a run in which processes were started warm.
pub(crate) fn check(
    run: &Run<'_>,
    job: JobId,
    attempt: u32,
    script: &Script,
    transcript: Transcript,
    group: &Group,
) -> Transcript {
    if transcript.fault == Some(Fault::Interrupted) || group.warm_starts() == 0 {
        return transcript;
    }
    if group.has_lost() {
        // Something killed a worker between two runs: nothing was run in it, so there is nothing to believe.
        own_files::remove(script);
        return run_once(run, script, &run.cold).0;
    }
    if transcript.exit_code != Some(0) || run.source.would_fail(job, attempt, &transcript) {
        return confirm(run, job, script, transcript, group);
    }
    if run.checks.chooses(job) { compare(run, job, script, transcript) } else { transcript }
}

/// A failure counts only as a cold run has it, which begins without the files that the failed one left.
fn confirm(run: &Run<'_>, job: JobId, script: &Script, warm: Transcript, group: &Group) -> Transcript {
    run.checks.confirmed.fetch_add(1, Ordering::Relaxed);
    let again = |launcher: &Launcher| {
        own_files::remove(script);
        run_once(run, script, launcher).0
    };
    let cold = again(&run.cold);
    let end = |t: &Transcript| (t.exit_code, t.fault.clone(), t.timed_out);
    if cold.fault == Some(Fault::Interrupted) {
        return cold;
    }
    if end(&cold) == end(&warm) {
        return if run.checks.parity { compare(run, job, script, cold) } else { cold };
    }
    // Once more each way: a test that is flaky by itself is no fault of ours.
    let (warm_again, cold_again) = (again(run.launcher), again(&run.cold));
    if end(&warm_again) == end(&warm) && end(&cold_again) == end(&cold) {
        let seen =
            |transcript: &Transcript| Seen { transcript: transcript.clone(), files: Default::default() };
        let found = difference::between(script, &seen(&warm), &seen(&cold));
        fault(run, job, group, &found.expect("their ends differ"));
    } else {
        run.checks.unsteady.fetch_add(1, Ordering::Relaxed);
        if run.checks.parity {
            let text =
                format!("{}: failed once when started warm, and not each time again", run.source.label(job));
            tell(run, Severity::Note, text);
        }
    }
    cold
}

/// Runs the script warm and cold, and compares. Returns the transcript to believe.
fn compare(run: &Run<'_>, job: JobId, script: &Script, believed: Transcript) -> Transcript {
    let script = Script { tape: true, ..script.clone() };
    let (warm, group) = see(run, &script, run.launcher);
    let (cold, _) = see(run, &script, &run.cold);
    let interrupted = |seen: &Seen| seen.transcript.fault == Some(Fault::Interrupted);
    if interrupted(&warm) || interrupted(&cold) {
        return Transcript { fault: Some(Fault::Interrupted), ..believed };
    }
    run.checks.compared.fetch_add(1, Ordering::Relaxed);
    let Some(found) = difference::between(&script, &warm, &cold) else { return believed };
    // Output that depends on addresses takes few forms, so two cold runs can be equal by chance.
    let begun = Instant::now();
    let unsteady = (0..MORE_COLD_RUNS)
        .take_while(|&n| n < COLD_RUNS || begun.elapsed() < MORE_FOR)
        .find_map(|_| difference::between(&script, &cold, &see(run, &script, &run.cold).0));
    if let Some(unsteady) = unsteady {
        run.checks.unsteady.fetch_add(1, Ordering::Relaxed);
        if run.checks.parity {
            let text = format!("{}: two cold runs differ, too, in {}", run.source.label(job), unsteady.what);
            tell(run, Severity::Note, text);
        }
        return believed;
    }
    fault(run, job, &group, &found);
    cold.transcript
}

/// One run from a clean start, with its files.
fn see(run: &Run<'_>, script: &Script, launcher: &Launcher) -> (Seen, Arc<Group>) {
    own_files::remove(script);
    let (transcript, group) = run_once(run, script, launcher);
    (Seen { transcript, files: own_files::read(script) }, group)
}

/// Notes that a failure was confirmed.
pub(crate) fn confirmed(run: &Run<'_>) {
    run.checks.confirmed.fetch_add(1, Ordering::Relaxed);
}

/// Notes that a test is not deterministic by itself.
pub(crate) fn unsteady(run: &Run<'_>) {
    run.checks.unsteady.fetch_add(1, Ordering::Relaxed);
}

/// Reports a difference that two cold runs do not have, and keeps the programs of `group` cold.
pub(crate) fn fault(run: &Run<'_>, job: JobId, group: &Group, found: &Difference) {
    run.checks.faults.fetch_add(1, Ordering::Relaxed);
    run.launcher.distrust(group);
    let Difference { what, first, second } = found;
    let label = run.source.label(job);
    let text = format!(
        "a fault of hotstart, not of the test: {label}: started warm and cold, it differs in {what}. The cold run \
         counts, and its tools are started cold from now on. Please report this.\n--- warm\n{first}\n--- cold\n{second}\n---"
    );
    tell(run, if run.checks.parity { Severity::Error } else { Severity::Warning }, text);
}

fn tell(run: &Run<'_>, severity: Severity, message: String) {
    run.events.send(Event::Diagnostic(Diagnostic { severity, place: None, message }));
}
