//! FileChecks of traced runs, which are decided in another process.
//!
//! A test is traced in a child of a process of its own (`hotstart-run`). That process is told which FileChecks are trusted, and its child
//! tells which it has used. What FileCheck itself would have looked at is learned once, in a traced run of it, and belongs to the inputs
//! of each test in which the matcher has decided for it. When a FileCheck loses its trust, all such tests are forgotten ([`Losses`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use hotstart_filecheck::Dialect;
use hotstart_inputs::{Input, Looks, State, add_inputs};
use hotstart_launch::Launcher;
use serde::{Deserialize, Serialize};

use super::passes::Hash;
use super::trust::{Ignored, Tool, Verdict};
use super::{FileChecks, battery, filechecks_directory, limits, store};
use crate::mark::{Aspect, Mark};

/// A FileCheck whose answers to the battery are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFileCheck {
    program: PathBuf,
    loader: Vec<(OsString, OsString)>,
    is_trusted: bool,
    /// Its files. Each use looks whether they are as they were.
    marks: Vec<Mark>,
}

/// What a process has done with FileChecks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FileCheckUses {
    /// Those that the matcher has decided for, each once.
    decided_for: Vec<KnownFileCheck>,
    /// The number of passes.
    matched: u64,
    /// Runs of FileCheck itself, by reason.
    left: BTreeMap<String, u64>,
    /// Programs whose answers were not known, and their environments.
    unknown: Vec<(PathBuf, Vec<(OsString, OsString)>)>,
}

/// The FileChecks that were used.
#[derive(Debug, Default)]
pub(super) struct Log {
    decided_for: Vec<Arc<Tool>>,
    unknown: Vec<Arc<Tool>>,
}

impl Log {
    pub(super) fn decided_for(&mut self, tool: &Arc<Tool>) {
        if !self.decided_for.contains(tool) {
            self.decided_for.push(Arc::clone(tool));
        }
    }

    pub(super) fn unknown(&mut self, tool: &Arc<Tool>) {
        if tool.dialect == Dialect::Llvm && !self.unknown.contains(tool) {
            self.unknown.push(Arc::clone(tool));
        }
    }
}

/// What a start of each FileCheck looks at. `None` if it cannot be told.
pub(super) type Starts = Mutex<HashMap<Hash, Arc<OnceLock<Option<Vec<Input>>>>>>;

impl KnownFileCheck {
    fn of(tool: &Tool, is_trusted: bool, marks: &[Mark]) -> Self {
        let (program, loader) = (tool.program.clone(), tool.loader.clone());
        KnownFileCheck { program, loader, is_trusted, marks: marks.to_vec() }
    }

    fn into_tool(self) -> Tool {
        let KnownFileCheck { program, loader, .. } = self;
        Tool { program, dialect: Dialect::Llvm, loader, environment: Ignored(Vec::new()) }
    }
}

impl FileChecks {
    /// Returns the FileChecks whose answers are known, for another process. `None` if none may be decided.
    pub fn known(&self) -> Option<Vec<KnownFileCheck>> {
        if self.is_off.load(Ordering::Relaxed) || self.observe.is_none() {
            return None;
        }
        let is_llvms = |tool: &Tool| tool.dialect == Dialect::Llvm && tool.program.to_str().is_some();
        let settled = self.trust.settled().into_iter().filter(|(tool, _, _)| is_llvms(tool));
        let known = settled.map(|(tool, verdict, hash)| {
            let is_trusted =
                verdict.refusal.is_none() && self.with_start(&tool, &verdict, &hash, |_| ()).is_some();
            KnownFileCheck::of(&tool, is_trusted, &verdict.marks)
        });
        Some(known.collect())
    }

    /// Decides passes by what another process knows. Call it where nothing is traced yet.
    pub fn knowing(known: Vec<KnownFileCheck>) -> Self {
        // Asked for once in a process.
        limits::are_usual();
        let mut filechecks = FileChecks::new(Arc::new(Launcher::new()), None);
        filechecks.log = Some(Mutex::default());
        for mut known in known {
            let refusal = (!known.is_trusted).then(|| "it is not trusted".to_owned());
            let marks: Arc<[Mark]> = std::mem::take(&mut known.marks).into();
            let tool = known.into_tool();
            filechecks.trust.settle(&tool, Ok(Verdict { refusal, marks, libraries: Arc::default() }));
        }
        filechecks.trust.hold();
        filechecks
    }

