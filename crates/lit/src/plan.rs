//! The selected tests as a source of jobs for `run`.
//!
//! Nothing is read before a job's turn. A config is compiled when its first test is prepared, and a test's data is
//! kept only from its script to its verdict.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use hotstart_model::{
    Dialect, Elsewhere, JobId, JobSource, LikelyFailure, Outcome, RunScript, Transcript, Verdict, Work, Wrap,
};

use hotstart_python::re::Pattern;

use crate::config::{Config, Format, ParallelismGroup, Session};
use crate::delegate::{Helpers, Update};
use crate::exception::{self, Exception};
use crate::executable;
use crate::googletest::individual::{self, Final};
use crate::googletest::shard::{self, Shard, Ways};
use crate::judge::{self, Pending};
use crate::read_ahead::ReadAhead;
use crate::script::{self, CompiledConfig, Compiler, Prepared, Request};
use crate::select;
use crate::settings::Settings;
use crate::subst::tmp_dir;
use crate::suite::Test;
use crate::tmp_dir::TmpDir;

/// The jobs of a run: job N is the Nth selected test.
#[derive(Debug)]
pub struct Plan<'a> {
    session: Arc<Session>,
    tests: Arc<[Test]>,
    /// Places in `tests`.
    selected: Arc<[u32]>,
    read_ahead: ReadAhead,
    /// Number of tests before those that run alone; all tests if none runs alone.
    together: u32,
    /// Number of different tests, if they are repeated.
    repeated: Option<u32>,
    wraps: Arc<[Wrap]>,
    failures: Vec<bool>,
    compiler: Compiler,
    /// Indexed by the numbers of the configs.
    compiled: Vec<OnceLock<CompiledConfig>>,
    pending: Mutex<HashMap<JobId, Awaited>>,
    /// Groups that configs computed. Keys are places in `tests`.
    groups: HashMap<u32, String>,
    /// Directories with tests, once they are asked for.
    directories: OnceLock<Arc<[PathBuf]>>,
    no_execute: bool,
    max_retries: Option<u32>,
    annotate: bool,
    line_times: bool,
    wants_all_output: bool,
    updates_tests: bool,
    ways: Ways,
    helpers: Helpers<'a>,
    tmp_dir: Option<TmpDir>,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(
        session: Arc<Session>,
        tests: Arc<[Test]>,
        selected: &[u32],
        helpers: Helpers<'a>,
        groups: HashMap<u32, String>,
        settings: &Settings,
    ) -> io::Result<Self> {
        let configs = tests.iter().map(|test| test.config().id as usize + 1).max().unwrap_or(0);
        let tmp_dir = session.tmp_dir.as_deref().map(TmpDir::create).transpose()?;
        let updates_tests = settings.update_tests && session.dialect == Dialect::V23;
        let (selected, together, repeated) = arranged(&tests, selected, settings);
        Ok(Plan {
            compiler: Compiler::new(session.dialect),
            session,
            read_ahead: ReadAhead::new(tests.clone(), selected.clone()),
            tests,
            selected,
            together,
            repeated,
            wraps: Arc::clone(&settings.wraps),
            failures: helpers.verdicts().iter().map(|(_, kind)| kind.is_failure).collect(),
            compiled: (0..configs).map(|_| OnceLock::new()).collect(),
            pending: Mutex::default(),
            groups,
            directories: OnceLock::new(),
            no_execute: settings.no_execute,
            max_retries: settings.max_retries_per_test,
            annotate: settings.annotate,
            line_times: settings.line_times,
            ways: Ways::new(settings),
            helpers,
            wants_all_output: settings.wants_all_output,
            // Older lits have no updaters.
            updates_tests,
            tmp_dir,
        })
    }

    /// Returns the test of a job.
    pub fn test(&self, job: JobId) -> &Test {
        &self.tests[self.place(job) as usize]
    }

    /// Returns the place of the job's test in the list of all tests found.
    pub fn place(&self, job: JobId) -> u32 {
        self.selected[job.0 as usize]
    }

    /// Returns the number of the first job that runs alone, after all jobs before it; `None` if there is none.
    pub fn together(&self) -> Option<u32> {
        (self.together < self.count()).then_some(self.together)
    }

    /// Returns the number of a job's repetition, from 1; `None` if tests are not repeated.
    pub fn repetition(&self, job: JobId) -> Option<u32> {
        self.repeated.map(|tests| job.0 / tests.max(1) + 1)
    }

    /// Removes the directory for temporary files. The error is a warning.
    pub fn finish(mut self) -> Result<(), String> {
        self.helpers.end();
        self.tmp_dir.take().map_or(Ok(()), TmpDir::remove)
    }

    fn compiled(&self, config: &Config) -> &CompiledConfig {
        self.compiled[config.id as usize].get_or_init(|| self.compiler.compile(config))
    }

    fn prepare_script(&self, job: JobId, test: &Test) -> Work {
        let request = Request {
            session: &self.session,
            config: test.config(),
            compiled: self.compiled(test.config()),
            test,
            no_execute: self.no_execute,
            max_retries: self.max_retries,
            annotate: self.annotate,
            line_times: self.line_times,
            repetition: self.repetition(job),
            wraps: &self.wraps,
        };
        let begun = Instant::now();
        let prepared = script::prepare(&request);
        self.read_ahead.prepared(job, begun.elapsed());
        match prepared {
            Prepared::Decided(outcome) => Work::Decided(outcome),
            Prepared::Script(script, pending) => {
                self.await_end(job, Awaited::Script(pending));
                Work::Script(script)
            }
        }
    }

    fn prepare_shard(&self, job: JobId, test: &Test, run_under: &[String]) -> Work {
        let Some((script, shard)) = shard::prepare(&self.session, test.config(), run_under, test, &self.ways)
        else {
            return decided(test, Verdict::FAIL, String::new());
        };
        if self.no_execute {
            return decided(test, Verdict::PASS, String::new());
        }
        self.await_end(job, Awaited::Shard(Box::new(shard)));
        Work::Script(Box::new(script))
    }

    fn prepare_executable(&self, job: JobId, test: &Test) -> Work {
        match executable::prepare(&self.session, test, self.ways.cwd()) {
            Ok(script) => {
                self.await_end(job, Awaited::Executable { xfail: is_marked_xfail(test) });
                Work::Script(Box::new(script))
            }
            Err(error) => decided(test, Verdict::UNRESOLVED, exception::test_output(&error)),
        }
    }

    fn await_end(&self, job: JobId, awaited: Awaited) {
        self.pending.lock().expect("no panic while locked").insert(job, awaited);
    }

    /// Replaces googletest's shards by single tests, for lists and reports. `None` if there are no shards. `outcomes` are
    /// those of all tests found.
    pub fn individual_tests(&self, outcomes: &[Arc<Outcome>]) -> Option<Final> {
        let is_failure = |verdict| self.is_failure(verdict);
        individual::replace_shards(&self.tests, &self.selected, outcomes, is_failure, self.session.dialect)
    }

    /// Lets updaters change a test after an attempt. The error is the test's outcome if they fail.
    fn update(
        &self,
        test: &Test,
        pending: &mut Pending,
        transcript: &Transcript,
    ) -> Result<(), Box<Outcome>> {
        let update = match pending.can_be_updated(transcript) {
            true => self.helpers.update(test, pending.commands(), transcript),
            false => Update::Said(String::new()),
        };
        match update {
            Update::Said(said) => pending.note_update(said),
            Update::Raised(steps, trace) => {
                return Err(Box::new(pending.failed_update(transcript, steps, &trace)));
            }
            Update::Lost(Some(outcome)) => return Err(outcome),
            Update::Lost(None) => return Err(Box::new(Outcome::decided(Verdict::SKIPPED, ""))),
        }
        Ok(())
    }

    /// Returns the directories that have tests.
    fn directories(&self) -> Arc<[PathBuf]> {
        let directories = || {
            let files = self.tests.iter().map(Test::file_path);
            let set: BTreeSet<PathBuf> = files.filter_map(|file| file.parent().map(Path::to_owned)).collect();
            set.into_iter().collect()
        };
        Arc::clone(self.directories.get_or_init(directories))
    }

    fn is_failure(&self, verdict: Verdict) -> bool {
        self.failures.get(usize::from(verdict.0)).copied().unwrap_or(true)
    }
}

