//! Passes of FileCheck without a process.
//!
//! The matcher (`hotstart-filecheck`) decides passes only. For everything that it leaves undecided, the FileCheck that
//! the script names runs with the same input. The matcher replaces a FileCheck only after both gave the same answers to
//! a battery of cases, once for each FileCheck ([`trust`]). docs/design/filecheck.md has the rules.

mod battery;
mod elsewhere;
mod libraries;
mod limits;
mod passes;
mod python;
mod question;
mod stage;
mod store;
mod trust;
mod waiting;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hotstart_filecheck::{Dialect, MAX_INPUT, Undecided};
use hotstart_inputs::{Input, Subject};
use hotstart_launch::{EnvBlock, Group, Launcher};
use hotstart_model::{Environment, Script};
use hotstart_python::path::join;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, SeekFrom};

use crate::mark::Seen;
use crate::pump;

pub use elsewhere::{FileCheckUses, KnownFileCheck, Losses};
pub(crate) use libraries::Scene;
use libraries::{Missed, relative_parts};
use passes::{Hash, Passes};
pub use passes::{PassesReport, passes_report, remove_damaged_passes};
pub(crate) use question::Question;
use trust::{Tool, Trust};
pub(crate) use waiting::{Started, Waiting};

/// A run of so many tests uses its FileCheck often enough to have it tested at once.
const MANY_TESTS: usize = 500;
/// The same where tests are traced: each start of FileCheck costs several times as much there, and none can be warm.
const MANY_TRACED_TESTS: usize = 100;

const LIBRARIES_VARY: &str = "an LD_LIBRARY_PATH that depends on the directory";
const OFF: &str = "switched off after a difference";

/// Runs a script once, traced, and returns its inputs if it passes without output and they can be told.
pub type Observe = fn(&Script, &Launcher, &Group, Subject) -> Option<Vec<Input>>;

/// Decides passes of FileCheck. Shared by all workers.
#[derive(Debug)]
pub struct FileChecks {
    /// Starts the FileChecks that the battery tests.
    launcher: Arc<Launcher>,
    /// The group of their processes.
    group: Arc<Group>,
    trust: Trust,
    /// Tells which files a Python script looks at. `None` if none is put to the test.
    observe: Option<Observe>,
    /// Passes that were seen before. `None` if none are remembered.
    passes: Option<Passes>,
    is_off: AtomicBool,
    matched: AtomicU64,
    remembered: AtomicU64,
    contradictions: Mutex<Vec<String>>,
    left: Mutex<BTreeMap<Cow<'static, str>, u64>>,
    /// What starts of FileChecks look at.
    starts: elsewhere::Starts,
    /// The FileChecks that were used, if another process asks for them.
    log: Option<Mutex<elsewhere::Log>>,
}

/// Counts of FileCheck runs, by how they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCheckCounts {
    /// Passes without a process.
    pub matched: u64,
    /// Those among them that were remembered.
    pub remembered: u64,
    /// Remembered passes that FileCheck did not confirm.
    pub contradictions: Vec<String>,
    /// Runs of FileCheck itself, by reason.
    pub left: BTreeMap<Cow<'static, str>, u64>,
    /// FileChecks whose answers to the battery differed, or that differed in a test, with the difference.
    pub refused: Vec<(PathBuf, String)>,
}

impl FileCheckCounts {
    /// Returns the number of all runs of FileCheck itself.
    pub fn left_total(&self) -> u64 {
        self.left.values().sum()
    }
}

/// A question that FileCheck itself has to answer.
#[derive(Debug)]
pub(crate) struct Open {
    tool: Arc<Tool>,
    /// The question without its input. `None` if no passes are remembered.
    asked: Option<Hash>,
    is_remembered: bool,
}

impl Open {
    /// Whether a pass with this input is remembered: if it passes, that is no news.
    pub(crate) fn is_remembered(&self) -> bool {
        self.is_remembered
    }
}