    /// Whether the files of what is known are as they were when [`knowing`](FileChecks::knowing) was called.
    pub fn is_fresh(&self) -> bool {
        self.trust.are_current()
    }

    /// Returns what this process has done, for the other one.
    pub fn uses(&self) -> FileCheckUses {
        let counts = self.counts();
        let log = self.log.as_ref().map(|log| log.lock().expect("no panic while locked"));
        let environment = |tool: &Arc<Tool>| (tool.program.clone(), tool.environment.0.clone());
        let all = |log: &Log| {
            let decided_for =
                log.decided_for.iter().map(|tool| KnownFileCheck::of(tool, true, &[])).collect();
            (decided_for, log.unknown.iter().map(environment).collect())
        };
        let (decided_for, unknown) = log.as_deref().map(all).unwrap_or_default();
        let left = counts.left.into_iter().map(|(why, count)| (why.into_owned(), count)).collect();
        FileCheckUses { decided_for, matched: counts.matched, left, unknown }
    }

    /// Takes what another process has done with what [`known`](FileChecks::known) told it, and adds what FileCheck would have looked at to
    /// the inputs; the test itself has changed what is at the paths `own`. Returns whether the passes count: nobody has changed anything
    /// of that meanwhile.
    pub fn take(
        &self,
        uses: FileCheckUses,
        own: &[PathBuf],
        inputs: &mut Result<Vec<Input>, String>,
    ) -> bool {
        for (why, count) in uses.left {
            *self.left.lock().expect("no panic while locked").entry(why.into()).or_default() += count;
        }
        for (program, environment) in uses.unknown {
            // A test may replace its own at any time.
            if !self.launcher.is_test_output(&program) {
                let environment = environment.into_iter().collect();
                // Counts the use, or reads what is stored.
                let _ = self.trust.ask(&Tool::new(&program, Dialect::Llvm, &environment));
            }
        }
        let do_count = uses.decided_for.into_iter().all(|known| {
            let tool = known.into_tool();
            let settled = self.trust.settled().into_iter().find(|(settled, _, _)| *settled == tool);
            let Some((_, verdict, hash)) = settled else { return false };
            let add = |start: &Vec<Input>| {
                let is_own = |input: &Input| own.iter().any(|own| Path::new(&input.path).starts_with(own));
                let is_same = start.iter().all(|input| !is_own(input) && input.is_as_seen());
                is_same && inputs.as_mut().map_or(true, |inputs| add_inputs(inputs, start).is_ok())
            };
            let is_trusted = verdict.refusal.is_none() && !self.is_off.load(Ordering::Relaxed);
            is_trusted
                && verdict.marks.iter().all(Mark::is_current)
                && self.with_start(&tool, &verdict, &hash, add) == Some(true)
        });
        self.matched.fetch_add(if do_count { uses.matched } else { 0 }, Ordering::Relaxed);
        do_count
    }

    /// Looks at what a start of a FileCheck looks at, which is learned at the first time. `None` if it cannot be told.
    fn with_start<R>(
        &self,
        tool: &Tool,
        verdict: &Verdict,
        hash: &Hash,
        look: impl FnOnce(&Vec<Input>) -> R,
    ) -> Option<R> {
        let start = Arc::clone(self.starts.lock().expect("no panic while locked").entry(*hash).or_default());
        start.get_or_init(|| self.observe_start(tool, verdict)).as_ref().map(look)
    }

