//! Counts and confirms scripts that ask for bash. The internal shell runs those that mean the same to both shells.
//!
//! A native run is believed only if it succeeded and was meant to. After any other the requested shell runs the script again from
//! a clean start, and that run counts. So no test fails because of a difference between the shells.

use std::collections::BTreeMap;
use std::sync::Mutex;

use hotstart_model::{Fault, Interpreter, JobId, RunBy, Script, Severity, Transcript};

use crate::check::Believed;
use crate::execute::{Ran, Way};
use crate::flaky;
use crate::schedule::Run;

/// Counts scripts by the shell that ran them. Called from all workers.
#[derive(Debug, Default)]
pub struct Shells(Mutex<ShellCounts>);

/// Scripts that ask for an external shell, by the shell that ran them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellCounts {
    /// By the internal shell, with success.
    pub native: u64,
    /// By the internal shell, and after a failure by the external one.
    pub confirmed: u64,
    /// Of these, those that the external shell ran with success.
    pub differing: u64,
    /// By the external shell only, by reason.
    pub refused: BTreeMap<&'static str, u64>,
}

impl ShellCounts {
    /// Returns the number of scripts that only the external shell has run.
    pub fn refused_total(&self) -> u64 {
        self.refused.values().sum()
    }
}

impl Shells {
    /// Returns the counts so far.
    pub fn counts(&self) -> ShellCounts {
        self.0.lock().expect("no panic while locked").clone()
    }

    fn count(&self, change: impl FnOnce(&mut ShellCounts)) {
        change(&mut self.0.lock().expect("no panic while locked"));
    }
}

/// Returns the same script, to be run by the shell that it asks for.
pub(crate) fn as_asked(script: &Script) -> Option<Script> {
    match &script.interpreter {
        Interpreter::External(shell) if shell.may_be_native => {
            let mut asked = script.clone();
            let shell = hotstart_model::ExternalShell { may_be_native: false, ..shell.clone() };
            asked.interpreter = Interpreter::External(shell);
            Some(asked)
        }
        _ => None,
    }
}

/// Returns whether a run succeeded natively. Its time may not have run out: `! sleep 9` turns the status of a killed command around, but
/// bash itself would have been killed.
fn succeeds(transcript: &Transcript) -> bool {
    let Transcript { run_by, exit_code, timed_out, fault, .. } = transcript;
    *run_by == RunBy::Native && *exit_code == Some(0) && !timed_out && fault.is_none()
}

/// Returns whether this run failed natively, and so proves nothing yet.
pub(crate) fn must_be_confirmed(transcript: &Transcript) -> bool {
    let is_interrupted = transcript.fault == Some(Fault::Interrupted);
    transcript.run_by.is_internal() && !succeeds(transcript) && !is_interrupted
}

/// Returns whether a native success would fail the test, because it is expected to fail.
pub(crate) fn passes_unexpectedly(run: &Run<'_>, job: JobId, attempt: u32, transcript: &Transcript) -> bool {
    succeeds(transcript) && run.source.would_fail(job, attempt, transcript)
}

/// Records the shell of a first attempt that needs no confirmation.
pub(crate) fn note(run: &Run<'_>, transcript: &Transcript) {
    let Some(shells) = run.shells() else { return };
    match transcript.run_by {
        RunBy::AsAsked | RunBy::Doubted(_) => {}
        RunBy::Native => shells.count(|counts| counts.native += 1),
        RunBy::Refused(reason) => shells.count(|counts| *counts.refused.entry(reason).or_default() += 1),
    }
}

/// Records a script that the external shell runs at once, as a failure has to be its own anyway.
pub(crate) fn note_foreseen(run: &Run<'_>) {
    if let Some(shells) = run.shells() {
        shells.count(|counts| *counts.refused.entry("it will probably fail").or_default() += 1);
    }
}

/// Runs a script that failed natively with the shell that it asks for.
pub(crate) fn confirm(run: &Run<'_>, job: JobId, script: &Script, native: Ran) -> Believed {
    let Some(asked) = as_asked(script) else { return Believed::first(native) };
    let again = |script: &Script| run.again(job, script, Way::Cold);
    if matches!(native.transcript.run_by, RunBy::Doubted(_)) {
        native.group.end_left();
    }
    let ran = again(&asked);
    let transcript = ran.transcript.clone();
    let Some(shells) = run.shells() else { return Believed::other(native, transcript) };
    if let RunBy::Doubted(reason) = native.transcript.run_by {
        shells.count(|counts| *counts.refused.entry(reason).or_default() += 1);
        return Believed::other(native, transcript);
    }
    shells.count(|counts| counts.confirmed += 1);
    if transcript.exit_code != Some(0) {
        return Believed::other(native, transcript);
    }
    let native_cold = again(script);
    let passes_cold = native_cold.transcript.exit_code == Some(0) && !native_cold.transcript.timed_out;
    if must_be_confirmed(&native.transcript) && passes_cold {
        // The shell does not make the difference.
        if native.warm_starts == 0 {
            // A test that fails at first, and not when it is repeated, fails with lit.
            return Believed::first(native);
        }
        let doubt = (!native.is_void()).then(|| {
            flaky::report_script(run, job, script, [&native, &native_cold], &must_be_confirmed, true)
        });
        let ran = again(&asked);
        return Believed { doubt, ..Believed::other(native, ran.transcript) };
    }
    // A flaky test fails by chance; a difference between the shells stays.
    let transcript = again(&asked).transcript;
    if must_be_confirmed(&native_cold.transcript) && transcript.exit_code == Some(0) {
        tell_difference(run, job, shells);
    }
    Believed::other(native, transcript)
}

fn tell_difference(run: &Run<'_>, job: JobId, shells: &Shells) {
    shells.count(|counts| counts.differing += 1);
    let message = format!(
        "a fault of hotstart, not of the test: {}: run natively it fails, by its own shell it does not. That run \
         counts. Please report this; --shell=auto avoids it.",
        run.source.label(job)
    );
    run.tell(Severity::Doubt, message);
}

#[cfg(test)]
#[path = "shells_tests.rs"]
mod tests;
