//! Observation runs: before a program gets a zygote, it is started under ptrace several times, up to the place where a zygote
//! stops, to record what its constructors do.
//!
//! A zygote's constructors run once, for all its forks. That is right if they would do and find the same in each. So each of
//! their system calls must be on a list (`calls`). The inputs that they look at join the zygote's key or its files. They
//! cannot read arguments and environment unseen (`secret`). And the results of the runs must be equal (`compare`), whatever
//! the number of arguments. A start with a number that was not observed is cold (`numbers`).

mod block;
mod calls;
mod compare;
pub(super) mod counts;
mod kernels;
mod maps;
pub(crate) mod numbers;
mod old;
mod parts;
mod plain;
#[cfg(target_arch = "x86_64")]
mod python;
mod residue;
mod run;
mod secret;
pub(crate) mod stdio;
mod store;
mod tally;
mod twice;
mod unknown;
mod variables;
mod vary;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::exe;
use super::files::Files;
use super::key::{self, Asked, Looks};
use super::search::{self, Search};
#[cfg(test)]
use super::wire;
use super::zygote::Means;
use crate::sys::{clock, wait};
use crate::{Reason, Spec};
use numbers::Numbers;
pub(crate) use store::make_directory;
pub(crate) use tally::Tally;

/// Longest time of all runs together.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often to check whether the runs are still wanted.
const LOOK: Duration = Duration::from_millis(20);

/// CPU time of all observations so far, in nanoseconds.
static SPENT: AtomicU64 = AtomicU64::new(0);

/// Returns the CPU time of all observations so far.
pub(crate) fn spent() -> Duration {
    Duration::from_nanos(SPENT.load(Ordering::Relaxed))
}

/// Counts CPU time of an observation.
fn spend(time: Duration) {
    SPENT.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
}

/// The reason for which a tool cannot be started warm, and its details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub reason: Reason,
    pub detail: String,
}

/// The result of observing a program under one key.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// Variables that its constructors asked for, and other inputs that they looked at.
    pub names: Vec<Vec<u8>>,
    pub looks: Looks,
    /// Files that they, and the loader before them, looked for.
    pub files: Files,
    /// Paths, relative to the working directory, at which the loader looked in vain.
    pub relative: Vec<PathBuf>,
    /// The path that the program had in `/proc/self/exe`; that of the script, if it is Python's.
    pub exe: Vec<u8>,
    /// Names of the libraries that the loader looked for.
    pub libraries: BTreeSet<OsString>,
    /// Places where they keep the number of arguments.
    pub counts: Vec<counts::Place>,
    /// Words that have the lowest bytes of an address on the stack, and those that have the upper ones.
    ends: Vec<counts::Place>,
    uppers: Vec<counts::Place>,
    /// Where a cold process has something below `main`'s frame, as bits (`residue`); empty for a Python script.
    pub residue: Vec<u64>,
    /// The numbers of arguments for which they were observed.
    numbers: Arc<Numbers>,
    /// The place in a Python script where it stops; 0 before `main`. The text names the line, for people.
    pub place: u64,
    pub line: String,
    /// The reason for which it must be cold, if there is one.
    pub refusal: Option<Refusal>,
    key: Vec<u8>,
}

/// A program that is observed, with the allocator that it is given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subject {
    program: PathBuf,
    allocator: Option<PathBuf>,
}

impl Subject {
    fn new(program: &Path, allocator: Option<&Path>) -> Self {
        Subject { program: program.into(), allocator: allocator.map(PathBuf::from) }
    }
}

/// Observations by program and by the directory in which they are stored.
type Known = HashMap<(Subject, Option<PathBuf>), Vec<Arc<Observed>>>;
static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
/// Programs that are being observed. Other starts of them wait, since an observation needs a whole processor.
static UNDER_WAY: Mutex<Vec<Subject>> = Mutex::new(Vec::new());
static ENDED: Condvar = Condvar::new();

impl Observed {
    fn asked(&self) -> Asked {
        let mut asked = Asked::default();
        self.names.iter().for_each(|name| _ = asked.add(name));
        asked.add_looks(&self.looks);
        asked
    }

    fn parts(&self) -> Vec<counts::Place> {
        self.ends.iter().chain(&self.uppers).cloned().collect()
    }

    /// Returns whether constructors were observed with as many arguments as `spec` has, and as its zygote has. A Python script
    /// halts before it counts them.
    pub(crate) fn covers(&self, spec: &Spec<'_>) -> bool {
        self.place != 0 || numbers::needed(spec).iter().all(|&number| self.numbers.has(number))
    }