    fn observe_start(&self, tool: &Tool, verdict: &Verdict) -> Option<Vec<Input>> {
        let inputs = battery::inputs_of_start(tool, self)?;
        // A library that has appeared since the battery.
        let marked: Vec<PathBuf> =
            verdict.marks.iter().filter_map(|mark| mark.path.canonicalize().ok()).collect();
        let is_known = |input: &Input| {
            let path = Path::new(&input.path);
            let is_opened = matches!(input.state, State::File(..)) && input.looks.has(Looks::CONTENT);
            !is_opened || marked.iter().any(|marked| marked == path)
        };
        (inputs.iter().all(is_known) && self.trust.is_stored(tool, verdict)).then_some(inputs)
    }
}

/// The trust that FileChecks have lost, as it is known below a cache directory.
#[derive(Clone, Debug)]
pub struct Losses {
    text: String,
    /// The directory that tells, as it was. `None` if it could not be read.
    mark: Option<Mark>,
    /// Whether this process has seen a loss, which it may not have been able to note.
    is_here: Arc<AtomicBool>,
}

impl Losses {
    /// Looks at what is known now, and will be known to `filechecks`.
    pub fn of(cache: &Path, filechecks: Option<&FileChecks>) -> Losses {
        let is_here = filechecks.map(|filechecks| filechecks.trust.loss()).unwrap_or_default();
        let dir = store::losses(&filechecks_directory(cache));
        if let Some(mark) = Mark::seen(&dir, Aspect::Missing) {
            return Losses { text: String::new(), mark: Some(mark), is_here };
        }
        // One that changes again within one tick of the clock would have the same times.
        let mark =
            Mark::seen(&dir, Aspect::Itself).filter(|mark| !store::is_recent(mark) && !dir.is_symlink());
        let entries = fs::read_dir(dir).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let names = |entries: Vec<fs::DirEntry>| entries.into_iter().map(|entry| entry.file_name()).collect();
        let names: Option<BTreeSet<OsString>> = entries.ok().map(names);
        Losses { text: format!("{names:?}"), mark: mark.filter(|_| names.is_some()), is_here }
    }

    /// Returns a text that changes with each loss. It is empty if there was none.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether no FileCheck has lost its trust since.
    pub fn are_current(&self) -> bool {
        !self.is_here.load(Ordering::Relaxed) && self.mark.as_ref().is_some_and(Mark::is_current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filecheck::trust::Trust;
    use hotstart_model::Environment;

    #[test]
    fn each_loss_of_trust_is_noted() {
        let cache = tempfile::tempdir().unwrap();
        let tool = Tool::new(Path::new("/bin/FileCheck"), Dialect::Llvm, &Environment::new());
        let mark = Mark { path: "/bin/FileCheck".into(), aspect: Aspect::Target, numbers: [1; 7] };
        let verdict = |refusal: Option<&str>| {
            let (refusal, marks) = (refusal.map(str::to_owned), [mark.clone()].into());
            Ok(Verdict { refusal, marks, libraries: Arc::default() })
        };
        let trust = || Trust::new(Some(filechecks_directory(cache.path())));
        let lost = || Losses::of(cache.path(), None);
        let none = lost();
        // Nobody has ever trusted it.
        trust().settle(&tool, verdict(Some("it differs")));
        trust().settle(&tool, verdict(None));
        assert!(none.text().is_empty() && none.are_current());
        trust().settle(&tool, Err("it could not run".to_owned()));
        assert!(none.are_current());
        trust().settle(&tool, verdict(Some("it differs now")));
        let first = lost();
        assert!(!none.are_current() && !first.text().is_empty());
        // It may change again before the clock goes on.
        assert!(!first.are_current());
        let trusting = trust();
        trusting.settle(&tool, verdict(None));
        assert_eq!(lost().text(), first.text());
        trusting.refuse_all("a test differed");
        assert_ne!(lost().text(), first.text());
    }

    #[test]
    fn a_loss_that_cannot_be_noted_counts_in_this_run() {
        let nowhere = Path::new("/proc/self/absent");
        let filechecks = FileChecks::new(Arc::new(Launcher::new()), Some(nowhere.to_owned()));
        let losses = Losses::of(nowhere, Some(&filechecks));
        assert!(losses.are_current());
        filechecks.quarantine("a test");
        assert!(!losses.are_current());
    }
}
