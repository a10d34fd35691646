//! Decides which FileChecks the matcher may replace.
//!
//! A FileCheck is identified by its file, the libraries that it loads, and the variables that control the loader. PyPI's filecheck
//! is identified by all files that a start looks at ([`python`](super::python)), and by its environment. The battery tests it once it
//! was used often enough that this pays. Every use checks whether the files are unchanged.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use hotstart_filecheck::Dialect;
use hotstart_launch::{Hold, Reason, stamps_accesses};
use hotstart_model::Environment;

use super::passes::Hash;
use super::{python, question, store};
use crate::mark::{Aspect, Mark};

/// Uses in a run before the battery tests a FileCheck. The battery takes about as long as this number of its runs,
/// warm.
const USES: u32 = 60;
/// The same for a Python script, of which most starts are cold.
const USES_OF_SCRIPT: u32 = 150;
/// The same in a run of many tests, which will certainly use it so often. The slowest tests are often the first ones, so each
/// use counts.
const FIRST_USES: u32 = 1;
/// The same in such a run for a Python script, whose battery costs as much as a hundred uses.
const FIRST_USES_OF_SCRIPT: u32 = 8;

/// The reason to run a FileCheck that the battery has not tested.
pub(super) const NOT_YET: &str = "not put to the test yet";

/// A FileCheck, as a call names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tool {
    pub program: PathBuf,
    pub dialect: Dialect,
    /// The variables that the loader, libc and run-time libraries read, or for a Python script all that may matter.
    pub loader: Vec<(OsString, OsString)>,
    /// Its environment at the first use. It is no part of the identity.
    pub environment: Ignored,
}

/// Variables that do not distinguish FileChecks.
#[derive(Clone, Debug)]
pub(super) struct Ignored(pub Vec<(OsString, OsString)>);

impl PartialEq for Ignored {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Ignored {}

impl std::hash::Hash for Ignored {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl Tool {
    pub fn new(program: &Path, dialect: Dialect, env: &Environment) -> Self {
        let counts = |name: &std::ffi::OsStr| match dialect {
            Dialect::Llvm => hotstart_launch::is_read_by_libraries(name) && !is_of_locale(name),
            Dialect::Pypi => python::counts(name),
        };
        let all = || env.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut loader: Vec<_> = all().filter(|(name, _)| counts(name)).collect();
        loader.sort_unstable();
        Tool { program: program.to_owned(), dialect, loader, environment: Ignored(all().collect()) }
    }
}

/// Returns whether only a program that sets a locale, or tells the time, reads this variable. FileCheck does neither, and suites and
/// users set these to different values.
fn is_of_locale(name: &OsStr) -> bool {
    const NAMES: [&str; 8] =
        ["LANG", "LANGUAGE", "LOCPATH", "NLSPATH", "TZ", "TZDIR", "POSIXLY_CORRECT", "LLVM_PROFILE_FILE"];
    name.as_encoded_bytes().starts_with(b"LC_") || NAMES.iter().any(|known| name == *known)
}

/// The result of the battery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The difference in its answers, if there was one.
    pub refusal: Option<String>,
    /// The files of the FileCheck.
    pub marks: Arc<[Mark]>,
    /// The names that its start looks for anywhere, if that may be in the working directory ([`libraries`](super::libraries)).
    pub libraries: Arc<[String]>,
}

impl Verdict {
    pub fn refused(why: String, marks: Arc<[Mark]>) -> Self {
        Verdict { refusal: Some(why), marks, libraries: Arc::default() }
    }
}

#[derive(Clone, Debug)]
enum State {
    Used(u32),
    Pending,
    Settled(Settled),
}

/// A verdict.
#[derive(Clone, Debug)]
struct Settled {
    verdict: Verdict,
    /// A hash of what it is about.
    hash: Hash,
    /// Tells without a look at each that the files are as they were.
    hold: Arc<Hold>,
}

impl Settled {
    /// Whether the FileCheck's files are as they were.
    fn is_current(&self) -> bool {
        let are_held = self.hold.is_unchanged();
        let is_current = are_held || self.verdict.marks.iter().all(Mark::is_current);
        if is_current && !are_held && self.hold.is_due() {
            self.begin_hold();
        }
        is_current
    }