impl JobSource for Plan<'_> {
    fn count(&self) -> u32 {
        u32::try_from(self.selected.len()).expect("fewer than 2^32 tests")
    }

    fn label(&self, job: JobId) -> String {
        self.test(job).full_name()
    }

    fn parallelism_group(&self, job: JobId) -> Option<(String, u32)> {
        let name = match self.test(job).config().parallelism_group.as_ref()? {
            ParallelismGroup::Named(name) => name,
            ParallelismGroup::Callable => self.groups.get(&self.place(job))?,
        };
        let size = (*self.session.parallelism_groups.get(name)?)?;
        Some((name.clone(), size))
    }

    fn remembered_in(&self, job: JobId) -> Option<String> {
        let test = self.test(job);
        let suite = test.suite();
        let is_script = matches!(test.config().format, Some(Format::ShTest { .. }));
        let is_once =
            self.repeated.is_none() && self.wraps.is_empty() && !self.line_times && !self.updates_tests;
        (is_script && is_once).then(|| format!("{} ({})", suite.name, suite.exec_root.display()))
    }

    fn elsewhere(&self, job: JobId) -> Option<Elsewhere> {
        // The same tests as those that may be remembered: their verdict depends on their script's pass alone.
        self.remembered_in(job)?;
        let file = self.test(job).file_path();
        let name = file.to_str()?.to_owned();
        Some(Elsewhere { name, directory: file.parent()?.to_owned(), apart: self.directories() })
    }

    fn prepare(&self, job: JobId) -> Work {
        let test = self.test(job);
        match &test.config().format {
            Some(Format::ShTest { .. }) => self.prepare_script(job, test),
            Some(Format::GoogleTest { run_under, .. }) => self.prepare_shard(job, test, run_under),
            Some(Format::Executable) => self.prepare_executable(job, test),
            Some(Format::Python(_)) => Work::Delegated,
            None => {
                let error = Exception::new("AttributeError", "'NoneType' object has no attribute 'execute'")
                    .at("the config sets no test_format; set one in the suite's config");
                decided(test, Verdict::UNRESOLVED, exception::test_output(&error))
            }
        }
    }

    fn conclude(&self, job: JobId, attempt: u32, transcript: Transcript) -> Option<Outcome> {
        let pending = self.pending.lock().expect("no panic while locked").remove(&job);
        let Some(pending) = pending else {
            let text = "hotstart lost what it knew of this test. This says nothing about the test; please report it.\n";
            return Some(Outcome::decided(Verdict::UNRESOLVED, text));
        };
        let mut pending = match pending {
            Awaited::Script(pending) => pending,
            Awaited::Shard(shard) => return Some(shard.conclude(&transcript)),
            Awaited::Executable { xfail } => return Some(executable::conclude(&transcript, xfail)),
        };
        if self.updates_tests {
            if let Err(outcome) = self.update(self.test(job), &mut pending, &transcript) {
                return Some(*outcome);
            }
        }
        let first = judge::conclude(&pending, attempt, &transcript, self.wants_all_output);
        match first {
            None => {
                self.await_end(job, Awaited::Script(pending));
                None
            }
            // Compose the text only if it will be read.
            Some(outcome)
                if !self.wants_all_output && (self.is_failure(outcome.verdict) || outcome.attempts.0 > 1) =>
            {
                judge::conclude(&pending, attempt, &transcript, true)
            }
            decided => decided,
        }
    }

    fn would_fail(&self, job: JobId, attempt: u32, transcript: &Transcript) -> bool {
        let pending = self.pending.lock().expect("no panic while locked");
        let judged = match pending.get(&job) {
            Some(Awaited::Script(known)) => judge::conclude(known, attempt, transcript, false),
            Some(Awaited::Shard(shard)) => Some(shard.conclude(transcript)),
            Some(Awaited::Executable { xfail }) => Some(executable::conclude(transcript, *xfail)),
            // A script of a job in the Python helper, which alone can judge it.
            None => return transcript.exit_code != Some(0),
        };
        judged.is_none_or(|outcome| self.is_failure(outcome.verdict))
    }

    fn likely_failure(&self, job: JobId) -> Option<LikelyFailure> {
        let pending = self.pending.lock().expect("no panic while locked");
        match pending.get(&job) {
            Some(Awaited::Script(known)) if known.is_expected_to_fail() => Some(LikelyFailure::Expected),
            Some(Awaited::Script(_)) => {
                self.test(job).previous_failure().then_some(LikelyFailure::FailedLast)
            }
            _ => None,
        }
    }

    fn shown(&self, job: JobId, transcript: &Transcript) -> String {
        let pending = self.pending.lock().expect("no panic while locked");
        match pending.get(&job) {
            Some(Awaited::Script(known)) => judge::shown(known, transcript),
            Some(Awaited::Shard(shard)) => shard.conclude(transcript).output,
            Some(Awaited::Executable { xfail }) => executable::conclude(transcript, *xfail).output,
            None => judge::shown_of_delegated(self.session.dialect, transcript),
        }
    }

    fn own_files(&self, job: JobId) -> Option<PathBuf> {
        let exec = self.test(job).exec_path();
        Some(tmp_dir(&exec, self.repetition(job)).join(exec.file_name()?))
    }

    fn run_delegated(&self, job: JobId, run_script: &RunScript<'_>) -> Option<Outcome> {
        self.helpers.run(self.test(job), run_script)
    }
}