/// Returns the directory of remembered passes below the cache directory.
pub fn passes_directory(cache: &Path) -> PathBuf {
    filechecks_directory(cache).join("passes")
}

fn filechecks_directory(cache: &Path) -> PathBuf {
    cache.join("filecheck")
}

/// A FileCheck that is to run.
pub(crate) struct Call<'c> {
    pub program: &'c Path,
    pub args: &'c [String],
    pub env: &'c Environment,
    pub cwd: &'c str,
}

impl FileChecks {
    /// `launcher` starts the FileChecks that the battery tests. Verdicts are stored below `dir`; without one they are
    /// not stored.
    pub fn new(launcher: Arc<Launcher>, dir: Option<PathBuf>) -> Self {
        FileChecks {
            launcher,
            group: Arc::new(Group::new()),
            trust: Trust::new(dir.map(|dir| filechecks_directory(&dir))),
            observe: None,
            passes: None,
            is_off: AtomicBool::new(false),
            matched: AtomicU64::new(0),
            remembered: AtomicU64::new(0),
            contradictions: Mutex::default(),
            left: Mutex::default(),
            starts: Mutex::default(),
            log: None,
        }
    }

    /// Expects so many tests, which may be traced.
    pub fn expecting(mut self, tests: usize, are_traced: bool) -> Self {
        if tests >= if are_traced { MANY_TRACED_TESTS } else { MANY_TESTS } {
            self.trust.test_early();
        }
        self
    }

    /// Puts PyPI's filecheck to the test, too. `observe` shows what a start of it looks at.
    pub fn observing(mut self, observe: Observe) -> Self {
        self.observe = Some(observe);
        self
    }

    /// Remembers passes between runs, below `dir`. One in `sample` of them is run nevertheless, as a check.
    pub fn remembering(mut self, dir: &Path, sample: u64) -> Self {
        self.passes = Some(Passes::new(passes_directory(dir), sample));
        self
    }