    /// Holds the files, from the program on.
    fn begin_hold(&self) {
        let Verdict { marks, .. } = &self.verdict;
        self.hold.begin(marks.iter().map(|mark| &mark.path), || marks.iter().all(Mark::is_current));
    }
}

impl State {
    fn settled(tool: &Tool, mut verdict: Verdict) -> State {
        let is_read = |mark: &&Mark| matches!(mark.aspect, Aspect::Target | Aspect::Itself);
        if verdict.marks.iter().filter(is_read).any(|mark| stamps_accesses(&mark.path)) {
            verdict.refusal.get_or_insert_with(|| Reason::AccessTimes.to_string());
        }
        let hash = question::about(tool, &verdict.marks);
        State::Settled(Settled { verdict, hash, hold: Arc::default() })
    }
}

/// All verdicts on FileChecks.
#[derive(Debug)]
pub(super) struct Trust {
    dir: Option<PathBuf>,
    is_early: bool,
    tools: Mutex<HashMap<Tool, State>>,
    /// Something is pending, or settled, or testing ends.
    changed: Condvar,
    /// Whether someone tests what is pending. Changes only while `tools` is locked.
    is_testing: AtomicBool,
    /// Whether a FileCheck has lost its trust.
    is_lost: Arc<AtomicBool>,
}

impl Trust {
    pub fn new(dir: Option<PathBuf>) -> Self {
        Trust {
            dir,
            is_early: false,
            tools: Mutex::default(),
            changed: Condvar::new(),
            is_testing: AtomicBool::new(false),
            is_lost: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Tool, State>> {
        self.tools.lock().expect("no panic while locked")
    }

    /// Holds the files of all FileChecks that the matcher may replace, now or never: this process will be traced.
    pub fn hold(&self) {
        let trusted = |state: &State| match state {
            State::Settled(settled) if settled.verdict.refusal.is_none() => Some(settled.clone()),
            _ => None,
        };
        let all: Vec<Settled> = self.lock().values().filter_map(trusted).collect();
        for settled in all {
            settled.begin_hold();
            settled.hold.make_final();
        }
    }

    /// Whether the files of all FileChecks with a verdict are as they were.
    pub fn are_current(&self) -> bool {
        let all: Vec<State> = self.lock().values().cloned().collect();
        all.iter().all(|state| match state {
            State::Settled(settled) if settled.verdict.refusal.is_none() => settled.is_current(),
            _ => true,
        })
    }

    /// Has FileChecks tested early, since there are so many tests that this pays.
    pub fn test_early(&mut self) {
        self.is_early = true;
    }

    /// Returns a hash of this FileCheck if the matcher may decide for it, or the reason why not. Counts the use.
    pub fn ask(&self, tool: &Tool) -> Result<Hash, &'static str> {
        let mut tools = self.lock();
        if !tools.contains_key(tool) {
            tools.insert(tool.clone(), self.at_first_sight(tool));
        }
        let state = tools.get_mut(tool).expect("entered above");
        let settled = match state {
            State::Used(uses) => {
                *uses += 1;
                if *uses >= self.uses(tool) {
                    *state = State::Pending;
                    self.changed.notify_all();
                }
                return Err(NOT_YET);
            }
            State::Pending => return Err(NOT_YET),
            State::Settled(settled) => settled.clone(),
        };
        // A Python script has hundreds of files.
        drop(tools);
        if !settled.is_current() {
            self.lock().insert(tool.clone(), State::Used(1));
            return Err(NOT_YET);
        }
        match settled.verdict.refusal {
            None => Ok(settled.hash),
            Some(_) => Err("it is not trusted"),
        }
    }

    /// Returns the verdict on a FileCheck, if it allows the matcher.
    pub fn passed(&self, tool: &Tool) -> Option<Verdict> {
        match self.lock().get(tool) {
            Some(State::Settled(Settled { verdict, .. })) if verdict.refusal.is_none() => {
                Some(verdict.clone())
            }
            _ => None,
        }
    }

    fn uses(&self, tool: &Tool) -> u32 {
        match (tool.dialect, self.is_early) {
            (Dialect::Llvm, false) => USES,
            (Dialect::Llvm, true) => FIRST_USES,
            (Dialect::Pypi, false) => USES_OF_SCRIPT,
            (Dialect::Pypi, true) => FIRST_USES_OF_SCRIPT,
        }
    }

    /// Begins or ends the time in which someone tests what is pending.
    pub fn set_testing(&self, is_testing: bool) {
        let tools = self.lock();
        self.is_testing.store(is_testing, Ordering::Relaxed);
        drop(tools);
        self.changed.notify_all();
    }

    /// Waits for a FileCheck that the battery should test now. `None` if testing has ended.
    pub fn wait_for_pending(&self) -> Option<Tool> {
        let is_idle = |tools: &mut HashMap<Tool, State>| {
            self.is_testing.load(Ordering::Relaxed)
                && !tools.values().any(|state| matches!(state, State::Pending))
        };
        let tools = self.changed.wait_while(self.lock(), is_idle).expect("no panic while locked");
        let pending = tools.iter().find(|(_, state)| matches!(state, State::Pending));
        pending.filter(|_| self.is_testing.load(Ordering::Relaxed)).map(|(tool, _)| tool.clone())
    }

    fn at_first_sight(&self, tool: &Tool) -> State {
        let kept = self.dir.as_ref().and_then(|dir| store::read(dir, tool));
        match kept.filter(|verdict| verdict.marks.iter().all(Mark::is_current)) {
            Some(verdict) => State::settled(tool, verdict),
            None => State::Used(0),
        }
    }

    /// Whether there is a current verdict.
    pub fn is_known(&self, tool: &Tool) -> bool {
        let mut tools = self.lock();
        let state = tools.entry(tool.clone()).or_insert_with(|| self.at_first_sight(tool));
        matches!(state, State::Settled(settled) if settled.is_current())
    }

    /// Returns all FileChecks with a verdict, and the hash of what it is about.
    pub fn settled(&self) -> Vec<(Tool, Verdict, Hash)> {
        let settled = |(tool, state): (&Tool, &State)| match state {
            State::Settled(Settled { verdict, hash, .. }) => Some((tool.clone(), verdict.clone(), *hash)),
            _ => None,
        };
        self.lock().iter().filter_map(settled).collect()
    }

    /// Whether this trust in a FileCheck is stored, so that whoever revokes it knows of it.
    pub fn is_stored(&self, tool: &Tool, verdict: &Verdict) -> bool {
        let stored = self.dir.as_ref().and_then(|dir| store::read(dir, tool));
        verdict.refusal.is_none() && stored.as_ref() == Some(verdict)
    }

    /// Whether the verdict allows the matcher.
    pub fn believes(&self, tool: &Tool) -> bool {
        self.passed(tool).is_some()
    }

    /// Records a verdict. Without one, the FileCheck is not tested again in this run.
    pub fn settle(&self, tool: &Tool, verdict: Result<Verdict, String>) {
        if let (Some(dir), Ok(verdict)) = (&self.dir, &verdict) {
            let was_trusted = || store::read(dir, tool).is_some_and(|before| before.refusal.is_none());
            if verdict.refusal.is_some() && was_trusted() {
                self.is_lost.store(true, Ordering::Relaxed);
                store::note_loss(dir);
            }
            store::write(dir, tool, verdict);
        }
        let verdict = verdict.unwrap_or_else(|why| Verdict::refused(why, Arc::default()));
        self.lock().insert(tool.clone(), State::settled(tool, verdict));
        self.changed.notify_all();
    }

    /// Tells from now on whether a FileCheck has lost its trust.
    pub fn loss(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_lost)
    }

