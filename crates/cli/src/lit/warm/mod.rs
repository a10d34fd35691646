//! Settings of warm starts: joins the command line and the configuration file, and makes the launcher's policy of them.

mod explain;
mod file;

use std::path::PathBuf;
use std::time::Duration;

use hotstart_launch::{AllocatorChoice, Allocators, Choice, OnDoubt, Policy, allocator};
use hotstart_lit::load::Discovered;
use hotstart_run::Checks;

use crate::args::{Allocator, AllocatorOptions, Parity, Start, WarmOptions};
pub(super) use explain::{blocked, counts, fallbacks, faults, flaky, table, unknown};
pub(super) use file::{FileSettings, UseOfFileCheck, read};

/// Default share of passing tests to compare, in percent.
const VERIFY: f64 = 0.5;
/// In a run of this many tests a tool that starts once will start again, so its first start is warm, which saves a cold one.
/// A zygote that is not needed again costs a third more than a cold start (bench/start), once for each tool.
const MANY_TESTS: usize = 200;
/// In smaller runs a tool is observed once its cold starts have taken as much CPU time as that does: 60 ms for `sed`, 190 ms for
/// `opt` (docs/lab/measurements.md).
const OBSERVATION: Duration = Duration::from_millis(150);

/// How many tests a run has, and how many of them run at a time.
#[derive(Clone, Copy)]
struct RunSize {
    tests: usize,
    jobs: usize,
}

/// All settings, with defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WarmSettings {
    start: Start,
    warm: Option<Vec<String>>,
    keep_cold: Vec<String>,
    allocators: AllocatorOptions,
    template_memory: Option<u64>,
    verify: f64,
    parity: Option<Parity>,
    /// Whether Python scripts are started warm.
    python: bool,
    python_share_seed: bool,
    /// Whether commands whose runs were doubtful start cold: not where the runs themselves are looked at.
    remembers_doubts: bool,
    /// Whether to report how each tool was started.
    pub explain: bool,
}

impl WarmSettings {
    /// Joins both sources; the command line's settings win. `start` and `warm` together select the warm tools, so if the
    /// command line has either, neither of the file's counts.
    pub fn new(options: &WarmOptions, file: FileSettings) -> Self {
        let (start, warm) = match (options.start, &options.warm) {
            (None, None) => (file.start, file.warm),
            (start, warm) => (start, warm.clone()),
        };
        // A tool to be compared must be warm, however rarely it starts.
        let default = match options.parity {
            None => Start::Auto,
            Some(Parity::Fork) => Start::Fork,
            Some(Parity::Reset) => Start::Reset,
        };
        WarmSettings {
            start: start.unwrap_or(default),
            warm,
            keep_cold: options.keep_cold.clone().or(file.keep_cold).unwrap_or_default(),
            allocators: options.allocators.clone().or(file.allocators).unwrap_or_default(),
            template_memory: options.template_memory.or(file.template_memory),
            verify: options.verify.or(file.verify).unwrap_or(VERIFY),
            explain: options.explain || file.explain.unwrap_or(false),
            parity: options.parity,
            python: options.python,
            remembers_doubts: options.parity.is_none() && !options.fail_flaky,
            python_share_seed: options.python_share_seed,
        }
    }

    /// Returns the choice of runs to compare with cold ones.
    pub fn checks(&self) -> Checks {
        if self.parity.is_some() { Checks::parity() } else { Checks::sampled(self.verify / 100.0) }
    }

    /// Returns the allocators of tools, each of them tried; `None` if all tools have libc's.
    pub fn allocators(&self) -> Result<Option<Allocators>, String> {
        let choice = self.allocator_choice()?;
        if choice == AllocatorChoice::default() {
            return Ok(None);
        }
        Allocators::new(choice).map(Some).map_err(|error| error.to_string())
    }

