//! `--cache`, `--inputs` and `--affected`: tests that are known to pass, and what they depend on.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use hotstart_inputs::{Input, Known, Looks, State};
use hotstart_launch::{Group, Launcher, cache_directory};
use hotstart_lit::load::Discovered;
use hotstart_lit::plan::Plan;
use hotstart_model::{JobId, JobSource, Script, Work};
use hotstart_report::Sink;
use hotstart_run::{Memory, MemoryCounts, TraceError, trace};

use super::{Session, failed, told as say};
use crate::args::Remember;
use crate::exit_code::{self, SUCCESS};

impl Session<'_> {
    /// Returns what is known of tests that passed, if the options ask for it and allow it.
    pub(super) fn memory(&self, discovered: &Discovered) -> Result<Option<Arc<Memory>>, String> {
        let own = &self.options.own;
        if own.remember == Remember::Nothing && own.affected.is_empty() {
            return Ok(None);
        }
        let hindrance = match () {
            () if !cfg!(target_arch = "x86_64") => "tracing needs x86-64",
            () if self.warm.checks().is_parity() => "with --parity every test runs",
            () if self.warm.chooses_allocators() => "with another allocator",
            () if self.options.use_valgrind => "with valgrind",
            () if self.options.no_execute => "nothing runs",
            () => "",
        };
        let dir = cache_directory();
        let (Some(dir), "") = (&dir, hindrance) else {
            let why = if dir.is_none() { "there is no cache directory" } else { hindrance };
            say(&format!("hotstart: --cache is not used: {why}\n"));
            return Ok(None);
        };
        let compares_times = own.remember != Remember::SameContent;
        let memory = Memory::new(dir, compares_times, discovered.session.tmp_dir.clone());
        Ok(Some(Arc::new(self.shared(memory)?)))
    }

    /// Lists inputs, or tests that depend on a file; `None` if the options ask for neither.
    pub(super) fn list_inputs(&self, discovered: &Discovered, launcher: &Launcher) -> Option<ExitCode> {
        let own = &self.options.own;
        if !own.inputs && own.affected.is_empty() {
            return None;
        }
        let helpers = Arc::new(Group::new());
        let cold = launcher.cold();
        let plan = match discovered.plan_in(&cold, &helpers) {
            Ok(plan) => plan,
            Err(error) => {
                return Some(failed(&format!(
                    "{}: fatal: cannot make a directory for temporary files: {error}; set TMPDIR to one that can be written\n",
                    self.program
                )));
            }
        };
        let mut out = Sink::stdout();
        if own.inputs {
            let memory = Memory::new(Path::new("/nonexistent"), true, discovered.session.tmp_dir.clone());
            each_script(&plan, |label, script| out.put(&inputs_of(label, script, &cold, &memory)));
        } else {
            let memory = match self.memory(discovered) {
                Ok(memory) => memory,
                Err(error) => return Some(failed(&format!("{}: error: {error}\n", self.program))),
            };
            each_script(&plan, |label, script| {
                if memory.as_ref().is_none_or(|memory| is_affected(memory, script, &own.affected)) {
                    out.put(&format!("{label}\n"));
                }
            });
        }
        let _ = plan.finish();
        Some(exit_code::written(&mut out, SUCCESS))
    }
}

/// Calls `with` for each selected test that would run.
fn each_script(plan: &Plan<'_>, mut with: impl FnMut(&str, Option<&Script>)) {
    for job in (0..plan.count()).map(JobId) {
        match plan.prepare(job) {
            Work::Decided(_) => {}
            Work::Script(script) if plan.remembered_in(job).is_some() => {
                with(&plan.label(job), Some(&*script))
            }
            _ => with(&plan.label(job), None),
        }
    }
}

/// Returns whether a test would run if one of these files changed. One that is not known to pass runs in any case.
fn is_affected(memory: &Memory, script: Option<&Script>, files: &[PathBuf]) -> bool {
    let Some(script) = script else { return true };
    if memory.ask(script) != Known::Passes {
        return true;
    }
    let Some(Ok(inputs)) = memory.inputs(script) else { return true };
    let names = |file: &PathBuf| [file.clone(), file.canonicalize().unwrap_or_else(|_| file.clone())];
    let names: BTreeSet<PathBuf> = files.iter().flat_map(names).collect();
    inputs.iter().any(|input| names.iter().any(|name| input.concerns(name)))
}

fn inputs_of(label: &str, script: Option<&Script>, launcher: &Launcher, memory: &Memory) -> String {
    let Some(script) = script else { return format!("{label}\n  not followed: it has no RUN lines\n") };
    let traced = match trace(script, launcher, &Group::new()) {
        Ok(traced) => traced,
        Err(TraceError::Lost) => return format!("{label}\n  not followed: its traced run was lost\n"),
        Err(TraceError::Refused(why)) => return format!("{label}\n  not followed: {why}\n"),
    };
    let end = match traced.transcript.exit_code {
        Some(0) => "it passed",
        _ => "it did not pass",
    };
    let mut text = format!("{label}\n  {end} when traced, with {} variables\n", script.env.iter().count());
    let inputs = traced.inputs.and_then(|mut inputs| memory.complete(&mut inputs).map(|()| inputs));
    match inputs {
        Ok(inputs) => {
            inputs.iter().for_each(|input| _ = writeln!(text, "  {:<11} {}", kind(input), input.path))
        }
        Err(why) => _ = writeln!(text, "  never remembered: it {why}"),
    }
    text
}

fn kind(input: &Input) -> &'static str {
    match input.state {
        State::Missing(_) if input.looks == Looks::OVERWRITTEN => "written",
        State::Missing(_) => "missing",
        State::Link(..) => "link",
        State::Device(..) => "device",
        State::Directory(..) if input.looks.has(Looks::NAMES) => "listed",
        State::Directory(..) => "directory",
        State::File(..) if input.looks == Looks::OVERWRITTEN => "written",
        State::File(..) if input.looks.has(Looks::CONTENT) => "read",
        State::File(..) => "looked at",
    }
}

/// Reports what became of the tests of a run: a line, and the reasons if `explain`.
pub(super) fn told(memory: &Memory, explain: bool) -> String {
    let MemoryCounts { passed, sampled, traced, waiting, changed, untold, off } = memory.counts();
    let others: u64 = untold.values().sum();
    let mut text = format!(
        "hotstart: --cache: {passed} tests not run, {sampled} run as a sample, {traced} traced, {others} whose inputs cannot be told\n"
    );
    if waiting > 0 {
        let _ = writeln!(
            text,
            "hotstart: --cache: {waiting} tests use a program that has just changed; the next run with that program traces them"
        );
    }
    for (suite, why) in off {
        let _ = writeln!(
            text,
            "hotstart: --cache is off for the suite {suite}: {why}; 'hotstart cache clear' allows it again"
        );
    }
    if explain {
        for (path, count) in changed {
            let _ = writeln!(text, "{count:>9}  run because this has changed: {path}");
        }
        for (why, count) in untold {
            let _ = writeln!(text, "{count:>9}  cannot be told: {why}");
        }
    }
    text
}
