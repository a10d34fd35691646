//! The selected tests as a source of jobs: what `run` sees of them.
//!
//! Nothing is read before a job's turn has come. A config is compiled when its first test is prepared, and what
//! is known of a test between its script and its verdict is kept only that long.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use hotstart_model::{JobId, JobSource, Outcome, Transcript, Verdict, VerdictTable, Work};

use crate::config::{Config, Format, ParallelismGroup, Session};
use crate::judge::{self, Pending};
use crate::script::{self, CompiledConfig, Compiler, Prepared, Request};
use crate::settings::Settings;
use crate::suite::Test;
use crate::tmp_dir::TmpDir;

/// The jobs of a run: job N is the Nth selected test.
#[derive(Debug)]
pub struct Plan {
    session: Arc<Session>,
    tests: Arc<[Test]>,
    /// Places in `tests`.
    selected: Vec<u32>,
    failures: Vec<bool>,
    compiler: Compiler,
    /// By the numbers of the configs.
    compiled: Vec<OnceLock<CompiledConfig>>,
    pending: Mutex<HashMap<JobId, Box<Pending>>>,
    /// Groups that configs computed, by place in `tests`.
    groups: HashMap<u32, String>,
    no_execute: bool,
    max_retries: Option<u32>,
    annotate: bool,
    wants_all_output: bool,
    tmp_dir: Option<TmpDir>,
}

impl Plan {
    pub(crate) fn new(
        session: Arc<Session>,
        tests: Arc<[Test]>,
        selected: &[u32],
        verdicts: &VerdictTable,
        groups: HashMap<u32, String>,
        settings: &Settings,
    ) -> io::Result<Self> {
        let configs = tests.iter().map(|test| test.config().id as usize + 1).max().unwrap_or(0);
        let tmp_dir = session.tmp_dir.as_deref().map(TmpDir::create).transpose()?;
        Ok(Plan {
            compiler: Compiler::new(session.dialect),
            session,
            tests,
            selected: selected.to_vec(),
            failures: verdicts.iter().map(|(_, kind)| kind.is_failure).collect(),
            compiled: (0..configs).map(|_| OnceLock::new()).collect(),
            pending: Mutex::default(),
            groups,
            no_execute: settings.no_execute,
            max_retries: settings.max_retries_per_test,
            annotate: settings.annotate,
            wants_all_output: settings.wants_all_output,
            tmp_dir,
        })
    }

    /// The test behind a job.
    pub fn test(&self, job: JobId) -> &Test {
        &self.tests[self.place(job) as usize]
    }

    /// The job's test as a place in the list of all tests found.
    pub fn place(&self, job: JobId) -> u32 {
        self.selected[job.0 as usize]
    }

    /// Removes the directory for temporary files. On failure gives a warning.
    pub fn finish(mut self) -> Result<(), String> {
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
        };
        match script::prepare(&request) {
            Prepared::Decided(outcome) => Work::Decided(Box::new(outcome)),
            Prepared::Script(script, pending) => {
                self.pending.lock().expect("no panic while locked").insert(job, pending);
                Work::Script(script)
            }
        }
    }

    fn is_failure(&self, verdict: Verdict) -> bool {
        self.failures.get(usize::from(verdict.0)).copied().unwrap_or(true)
    }
}

impl JobSource for Plan {
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

    fn prepare(&self, job: JobId) -> Work {
        let test = self.test(job);
        match &test.config().format {
            Some(Format::ShTest { .. }) => self.prepare_script(job, test),
            format => Work::Decided(Box::new(not_possible(format.as_ref()))),
        }
    }

    fn conclude(&self, job: JobId, attempt: u32, transcript: Transcript) -> Option<Outcome> {
        let pending = self.pending.lock().expect("no panic while locked").remove(&job);
        let Some(pending) = pending else {
            let text = "hotstart lost what it knew of this test. This says nothing about the test; please report it.\n";
            return Some(Outcome::decided(Verdict::UNRESOLVED, text));
        };
        let first = judge::conclude(&pending, attempt, &transcript, self.wants_all_output);
        match first {
            None => {
                self.pending.lock().expect("no panic while locked").insert(job, pending);
                None
            }
            // Text is made only for those whose text is read.
            Some(outcome) if !self.wants_all_output && self.is_failure(outcome.verdict) => {
                judge::conclude(&pending, attempt, &transcript, true)
            }
            decided => decided,
        }
    }

    fn would_fail(&self, job: JobId, attempt: u32, transcript: &Transcript) -> bool {
        let pending = self.pending.lock().expect("no panic while locked");
        let judged = pending.get(&job).and_then(|known| judge::conclude(known, attempt, transcript, false));
        judged.is_none_or(|outcome| self.is_failure(outcome.verdict))
    }

    fn run_delegated(&self, job: JobId) -> Outcome {
        not_possible(self.test(job).config().format.as_ref())
    }
}

/// For tests that this version cannot run: never a verdict about the test.
fn not_possible(format: Option<&Format>) -> Outcome {
    let what = match format {
        None => "its config sets no test_format; set one in the suite's config".to_owned(),
        Some(Format::Python(class)) => {
            format!(
                "its format, {class}, is written in Python, which hotstart cannot run yet; run it with lit"
            )
        }
        Some(Format::Executable) => {
            "its format is ExecutableTest, which hotstart cannot run yet; run it with lit".to_owned()
        }
        Some(Format::GoogleTest { .. } | Format::ShTest { .. }) => {
            "its format is not one that hotstart runs this way; run it with lit".to_owned()
        }
    };
    Outcome::decided(Verdict::UNRESOLVED, format!("The test was not run: {what}.\n"))
}