    /// Returns how `found`, a further observation, differs from this one; `None` if it shows the same.
    fn difference(&self, found: &Observed) -> Option<Refusal> {
        if let Some(refusal) = &found.refusal {
            return Some(refusal.clone());
        }
        let is_same = found.names.iter().all(|name| self.names.contains(name))
            && !self.asked().add_looks(&found.looks)
            && found.relative.iter().all(|path| self.relative.contains(path))
            && found.counts == self.counts
            && compare::has_all(&self.ends, &found.ends)
            && compare::has_all(&self.uppers, &found.uppers)
            && self.files.cover(&found.files);
        let detail = "with another number of arguments".to_owned();
        (!is_same).then_some(Refusal { reason: Reason::ConstructorsDiffer, detail })
    }

    /// Returns whether the observation holds for this start, now.
    pub(crate) fn serves(&self, spec: &Spec<'_>) -> bool {
        self.key_of(spec) == self.key && self.files.unchanged()
    }

    /// Returns the key of the observation that holds for `spec`.
    fn key_of(&self, spec: &Spec<'_>) -> Vec<u8> {
        key::of(&self.reduce(spec), &self.asked())
    }

    /// Returns `spec` with only those directories of LD_LIBRARY_PATH that matter to its program ([`Search`]).
    fn reduce<'fd>(&self, spec: &Spec<'fd>) -> Spec<'fd> {
        let matters = self.looks.python || self.names.iter().any(|name| name == search::NAME);
        if matters { spec.clone() } else { Search::of(&spec.env).reduce(spec, &self.libraries) }
    }
}

/// Returns whether an observation of `spec`'s program is known.
pub(crate) fn is_known(spec: &Spec<'_>, means: Means<'_>) -> bool {
    find(&of(spec, means), spec, means.kept).is_some()
}

/// Returns the cold starts of a program, given with its allocator, that earlier runs have stored.
pub(crate) fn tally(program: &Path, allocator: Option<&Path>, kept: &Path) -> Tally {
    tally::load(kept, &Subject::new(program, allocator))
}

/// Stores a cold start of a program for later runs, or, if it has none, forgets those that are stored.
pub(crate) fn count(program: &Path, allocator: Option<&Path>, kept: &Path, spent: Option<Duration>) {
    let of = Subject::new(program, allocator);
    spent.map_or_else(|| tally::clear(kept, &of), |spent| tally::store(kept, &of, spent));
}

/// Returns the known observation of `spec`'s program, or makes one, and whether it was made now. Constructors are then
/// observed with these `numbers` of arguments, and with those that the program was given under other keys: a number that is
/// observed later costs one run more.
pub(crate) fn observe(spec: &Spec<'_>, numbers: &[usize], means: Means<'_>) -> (Arc<Observed>, bool) {
    let search = Search::of(&spec.env);
    let of = of(spec, means);
    if let Some(known) = find(&of, spec, means.kept) {
        return (known, false);
    }
    if !search.is_empty() && means.python.is_none() {
        // First without the variable: what is found so holds wherever it changes nothing.
        let libraries = libraries(&of, means.kept)
            .unwrap_or_else(|| observe_with(&search.drop_from(spec), numbers, means).0.libraries.clone());
        let (observed, is_new) = observe_with(&search.reduce(spec, &libraries), numbers, means);
        if observed.serves(spec) {
            return (observed, is_new);
        }
    }
    observe_with(spec, numbers, means)
}

/// Like [`observe`], with this very value of LD_LIBRARY_PATH.
fn observe_with(spec: &Spec<'_>, numbers: &[usize], means: Means<'_>) -> (Arc<Observed>, bool) {
    let of = of(spec, means);
    if let Some(known) = find(&of, spec, means.kept) {
        return (known, false);
    }
    let _turn = Turn::take(&of);
    if let Some(known) = find(&of, spec, means.kept) {
        return (known, false);
    }
    let numbers = numbers.iter().copied().chain(used(&of, means.kept)).collect();
    let begun = clock::of_files();
    let mut observed = watched(means, |live| match means.python {
        Some(script) => python::observe(spec, script, means, live),
        None => twice::observe(spec, &numbers, means, live),
    });
    if observed.exe.is_empty() {
        observed.exe = exe::of_file(&spec.program);
    }
    observed.key = key::of_exe(&observed.reduce(spec), &observed.asked(), &observed.exe);
    // A file that changed meanwhile may have been read in its old state, or by one run only.
    if !observed.files.unchanged_since(begun) || !observed.files.unchanged() {
        observed.refusal = Some(Refusal { reason: Reason::FilesChanging, detail: String::new() });
    }
    let reason = observed.refusal.as_ref().map(|refusal| refusal.reason);
    let observed = Arc::new(observed);
    if store::is_kept(reason) {
        keep(of, Arc::clone(&observed), means.kept);
    }
    (observed, true)
}

