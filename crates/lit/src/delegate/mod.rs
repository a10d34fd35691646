//! Runs tests whose format is written in Python. Python helpers run them and return scripts to the engine.
//!
//! A helper is a process like the one that evaluates configs, and evaluates all of them again: each may have left something in
//! `lit_config` or in a module, where the code of any format finds it. Helpers start when tests need them, at most one per
//! worker, and serve one test at a time until the run ends.

mod call;
mod update;

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex};

use hotstart_launch::{Group, Launcher};
use hotstart_model::{Fault, Outcome, RunScript, Verdict, VerdictTable};

use self::call::Calls;
pub(crate) use self::update::Update;
use crate::config::{Origin, Session, has_limits_in_configs};
use crate::probe::execute::{Assignment, Executed};
use crate::probe::{Probe, ProbeError, SuiteRef};
use crate::settings::Settings;
use crate::suite::Test;

/// The helpers of a run.
#[derive(Debug)]
pub(crate) struct Helpers<'a> {
    starter: Option<(&'a Launcher, &'a Group)>,
    settings: Settings,
    session: Arc<Session>,
    origins: Vec<Option<Arc<Origin>>>,
    verdicts: VerdictTable,
    idle: Mutex<Vec<Helper<'a>>>,
}

/// A helper and its numbers of the configs that it has evaluated, by the runner's numbers.
#[derive(Debug)]
struct Helper<'a> {
    probe: Probe<'a>,
    configs: HashMap<u32, u32>,
}

/// Reasons why a test has no result.
enum Trouble {
    /// The helper is no longer usable.
    Lost(ProbeError),
    /// The helper reported an error, such as a config that can no longer be evaluated.
    Said(String),
}

impl From<ProbeError> for Trouble {
    fn from(error: ProbeError) -> Self {
        Trouble::Lost(error)
    }
}

impl<'a> Helpers<'a> {
    pub fn new(
        starter: Option<(&'a Launcher, &'a Group)>,
        settings: Settings,
        session: Arc<Session>,
        origins: Vec<Option<Arc<Origin>>>,
        verdicts: VerdictTable,
    ) -> Self {
        Helpers { starter, settings, session, origins, verdicts, idle: Mutex::default() }
    }

    /// Returns all result codes.
    pub fn verdicts(&self) -> &VerdictTable {
        &self.verdicts
    }

    /// Ends the helpers.
    pub fn end(&mut self) {
        self.idle.get_mut().expect("no panic while locked").clear();
    }

    /// Runs a test; `None` if the run was interrupted meanwhile.
    pub fn run(&self, test: &Test, run_script: &RunScript<'_>) -> Option<Outcome> {
        let Some((launcher, group)) = self.starter else {
            let text = "This test's format is written in Python, and no helper may be started to run it.\n";
            return Some(Outcome::decided(Verdict::UNRESOLVED, text));
        };
        let mut calls = Calls::new(&self.session, test.config(), run_script);
        let executed = self.with_helper(launcher, group, |helper| {
            helper.assigned(test, &self.origins, |probe, assignment| {
                let executed = probe.execute(assignment, &mut |call| calls.answer(call))?;
                Ok(executed.map_err(|text| format!("Exception during script execution:\n{text}\n")))
            })
        });
        if calls.interrupted || group.is_killed() {
            return None;
        }
        Some(match executed {
            Ok(executed) => self.outcome(executed),
            Err(Trouble::Said(text)) => Outcome::decided(Verdict::UNRESOLVED, text),
            Err(Trouble::Lost(ProbeError::Ended(_))) => Outcome::decided(
                Verdict::UNRESOLVED,
                "The Python process that ran this test has ended; a test format must not end its process.\n",
            ),
            Err(Trouble::Lost(error)) => Outcome::decided(Verdict::UNRESOLVED, format!("{error}\n")),
        })
    }

