//! Remembers which tests have passed with which inputs, so that they are not run again (`--cache`).
//!
//! Only a pass at the first attempt is remembered, of a run whose inputs are all known. A sample of the tests that are known to pass is
//! run all the same. If one of them does not pass, nothing is remembered of its suite any more, in later runs as well.
//!
//! Where a program has changed, its tests are traced in the next run that finds it as it is, and not before.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hotstart_inputs::{Hash, Input, Known, Running, Shared, Stamp, Verdicts, surroundings};
use hotstart_model::{Fault, JobId, Outcome, Script, Severity, Transcript, Verdict};
use hotstart_shell::Losses;

use crate::schedule::Run;
use crate::traced::{TraceError, Traced};

/// One in this many tests that are known to pass is run.
const SAMPLE: u64 = 20;

/// The tests that are known to pass.
#[derive(Debug)]
pub struct Memory {
    verdicts: Verdicts,
    /// What every test depends on besides its script and files.
    surroundings: String,
    /// lit's directory for temporary files. Its name differs in each run, so that it does not belong to the key.
    tmp_dir: Option<PathBuf>,
    chance: RandomState,
    counts: Mutex<MemoryCounts>,
    /// Suites that were looked up, and have gone wrong.
    off: Mutex<(HashSet<String>, HashSet<String>)>,
    /// `None` where the matcher decides nothing.
    losses: Option<Losses>,
}

/// What became of tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryCounts {
    /// Tests that were not run.
    pub passed: u64,
    /// Tests that were known to pass and run all the same.
    pub sampled: u64,
    /// Tests that were traced.
    pub traced: u64,
    /// Tests that were run but not traced, since a program that they use has just changed.
    pub waiting: u64,
    /// Inputs that made a test run because they had changed.
    pub changed: BTreeMap<String, u64>,
    /// Tests whose inputs cannot be told, by reason.
    pub untold: BTreeMap<String, u64>,
    /// Suites of which nothing is remembered, with the reason.
    pub off: BTreeMap<String, String>,
}

impl Memory {
    /// Remembers below this directory. `compares_times` if a file with other times or another inode is another file.
    pub fn new(dir: &Path, compares_times: bool, tmp_dir: Option<PathBuf>) -> Memory {
        let program = std::env::current_exe().ok();
        let of_program = program.as_ref().and_then(|program| match compares_times {
            true => Stamp::of(program).ok().map(|stamp| format!("{stamp:?}")),
            false => std::fs::read(program).ok().map(|bytes| blake3::hash(&bytes).to_string()),
        });
        Memory {
            verdicts: Verdicts::new(dir, compares_times),
            surroundings: format!("{}\n{program:?} {of_program:?}", surroundings()),
            tmp_dir,
            chance: RandomState::new(),
            counts: Mutex::default(),
            off: Mutex::default(),
            losses: None,
        }
    }

    /// Remembers tests for which the matcher may decide FileChecks, apart from those in which every FileCheck runs. All of them are
    /// forgotten when a FileCheck loses its trust.
    pub fn with_matcher(mut self, losses: Losses) -> Memory {
        self.surroundings += &format!("\nmatcher {}", losses.text());
        self.losses = Some(losses);
        self
    }

    /// Whether its tests may be taken for passes.
    fn is_valid(&self) -> bool {
        self.losses.as_ref().is_none_or(Losses::are_current)
    }

    /// The same, remembered in a place that is shared with other runners as well. It is given a name for those whose surroundings are
    /// equal, since no other's verdicts are of use here.
    pub fn shared_in<S: Shared + 'static>(mut self, place: impl FnOnce(String) -> S) -> Memory {
        let name = blake3::derive_key("hotstart: shared verdicts, 5", self.surroundings.as_bytes());
        let place = place(blake3::Hash::from(name).to_string());
        self.verdicts = self.verdicts.shared_in(Box::new(place));
        self
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> MemoryCounts {
        self.counts.lock().expect("no panic while locked").clone()
    }

    /// Writes what is new.
    pub fn save(&self) {
        self.verdicts.save();
    }

