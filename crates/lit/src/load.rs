//! The one call that turns settings into tests that are ready to run.
//!
//! The steps: start Python, walk, read the state of `lit_config`, recall times, order, select. In between, lit prints
//! and may exit; that is left to the caller, which gets all that it needs for it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotstart_launch::{Group, Launcher};
use hotstart_model::{Dialect, Events, VerdictTable};

use crate::ahead::Listener;
use crate::config::{Origin, ParallelismGroup, Session, has_limits_in_configs};
use crate::delegate::Helpers;
use crate::discover::{self, Found, Voice};
use crate::exception::Exception;
use crate::googletest::list::Starter;
use crate::plan::Plan;
use crate::probe::python::Interpreter;
use crate::probe::{About, Probe, ProbeError, State, SuiteRef};
use crate::select::{self, Selection};
use crate::settings::Settings;
use crate::suite::{Suite, Test};
use crate::times::{Recalled, Times};
use crate::{order, tmp_dir};

/// Everything that is known before the first test runs.
#[derive(Debug)]
pub struct Discovered {
    /// Facts of the whole run.
    pub session: Arc<Session>,
    /// Suites, in the order in which they were found.
    pub suites: Vec<Arc<Suite>>,
    /// All tests found, in the order in which they would run.
    pub tests: Arc<[Test]>,
    /// The tests that run.
    pub selection: Selection,
    /// Result codes, those of configs included.
    pub verdicts: VerdictTable,
    /// Number of messages so far, by their consequence.
    pub counts: Counts,
    /// Time that discovery took.
    pub timing: Timing,
    /// The times of the last runs.
    pub times: Recalled,
    groups: HashMap<u32, String>,
    /// Origins of the configs, indexed by their numbers.
    origins: Vec<Option<Arc<Origin>>>,
    settings: Settings,
}

/// Messages of configs and of the discovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Configs called `lit_config.error`: lit prints `N errors, exiting.` and exits with 2 now.
    pub errors: u32,
    /// Warnings, which lit counts at the end.
    pub warnings: u32,
    /// Parts of the run that were abandoned; the others run, and the exit code is 2.
    pub given_up: u32,
}

/// The time that discovery took, in parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// Wait for the Python helper, its start included.
    pub waited: Duration,
    /// From the helper's last answer to the end.
    pub after_last_answer: Duration,
    /// Total time.
    pub total: Duration,
}

/// Errors after which no test can run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Configs cannot be evaluated, or one of them ended the run.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A filter is not a regular expression. The wording is lit's.
    #[error("invalid regular expression: '{pattern}', {reason}")]
    Filter {
        /// The filter.
        pattern: String,
        /// Python's reason.
        reason: String,
    },
}

/// Finds and selects tests. Sends diagnostics to `events` as they arise.
pub fn load(settings: &Settings, events: &dyn Events) -> Result<Discovered, LoadError> {
    load_in(settings, events, &Launcher::new(), &Group::new(), None).map(|(discovered, _)| discovered)
}

/// As [`load`], with the helper in a group that the caller can end (Ctrl-C).
///
/// Also returns the helper. Dropping it runs the configs' `atexit` functions and ends Python; the first test need not
/// wait for that. If a config waits for a process, `listener` receives the tools that the tests will probably start.
pub fn load_in<'g>(
    settings: &'g Settings,
    events: &dyn Events,
    launcher: &'g Launcher,
    group: &'g Group,
    listener: Option<Listener<'g>>,
) -> Result<(Discovered, Probe<'g>), LoadError> {
    let begun = Instant::now();
    check_filters(settings)?;
    let mut probe = Probe::start(settings, launcher, group)?;
    let about = probe.about().clone();
    let dialect = if about.lit_version.0 <= 19 { Dialect::V19 } else { Dialect::V23 };
    let tmp_dir = tmp_dir::choose();
    if let Some(listener) = listener {
        probe.listen(listener, settings, tmp_dir.as_deref());
    }
    let mut voice = Voice::new(settings, dialect, events);
    voice.pass_on(probe.take_diagnostics());
    let starter = Starter { launcher, group, cwd: &settings.cwd };
    let Found { suites, mut tests, origins, state, warnings, given_up } =
        discover::discover(&mut probe, starter, settings, dialect, tmp_dir.as_deref(), events)?;
    voice.warnings = warnings + state.warnings;
    voice.given_up = given_up;
    let times = recall_times(&suites, &mut tests, &mut voice);
    order::arrange(&mut tests, settings.order);
    let (selection, note) = select::select(&tests, settings).map_err(|error| filter_error("", &error))?;
    note.into_iter().for_each(|note| voice.note(note));
    select::mark(&mut tests, settings);
    let groups = callable_groups(&mut probe, &tests, selection.tests(), &mut voice)?;
    let (waited, last_answer) = probe.timing();
    let counts = Counts { errors: state.errors, warnings: voice.warnings, given_up: voice.given_up };
    let mut verdicts = VerdictTable::default();
    state.result_codes.iter().for_each(|code| {
        verdicts.intern(code.clone());
    });
    // Later helpers use the same Python.
    let Interpreter { python, lit_package } = about.interpreter.clone();
    let settings_found =
        Settings { python: Some(python), lit_package, config_cache: None, ..settings.clone() };
    let session = session(about, dialect, state, settings, &voice, tmp_dir);
    let timing = Timing { waited, after_last_answer: last_answer.elapsed(), total: begun.elapsed() };
    let discovered = Discovered {
        session: Arc::new(session),
        suites,
        tests: tests.into(),
        selection,
        verdicts,
        counts,
        timing,
        times,
        groups,
        origins,
        settings: settings_found,
    };
    Ok((discovered, probe))
}