/// The right to observe a program, until it is dropped.
#[derive(Debug)]
struct Turn(Subject);

impl Turn {
    /// Waits until no other thread observes the same program.
    fn take(of: &Subject) -> Turn {
        let under_way = UNDER_WAY.lock().expect("no panic while locked");
        let mut under_way =
            ENDED.wait_while(under_way, |under_way| under_way.contains(of)).expect("no panic while locked");
        under_way.push(of.clone());
        Turn(of.clone())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // If a panic drops this, a second panic would abort.
        let mut under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.retain(|of| *of != self.0);
        ENDED.notify_all();
    }
}

fn of(spec: &Spec<'_>, means: Means<'_>) -> Subject {
    let tool = means.python.map_or(Cow::Borrowed(&*spec.program), |script| script.tool(spec));
    Subject::new(&tool, means.allocator)
}

/// Observes the constructors for these `numbers` of arguments, `spec`'s among them. Other numbers prove nothing about these,
/// since constructors may compare the number with a constant. Succeeds if `spec`'s number was `observed` before or is now;
/// otherwise returns the reason for a cold start. Only one caller at a time observes a number.
pub(crate) fn extend(
    observed: &Observed,
    numbers: &[usize],
    spec: &Spec<'_>,
    means: Means<'_>,
) -> Result<(), Refusal> {
    let passing = |reason| Err(Refusal { reason, detail: String::new() });
    let claims: Vec<_> = numbers.iter().filter_map(|&number| observed.numbers.claim(number)).collect();
    let outcome = || if observed.covers(spec) { Ok(()) } else { passing(Reason::FewStarts) };
    let needed = numbers::needed(spec);
    if !claims.iter().any(|claim| needed.contains(&claim.number)) {
        return outcome();
    }
    let numbers: BTreeSet<usize> = claims.iter().map(|claim| claim.number).collect();
    let begun = clock::of_files();
    let reduced = observed.reduce(spec);
    let found = watched(means, |live| twice::observe_numbers(&reduced, &numbers, means, live));
    let is_other = found.refusal.is_none() && found.exe != observed.exe;
    if is_other || !observed.files.unchanged_since(begun) || !observed.serves(spec) {
        return passing(Reason::FilesChanging);
    }
    let of = of(spec, means);
    let Some(refusal) = observed.difference(&found) else {
        numbers.iter().for_each(|&number| observed.numbers.insert(number));
        save(&of, means.kept);
        return outcome();
    };
    if store::is_kept(Some(refusal.reason)) {
        // The refusal replaces the earlier result.
        forget(&of, &observed.key, means.kept);
        let refused = Observed { refusal: Some(refusal.clone()), ..observed.clone() };
        keep(of, Arc::new(refused), means.kept);
    }
    Err(refusal)
}

fn find(of: &Subject, spec: &Spec<'_>, kept: Option<&Path>) -> Option<Arc<Observed>> {
    let mut known = KNOWN.lock().expect("no panic while locked");
    let of_program = known
        .get_or_insert_default()
        .entry((of.clone(), kept.map(PathBuf::from)))
        .or_insert_with(|| kept.map(|kept| store::load(kept, of)).unwrap_or_default());
    of_program.retain(|observed| observed.files.unchanged());
    of_program.iter().find(|observed| observed.serves(spec)).cloned()
}

/// Returns the numbers of arguments for which a program was observed, whatever the key.
fn used(of: &Subject, kept: Option<&Path>) -> BTreeSet<usize> {
    let mut known = KNOWN.lock().expect("no panic while locked");
    let of_program = known.get_or_insert_default().entry((of.clone(), kept.map(PathBuf::from))).or_default();
    of_program.iter().flat_map(|observed| observed.numbers.observed()).collect()
}