    /// Stores the new passes for later runs.
    pub fn save(&self) {
        self.passes.iter().for_each(Passes::save);
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> FileCheckCounts {
        FileCheckCounts {
            matched: self.matched.load(Ordering::Relaxed),
            remembered: self.remembered.load(Ordering::Relaxed),
            contradictions: self.contradictions.lock().expect("no panic while locked").clone(),
            left: self.left.lock().expect("no panic while locked").clone(),
            refused: self.trust.refused(),
        }
    }

    /// Leaves everything to the FileChecks from now on, because `test` showed a difference. Later runs do not trust
    /// those that were trusted, either.
    pub fn quarantine(&self, test: &str) {
        self.is_off.store(true, Ordering::Relaxed);
        self.passes.iter().for_each(Passes::clear);
        self.trust.refuse_all(&format!("a run with it differed in {test}"));
    }

    /// Runs the battery on each FileCheck that was used often enough and has no verdict yet, until
    /// [`end_testing`](FileChecks::end_testing) is called. A battery that has begun is completed.
    pub fn test_pending(&self) {
        while let Some(tool) = self.trust.wait_for_pending() {
            let verdict = battery::verdict(&tool, self);
            self.trust.settle(&tool, verdict);
        }
    }

    /// The processes of FileChecks that are tested. Once they are killed, no FileCheck is tested any more.
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// Announces a thread that calls [`test_pending`](FileChecks::test_pending).
    pub fn begin_testing(&self) {
        self.trust.set_testing(true);
    }

    /// Ends the testing of FileChecks.
    pub fn end_testing(&self) {
        self.trust.set_testing(false);
    }

    /// Whether this FileCheck is trusted. Runs the battery now if there is no verdict yet.
    pub fn test_now(&self, program: &Path, env: &Environment) -> bool {
        let Some(dialect) = dialect(program) else { return false };
        let tool = Tool::new(program, dialect, env);
        if !self.trust.is_known(&tool) {
            let verdict = battery::verdict(&tool, self);
            self.trust.settle(&tool, verdict);
        }
        self.trust.believes(&tool)
    }

    /// Whether this FileCheck passes with these arguments, in this environment and directory. Calls `stdin` only if the
    /// input is needed.
    pub fn passes(
        &self,
        program: &Path,
        args: &[String],
        env: &Environment,
        cwd: &str,
        stdin: &mut dyn FnMut() -> Vec<u8>,
    ) -> bool {
        let Ok((question, input_file)) = self.attempt(&Call { program, args, env, cwd }) else {
            return false;
        };
        let input = match input_file {
            Some(file) => regular_file(&join(cwd, &file)),
            None => Some(stdin()),
        };
        input.is_some_and(|input| self.decide(question, &input).is_ok())
    }

    /// Returns a call as a question, ready for its input, and its input file. `None` if FileCheck itself must run.
    pub(crate) fn prepare(&self, call: &Call<'_>) -> Option<(Question, Option<String>)> {
        dialect(call.program)?;
        match self.attempt(call) {
            Ok(question) => Some(question),
            Err(Undecided(why)) => {
                self.leave(why);
                None
            }
        }
    }

    fn attempt(&self, call: &Call<'_>) -> Result<(Question, Option<String>), Undecided> {
        if self.is_off.load(Ordering::Relaxed) {
            return Err(Undecided(OFF));
        }
        if !limits::are_usual() {
            return Err(Undecided("limits under which FileCheck may end early"));
        }
        if call.env.get("LD_PRELOAD").is_some() {
            return Err(Undecided("LD_PRELOAD"));
        }
        let relative = relative_parts(call.env).ok_or(Undecided(LIBRARIES_VARY))?;
        let varies = !relative.is_empty();
        // Where inputs are recorded, nobody would record that there was no library in the directory.
        if varies && self.log.is_some() {
            return Err(Undecided(LIBRARIES_VARY));
        }
        let dialect = dialect(call.program).ok_or(Undecided("another name"))?;
        if dialect == Dialect::Pypi && !python::is_plain(call.program, call.env) {
            return Err(Undecided("a variable that changes what a Python script does"));
        }
        let tool = Arc::new(Tool::new(call.program, dialect, call.env));
        // While the battery tests it, it starts: the verdict will be about another moment.
        let filecheck = self.trust.ask(&tool).map_err(|why| {
            if why == trust::NOT_YET {
                self.note(|log| log.unknown(&tool));
            }
            Undecided(why)
        })?;
        let verdict = self.trust.passed(&tool).ok_or(Undecided(trust::NOT_YET))?;
        let missed = varies.then(|| Missed {
            dirs: relative.iter().map(|part| Path::new(call.cwd).join(part)).collect(),
            names: Arc::clone(&verdict.libraries),
        });
        let request = dialect.parse(call.args, options_of(call.env)?)?;
        let input_file = request.input_file().map(str::to_owned);
        let path = join(call.cwd, request.check_file());
        let (seen, check) =
            Seen::reading(Path::new(&path), || regular_file(&path)).ok_or(Undecided("no check file"))?;
        let check: Arc<[u8]> = check.into();
        let scene = Scene { check: seen, files: verdict.marks, missed };
        if varies && (scene.names_nothing() || !scene.has_libraries()) {
            return Err(Undecided(LIBRARIES_VARY));
        }
        let asked =
            self.passes.as_ref().map(|_| question::asked(&filecheck, &question::called(call, &check)));
        let has = |hash: Hash| self.passes.as_ref().is_some_and(|passes| passes.has(&hash));
        if asked.is_some_and(|asked| has(question::left(&asked))) {
            return Err(Undecided("a use that was left to it before"));
        }
        let mut question = Question::new(tool, asked, request, check, scene);
        // FileCheck complains about a check file before it reads its input. It did not if it has passed with this one.
        if !asked.is_some_and(has) {
            question.prepare()?;
        }
        Ok((question, input_file))
    }

    /// Returns whether FileCheck passes with this input, and counts the result. If FileCheck itself must decide,
    /// [`has_failed`](FileChecks::has_failed) wants to know of a failure.
    pub(crate) fn decide(&self, question: Question, input: &[u8]) -> Result<(), Open> {
        let mut open = Open { tool: Arc::clone(&question.tool), asked: question.asked, is_remembered: false };
        if self.is_off.load(Ordering::Relaxed) {
            self.leave(OFF);
            return Err(open);
        }
        let mut hashes = [Hash::default(); 2];
        if let (Some(passes), Some(asked)) = (&self.passes, question.asked) {
            hashes = [asked, question::answered(&asked, input)];
            open.is_remembered = passes.has(&hashes[1]);
            if open.is_remembered && passes.samples(&hashes[1]) {
                self.leave("one of a sample of remembered passes");
                return Err(open);
            }
        }
        match if open.is_remembered { Ok(()) } else { question.decide(input) } {
            Ok(()) => {
                self.remembered.fetch_add(u64::from(open.is_remembered), Ordering::Relaxed);
                self.matched.fetch_add(1, Ordering::Relaxed);
                self.note(|log| log.decided_for(&open.tool));
                self.passes.iter().for_each(|passes| passes.add(&hashes));
                Ok(())
            }
            Err(Undecided(why)) => {
                self.leave(why);
                Err(open)
            }
        }
    }

    /// Takes the pass of a FileCheck that the matcher has left to it at the end of its input. Next time it starts with its pipeline.
    pub(crate) fn has_passed_late(&self, open: &Open) {
        if let (Some(passes), Some(asked)) = (&self.passes, open.asked) {
            passes.add(&[question::left(&asked)]);
        }
    }

    /// Takes the failure of a FileCheck that had to run. If a pass was remembered, no pass is believed any more: none that is
    /// stored, and no other of this FileCheck, in this run and in later ones.
    ///
    /// A pass is no news here: FileCheck has opened its files itself, and which bytes it has read cannot be known.
    pub(crate) fn has_failed(&self, open: &Open, command: &dyn Fn() -> String) {
        if open.is_remembered {
            let command = command();
            self.passes.iter().for_each(Passes::clear);
            self.trust
                .refuse(&format!("a remembered pass of it fails: {command}"), |tool| *tool == *open.tool);
            self.contradictions.lock().expect("no panic while locked").push(command);
        }
    }

    /// Counts a run that is left to FileCheck.
    pub(crate) fn leave(&self, why: &'static str) {
        *self.left.lock().expect("no panic while locked").entry(why.into()).or_default() += 1;
    }

    fn note(&self, add: impl FnOnce(&mut elsewhere::Log)) {
        if let Some(log) = &self.log {
            add(&mut log.lock().expect("no panic while locked"));
        }
    }
}

/// Returns the dialect that a program of this name may have.
fn dialect(program: &Path) -> Option<Dialect> {
    let name = program.file_name()?.to_str()?;
    match name {
        "filecheck" => Some(Dialect::Pypi),
        _ => name.starts_with("FileCheck").then_some(Dialect::Llvm),
    }
}

/// Returns the content of a regular file. Reading another kind of file may change it. A path through a link of the kernel's
/// (`/dev/stdin`, `/proc/self/cwd`) leads elsewhere in another process. Files whose size is not that of their content are the
/// kernel's, too; FileCheck reads as much as the size says.
pub(crate) fn regular_file(path: &str) -> Option<Vec<u8>> {
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return None;
    }
    let (read, resolve) = (OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, ResolveFlags::NO_MAGICLINKS);
    let file = rustix::fs::openat2(rustix::fs::CWD, path, read, Mode::empty(), resolve).ok()?;
    whole(&file)
}

