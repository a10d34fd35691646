//! Receives the events of a run from all workers, and keeps the outcomes for summary and reports.
//!
//! One lock guards all writing, so a test's lines stay together. Outputs are the bulk of a run's memory (50,000 tests),
//! so an output is dropped as soon as nothing needs it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotstart_model::{Diagnostic, Event, Events, JobId, Outcome, RunEnd, Verdict, VerdictTable};

use crate::display::{self, Bar, Display, Predictor, Progress};
use crate::result_lines::{self, Ended};
use crate::{Catalog, DiagnosticCounts, Diagnostics, Levels, Sink};

/// The tests whose output is kept after it was shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepOutput {
    /// No output: no report is written.
    #[default]
    None,
    /// Output of failed tests, for the XML report.
    OfFailures,
    /// Output of all tests, for reports that contain it.
    OfAll,
}

/// Settings of a reporter.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Levels of detail.
    pub levels: Levels,
    /// Kind of the progress bar, if one is requested.
    pub bar: Bar,
    /// Number of tests discovered, selected or not.
    pub discovered: usize,
    /// Result codes, those of configs included.
    pub table: VerdictTable,
    /// The tests whose output is kept.
    pub keep_output: KeepOutput,
}

/// Displays a run while it is in progress.
pub struct Reporter<C> {
    catalog: C,
    settings: Settings,
    state: Mutex<State>,
}

struct State {
    out: Sink,
    diagnostics: Diagnostics,
    display: Option<Box<dyn Display>>,
    predictor: Predictor,
    jobs: u32,
    workers: usize,
    completed: u32,
    outcomes: Vec<Option<Arc<Outcome>>>,
}

impl<C: Catalog> Reporter<C> {
    /// Creates a reporter that writes results to `out`. Discovery may have used `diagnostics` before.
    pub fn new(catalog: C, settings: Settings, out: Sink, diagnostics: Diagnostics) -> Self {
        let state = State {
            out,
            diagnostics,
            display: None,
            predictor: Predictor::default(),
            jobs: 0,
            workers: 0,
            completed: 0,
            outcomes: Vec::new(),
        };
        Reporter { catalog, settings, state: Mutex::new(state) }
    }

    /// Returns whether writing to standard output has failed, as it does when its reader is gone.
    pub fn is_closed(&self) -> bool {
        self.lock().out.is_closed()
    }

