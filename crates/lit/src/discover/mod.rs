//! Finds suites and their tests: the walk of lit's discovery, in its order, with its messages.
//!
//! Python only evaluates configs, in lit's order, as they may depend on each other. Until the walk is over, only a
//! test's name is kept: later configs can still change earlier ones. See docs/reference/lit-compat.md, 2.1 to 2.5.

mod googletest;
mod select_files;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotstart_model::{Diagnostic, Dialect, Event, Events, Severity};

use crate::config::{Config, Format, Origin};
use crate::googletest::list::Starter;
use crate::probe::{Probe, ProbeError, State};
use crate::settings::Settings;
use crate::suite::{Directory, Suite, Test};

/// The suites and tests below the given paths, in the order of the walk.
#[derive(Debug)]
pub struct Found {
    /// Suites in the order in which they were found.
    pub suites: Vec<Arc<Suite>>,
    /// Tests; a path given twice yields its tests twice.
    pub tests: Vec<Test>,
    /// Origins of the configs, indexed by their numbers.
    pub origins: Vec<Option<Arc<Origin>>>,
    /// State of `lit_config` after the configs have run.
    pub state: State,
    /// Warnings of the walk itself.
    pub warnings: u32,
    /// Number of parts that were abandoned because of an error.
    pub given_up: u32,
}

/// Finds the tests at `settings.paths`.
pub(crate) fn discover(
    probe: &mut Probe<'_>,
    starter: Starter<'_>,
    settings: &Settings,
    dialect: Dialect,
    tmp_dir: Option<&Path>,
    events: &dyn Events,
) -> Result<Found, ProbeError> {
    let mut walk = walk::Walk::new(probe, starter, settings, dialect, tmp_dir, events);
    for input in &settings.paths {
        walk.input(input)?;
    }
    finish(walk)
}

fn finish(mut walk: walk::Walk<'_, '_>) -> Result<Found, ProbeError> {
    let external =
        |config: &Config| matches!(config.format, Some(Format::ShTest { execute_external: true, .. }));
    let with_bash = walk.configs.iter().flatten().any(external);
    let state = walk.probe.state(&mut walk.configs, with_bash, walk.tmp_dir)?;
    walk.pass_on();
    let origins = walk.configs.iter().map(|config| config.as_ref()?.origin.clone()).collect();
    let configs: Vec<Option<Arc<Config>>> =
        walk.configs.into_iter().map(|config| config.map(Arc::new)).collect();
    let config = |id: u32| configs[id as usize].clone().expect("an evaluated config");
    let suite = |(index, entry): (usize, walk::SuiteEntry)| {
        Arc::new(Suite {
            index,
            name: entry.name,
            source_root: entry.source_root,
            exec_root: entry.exec_root,
            config: config(entry.config),
        })
    };
    let suites: Vec<Arc<Suite>> = walk.suites.into_iter().enumerate().map(suite).collect();
    let directory = |entry: walk::DirectoryEntry| {
        Arc::new(Directory {
            suite: suites[entry.suite].clone(),
            path: entry.path,
            config: config(entry.config),
        })
    };
    let directories: Vec<Arc<Directory>> = walk.directories.into_iter().map(directory).collect();
    let test = |(directory, name): (u32, walk::Name)| {
        let directory = directories[directory as usize].clone();
        match name {
            walk::Name::File(name) => Test::new(directory, name),
            walk::Name::Made(detail) => Test::with_detail(directory, detail),
        }
    };
    let tests = walk.tests.into_iter().map(test).collect();
    Ok(Found { suites, tests, origins, state, warnings: walk.voice.warnings, given_up: walk.voice.given_up })
}

/// Sends diagnostics and counts them.
pub(crate) struct Voice<'a> {
    events: &'a dyn Events,
    level: Severity,
    /// Severity of debug messages, only with `--debug`; a note in lit 19.
    debug: Option<Severity>,
    pub warnings: u32,
    pub given_up: u32,
}

impl<'a> Voice<'a> {
    pub fn new(settings: &Settings, dialect: Dialect, events: &'a dyn Events) -> Self {
        let kind = if dialect == Dialect::V19 { Severity::Note } else { Severity::Debug };
        let debug = settings.debug.then_some(kind);
        Voice { events, level: settings.diagnostic_level, debug, warnings: 0, given_up: 0 }
    }

    #[track_caller]
    pub fn debug(&self, message: impl FnOnce() -> String) {
        match self.debug {
            Some(Severity::Note) => self.note(message()),
            Some(severity) => self.send(severity, message()),
            None => {}
        }
    }

    #[track_caller]
    pub fn note(&self, message: String) {
        if self.level <= Severity::Note {
            self.send(Severity::Note, message);
        }
    }

    #[track_caller]
    pub fn warn(&mut self, message: String) {
        self.warnings += 1;
        if self.level <= Severity::Warning {
            self.send(Severity::Warning, message);
        }
    }

    /// Abandons a part of the run.
    pub fn give_up(&mut self, diagnostic: Diagnostic) {
        self.given_up += 1;
        self.events.send(Event::Diagnostic(diagnostic));
    }

    pub fn pass_on(&self, diagnostics: Vec<Diagnostic>) {
        diagnostics.into_iter().for_each(|diagnostic| self.events.send(Event::Diagnostic(diagnostic)));
    }

    #[track_caller]
    fn send(&self, severity: Severity, message: String) {
        let caller = std::panic::Location::caller();
        let place = Some(format!("{}:{}", caller.file(), caller.line()));
        self.events.send(Event::Diagnostic(Diagnostic { severity, place, message }));
    }
}

/// `repr` of a path.
fn repr(path: &Path) -> String {
    hotstart_python::repr(&path.to_string_lossy())
}

/// `repr` of a tuple of path components.
fn repr_tuple(path: &Path) -> String {
    let parts: Vec<String> = path.iter().map(|part| hotstart_python::repr(&part.to_string_lossy())).collect();
    match &parts[..] {
        [one] => format!("({one},)"),
        parts => format!("({})", parts.join(", ")),
    }
}

/// Creates the diagnostic for a directory or file that cannot be read. The rest of the run continues.
fn unreadable(path: PathBuf, error: &std::io::Error) -> Diagnostic {
    let message = format!(
        "cannot read directory '{}': {error}; the tests in it are not run; make it readable or exclude it",
        path.display()
    );
    Diagnostic { severity: Severity::Fatal, place: Some(format!("{}:1", path.display())), message }
}