impl Discovered {
    /// Returns the selected tests as jobs. Creates the directory for temporary files, which the plan removes. This plan
    /// cannot run tests of formats written in Python.
    pub fn plan(&self) -> std::io::Result<Plan<'static>> {
        self.plan_with(None)
    }

    /// As [`Discovered::plan`], with Python helpers for formats written in Python. They start in `group` when needed.
    pub fn plan_in<'a>(&self, launcher: &'a Launcher, group: &'a Group) -> std::io::Result<Plan<'a>> {
        if let Some(dir) = &self.session.tmp_dir {
            launcher.remove_if_killed(dir);
        }
        self.plan_with(Some((launcher, group)))
    }

    fn plan_with<'a>(&self, starter: Option<(&'a Launcher, &'a Group)>) -> std::io::Result<Plan<'a>> {
        let helpers = Helpers::new(
            starter,
            self.settings.clone(),
            Arc::clone(&self.session),
            self.origins.clone(),
            self.verdicts.clone(),
        );
        Plan::new(
            Arc::clone(&self.session),
            Arc::clone(&self.tests),
            self.selection.tests(),
            helpers,
            self.groups.clone(),
            &self.settings,
        )
    }
}

/// Rejects filters that are no valid patterns, before anything is started.
fn check_filters(settings: &Settings) -> Result<(), LoadError> {
    for pattern in [&settings.filter, &settings.filter_out].into_iter().flatten() {
        select::compile_filter(pattern).map_err(|error| filter_error(pattern, &error))?;
    }
    Ok(())
}

fn filter_error(pattern: &str, error: &Exception) -> LoadError {
    LoadError::Filter { pattern: pattern.to_owned(), reason: error.message.clone() }
}

/// Sets the results of the tests' last runs, and returns them. Abandons a suite whose record cannot be read, as lit stops there.
fn recall_times(suites: &[Arc<Suite>], tests: &mut Vec<Test>, voice: &mut Voice<'_>) -> Recalled {
    let mut times = HashMap::new();
    for suite in suites {
        match Times::read(suite) {
            Ok(read) => drop(times.insert(suite.index, read)),
            Err(malformed) => {
                voice.give_up(malformed.diagnostic());
                tests.retain(|test| test.suite().index != suite.index);
            }
        }
    }
    order::recall(tests, &times);
    Recalled::new(times)
}

/// Computes the groups of tests whose configs have a function for them. Keys are places in the list of all tests.
fn callable_groups(
    probe: &mut Probe<'_>,
    tests: &[Test],
    selected: &[u32],
    voice: &mut Voice<'_>,
) -> Result<HashMap<u32, String>, ProbeError> {
    let mut groups = HashMap::new();
    for &place in selected {
        let test = &tests[place as usize];
        if test.config().parallelism_group != Some(ParallelismGroup::Callable) {
            continue;
        }
        let suite = test.suite();
        let reference = SuiteRef {
            name: &suite.name,
            source_root: &suite.source_root,
            exec_root: &suite.exec_root,
            config: suite.config.id,
        };
        match probe.parallelism_group(reference, test.config().id, &test.relative_path())? {
            Ok(Some(group)) => drop(groups.insert(place, group)),
            Ok(None) => {}
            Err(diagnostic) => voice.give_up(diagnostic),
        }
    }
    voice.pass_on(probe.take_diagnostics());
    Ok(groups)
}

fn session(
    about: About,
    dialect: Dialect,
    state: State,
    settings: &Settings,
    voice: &Voice<'_>,
    tmp_dir: Option<std::path::PathBuf>,
) -> Session {
    // lit 23's configs already contain the command line's limit.
    let limit = match has_limits_in_configs(about.lit_version) {
        true => None,
        false => override_limit(state.max_individual_test_time, settings, voice),
    };
    Session {
        lit_version: about.lit_version,
        lit_version_text: about.lit_version_text,
        dialect,
        package_dir: about.package_dir,
        python: about.python,
        bash: state.bash,
        params: state.params.into_iter().collect::<BTreeMap<_, _>>(),
        valgrind_args: state.valgrind_args,
        per_test_coverage: state.per_test_coverage,
        parallelism_groups: state.parallelism_groups.into_iter().collect(),
        max_individual_test_time: limit,
        native_shell: settings.native_shell,
        diagnose: settings.diagnose.clone(),
        tmp_dir,
    }
}

/// The command line's limit overrides that of the configs.
fn override_limit(configured: Option<Duration>, settings: &Settings, voice: &Voice<'_>) -> Option<Duration> {
    let Some(forced) = settings.timeout else { return configured };
    let configured = configured.map_or(0, |limit| limit.as_secs());
    if forced != configured {
        voice.note(format!(
            "The test suite configuration requested an individual test timeout of {configured} seconds but a \
             timeout of {forced} seconds was requested on the command line. Forcing timeout to be {forced} seconds."
        ));
    }
    (forced > 0).then(|| Duration::from_secs(forced))
}