    fn allocator_choice(&self) -> Result<AllocatorChoice, String> {
        let mut choice = AllocatorChoice::default();
        for (tool, wanted) in &self.allocators {
            let library = match wanted {
                Allocator::System => None,
                Allocator::File(path) => Some(path.clone()),
                Allocator::Known(known) => {
                    let found = allocator::find(*known, &allocator::directories());
                    Some(found.ok_or_else(|| format!("there is no {}: {}", known.name, known.missing()))?)
                }
            };
            match tool {
                None => choice.all = library,
                Some(tool) => choice.tools.push((tool.clone(), library)),
            }
        }
        Ok(choice)
    }

    /// Returns whether any tool has another allocator than libc's.
    pub fn chooses_allocators(&self) -> bool {
        !self.allocators.is_empty()
    }

    /// Returns whether any tool may be started warm.
    pub fn is_on(&self) -> bool {
        self.start != Start::Cold
    }

    /// Returns whether a FileCheck may pass without a process: only if it may also be started warm.
    pub fn matches_filechecks(&self) -> bool {
        let is_named = |list: &[String]| list.iter().any(|name| name == "FileCheck");
        self.is_on() && !is_named(&self.keep_cold) && self.warm.as_deref().is_none_or(is_named)
    }

    /// Returns the policy as far as it is known before tests are discovered.
    pub fn early_policy(&self) -> Policy {
        // Most runs that would gain by the prefork have many tests.
        Policy {
            observe_after: Duration::ZERO,
            ..self.policy_for(RunSize { tests: 0, jobs: 1 }, Vec::new(), None)
        }
    }

    /// Returns the launcher's policy for the discovered tests, of which `jobs` run at a time.
    pub fn policy(&self, discovered: &Discovered, jobs: usize) -> Policy {
        let exec_roots = discovered.suites.iter().map(|suite| suite.exec_root.clone());
        let size = RunSize { tests: discovered.selection.tests().len(), jobs };
        self.policy_for(size, exec_roots.collect(), discovered.session.tmp_dir.clone())
    }

    fn policy_for(&self, size: RunSize, exec_roots: Vec<PathBuf>, tmp_dir: Option<PathBuf>) -> Policy {
        let RunSize { tests, jobs } = size;
        let default = Policy::for_jobs(jobs.min(tests).max(1));
        let choice = match (self.start, &self.warm) {
            (Start::Cold, _) => Choice::Cold,
            (_, Some(tools)) => Choice::Only(tools.clone()),
            (Start::Fork | Start::Reset, None) => Choice::Auto { after: 0 },
            (Start::Auto, None) if tests >= MANY_TESTS && default.choice != Choice::Cold => Choice::Eager,
            (Start::Auto, None) => default.choice,
        };
        // A tool that is asked for is observed at once.
        let is_asked_for = matches!(choice, Choice::Only(_) | Choice::Auto { after: 0 });
        let observe_after = if is_asked_for { Duration::ZERO } else { OBSERVATION };
        Policy {
            choice,
            never: self.keep_cold.clone(),
            cold_below: tmp_dir.into_iter().collect(),
            output_below: exec_roots,
            resets: self.start != Start::Fork,
            python: self.python,
            share_hash_seed: self.python_share_seed,
            on_doubt: OnDoubt::Repeat,
            remembers_doubts: self.remembers_doubts,
            observe_after,
            cache: hotstart_launch::cache_directory(),
            audit_one_in: if self.parity == Some(Parity::Reset) { 1 } else { default.audit_one_in },
            memory: self.template_memory.map_or(default.memory, |mib| mib.saturating_mul(1 << 20)),
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: RunSize = RunSize { tests: 1, jobs: 1 };

    fn tools(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|&name| name.to_owned()).collect())
    }

    fn choice(options: WarmOptions, file: FileSettings) -> Choice {
        WarmSettings::new(&options, file).policy_for(ONE, Vec::new(), None).choice
    }