    fn with_helper<T>(
        &self,
        launcher: &'a Launcher,
        group: &'a Group,
        ask: impl FnOnce(&mut Helper<'a>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let idle = self.idle.lock().expect("no panic while locked").pop();
        let mut helper = match idle {
            Some(helper) => helper,
            None => self.start(launcher, group)?,
        };
        let answer = ask(&mut helper);
        if !matches!(answer, Err(Trouble::Lost(_))) {
            self.idle.lock().expect("no panic while locked").push(helper);
        }
        answer
    }

    fn start(&self, launcher: &'a Launcher, group: &'a Group) -> Result<Helper<'a>, Trouble> {
        let mut probe = Probe::start(&self.settings, launcher, group)?;
        let limit = match has_limits_in_configs(self.session.lit_version) {
            true => None,
            false => Some(self.session.max_individual_test_time.map_or(0, |limit| limit.as_secs())),
        };
        probe.begin(self.session.tmp_dir.as_deref(), limit)?;
        let mut helper = Helper { probe, configs: HashMap::new() };
        helper.evaluate_all(&self.origins)?;
        Ok(helper)
    }

    fn outcome(&self, executed: Executed) -> Outcome {
        let known = self.verdicts.iter().find(|(_, kind)| kind.name == executed.code);
        let Some((verdict, _)) = known else {
            let text = format!(
                "The test's format answered with the result code {}, which no config defines; define it where the \
                 format is imported.\n{}",
                executed.code, executed.output
            );
            return Outcome::decided(Verdict::UNRESOLVED, text);
        };
        let micro = |(name, micro)| (name, self.outcome(micro));
        Outcome {
            elapsed: executed.elapsed,
            attempts: executed.attempts,
            updates: executed.updates,
            metrics: executed.metrics,
            micro_results: executed.micro.into_iter().map(micro).collect(),
            missing_features: executed.missing,
            ..Outcome::decided(verdict, executed.output)
        }
    }
}

impl Helper<'_> {
    /// Sends a request about a test. The inner error is the helper's.
    fn assigned<T>(
        &mut self,
        test: &Test,
        origins: &[Option<Arc<Origin>>],
        ask: impl FnOnce(&mut Probe<'_>, &Assignment<'_>) -> Result<Result<T, String>, ProbeError>,
    ) -> Result<T, Trouble> {
        let suite = test.suite();
        let suite_config = self.config(suite.config.id, origins)?;
        let config = self.config(test.config().id, origins)?;
        let detail = test.detail();
        let components: Vec<OsString> = match detail {
            Some(detail) => detail.components.iter().map(OsString::from).collect(),
            None => test.relative_path().iter().map(OsString::from).collect(),
        };
        let assignment = Assignment {
            suite: SuiteRef {
                name: &suite.name,
                source_root: &suite.source_root,
                exec_root: &suite.exec_root,
                config: suite_config,
            },
            config,
            components: &components,
            file: detail.and_then(|detail| detail.file.as_deref()),
            results: detail.and_then(|detail| detail.results.as_deref()),
            carried: detail.and_then(|detail| detail.carried.as_deref()),
            marks: test.marks,
        };
        ask(&mut self.probe, &assignment)?.map_err(Trouble::Said)
    }

    /// Evaluates all configs in the runner's order. Ignores those that have errors.
    fn evaluate_all(&mut self, origins: &[Option<Arc<Origin>>]) -> Result<(), Trouble> {
        for (id, _) in origins.iter().enumerate().filter(|(_, origin)| origin.is_some()) {
            match self.config(u32::try_from(id).expect("numbers of configs"), origins) {
                Err(trouble @ Trouble::Lost(_)) => return Err(trouble),
                Ok(_) | Err(Trouble::Said(_)) => {}
            }
        }
        Ok(())
    }

    /// Returns the helper's number of a config. Evaluates it and its parents if needed.
    fn config(&mut self, id: u32, origins: &[Option<Arc<Origin>>]) -> Result<u32, Trouble> {
        if let Some(&known) = self.configs.get(&id) {
            return Ok(known);
        }
        let Some(origin) = origins.get(id as usize).and_then(Option::as_ref) else {
            return Err(Trouble::Said(format!("hotstart does not know where config {id} comes from.\n")));
        };
        let parent = origin.parent.map(|parent| self.config(parent, origins)).transpose()?;
        let evaluated = self.probe.evaluate(&origin.file, parent)?;
        let own = evaluated.map_err(|text| {
            let file = origin.file.display();
            Trouble::Said(format!("'{file}' could be evaluated once, but not again: {text}\n"))
        })?;
        self.configs.insert(id, own);
        Ok(own)
    }
}

/// Returns whether a script was ended because the whole run was.
fn is_interruption(fault: Option<&Fault>) -> bool {
    fault == Some(&Fault::Interrupted)
}
