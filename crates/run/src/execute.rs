//! Runs a script once, behind a trait, so that tests of the decisions about runs need no processes.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotstart_launch::{Group, Launcher, Visit, descriptors};
use hotstart_model::{Fault, Interpreter, JobId, Script, Transcript};

use hotstart_shell::{FileChecks, Starts};

use crate::traced::{Did, How, TraceError, Traced, Tracers};
use crate::watch::Watch;

/// The way tools are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// As the settings require, warm where possible.
    Warm,
    /// By exec.
    Cold,
}

/// One run of a script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ran {
    pub transcript: Transcript,
    /// Number of its processes that were started warm, plus commands that ran without a process where a cold run has one.
    pub warm_starts: usize,
    /// Whether there were such FileChecks.
    pub has_matched: bool,
    /// Whether one of its warm starts was doubtful, so that the transcript proves nothing.
    pub is_doubtful: bool,
    /// Whether one of its warm starts was lost or killed from outside, so that it may have failed by that.
    pub is_lost: bool,
    /// Whether the time of the whole run ran out before it ended.
    pub is_cut_short: bool,
    /// Its processes.
    pub group: Arc<Group>,
}

impl Ran {
    /// Returns whether hotstart itself lacked a resource that it needs for a run.
    pub(crate) fn had_no_room(&self) -> bool {
        matches!(self.transcript.fault, Some(Fault::Internal(_))) && !self.transcript.is_outdated
    }

    /// Returns whether something else than the test may have decided how it ended: a start was lost, or a FileCheck has found
    /// other files than it would have under lit.
    pub(crate) fn is_void(&self) -> bool {
        self.is_lost || self.transcript.is_outdated
    }

    /// Returns whether the run was ended from outside, so that there is no result.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.transcript.fault == Some(Fault::Interrupted)
    }
}

/// Runs scripts.
pub(crate) trait Execute: Sync + fmt::Debug {
    /// Runs `script` once.
    fn run(&self, job: JobId, script: &Script, way: Way) -> Ran;

    /// Runs `script` once, traced and cold, but for FileChecks that pass by the matcher.
    fn trace(&self, job: JobId, script: &Script) -> Result<Traced, TraceError>;

    /// Quarantines the tools that this run started warm.
    fn quarantine(&self, ran: &Ran);

    /// If this run of `test` had FileChecks that passed without a process, allows no more such passes.
    fn quarantine_matches(&self, ran: &Ran, test: &str);

    /// Ends the persistent processes that took part in this run, without blame for their tools.
    fn doubt_workers(&self, ran: &Ran);

    /// Returns the runs of persistent processes before they took part in this run, at most `most` of each.
    fn visits(&self, ran: &Ran, most: usize) -> Vec<Visit>;
}

/// Runs scripts by starting processes, under the watch that ends them at their deadline.
#[derive(Debug)]
pub(crate) struct Processes<'a> {
    warm: &'a Launcher,
    /// Starts everything cold. Warm starts are compared with it.
    cold: &'a Launcher,
    tracers: Tracers<'a>,
    /// Decides passes of FileCheck in warm runs and in traced ones.
    filechecks: Option<Arc<FileChecks>>,
    watch: Arc<Watch>,
    /// Deadline of the whole run.
    deadline: Option<Instant>,
}

impl<'a> Processes<'a> {
    /// `cold` is what `warm` is compared with; the processes that trace are in the group `tracers`.
    pub(crate) fn new(
        warm: &'a Launcher,
        cold: &'a Launcher,
        tracers: &'a Group,
        filechecks: Option<Arc<FileChecks>>,
        watch: Arc<Watch>,
        deadline: Option<Instant>,
    ) -> Self {
        Processes { warm, cold, tracers: Tracers::new(cold, tracers), filechecks, watch, deadline }
    }
}