    #[test]
    fn start_and_warm_choose_tools() {
        let choose =
            |start, warm| choice(WarmOptions { start, warm, ..Default::default() }, Default::default());
        assert_eq!(choose(None, None), Policy::default().choice);
        assert_eq!(choose(Some(Start::Fork), None), Choice::Auto { after: 0 });
        assert_eq!(choose(Some(Start::Reset), None), Choice::Auto { after: 0 });
        assert_eq!(choose(None, tools(&["opt"])), Choice::Only(vec!["opt".into()]));
        let settings = WarmSettings::new(&WarmOptions::default(), FileSettings::default());
        assert_eq!(
            settings.policy_for(RunSize { tests: MANY_TESTS, jobs: 2 }, Vec::new(), None).choice,
            Choice::Eager
        );
        assert_eq!(choose(Some(Start::Cold), tools(&["opt"])), Choice::Cold);
    }

    #[test]
    fn the_command_line_wins() {
        let file = || FileSettings {
            start: Some(Start::Cold),
            warm: tools(&["llc"]),
            keep_cold: tools(&["clang"]),
            allocators: Some(vec![(Some("llc".into()), Allocator::File("/a.so".into()))]),
            verify: Some(1.0),
            template_memory: Some(1),
            explain: Some(true),
            native_shell: None,
            filechecks: None,
        };
        assert_eq!(choice(WarmOptions::default(), file()), Choice::Cold);
        let only_opt = WarmOptions { warm: tools(&["opt"]), ..Default::default() };
        assert_eq!(choice(only_opt, file()), Choice::Only(vec!["opt".into()]));
        let auto = WarmOptions { start: Some(Start::Auto), ..Default::default() };
        assert_eq!(choice(auto, file()), Policy::default().choice);
        let of_file = WarmSettings::new(&WarmOptions::default(), file()).allocator_choice().unwrap();
        assert_eq!(of_file.tools, [("llc".to_owned(), Some("/a.so".into()))]);
        let options = WarmOptions {
            allocators: Some(vec![(None, Allocator::System)]),
            keep_cold: tools(&[]),
            verify: Some(0.0),
            template_memory: Some(2),
            ..Default::default()
        };
        let settings = WarmSettings::new(&options, file());
        assert_eq!((settings.verify, settings.explain), (0.0, true));
        assert!(settings.allocators().unwrap().is_none());
        let policy = settings.policy_for(ONE, vec!["/obj".into()], Some("/tmp/x".into()));
        assert_eq!((policy.never, policy.memory), (Vec::new(), 2 << 20));
        assert_eq!((policy.output_below, policy.cold_below), (vec!["/obj".into()], vec!["/tmp/x".into()]));
    }

    #[test]
    fn only_fork_always_forks_and_parity_of_resets_audits_all() {
        let policy = |start, parity| {
            let options = WarmOptions { start, parity, ..Default::default() };
            let policy =
                WarmSettings::new(&options, FileSettings::default()).policy_for(ONE, Vec::new(), None);
            (policy.resets, policy.audit_one_in)
        };
        let usual = Policy::default().audit_one_in;
        assert_eq!(policy(None, None), (true, usual));
        assert_eq!(policy(Some(Start::Fork), None), (false, usual));
        assert_eq!(policy(None, Some(Parity::Fork)), (false, usual));
        assert_eq!(policy(None, Some(Parity::Reset)), (true, 1));
    }

    #[test]
    fn python_scripts_are_warm_on_demand_only() {
        for python in [false, true] {
            let options = WarmOptions { python, ..Default::default() };
            let settings = WarmSettings::new(&options, FileSettings::default());
            assert_eq!(settings.policy_for(ONE, Vec::new(), None).python, python);
        }
    }

    #[test]
    fn defaults() {
        let settings = WarmSettings::new(&WarmOptions::default(), FileSettings::default());
        assert!(settings.is_on() && !settings.explain && settings.verify == 0.5);
        assert_eq!(settings.policy_for(ONE, Vec::new(), None).memory, Policy::default().memory);
    }
}