/// Returns the content of a regular file that was just opened, and leaves the file at its start.
pub(crate) fn whole(file: &OwnedFd) -> Option<Vec<u8>> {
    let found = rustix::fs::fstat(file).ok()?;
    let size = usize::try_from(found.st_size).ok()?;
    if !FileType::from_raw_mode(found.st_mode).is_file() || size > MAX_INPUT {
        return None;
    }
    let content = pump::read_all(file);
    rustix::fs::seek(file, SeekFrom::Start(0)).ok()?;
    (content.len() == size).then_some(content)
}

/// Returns the environment of a FileCheck under test: its own, without FILECHECK_OPTS.
fn plain_environment(env: &[(OsString, OsString)]) -> Environment {
    env.iter().filter(|(name, _)| name != "FILECHECK_OPTS").cloned().collect()
}

/// Returns the same in the form that a process takes.
fn plain_block(env: &[(OsString, OsString)]) -> EnvBlock {
    EnvBlock::new(&plain_environment(env))
}

/// Returns the options that the environment adds.
fn options_of(env: &Environment) -> Result<Option<&str>, Undecided> {
    let options = env.get("FILECHECK_OPTS");
    options.map(|text| text.to_str().ok_or(Undecided("FILECHECK_OPTS that is not UTF-8"))).transpose()
}