    /// Ends the run. Returns the outcomes by job (SKIPPED if unfinished) and the sinks for further text.
    pub fn into_results(self) -> Results {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let skipped = Arc::new(Outcome::decided(Verdict::SKIPPED, ""));
        let outcomes =
            state.outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| skipped.clone())).collect();
        Results { outcomes, workers: state.workers, out: state.out, diagnostics: state.diagnostics }
    }

    /// Ignores poisoning: a worker that panicked while it wrote must not cost the other workers' results.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, state: &mut State, jobs: u32, workers: usize) {
        let Settings { levels, bar, discovered, .. } = &self.settings;
        let mut display = display::choose(levels, bar, jobs, *discovered, workers);
        if display.shows_progress() {
            state.predictor = Predictor::new((0..jobs).map(|job| self.catalog.previous_elapsed(JobId(job))));
        }
        display.begin(&mut state.out);
        state.display = Some(display);
        (state.jobs, state.workers) = (jobs, workers);
        state.outcomes.resize(jobs as usize, None);
    }

    /// Lets the display update the elapsed time.
    pub fn tick(&self) {
        let mut state = self.lock();
        let State { out, display, .. } = &mut *state;
        if let Some(display) = display {
            display.tick(out);
        }
        state.out.flush();
    }

    fn started(&self, state: &mut State, job: JobId, worker: usize) {
        if let Some(display) = state.display.as_mut().filter(|display| display.shows_starts()) {
            display.started(&mut state.out, worker, self.catalog.full_name(job));
        }
    }

    fn finished(&self, state: &mut State, job: JobId, outcome: Arc<Outcome>) {
        let Settings { levels, table, .. } = &self.settings;
        state.completed += 1;
        let shows_result = levels.results.includes(&outcome, table);
        let shows_progress = state.display.as_ref().is_some_and(|display| display.shows_progress());
        if shows_result || shows_progress {
            let name = self.catalog.full_name(job);
            if let (true, Some(display)) = (shows_result, &mut state.display) {
                display.make_room(&mut state.out);
            }
            if shows_result {
                let test = Ended { name: &name, outcome: &outcome, place: (state.completed, state.jobs) };
                result_lines::write(&mut state.out, &test, levels, table);
                Self::blame(state, &test, levels.output.includes(&outcome, table));
            }
            if shows_progress {
                self.advance(state, job, &outcome, &name);
            }
        }
        let index = job.0 as usize;
        if index >= state.outcomes.len() {
            state.outcomes.resize(index + 1, None);
        }
        state.outcomes[index] = Some(self.without_unread_output(outcome));
    }

    /// Names the command that failed, beside the output. On standard error: standard output is lit's to the byte.
    fn blame(state: &mut State, test: &Ended<'_>, shows_output: bool) {
        let Ended { name, outcome, .. } = test;
        if shows_output && !outcome.blame.is_empty() {
            state.out.flush();
            state.diagnostics.put(&format!("hotstart: {name}: {}\n", outcome.blame));
        }
    }

    fn advance(&self, state: &mut State, job: JobId, outcome: &Outcome, name: &str) {
        let elapsed = outcome.elapsed.map_or(0.0, |elapsed| elapsed.as_secs_f64());
        let fraction = state.predictor.advance(self.catalog.previous_elapsed(job), elapsed);
        let failed = self.settings.table.kind(outcome.verdict).is_failure;
        if let Some(display) = &mut state.display {
            let worker = outcome.worker;
            display.update(&mut state.out, Progress { fraction, name, failed, worker });
        }
    }

    fn without_unread_output(&self, outcome: Arc<Outcome>) -> Arc<Outcome> {
        let is_failure = self.settings.table.kind(outcome.verdict).is_failure;
        let is_read = match self.settings.keep_output {
            KeepOutput::None => false,
            // The reason of a skip is short, and reports contain it.
            KeepOutput::OfFailures => is_failure || outcome.verdict == Verdict::UNSUPPORTED,
            KeepOutput::OfAll => true,
        };
        if is_read || outcome.output.is_empty() {
            return outcome;
        }
        let mut outcome = Arc::unwrap_or_clone(outcome);
        outcome.output = String::new();
        Arc::new(outcome)
    }

    fn end(&self, state: &mut State, end: RunEnd) {
        if let Some(mut display) = state.display.take() {
            display.end(&mut state.out, end == RunEnd::Interrupted);
        }
        state.out.flush();
    }

    fn diagnose(&self, state: &mut State, diagnostic: &Diagnostic) {
        state.out.flush();
        state.diagnostics.take(diagnostic, &self.settings.levels);
    }
}

impl<C: Catalog> Events for Reporter<C> {
    fn send(&self, event: Event) {
        let mut state = self.lock();
        match event {
            Event::Diagnostic(diagnostic) => self.diagnose(&mut state, &diagnostic),
            Event::RunStarted { jobs, workers } => self.begin(&mut state, jobs, workers),
            Event::Started { job, worker } => self.started(&mut state, job, worker),
            Event::Finished { job, outcome, .. } => self.finished(&mut state, job, outcome),
            Event::RunFinished { end } => self.end(&mut state, end),
        }
        state.out.flush();
    }
}

/// The results of a run.
pub struct Results {
    /// Outcomes by job.
    pub outcomes: Vec<Arc<Outcome>>,
    /// Number of workers that ran tests.
    pub workers: usize,
    /// Sink for the summary.
    pub out: Sink,
    /// Sink for diagnostics at the end; its counts are those of the whole run.
    pub diagnostics: Diagnostics,
}

impl Results {
    /// Returns the numbers of diagnostics.
    pub fn diagnostic_counts(&self) -> DiagnosticCounts {
        self.diagnostics.counts()
    }
}

#[cfg(test)]
#[path = "reporter_tests.rs"]
mod tests;