/// Returns the names of the libraries that a program looks for, as far as they are known.
fn libraries(of: &Subject, kept: Option<&Path>) -> Option<BTreeSet<OsString>> {
    let mut known = KNOWN.lock().expect("no panic while locked");
    let of_program = known.get_or_insert_default().entry((of.clone(), kept.map(PathBuf::from))).or_default();
    of_program.last().map(|observed| observed.libraries.clone())
}

fn keep(of: Subject, observed: Arc<Observed>, kept: Option<&Path>) {
    let mut known = KNOWN.lock().expect("no panic while locked");
    let place = (of.clone(), kept.map(PathBuf::from));
    let of_program = known.get_or_insert_default().entry(place).or_default();
    of_program.push(observed);
    if let Some(kept) = kept {
        store::save(kept, &of, of_program);
    }
}

fn forget(of: &Subject, key: &[u8], kept: Option<&Path>) {
    let mut known = KNOWN.lock().expect("no panic while locked");
    let place = (of.clone(), kept.map(PathBuf::from));
    known.get_or_insert_default().entry(place).or_default().retain(|observed| observed.key != key);
}

/// Stores the known observations of a program.
fn save(of: &Subject, kept: Option<&Path>) {
    let Some(directory) = kept else { return };
    let mut known = KNOWN.lock().expect("no panic while locked");
    let place = (of.clone(), kept.map(PathBuf::from));
    store::save(directory, of, known.get_or_insert_default().entry(place).or_default());
}

/// The runs in progress, so that they can be ended.
#[derive(Debug, Default)]
struct Live(Mutex<Vec<OwnedFd>>);

impl Live {
    fn enter(&self, pid: i32) -> std::io::Result<()> {
        let process = wait::pidfd(pid)?;
        self.0.lock().expect("no panic while locked").push(process);
        Ok(())
    }

    fn end(&self) {
        for process in &*self.0.lock().expect("no panic while locked") {
            // The run may have ended by itself.
            let _ = rustix::process::pidfd_send_signal(process, rustix::process::Signal::KILL);
        }
    }
}

/// Calls `observe`, and ends its runs if they take too long or are no longer wanted.
fn watched(means: Means<'_>, observe: impl FnOnce(&Live) -> Observed + Send) -> Observed {
    let live = Live::default();
    let (sender, receiver) = std::sync::mpsc::channel();
    let until = Instant::now() + PATIENCE;
    // A thread traces the processes that it starts, and no other thread may wait for them.
    std::thread::scope(|scope| {
        let runs = &live;
        // It has the only sender, so that its end is noticed if it panics.
        let work = move || {
            let observed = observe(runs);
            spend(clock::of_thread());
            // The receiver waits below.
            let _ = sender.send(observed);
        };
        if std::thread::Builder::new().name("observer".into()).spawn_scoped(scope, work).is_err() {
            return Observed::refused(Reason::NotObserved, "no thread for it");
        }
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(observed) => return observed,
                Err(RecvTimeoutError::Disconnected) => {
                    return Observed::refused(Reason::NotObserved, "its thread has ended");
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() > until || means.is_over.is_some_and(|over| over.load(Ordering::Relaxed)) {
                live.end();
            }
        }
    })
}

#[cfg(not(target_arch = "x86_64"))]
mod python {
    //! Python scripts are not observed: the runtime halts them on x86-64 only (`runtime/python`).

    use super::{Live, Observed};
    use crate::warm::script::Script;
    use crate::warm::zygote::Means;
    use crate::{Reason, Spec};

    pub(super) fn observe(_: &Spec<'_>, _: &Script, _: Means<'_>, _: &Live) -> Observed {
        Observed::refused(Reason::NotObserved, "not on this kind of processor")
    }
}

impl Observed {
    /// Returns the observation of a program that does nothing before `main`, with any number of arguments.
    #[cfg(test)]
    pub(crate) fn nothing() -> Observed {
        let numbers = Numbers::of(0..=wire::ROOM);
        Observed { refusal: None, numbers, ..Observed::refused(Reason::NotObserved, "") }
    }

    fn refused(reason: Reason, detail: &str) -> Observed {
        Observed {
            names: Vec::new(),
            looks: Looks::default(),
            files: Files::default(),
            relative: Vec::new(),
            exe: Vec::new(),
            libraries: BTreeSet::new(),
            counts: Vec::new(),
            ends: Vec::new(),
            uppers: Vec::new(),
            residue: Vec::new(),
            numbers: Arc::default(),
            place: 0,
            line: String::new(),
            refusal: Some(Refusal { reason, detail: detail.to_owned() }),
            key: Vec::new(),
        }
    }
}