/// A test's data between its script and its verdict.
#[derive(Debug)]
enum Awaited {
    /// RUN lines.
    Script(Box<Pending>),
    /// A part of a googletest executable.
    Shard(Box<Shard>),
    /// A test file that is executed itself.
    Executable { xfail: bool },
}

/// Returns the jobs in the order in which they start: those that run alone come last, and repetitions are included. Also returns
/// how many jobs run together, and the number of different tests if they are repeated.
fn arranged(tests: &[Test], selected: &[u32], settings: &Settings) -> (Arc<[u32]>, u32, Option<u32>) {
    let count = |tests: &[u32]| u32::try_from(tests.len()).expect("fewer than 2^32 tests");
    if !settings.replay.is_empty() {
        return (selected.into(), count(selected), None);
    }
    let pattern = settings.alone.as_deref().and_then(|pattern| select::compile_filter(pattern).ok());
    let is_alone = |place: &u32| {
        let test = &tests[*place as usize];
        let of_config = || test.config().hotstart_alone.has(&test.name().to_string_lossy());
        let matches = |pattern: &Pattern| pattern.is_match(&test.full_name()).unwrap_or(false);
        pattern.as_ref().is_some_and(matches) || of_config()
    };
    let (alone, others): (Vec<u32>, Vec<u32>) = selected.iter().partition(|place| is_alone(place));
    let times = settings.repeat.unwrap_or(1).max(1) as usize;
    if alone.is_empty() && times == 1 {
        return (selected.into(), count(selected), settings.repeat.map(|_| count(selected)));
    }
    let once: Vec<u32> = others.iter().chain(&alone).copied().collect();
    if times == 1 {
        return (once.into(), count(&others), settings.repeat.map(|_| count(selected)));
    }
    // If tests are repeated and some must run alone, all run one by one.
    let jobs: Vec<u32> = once.repeat(times);
    let together = if alone.is_empty() { count(&jobs) } else { 0 };
    (jobs.into(), together, Some(count(&once)))
}

/// Returns the outcome of a test that has nothing to run; XFAIL is applied.
fn decided(test: &Test, verdict: Verdict, output: String) -> Work {
    let (verdict, output) = judge::settle(verdict, output, &Ok(is_marked_xfail(test)));
    Work::Decided(Box::new(Outcome::decided(verdict, output)))
}

fn is_marked_xfail(test: &Test) -> bool {
    test.marks.xfail && !test.marks.xfail_not
}
