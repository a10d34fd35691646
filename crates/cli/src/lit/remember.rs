//! `--cache`, `--inputs` and `--affected`: tests that are known to pass, and what they depend on.

use std::collections::BTreeSet;
use std::ffi::OsStr;
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
use hotstart_shell::{FileChecks, Losses};

use super::{Session, failed, told as say};
use crate::args::Remember;
use crate::exit_code::{self, SUCCESS};

impl Session<'_> {
    /// Returns what is known of tests that passed, if the options ask for it and allow it.
    pub(super) fn memory(
        &self,
        discovered: &Discovered,
        filechecks: Option<&FileChecks>,
    ) -> Result<Option<Arc<Memory>>, String> {
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
            () => hotstart_launch::confinement().unwrap_or(""),
        };
        let dir = cache_directory();
        let (Some(dir), "") = (&dir, hindrance) else {
            let why = if dir.is_none() {
                "there is no cache directory; set HOTSTART_CACHE_DIR or HOME"
            } else {
                hindrance
            };
            say(&format!("hotstart: --cache is not used: {why}\n"));
            return Ok(None);
        };
        let compares_times = own.remember != Remember::SameContent;
        let mut memory = Memory::new(dir, compares_times, discovered.session.tmp_dir.clone());
        if self.decides_filechecks() {
            memory = memory.with_matcher(Losses::of(dir, filechecks));
        }
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
            each_script(&plan, |job, script| {
                out.put(&inputs_of(&plan.label(job), script, &cold, &memory));
            });
        } else {
            let memory = match self.memory(discovered, None) {
                Ok(memory) => memory,
                Err(error) => return Some(failed(&format!("{}: error: {error}\n", self.program))),
            };
            let files: BTreeSet<PathBuf> = own.affected.iter().flat_map(|file| names_of(file)).collect();
            each_script(&plan, |job, script| {
                let is_affected = |memory: &Arc<Memory>| {
                    makes(&files, &plan.test(job).file_path(), script) || is_affected(memory, script, &files)
                };
                if memory.as_ref().is_none_or(is_affected) {
                    out.put(&format!("{}\n", plan.label(job)));
                }
            });
        }
        let _ = plan.finish();
        Some(exit_code::written(&mut out, SUCCESS))
    }
}

/// Calls `with` for each selected test that would run.
fn each_script(plan: &Plan<'_>, mut with: impl FnMut(JobId, Option<&Script>)) {
    for job in (0..plan.count()).map(JobId) {
        match plan.prepare(job) {
            Work::Decided(_) => {}
            Work::Script(script) if plan.remembered_in(job).is_some() => with(job, Some(&*script)),
            _ => with(job, None),
        }
    }
}

/// Returns the names that a file can have among inputs: as it is given, and without links on the way. If it is a link itself, both it and
/// what it leads to count. It need not exist, nor its directory.
fn names_of(file: &Path) -> Vec<PathBuf> {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let real = file.ancestors().skip(1).find_map(|above| {
        let rest = file.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(rest))
    });
    [file.canonicalize().ok(), real, Some(file)].into_iter().flatten().collect()
}

/// Returns whether one of these files is that of the test, or a config that lies above it or above its outputs.
fn makes(files: &BTreeSet<PathBuf>, test: &Path, script: Option<&Script>) -> bool {
    const CONFIGS: [&str; 3] = ["lit", "lit.site", "lit.local"];
    let is_config = |file: &Path| {
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or("");
        let stem = name.strip_suffix(".py").unwrap_or(name).strip_suffix(".cfg");
        stem.is_some_and(|stem| CONFIGS.contains(&stem))
    };
    let is_above = |file: &Path| {
        let dir = file.parent().unwrap_or(file);
        test.starts_with(dir) || script.is_some_and(|script| script.tmp_base.starts_with(dir))
    };
    let names = names_of(test);
    files.iter().any(|file| names.contains(file) || is_config(file) && is_above(file))
}

/// Returns whether a test would run if one of these files changed. One that is not known to pass runs in any case.
fn is_affected(memory: &Memory, script: Option<&Script>, files: &BTreeSet<PathBuf>) -> bool {
    let Some(script) = script else { return true };
    if memory.ask(script) != Known::Passes {
        return true;
    }
    let Some(Ok(inputs)) = memory.inputs(script) else { return true };
    inputs.iter().any(|input| files.iter().any(|name| input.concerns(name)))
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
        State::Host(_) => "asked",
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
