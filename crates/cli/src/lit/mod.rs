//! `hotstart lit`: connects the stages of a run, one after the other, in the order of lit's own main function.
//!
//! Other crates do each stage's work; this module decides their order and the exit code.

mod ab;
mod asked;
mod conclude;
mod listing;
mod page;
mod placed;
mod records;
mod remember;
mod remote;
mod settings;
mod stop;
mod tally;
mod ticker;
mod warm;

use std::ffi::{OsStr, OsString};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hotstart_bench::command::line;
use hotstart_launch::{EnvBlock, Group, Launcher, cache_directory, descriptors};
use hotstart_lit::ahead::{Expected, Listener};
use hotstart_lit::load::{self, Discovered, LoadError};
use hotstart_lit::plan::Plan;
use hotstart_lit::probe::Probe;
use hotstart_lit::select::{self, Selection};
use hotstart_model::{Event, Events, JobSource, RunEnd};
use hotstart_report::{Bar, Diagnostics, Levels, Reporter, Results, Settings, Sink, Terminal, messages};
use hotstart_run::{Checks, Replay, RunSettings};
use hotstart_shell::FileChecks;

use crate::args::{self, Invocation, LitOptions, Remember, Request};
use crate::cache;
use crate::exit_code::{self, ERROR, SUCCESS};
use asked::Asked;
use conclude::Conclusion;
use stop::Stopper;
use tally::Tally;
use warm::{UseOfFileCheck, WarmSettings};

/// One in this many remembered passes of FileCheck is a run of it nevertheless.
const REMEMBERED_SAMPLE: u64 = 200;

/// Runs `hotstart lit` with these arguments. Diagnostics begin with `program`; `called` is the name by which this program
/// was called, if it is one of lit's names.
pub fn run(program: &str, called: Option<&OsStr>, argv: &[OsString]) -> ExitCode {
    let cwd = match std::env::current_dir() {
        Ok(cwd) => cwd,
        Err(error) => return failed(&format!("{program}: fatal: the working directory is gone: {error}\n")),
    };
    let invocation = Invocation {
        argv,
        env: &|name| std::env::var_os(name),
        cwd: &cwd,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        columns: Terminal::of_stdout(Some("any")).map_or(80, |terminal| terminal.columns),
        check_regex: &|pattern| select::compile_filter(pattern).map(drop).map_err(|error| error.message),
    };
    match args::parse(&invocation) {
        Ok(Request::Run(options)) => start(program, called, *options, &cwd),
        Ok(Request::Help(text)) => said(&text),
        Ok(Request::Version) => said(&format!("hotstart lit {}\n", env!("CARGO_PKG_VERSION"))),
        Err(error) => failed(&error.0),
    }
}

fn start(program: &str, called: Option<&OsStr>, mut options: LitOptions, cwd: &Path) -> ExitCode {
    if options.own.ab.with.is_some() {
        return ab::run(program, &options, cwd);
    }
    let search = std::env::var_os("PATH");
    let placed = || placed::build_tree_of(called?, cwd, search.as_ref());
    if let Some(tree) = options.own.build_tree.as_ref().filter(|tree| !cwd.join(tree).is_dir()) {
        return failed(&format!(
            "{program}: error: --build-tree: there is no directory '{}'\n",
            tree.display()
        ));
    }
    if let Some(tree) = options.own.build_tree.clone().or_else(placed) {
        told(&placed::fill_in(&mut options, &tree, cwd).unwrap_or_default());
        options.own.build_tree = Some(tree);
    }
    match warm::read(&options.own.warm.config_file, cwd) {
        Ok(file) => {
            let own = &mut options.own;
            own.native_shell = own.native_shell.or(file.native_shell);
            own.no_filecheck |= file.filechecks == Some(UseOfFileCheck::Run);
            own.no_check_cache |= file.filechecks == Some(UseOfFileCheck::Decide);
            let warm = WarmSettings::new(&own.warm, file);
            match Asked::new(own, cwd) {
                Ok(asked) => Session { warm, asked, options, program, cwd }.run(),
                Err(error) => failed(&format!("{program}: error: {error}\n")),
            }
        }
        Err(error) => failed(&format!("{program}: error: {error}\n")),
    }
}

/// One call of `hotstart lit`.
struct Session<'a> {
    options: LitOptions,
    warm: WarmSettings,
    asked: Asked,
    program: &'a str,
    cwd: &'a Path,
}