    /// Returns what names this script. `None` if it is not text.
    pub fn key(&self, script: &Script) -> Option<Hash> {
        let without = Script { env: Arc::default(), ..script.clone() };
        let mut hasher = blake3::Hasher::new_derive_key("hotstart: a test, 1");
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        add(self.surroundings.as_bytes());
        add(self.without_tmp_dir(&serde_json::to_string(&without).ok()?).as_bytes());
        for (name, value) in script.env.iter() {
            add(name.as_encoded_bytes());
            match value.to_str() {
                Some(value) => add(self.without_tmp_dir(value).as_bytes()),
                None => add(value.as_encoded_bytes()),
            }
        }
        let hash = hasher.finalize();
        let word =
            |at: usize| u64::from_le_bytes(hash.as_bytes()[at * 8..][..8].try_into().expect("8 bytes"));
        Some([word(0), word(1), word(2), word(3)])
    }

    fn without_tmp_dir<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.tmp_dir.as_deref().and_then(Path::to_str) {
            Some(dir) if text.contains(dir) => text.replace(dir, "\u{0}tmp").into(),
            _ => text.into(),
        }
    }

    /// Returns whether this script is known to pass, and otherwise why not.
    pub fn ask(&self, script: &Script) -> Known {
        match self.key(script) {
            Some(key) => self.verdicts.ask(&key, outputs(script)),
            None => Known::Untold("its script is not UTF-8".to_owned()),
        }
    }

    /// Returns the inputs of the script's last traced run, or why they cannot be told. `None` if there was none.
    pub fn inputs(&self, script: &Script) -> Option<Result<Vec<Input>, String>> {
        self.verdicts.inputs(&self.key(script)?)
    }

    /// Completes the inputs of a traced run. The error is the reason why they cannot be told.
    pub fn complete(&self, inputs: &mut [Input]) -> Result<(), String> {
        let is_temporary =
            |input: &Input| self.tmp_dir.as_ref().is_some_and(|dir| Path::new(&input.path).starts_with(dir));
        if inputs.iter().any(is_temporary) {
            return Err("looks into lit's directory for temporary files, which has another name in each run"
                .to_owned());
        }
        self.verdicts.complete(inputs)
    }

    /// Records that a test runs until the returned value is dropped.
    pub(crate) fn test_runs(&self) -> Running<'_> {
        self.verdicts.test_runs()
    }

    fn count(&self, add: impl FnOnce(&mut MemoryCounts)) {
        add(&mut self.counts.lock().expect("no panic while locked"));
    }

    fn is_off(&self, suite: &str) -> bool {
        let mut off = self.off.lock().expect("no panic while locked");
        if off.0.insert(suite.to_owned()) {
            if let Some(why) = self.verdicts.is_off(suite) {
                off.1.insert(suite.to_owned());
                self.count(|counts| _ = counts.off.insert(suite.to_owned(), why));
            }
        }
        off.1.contains(suite)
    }

    fn switch_off(&self, suite: &str, why: String) {
        self.verdicts.switch_off(suite, &why);
        let mut off = self.off.lock().expect("no panic while locked");
        off.0.insert(suite.to_owned());
        off.1.insert(suite.to_owned());
        self.count(|counts| _ = counts.off.insert(suite.to_owned(), why));
    }
}

/// Returns how the names of a test's own outputs begin, without `.tmp`. Each run makes them anew.
fn outputs(script: &Script) -> &Path {
    &script.tmp_base
}

/// What to do with a test.
pub(crate) enum Advice {
    /// This is its outcome.
    Settled(Box<Outcome>),
    /// Run it.
    Run,
    /// Run it, although it is known to pass.
    Check(Expected),
}

/// A pass that a run should confirm.
pub(crate) struct Expected {
    suite: String,
    key: Hash,
}

/// Looks up a test that is about to run for the first time, and traces it if nothing is known.
pub(crate) fn consult(run: &Run<'_>, job: JobId, script: &Script) -> Advice {
    let Some(memory) = &run.settings.memory else { return Advice::Run };
    let Some(suite) = run.source.remembered_in(job) else { return Advice::Run };
    let Some(key) = memory.key(script).filter(|_| memory.is_valid() && !memory.is_off(&suite)) else {
        return Advice::Run;
    };
    match memory.verdicts.ask(&key, outputs(script)) {
        Known::Passes => {
            let passed = Transcript { exit_code: Some(0), ..Transcript::default() };
            // The test may be expected to fail by now.
            if run.source.would_fail(job, 1, &passed) {
                return Advice::Run;
            }
            if memory.chance.hash_one(key) % SAMPLE == 0 {
                memory.count(|counts| counts.sampled += 1);
                return Advice::Check(Expected { suite, key });
            }
            let Some(mut outcome) = run.source.conclude(job, 1, passed) else { return Advice::Run };
            memory.count(|counts| counts.passed += 1);
            outcome.is_cached = true;
            Advice::Settled(Box::new(outcome))
        }
        Known::Untold(why) => {
            memory.count(|counts| *counts.untold.entry(why).or_default() += 1);
            Advice::Run
        }
        Known::Nothing(changed) => {
            if let Some(path) = changed {
                let is_new = memory.verdicts.is_new_program(Path::new(&path));
                memory.count(|counts| *counts.changed.entry(path).or_default() += 1);
                // A traced run takes many times as long as a warm one. Whoever builds a tool often should not pay for that each time.
                if is_new {
                    memory.count(|counts| counts.waiting += 1);
                    return Advice::Run;
                }
            }
            learn(run, memory, job, script, key)
        }
    }
}

