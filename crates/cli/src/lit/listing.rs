//! `--show-suites`, `--show-tests`, `--show-used-features`: lists the discovered tests without running any.

use std::collections::BTreeSet;
use std::process::ExitCode;

use hotstart_lit::config::{Config, Substitution};
use hotstart_lit::directives;
use hotstart_lit::load::Discovered;
use hotstart_lit::suite::{Suite, Test};
use hotstart_report::Sink;
use hotstart_report::listing::{self, SuiteListing, TestListing, json};

use super::records;
use crate::args::LitOptions;
use crate::exit_code::{self, SUCCESS};

/// Returns whether the options ask only for a list.
pub(super) fn is_wanted(options: &LitOptions) -> bool {
    options.own.list || options.show_suites || options.show_tests || options.show_used_features
}

/// Prints the requested list; `None` if the options ask for none.
pub(super) fn list(options: &LitOptions, discovered: &Discovered) -> Option<ExitCode> {
    if options.own.list {
        return Some(json(discovered));
    }
    if !is_wanted(options) {
        return None;
    }
    let mut out = Sink::stdout();
    if options.show_suites {
        listing::write_suites(
            &mut out,
            discovered.suites.iter().filter_map(|s| suite(s, discovered)).collect(),
        );
    }
    if options.show_tests {
        let paths = records::paths(&discovered.tests);
        let test = |(test, path): (&Test, _)| (test.suite().clone(), path, test.full_name());
        let named: Vec<_> = discovered.tests.iter().zip(&paths).map(test).collect();
        let listed = named.iter().map(|(suite, path, full_name)| TestListing {
            suite: &suite.name,
            suite_index: suite.index,
            path,
            full_name: full_name.clone(),
        });
        listing::write_tests(&mut out, listed.collect());
    }
    if options.show_used_features && !(options.show_suites || options.show_tests) {
        let (mut used, mut unread) = (BTreeSet::new(), Vec::new());
        let has_conditions = |test: &&Test| test.detail().is_none_or(|known| known.results.is_none());
        for test in discovered.tests.iter().filter(has_conditions) {
            match directives::used_features(&test.source_path()) {
                Ok(features) => used.extend(features),
                Err(_) => unread.push(test.full_name()),
            }
        }
        listing::write_used_features(&mut out, used.into_iter().collect());
        for name in unread {
            super::told(&format!("warning: the conditions of '{name}' cannot be read; run it to see why\n"));
        }
    }
    Some(exit_code::written(&mut out, SUCCESS))
}

/// Prints as JSON everything that is known of suites and tests before they run.
fn json(discovered: &Discovered) -> ExitCode {
    let mut out = Sink::stdout();
    let mut selected = vec![false; discovered.tests.len()];
    discovered.selection.tests().iter().for_each(|&place| selected[place as usize] = true);
    let paths: Vec<_> = discovered.tests.iter().map(Test::path_text).collect();
    let record = |((test, path), selected)| {
        let test: &Test = test;
        json::TestEntry {
            name: test.full_name(),
            suite: test.suite().index,
            path,
            file: test.file_path(),
            selected,
            last_seconds: (test.previous != 0.0).then_some(test.previous.abs()),
            last_failed: test.previous_failure(),
        }
    };
    let tests = discovered.tests.iter().zip(paths).zip(selected).map(record);
    let suites: Vec<_> = discovered.suites.iter().map(|found| json_suite(found, discovered)).collect();
    json::write(&mut out, suites, tests);
    exit_code::written(&mut out, SUCCESS)
}

fn json_suite(suite: &Suite, discovered: &Discovered) -> json::SuiteEntry {
    json::SuiteEntry {
        index: suite.index,
        name: suite.name.clone(),
        source_root: suite.source_root.clone(),
        exec_root: suite.exec_root.clone(),
        tests: discovered.tests.iter().filter(|test| test.suite().index == suite.index).count(),
        features: suite.config.available_features.iter().cloned().collect(),
    }
}

/// Returns a suite's description, if the suite has tests.
fn suite(suite: &Suite, discovered: &Discovered) -> Option<SuiteListing> {
    let tests = discovered.tests.iter().filter(|test| test.suite().index == suite.index).count();
    let config: &Config = &suite.config;
    let pair = |substitution: &Substitution| (substitution.key.clone(), substitution.value.clone());
    (tests > 0).then(|| SuiteListing {
        name: suite.name.clone(),
        tests,
        source_root: suite.source_root.display().to_string(),
        exec_root: suite.exec_root.display().to_string(),
        features: config.available_features.iter().cloned().collect(),
        substitutions: config.substitutions.iter().map(pair).collect(),
    })
}