/// What all stages share from the first test to the end.
#[derive(Clone, Copy)]
struct Run<'a> {
    discovered: &'a Discovered,
    launcher: &'a Arc<Launcher>,
    checks: &'a Checks,
    tally: &'a Tally,
}

/// Diagnostics from before there is a reporter.
struct Early {
    diagnostics: Mutex<Diagnostics>,
    levels: Levels,
}

impl Events for Early {
    fn send(&self, event: Event) {
        if let Event::Diagnostic(diagnostic) = event {
            self.diagnostics.lock().expect("no panic while locked").take(&diagnostic, &self.levels);
        }
    }
}

impl Session<'_> {
    fn run(&self) -> ExitCode {
        for notice in &self.options.notices {
            said(&format!("{notice}\n"));
        }
        let allocators = match self.warm.allocators() {
            Ok(allocators) => allocators,
            Err(error) => return failed(&format!("{}: error: {error}\n", self.program)),
        };
        descriptors::take_over();
        let stopper = match Stopper::start() {
            Ok(stopper) => stopper,
            Err(error) => {
                return failed(&format!(
                    "{}: fatal: cannot start a thread: {error}; allow more processes (ulimit -u)\n",
                    self.program
                ));
            }
        };
        let mut launcher = Launcher::new().with_guard();
        if self.warm.is_on() {
            // This overlaps with Python's evaluation of the configs.
            launcher.prepare_warm();
        }
        let early = Early {
            diagnostics: Mutex::new(Diagnostics::new(self.program, Sink::stderr())),
            levels: self.options.console.levels(hotstart_model::Dialect::V23),
        };
        let settings = settings::settings(&self.options, &self.asked, self.program, self.cwd);
        let begun = Instant::now();
        // Python stays alive until the run has ended, as in lit itself.
        let (starter, group) = (launcher.cold(), Group::new());
        let ahead = self.expects_runs().then(|| launcher.ahead(self.warm.early_policy())).flatten();
        let make = |expected: Expected| {
            if let Some(ahead) = &ahead {
                let tools = expected.tools.into_iter().map(|tool| (tool.clone(), tool.into()));
                ahead.make(tools.collect(), EnvBlock::new(&expected.environment));
            }
        };
        let listener = ahead.is_some().then_some(Listener(&make));
        let loaded = load::load_in(&settings, &early, &starter, &group, listener);
        let diagnostics = early.diagnostics.into_inner().expect("no panic while locked");
        match loaded {
            Ok((discovered, mut python)) => {
                // The tests are not freed one by one, since the process ends.
                let discovered = ManuallyDrop::new(discovered);
                let launcher = match allocators {
                    Some(allocators) => launcher.with_allocators(allocators),
                    None => launcher,
                };
                if self.options.own.debug_times {
                    told(&conclude::times_of_discovery(&discovered.timing, begun.elapsed()));
                }
                self.discovered(&discovered, diagnostics, &stopper, launcher, &mut python)
            }
            Err(LoadError::Filter { pattern, reason }) => failed(&format!(
                "{}: error: invalid regular expression: '{pattern}', {reason}\n",
                self.program
            )),
            Err(LoadError::Probe(error)) => failed(&format!("{}: fatal: {error}\n", self.program)),
        }
    }

    /// Returns whether prefork is worthwhile for the tools that tests will start.
    fn expects_runs(&self) -> bool {
        let own = &self.options.own;
        let is_listing = listing::is_wanted(&self.options) || own.inputs || !own.affected.is_empty();
        self.warm.is_on() && !self.warm.chooses_allocators() && !is_listing && !self.options.no_execute
    }

    fn discovered(
        &self,
        discovered: &Discovered,
        diagnostics: Diagnostics,
        stopper: &Stopper,
        launcher: Launcher,
        python: &mut Probe<'_>,
    ) -> ExitCode {
        if discovered.counts.errors > 0 {
            return failed(&messages::discovery_errors(discovered.counts.errors));
        }
        if matches!(discovered.selection, Selection::NothingFound) {
            return failed(messages::no_tests_discovered());
        }
        if let Some(code) = listing::list(&self.options, discovered) {
            return code;
        }
        if let Some(code) = self.list_inputs(discovered, &launcher) {
            return code;
        }
        let repeated = self.options.own.repeat.and_then(|_| asked::cannot_be_repeated(discovered));
        if let Some(file) = repeated {
            let file = file.display();
            return failed(&format!(
                "{}: error: --repeat: '{file}' has no RUN lines, so that its runs cannot be kept apart; filter it out\n",
                self.program
            ));
        }
        match &discovered.selection {
            Selection::NothingMatched => self.nothing_matched(discovered),
            Selection::EmptyShard => {
                told(messages::empty_shard());
                exit_code::exit(SUCCESS)
            }
            _ => {
                let mut policy = self.warm.policy(discovered, self.options.workers);
                policy.remembers_doubts &= !self.is_replayed();
                let launcher = Arc::new(launcher.with_policy(policy));
                let checks = self.warm.checks();
                let mut tally = Tally::wanted(&self.options);
                if self.decides_filechecks() {
                    tally.filechecks = Some(self.filechecks(discovered, &launcher));
                }
                let joined = self
                    .memory(discovered, tally.filechecks.as_deref())
                    .and_then(|memory| Ok((memory, self.cluster(discovered)?)));
                (tally.memory, tally.cluster) = match joined {
                    Ok(joined) => joined,
                    Err(error) => return failed(&format!("{}: error: {error}\n", self.program)),
                };
                let run = Run { discovered, launcher: &launcher, checks: &checks, tally: &tally };
                let code = self.execute(run, diagnostics, stopper);
                tally.filechecks.iter().for_each(|filechecks| filechecks.save());
                tally.memory.iter().for_each(|memory| memory.save());
                let kept = python.keep();
                if self.options.own.debug_times {
                    told(&format!("hotstart: configs were {kept}\n"));
                }
                // Python ends while the rest is printed and cleaned up. The `atexit` output of configs follows the summary, as in lit.
                python.close();
                self.tell_starts(run);
                code
            }
        }
    }

    /// Returns whether the matcher may decide FileChecks.
    fn decides_filechecks(&self) -> bool {
        self.warm.matches_filechecks() && !self.options.own.no_filecheck
    }

    fn filechecks(&self, discovered: &Discovered, launcher: &Arc<Launcher>) -> Arc<FileChecks> {
        let tests = discovered.selection.tests().len();
        let filechecks = FileChecks::new(Arc::clone(launcher), cache_directory());
        let are_traced = self.options.own.remember != Remember::Nothing;
        let filechecks = filechecks.observing(hotstart_run::inputs_of_program).expecting(tests, are_traced);
        let remembered = cache_directory().filter(|_| !self.options.own.no_check_cache);
        Arc::new(match remembered {
            Some(dir) => filechecks.remembering(&dir, REMEMBERED_SAMPLE),
            None => filechecks,
        })
    }

    fn nothing_matched(&self, discovered: &Discovered) -> ExitCode {
        let allowed = self.options.allow_empty_runs;
        if self.options.own.rerun_failed && discovered.tests.iter().any(|test| test.previous != 0.0) {
            told("hotstart: none of these tests failed the last time\n");
            return exit_code::exit(SUCCESS);
        }
        told(&messages::filters_matched_nothing(discovered.tests.len(), allowed));
        exit_code::exit(if allowed { SUCCESS } else { ERROR })
    }

    /// Returns whether the run repeats an earlier one, to show what its warm starts do.
    fn is_replayed(&self) -> bool {
        !self.options.own.replay.is_empty() || self.asked.tests().is_some()
    }

    /// Returns the command that reruns tests of this run.
    fn replay(&self) -> Replay {
        let program = std::env::current_exe().map_or_else(|_| "hotstart".into(), OsString::from);
        let mut words = vec![program, "lit".into()];
        if let Some(tree) = &self.options.own.build_tree {
            words.extend(["--build-tree".into(), tree.into()]);
        }
        let before = format!("cd {} && {}", line(&[self.cwd.into()]), line(&words));
        Replay { before, after: line(&self.options.words.for_replay()) }
    }

    /// Reports how processes were started, on standard error: standard output is compared with lit's.
    fn tell_starts(&self, run: Run<'_>) {
        let Run { discovered, launcher, checks, tally } = run;
        let statistics = launcher.statistics();
        let is_terse = self.options.console.levels(discovered.session.dialect).terse_summary;
        told(&warm::faults(&statistics));
        told(&warm::flaky(&checks.flaky()));
        told(&tally.contradictions());
        told(
            &tally
                .memory
                .as_ref()
                .map(|memory| remember::told(memory, self.warm.explain))
                .unwrap_or_default(),
        );
        if let Some(cluster) = &tally.cluster {
            told(&remote::told(cluster, self.warm.explain));
        }
        if self.warm.explain {
            told(&warm::table(&statistics, checks.counts()));
        }
        if self.warm.is_on() && !is_terse {
            told(&warm::blocked(&statistics, &hotstart_launch::signals::inherited()));
            told(&cache::hindrance());
            told(&warm::fallbacks(&statistics));
            told(&warm::unknown(&self.options.own.warm, &self.asked.wraps, &statistics));
            told(&warm::counts(&statistics));
        }
        if self.warm.explain || !is_terse {
            told(&tally.told(self.warm.explain));
        }
    }

    fn execute(&self, run: Run<'_>, diagnostics: Diagnostics, stopper: &Stopper) -> ExitCode {
        // The run's Python helpers end with it.
        let helpers = Arc::new(Group::new());
        let plan = match run.discovered.plan_in(run.launcher, &helpers) {
            Ok(plan) => plan,
            Err(error) => {
                return failed(&format!(
                    "{}: fatal: cannot make a directory for temporary files: {error}; set TMPDIR to one that can \
                     be written, or LIT_PRESERVES_TMP=1\n",
                    self.program
                ));
            }
        };
        let begun = Instant::now();
        let (end, results) = self.run_plan(run, &plan, &helpers, diagnostics, stopper);
        let tool_times = run.tally.tool_times.as_deref();
        let facts = || page::facts(run.launcher, run.discovered, tool_times);
        let (options, cwd, discovered) = (&self.options, self.cwd, run.discovered);
        let elapsed = begun.elapsed();
        Conclusion { options, cwd, discovered, end, elapsed, tool_times, facts: &facts }.write(plan, results)
    }

    fn run_plan(
        &self,
        run: Run<'_>,
        plan: &Plan<'_>,
        helpers: &Arc<Group>,
        diagnostics: Diagnostics,
        stopper: &Stopper,
    ) -> (RunEnd, Results) {
        let Run { discovered, launcher, checks, tally } = run;
        let options = &self.options;
        let most = |seconds: u64| Instant::now().checked_add(Duration::from_secs(seconds));
        let run_settings = RunSettings {
            workers: self.asked.workers().unwrap_or(options.workers),
            max_failures: match options.own.until_fail {
                true => Some(1),
                false => options.max_failures.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            },
            deadline: options.max_time.and_then(most),
            companions: Some(Arc::clone(helpers)),
            tool_times: tally.tool_times.clone(),
            shells: tally.shells.clone(),
            filechecks: tally.filechecks.clone(),
            memory: tally.memory.clone(),
            farm: tally.cluster.clone().map(|cluster| cluster as Arc<dyn hotstart_run::Farm>),
            fail_flaky: options.own.warm.fail_flaky,
            is_replayed: self.is_replayed(),
            replay: Some(self.replay()),
            order: self.asked.order(plan),
            serially: asked::serially(&options.own),
        };
        let report_settings = Settings {
            levels: Levels { colors: colors(), ..options.console.levels(discovered.session.dialect) },
            bar: bar(),
            discovered: discovered.tests.len().max(plan.count() as usize),
            table: discovered.verdicts.clone(),
            keep_output: options.reports.keep_output(),
        };
        let reporter = Reporter::new(records::Names(plan), report_settings, Sink::stdout(), diagnostics);
        let interrupt = stopper.running();
        let verdicts = &discovered.verdicts;
        let run =
            || hotstart_run::run(plan, launcher, &run_settings, checks, verdicts, &interrupt, &reporter);
        let run = || hotstart_run::while_testing(tally.filechecks.as_deref(), &interrupt, run);
        let end = match self.options.console.is_live() {
            true => ticker::while_ticking(TICK, &|| reporter.tick(), run),
            false => run(),
        };
        (end, reporter.into_results())
    }
}

/// The time between two drawings of the live view while no test ends.
const TICK: Duration = Duration::from_millis(200);

fn colors() -> bool {
    let is_terminal = matches!(bar(), Bar::Terminal(_));
    hotstart_report::colors::wanted(|name| std::env::var_os(name), is_terminal)
}

fn bar() -> Bar {
    Terminal::of_stdout(std::env::var("TERM").ok().as_deref()).map_or(Bar::Simple, Bar::Terminal)
}

fn said(text: &str) -> ExitCode {
    let mut out = Sink::stdout();
    out.put(text);
    exit_code::written(&mut out, SUCCESS)
}

fn told(text: &str) {
    let mut err = Sink::stderr();
    err.put(text);
    err.flush();
}

fn failed(text: &str) -> ExitCode {
    told(text);
    exit_code::exit(ERROR)
}