/// Runs a test traced. If that is no pass with known inputs, it runs again as any other test does.
fn learn(run: &Run<'_>, memory: &Memory, job: JobId, script: &Script, key: Hash) -> Advice {
    if !run.keep_files(job, &script.tmp_base, true) {
        // It could not run again.
        return Advice::Run;
    }
    let traced = {
        let _running = memory.test_runs();
        run.executor.trace(job, script)
    };
    let Traced { transcript, inputs } = match traced {
        Ok(traced) => traced,
        Err(why) => {
            if let TraceError::Refused(why) = why {
                memory.count(|counts| *counts.untold.entry(why).or_default() += 1);
            }
            return as_usual(run, job, script);
        }
    };
    memory.count(|counts| counts.traced += 1);
    let is_pass = transcript.exit_code == Some(0) && !transcript.timed_out && transcript.fault.is_none();
    // A sample of what the matcher has decided is compared with cold runs, as after a warm run.
    let is_sampled = transcript.matched > 0 && run.checks.chooses(job);
    if is_sampled || transcript.is_outdated {
        return as_usual(run, job, script);
    }
    let mut inputs = match inputs {
        Ok(inputs) if is_pass && !run.source.would_fail(job, 1, &transcript) => inputs,
        Ok(_) => {
            return as_usual(run, job, script);
        }
        Err(why) => return untold(run, memory, job, script, key, why),
    };
    // A file that was changed while the test ran may be as it was next time, so that is not stored.
    let is_complete = match memory.complete(&mut inputs) {
        Ok(()) => true,
        Err(why) if why.contains("temporary files") => return untold(run, memory, job, script, key, why),
        Err(_) => false,
    };
    let Some(outcome) = run.source.conclude(job, 1, transcript) else { return Advice::Run };
    if is_complete && outcome.verdict == Verdict::PASS {
        memory.verdicts.passed(key, inputs);
    }
    Advice::Settled(Box::new(outcome))
}

fn untold(run: &Run<'_>, memory: &Memory, job: JobId, script: &Script, key: Hash, why: String) -> Advice {
    memory.count(|counts| *counts.untold.entry(why.clone()).or_default() += 1);
    memory.verdicts.untold(key, why);
    as_usual(run, job, script)
}

/// Has a test run like any other, on the files that its traced run has found.
fn as_usual(run: &Run<'_>, job: JobId, script: &Script) -> Advice {
    let Err(why) = run.restore_files(job, &script.tmp_base) else { return Advice::Run };
    let fault = Some(Fault::Internal(format!("the test has to run again, but {why}")));
    let outcome = run.source.conclude(job, 1, Transcript { fault, ..Transcript::default() });
    outcome.map_or(Advice::Run, |outcome| Advice::Settled(Box::new(outcome)))
}

impl Expected {
    /// Compares the outcome of a run with the pass that was expected.
    pub(crate) fn confirm(&self, run: &Run<'_>, job: JobId, outcome: &Outcome) {
        let Some(memory) = &run.settings.memory else { return };
        if matches!(outcome.verdict, Verdict::PASS | Verdict::SKIPPED) {
            return;
        }
        memory.verdicts.forget(&self.key);
        let label = run.source.label(job);
        let why = format!("'{label}' was known to pass, and did not");
        memory.switch_off(&self.suite, why);
        let text = format!(
            "a fault of hotstart, or a test that does not always pass: {label} was known to pass with the inputs that it has, and does not \
             pass. Its run counts. Nothing is remembered of the suite {} any more, until `hotstart cache clear`. Please report this.",
            self.suite
        );
        run.tell(Severity::Doubt, text);
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