impl Execute for Processes<'_> {
    fn run(&self, job: JobId, script: &Script, way: Way) -> Ran {
        let (launcher, filechecks) = match way {
            Way::Warm => (self.warm, self.filechecks.as_deref()),
            Way::Cold => (self.cold, None),
        };
        let group = Arc::new(Group::of_job(job.0));
        // Before the script's time begins.
        let _room = descriptors::reserve(needed(script), || self.watch.is_killed());
        let own = script.timeout.map(|limit| Instant::now() + limit);
        let deadline = [own, self.deadline].into_iter().flatten().min();
        let mut transcript = {
            let _watched = self.watch.over(&group, deadline);
            let is_repeatable = way == Way::Warm;
            hotstart_shell::run_script_with(
                script,
                Starts { launcher, group: &group, filechecks, is_repeatable },
            )
        };
        // The run's own deadline is no test's timeout: a script that it cut off has no result.
        let now = Instant::now() + Duration::from_millis(1);
        let is_cut_short =
            self.deadline.is_some_and(|at| at <= now) && group.is_killed() && own.is_none_or(|at| at > now);
        if is_cut_short {
            transcript.fault = Some(Fault::Interrupted);
        }
        let is_doubtful = group.is_doubtful() || transcript.is_outdated;
        Ran {
            // One that is doubtful has to run again, cold, though nothing of it was warm.
            warm_starts: group.warm_starts()
                + transcript.matched
                + transcript.natives
                + usize::from(is_doubtful),
            has_matched: transcript.matched > 0,
            is_doubtful,
            is_lost: group.is_lost(),
            transcript,
            is_cut_short,
            group,
        }
    }

    fn trace(&self, job: JobId, script: &Script) -> Result<Traced, TraceError> {
        let group = Arc::new(Group::of_job(job.0));
        let _room = descriptors::reserve(needed(script) + STAGE, || self.watch.is_killed());
        let filechecks = self.filechecks.as_deref();
        let filechecks_known = filechecks.and_then(FileChecks::known);
        let how = How { filechecks: filechecks_known, ..How::default() };
        let own = script.timeout.map(|limit| Instant::now() + limit);
        let deadline = [own, self.deadline].into_iter().flatten().min();
        let (mut traced, Did { uses, own }) = {
            let _watched = self.watch.over(&group, deadline);
            self.tracers.run(script, how, &group)?
        };
        match filechecks.is_none_or(|filechecks| filechecks.take(uses, &own, &mut traced.inputs)) {
            true => Ok(traced),
            false => Err(TraceError::Lost),
        }
    }

    fn quarantine(&self, ran: &Ran) {
        self.warm.quarantine(&ran.group);
    }

    fn quarantine_matches(&self, ran: &Ran, test: &str) {
        if let Some(filechecks) = self.filechecks.as_ref().filter(|_| ran.has_matched) {
            filechecks.quarantine(test);
        }
    }

    fn doubt_workers(&self, ran: &Ran) {
        ran.group.doubt_workers();
    }

    fn visits(&self, ran: &Ran, most: usize) -> Vec<Visit> {
        ran.group.visits(most)
    }
}

/// Descriptors that a stage needs while it is started and runs: its pipes, our ends of them, a temporary file, and those that
/// watch it.
const STAGE: u64 = 8;
/// Further descriptors that a script needs: an empty input, and a zygote or persistent process that is made for it.
const SCRIPT: u64 = 6;

/// Returns the most descriptors that a script needs at a time. It counts signs in quotes as well, which does no harm.
fn needed(script: &Script) -> u64 {
    let of_command = |text: &str| {
        let count = |signs: &[char]| text.matches(signs).count() as u64;
        STAGE * (1 + count(&['|'])) + count(&['<', '>'])
    };
    let may_be_native = match &script.interpreter {
        Interpreter::Internal => true,
        Interpreter::External(shell) => shell.may_be_native,
        Interpreter::Program(_) => false,
    };
    let commands = script.commands.iter().filter(|_| may_be_native);
    SCRIPT + commands.map(|command| of_command(&command.text)).max().unwrap_or(STAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;
    use hotstart_model::Command;

    #[test]
    fn the_longest_pipeline_says_how_many_descriptors_are_needed() {
        let command = |text: &str| Command { label: String::new(), text: text.to_owned() };
        let commands = vec![command("true"), command("a < b | c 2>&1 | d > e"), command("a | b")];
        let script = Script { commands, ..fake::script() };
        assert_eq!(needed(&script), SCRIPT + 3 * STAGE + 3);
        assert_eq!(needed(&fake::script()), SCRIPT + STAGE);
    }
}