    /// Revokes the trust in every FileCheck, and stores that.
    pub fn refuse_all(&self, why: &str) {
        self.refuse(why, |_| true);
    }

    /// Revokes the trust in these FileChecks, and stores that. All others that are stored are put to the test again: one may be the same
    /// program, by another path or with other variables.
    pub fn refuse(&self, why: &str, which: impl Fn(&Tool) -> bool) {
        let mut tools = self.lock();
        self.is_lost.store(true, Ordering::Relaxed);
        self.dir.iter().for_each(|dir| {
            store::note_loss(dir);
            store::clear(dir);
        });
        for (tool, state) in tools.iter_mut().filter(|(tool, _)| which(tool)) {
            let State::Settled(Settled { verdict, .. }) = state else { continue };
            if verdict.refusal.is_none() {
                verdict.refusal = Some(why.replace('\n', " "));
                self.dir.iter().for_each(|dir| store::write(dir, tool, verdict));
            }
        }
    }

    /// Returns the FileChecks that are not trusted, and why.
    pub fn refused(&self) -> Vec<(PathBuf, String)> {
        let tools = self.lock();
        let refused = tools.iter().filter_map(|(tool, state)| match state {
            State::Settled(Settled { verdict: Verdict { refusal: Some(why), .. }, .. }) => {
                Some((tool.program.clone(), why.clone()))
            }
            _ => None,
        });
        refused.collect()
    }
}
