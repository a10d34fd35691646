//! Features that lit does not have, from the command line to the settings of a run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotstart_lit::config::Format;
use hotstart_lit::load::Discovered;
use hotstart_lit::plan::Plan;
use hotstart_model::{JobId, JobSource, Wrap};
use hotstart_python::re::{Flags, Pattern};
use hotstart_python::{shlex, which};
use hotstart_report::files::record::{Record, VERSION};
use hotstart_run::{Order, Serially};

use crate::args::OwnOptions;

/// Data that must be read or looked up before a run.
#[derive(Debug)]
pub(super) struct Asked {
    record: Option<Record>,
    pub wraps: Arc<[Wrap]>,
}

impl Asked {
    pub fn new(own: &OwnOptions, cwd: &Path) -> Result<Asked, String> {
        let record = own.replay_record.as_deref().map(read_record).transpose()?;
        Ok(Asked { record, wraps: wraps(own, cwd)? })
    }

    /// Returns the tests of a record, in its order.
    pub fn tests(&self) -> Option<Vec<String>> {
        Some(self.record.as_ref()?.tests.iter().map(|test| test.name.clone()).collect())
    }

    /// Returns the number of workers of a record.
    pub fn workers(&self) -> Option<usize> {
        self.record.as_ref()?.tests.iter().map(|test| test.worker + 1).max()
    }

    /// Returns the order of a plan's jobs: the record's if there is one, otherwise the plan's.
    pub fn order(&self, plan: &Plan<'_>) -> Order {
        let Some(record) = &self.record else { return Order { together: plan.together(), workers: None } };
        let of_test: HashMap<&str, usize> =
            record.tests.iter().map(|test| (test.name.as_str(), test.worker)).collect();
        let worker = |job| of_test.get(plan.label(JobId(job)).as_str()).copied().unwrap_or(0);
        Order { together: None, workers: Some((0..plan.count()).map(worker).collect()) }
    }
}

/// Reads a record of an earlier run.
fn read_record(path: &Path) -> Result<Record, String> {
    let told = |why: String| format!("cannot read the record '{}': {why}", path.display());
    let text = std::fs::read(path).map_err(|error| told(error.to_string()))?;
    let record: Record = serde_json::from_slice(&text).map_err(|error| told(error.to_string()))?;
    match record.version {
        VERSION => Ok(record),
        version => Err(told(format!("it has version {version}, and this hotstart knows {VERSION}"))),
    }
}

/// Returns the condition of `--rerun-failed-serially`, which the command line's parser has checked.
pub(super) fn serially(own: &OwnOptions) -> Option<Serially> {
    let pattern = Pattern::with_flags(own.rerun_serially.as_deref()?, Flags::default()).ok()?;
    Some(Serially(Arc::new(move |outcome| pattern.is_match(&outcome.output).unwrap_or(false))))
}

/// Returns the wrapped tools of `--wrap`.
fn wraps(own: &OwnOptions, cwd: &Path) -> Result<Arc<[Wrap]>, String> {
    own.wraps.iter().map(|text| wrap(text, cwd)).collect()
}

fn wrap(text: &str, cwd: &Path) -> Result<Wrap, String> {
    let (tool, command) = text.split_once('=').unwrap_or((text, ""));
    let words = shlex::split(command.as_ref()).map_err(|error| format!("--wrap {text}: {error}"))?;
    let mut words: Vec<String> = words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let name = words.first().cloned().unwrap_or_default();
    let search = std::env::var_os("PATH");
    let program =
        which::program(name.as_ref(), search.as_deref(), cwd).filter(|path| which::is_executable(path));
    let Some(program) = program else {
        return Err(format!("--wrap {text}: there is no program '{name}' along PATH"));
    };
    if let Some(first) = words.first_mut() {
        *first = cwd.join(program).to_string_lossy().into_owned();
    }
    Ok(Wrap { tool: tool.to_owned(), words })
}

/// Returns the first test that cannot be repeated: only tests with RUN lines can run in separate directories.
pub(super) fn cannot_be_repeated(discovered: &Discovered) -> Option<PathBuf> {
    let selected = discovered.selection.tests().iter().map(|place| &discovered.tests[*place as usize]);
    let mut others = selected.filter(|test| !matches!(test.config().format, Some(Format::ShTest { .. })));
    others.next().map(|test| test.file_path())
}