#[cfg(test)]
mod tests {
    use super::trust::Verdict;
    use super::*;
    use crate::mark::Mark;

    #[test]
    fn options_that_are_no_text_leave_a_call_to_filecheck() {
        use std::os::unix::ffi::OsStringExt;
        let with = |options: &[u8]| -> Environment {
            [("FILECHECK_OPTS", OsString::from_vec(options.to_vec()))].into_iter().collect()
        };
        assert_eq!(options_of(&Environment::new()).unwrap(), None);
        assert_eq!(options_of(&with(b"-DX=a")).unwrap(), Some("-DX=a"));
        assert!(options_of(&with(b"-DX=\xff")).is_err());
    }

    /// libc may fail by these, whatever FileCheck would do.
    #[test]
    fn variables_that_libraries_read_make_another_filecheck() {
        let with = |name: &str| {
            let env = [(name, "1")].into_iter().collect();
            Tool::new(Path::new("/FileCheck"), Dialect::Llvm, &env)
        };
        let plain = Tool::new(Path::new("/FileCheck"), Dialect::Llvm, &Environment::new());
        for name in ["LD_BIND_NOW", "GLIBC_TUNABLES", "MALLOC_TOP_PAD_", "ASAN_OPTIONS"] {
            assert_ne!(with(name), plain, "{name}");
        }
        for name in ["LIT_CURRENT_TESTCASE", "LANG", "LC_ALL"] {
            assert_eq!(with(name), plain, "{name}");
        }
    }

    /// Remembers a pass of a call that fails, as only a fault of hotstart can.
    #[test]
    fn a_remembered_pass_that_fails_switches_the_filecheck_off_for_good() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("FileCheck");
        fs::write(&program, "").unwrap();
        fs::write(dir.path().join("check"), "CHECK: a\n").unwrap();
        let (env, args) = (Environment::new(), ["check".to_owned()]);
        let call = Call { program: &program, args: &args, env: &env, cwd: dir.path().to_str().unwrap() };
        let new = |sample| {
            let launcher = Arc::new(Launcher::new());
            FileChecks::new(launcher, Some(dir.path().join("cache")))
                .remembering(&dir.path().join("cache"), sample)
        };
        let believed = |sample| {
            let checks = new(sample);
            let marks = [Mark::of(&program).unwrap()].into();
            checks.trust.settle(
                &Tool::new(&program, Dialect::Llvm, &env),
                Ok(Verdict { refusal: None, marks, libraries: Arc::default() }),
            );
            checks
        };
        let ask = |checks: &FileChecks| checks.attempt(&call).unwrap().0;
        let checks = believed(u64::MAX);
        assert!(checks.decide(ask(&checks), b"b").is_err(), "the matcher does not decide it");
        let question = ask(&checks);
        let asked = question.asked.unwrap();
        checks.passes.as_ref().unwrap().add(&[asked, question::answered(&asked, b"b")]);
        assert!(checks.decide(ask(&checks), b"b").is_ok(), "it is remembered");
        assert_eq!(checks.counts().remembered, 1);
        drop(checks);
        // Now each remembered pass is in the sample.
        let checks = believed(1);
        let open = checks.decide(ask(&checks), b"b").unwrap_err();
        checks.has_failed(&open, &|| "FileCheck check".to_owned());
        assert_eq!(checks.counts().contradictions, ["FileCheck check"]);
        assert_eq!(checks.attempt(&call).err(), Some(Undecided("it is not trusted")));
        assert_eq!(passes_report(&passes_directory(&dir.path().join("cache"))), PassesReport::default());
    }

    /// FileChecks of which the first use is tested, and a call of one.
    fn under_test(dir: &Path) -> (FileChecks, PathBuf) {
        let program = dir.join("FileCheck");
        fs::write(&program, "").unwrap();
        fs::write(dir.join("check"), "CHECK: a\n").unwrap();
        let checks = FileChecks::new(Arc::new(Launcher::new()), None).expecting(MANY_TESTS, false);
        checks.begin_testing();
        (checks, program)
    }

    fn question(checks: &FileChecks, program: &Path) -> Result<Question, Undecided> {
        let (env, args) = (Environment::new(), ["check".to_owned()]);
        let cwd = program.parent().unwrap().to_str().unwrap();
        checks.attempt(&Call { program, args: &args, env: &env, cwd }).map(|(question, _)| question)
    }

    /// What the verdict is about need not be what this use has found.
    #[test]
    fn a_use_while_the_battery_runs_is_left_to_filecheck() {
        let dir = tempfile::tempdir().unwrap();
        for (refusal, later) in [(None, None), (Some("no FileCheck".to_owned()), Some("it is not trusted"))] {
            let (checks, program) = under_test(dir.path());
            let why = || question(&checks, &program).err().map(|Undecided(why)| why);
            assert_eq!(why(), Some(trust::NOT_YET));
            let tool = checks.trust.wait_for_pending().unwrap();
            assert_eq!(why(), Some(trust::NOT_YET));
            let marks = [Mark::of(&program).unwrap()].into();
            checks.trust.settle(&tool, Ok(Verdict { refusal, marks, libraries: Arc::default() }));
            assert_eq!(why(), later);
            checks.end_testing();
            assert_eq!(checks.trust.wait_for_pending(), None);
        }
    }

    #[test]
    fn a_use_that_was_left_at_its_end_starts_at_once_next_time() {
        let dir = tempfile::tempdir().unwrap();
        let (mut checks, program) = under_test(dir.path());
        checks = checks.remembering(&dir.path().join("cache"), u64::MAX);
        let tool = Tool::new(&program, Dialect::Llvm, &Environment::new());
        let marks = [Mark::of(&program).unwrap()].into();
        checks.trust.settle(&tool, Ok(Verdict { refusal: None, marks, libraries: Arc::default() }));
        let left = |input: &[u8]| checks.decide(question(&checks, &program).unwrap(), input).unwrap_err();
        // It fails, as far as the matcher knows: another input may pass.
        left(b"b\n");
        assert!(checks.decide(question(&checks, &program).unwrap(), b"a\n").is_ok());
        checks.has_passed_late(&left(b"a\0\n"));
        let why = question(&checks, &program).err();
        assert_eq!(why, Some(Undecided("a use that was left to it before")));
        fs::write(dir.path().join("check"), "CHECK: b\n").unwrap();
        assert!(question(&checks, &program).is_ok(), "another check file is another use");
    }
}
