//! Tests a FileCheck with the battery: it runs each case, and the matcher answers it, too.
//!
//! Its starts are warm if those of the suite are, which takes a tenth of the time. Only a cold start can refuse it.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hotstart_filecheck::{Dialect, battery};
use hotstart_inputs::{Input, Looks, State, Subject};
use hotstart_launch::{EnvBlock, Exit, Group, Launcher, ProcessGroup, Reason, Spec, Via, has_fixed_search};
use hotstart_model::{ColdTools, Environment, Interpreter, Program, Script, Status};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;

use super::trust::{Tool, Verdict};
use super::{FileChecks, Observe, libraries, plain_block, plain_environment, python};
use crate::mark::{Aspect, Mark};

/// The longest that a case, and all of them, may take. A FileCheck takes milliseconds; a program that only has its name may wait for ever.
const CASE: Duration = Duration::from_secs(10);
const ALL: Duration = Duration::from_secs(60);
/// The loader's list of libraries by name.
const LIBRARIES: &str = "/etc/ld.so.cache";
const STAYS: &str = "it did not end in time";

/// Runs the battery. Returns the reason why nothing is known, in this run, if it could not run or was not completed.
pub(super) fn verdict(tool: &Tool, filechecks: &FileChecks) -> Result<Verdict, String> {
    let mut stays = None;
    let verdict = complete(tool, filechecks, &mut stays);
    verdict.ok_or_else(|| stays.unwrap_or_else(|| "it could not be put to the test".to_owned()))
}

/// Returns `None` if the battery could not run, if the files changed meanwhile, or if a case did not end, which is told in `stays`.
fn complete(tool: &Tool, filechecks: &FileChecks, stays: &mut Option<String>) -> Option<Verdict> {
    // So many starts pay for an observation of its constructors.
    filechecks.launcher.make_eager(&tool.program);
    let bench = Bench::new(tool, &filechecks.launcher, &filechecks.group)?;
    let mut marks = match tool.dialect {
        Dialect::Llvm => bench.marks().or_else(|| {
            *stays = bench.has_stayed.get().then(|| STAYS.to_owned());
            None
        })?,
        Dialect::Pypi => match bench.marks_of_script(filechecks.observe?) {
            Ok(marks) => marks,
            Err(why) => return Some(Verdict::refused(why.to_owned(), Arc::default())),
        },
    };
    if !marks.iter().filter(|mark| mark.aspect != Aspect::Missing).all(|mark| has_fixed_search(&mark.path)) {
        let why = "it looks for libraries in the working directory";
        return Some(Verdict::refused(why.to_owned(), marks.into()));
    }
    let mut refusal = None;
    let cases = battery::cases(tool.dialect);
    for case in &cases {
        let (check, input) = (case.check.as_bytes(), case.input.as_bytes());
        let request = tool.dialect.parse(&case.args, None);
        let is_pass = request.is_ok_and(|request| request.decide(check, input).is_ok());
        let mut answer = bench.answer(&case.args, check, input, Start::AsUsual)?;
        let expected = case.passes.map(Answer::of);
        if answer != Answer::Stays && expected.is_some_and(|expected| answer != expected) {
            answer = bench.answer(&case.args, check, input, Start::Cold)?;
        }
        if answer == Answer::Stays {
            *stays = Some(format!("{STAYS}: {case:?}"));
            return None;
        }
        if answer == Answer::DoesMore {
            refusal = Some("it does more than FileCheck: it starts a program, or is instrumented".to_owned());
            break;
        }
        if is_pass != (case.passes == Some(true)) || expected.is_some_and(|expected| answer != expected) {
            refusal = Some(format!("it answered otherwise: {case:?}"));
            break;
        }
    }
    // Only a run in a persistent process, which is used again, shows that a program has done nothing else: it has not executed
    // another one, for instance. What a script does is known from its source.
    let were_most_reset = bench.resets.get() * 4 >= cases.len() * 3;
    let (has_shown_all, is_unchanged) = match tool.dialect {
        Dialect::Llvm => (were_most_reset, marks == bench.marks()?),
        Dialect::Pypi => (true, marks.iter().all(Mark::is_current)),
    };
    let mut libraries = BTreeSet::new();
    if tool.dialect == Dialect::Llvm && refusal.is_none() {
        // Where nothing is traced, as by a worker of `--remote`, nobody knows where the loader looks in vain.
        let start =
            filechecks.observe.map_or_else(|| Some(TracedStart::default()), |observe| bench.start(observe));
        let Some(start) = start else {
            *stays = Some("what a start of it looks at cannot be told".to_owned());
            return None;
        };
        libraries = start.names;
        match marks_of_start(&start.inputs, &marks) {
            Ok(more) => marks.extend(more),
            Err(path) => {
                *stays = Some(format!("'{}' has appeared or changed meanwhile", path.display()));
                return None;
            }
        }
    }
    ((refusal.is_some() || has_shown_all) && is_unchanged).then(|| Verdict {
        refusal,
        marks: marks.into(),
        libraries: libraries.into_iter().collect(),
    })
}

/// What a traced start has looked at.
#[derive(Default)]
struct TracedStart {
    inputs: Vec<Input>,
    /// The names that it has looked for anywhere, if that may be in the working directory.
    names: BTreeSet<String>,
}

/// Returns the script of the traced run.
fn script(program: &Path, [check, input]: &[String; 2], env: Environment, dir: &Path) -> Script {
    let mut argv = vec![program.into()];
    argv.extend([check, "--input-file", input].map(OsString::from));
    Script {
        commands: Vec::new(),
        dialect: hotstart_model::Dialect::V23,
        interpreter: Interpreter::Program(Program { argv, merges_errors: false }),
        pipefail: true,
        cwd: dir.to_owned(),
        make_dirs: Vec::new(),
        env: Arc::new(env),
        timeout: Some(CASE),
        tmp_base: dir.join("t"),
        captures: false,
        lit_package_dir: None,
        lit_python: None,
        cold: ColdTools::default(),
        wraps: Arc::default(),
    }
}

/// Returns what a start of a FileCheck looks at besides its check file and its input. `None` if that cannot be told, or depends on the
/// directory.
pub(super) fn inputs_of_start(tool: &Tool, filechecks: &FileChecks) -> Option<Vec<Input>> {
    let bench = Bench::new(tool, &filechecks.launcher, &filechecks.group)?;
    // Nobody records what is not in another directory.
    if bench.relative.is_empty() { Some(bench.start(filechecks.observe?)?.inputs) } else { None }
}

/// Returns the marks of what a start looks at besides these files: where the loader looks in vain, and what tells it where to look. The
/// error is a path that the battery has not been answered with: another library, for instance.
fn marks_of_start(start: &[Input], files: &[Mark]) -> Result<Vec<Mark>, PathBuf> {
    let name = |mark: &Mark| Some(mark.path.parent()?.canonicalize().ok()?.join(mark.path.file_name()?));
    let ends = files.iter().filter_map(|mark| mark.path.canonicalize().ok());
    // Each use looks at all marks.
    let covered: HashSet<PathBuf> = files.iter().filter_map(name).chain(ends).collect();
    let is_on_the_way = |path: &Path| files.iter().any(|mark| mark.path.starts_with(path));
    let mut marks = Vec::new();
    for input in start {
        let path = Path::new(&input.path);
        let aspect = python::aspect(input);
        // Of the kernel's files only such as are constant are inputs.
        let is_kernels = path.starts_with("/proc") || path.starts_with("/sys");
        // By another link on the way, the loader may search elsewhere and find the same files.
        let is_link = matches!(input.state, State::Link(..));
        let is_marked = !is_link && (covered.contains(path) || is_on_the_way(path));
        if is_kernels || is_marked || aspect == Aspect::Place {
            continue;
        }
        let is_opened = matches!(input.state, State::File(..)) && input.looks.has(Looks::CONTENT);
        let mark = Mark::seen(path, aspect).filter(|_| !is_opened || path == Path::new(LIBRARIES));
        marks.push(mark.ok_or(path)?);
    }
    Ok(marks)
}

/// How a FileCheck is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    AsUsual,
    Cold,
}

/// The outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Status 0, and no output.
    Passes,
    Fails,
    /// It did not end, and was killed.
    Stays,
    /// The run was doubtful, or no run of this program can be warm because of what it is made of: it may have effects of which
    /// a decision without it knows nothing.
    DoesMore,
}

impl Answer {
    fn of(passes: bool) -> Self {
        if passes { Answer::Passes } else { Answer::Fails }
    }
}

/// A directory in which a FileCheck is run.
struct Bench<'b> {
    tool: &'b Tool,
    env: EnvBlock,
    launcher: &'b Launcher,
    group: &'b Group,
    dir: PathBuf,
    /// The parts of LD_LIBRARY_PATH that lie in the directory. They are there, and empty, so that the loader looks for all names in each.
    relative: Vec<PathBuf>,
    /// Check file and input of a run that is traced. No program knows these names.
    case_files: [String; 2],
    /// Runs of it in a persistent process.
    resets: Cell<usize>,
    /// Whether the last run was killed as it did not end.
    has_stayed: Cell<bool>,
    /// When all runs must have ended.
    until: Instant,
}

/// Waits until this descriptor is readable. Returns whether that was so in time.
fn is_readable(fd: &OwnedFd, until: Instant) -> bool {
    let mut wanted = [PollFd::new(fd, PollFlags::IN)];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match poll(&mut wanted, Timespec::try_from(left).ok().as_ref()) {
            Err(Errno::INTR) => {}
            found => return found.is_ok_and(|count| count > 0),
        }
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl<'b> Bench<'b> {
    fn new(tool: &'b Tool, launcher: &'b Launcher, group: &'b Group) -> Option<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("hotstart-filecheck-{}-{number}", std::process::id()));
        let relative = libraries::relative_parts(&tool.environment.0.iter().cloned().collect())?;
        fs::create_dir(&dir).ok()?;
        launcher.remove_if_killed(&dir);
        let case_files =
            ["check", "input"].map(|name| format!("{name}-{:016x}", RandomState::new().hash_one(name)));
        let bench = Bench {
            tool,
            env: plain_block(&tool.environment.0),
            launcher,
            group,
            dir,
            relative,
            case_files,
            resets: Cell::new(0),
            has_stayed: Cell::new(false),
            until: Instant::now() + ALL,
        };
        bench.make_relative_parts().ok()?;
        Some(bench)
    }

    /// A part that leads elsewhere is refused when it is looked at.
    fn make_relative_parts(&self) -> std::io::Result<()> {
        let is_below = |part: &&PathBuf| part.components().all(|step| matches!(step, Component::Normal(_)));
        // Without a dot at the end, as in `lib/.`: such a directory cannot be made.
        let made = |part: &PathBuf| fs::create_dir_all(self.dir.join(part.components().collect::<PathBuf>()));
        self.relative.iter().filter(is_below).try_for_each(made)
    }

    /// Returns the marks of the program's file and of the libraries that the loader takes for it. `None` if it is no
    /// ELF file.
    fn marks(&self) -> Option<Vec<Mark>> {
        let mut magic = [0; 4];
        File::open(&self.tool.program).ok()?.read_exact(&mut magic).ok()?;
        if magic != *b"\x7fELF" {
            return None;
        }
        let trace = [(OsString::from("LD_TRACE_LOADED_OBJECTS"), OsString::from("1"))];
        let env: Vec<_> = self.tool.environment.0.iter().chain(&trace).cloned().collect();
        let (_, output) = self.run(plain_block(&env), &[], b"", b"", Start::Cold)?;
        if self.has_stayed.get() {
            return None;
        }
        let output = String::from_utf8(output).ok()?;
        // `libm.so.6 => /lib/libm.so.6 (0x7f...)`; the loader itself has no arrow.
        let libraries = output.lines().filter_map(|line| {
            let path = line.rsplit("=> ").next()?.trim().split(" (").next()?;
            path.starts_with('/').then(|| PathBuf::from(path))
        });
        let program = fs::canonicalize(&self.tool.program).ok()?;
        let files = [self.tool.program.clone(), program].into_iter().chain(libraries);
        files.map(|file| Mark::of(&file)).collect()
    }

    /// Returns the marks of all that a start of a Python script looks at, or the reason why it is not believed.
    fn marks_of_script(&self, observe: Observe) -> Result<Vec<Mark>, &'static str> {
        let environment = self.tool.environment.0.iter().cloned().collect();
        if !python::is_plain(&self.tool.program, &environment) {
            return Err("a variable changes what Python does");
        }
        python::is_wrapper(&self.tool.program)?;
        let inputs = self.inputs(environment, observe, Subject::Known);
        python::marks(&inputs.ok_or("what it looks at cannot be told")?, &self.dir, &self.case_files)
    }

    /// Returns what a start looks at besides check file and input. `None` if that cannot be told, or depends on the directory by more than
    /// LD_LIBRARY_PATH.
    fn start(&self, observe: Observe) -> Option<TracedStart> {
        // The time could matter to it: its source is not known.
        let mut inputs =
            self.inputs(plain_environment(&self.tool.environment.0), observe, Subject::Anywhere)?;
        let dir = fs::canonicalize(&self.dir).ok()?;
        // The way to a directory that will be gone: nobody has looked at more than that it is there.
        let is_way = |input: &Input| {
            let is_passed = matches!(input.state, State::Directory(_, None)) && input.looks == Looks::EXISTS;
            dir.starts_with(&input.path) && is_passed
        };
        inputs.retain(|input| !is_way(input));
        inputs.retain(|input| !self.case_files.iter().any(|name| dir.join(name) == Path::new(&input.path)));
        let is_elsewhere = |input: &Input| {
            let path = Path::new(&input.path);
            !path.starts_with(&dir) && !dir.starts_with(path)
        };
        let mut names = BTreeSet::new();
        let parts: Vec<PathBuf> = self.relative.iter().map(|part| dir.join(part)).collect();
        if !parts.is_empty() {
            let add = |input: &Input| libraries::add_names(&mut names, Path::new(&input.path), &parts);
            inputs.iter().filter(|input| !Path::new(&input.path).is_dir()).for_each(add);
            // A verdict is stored in lines.
            if names.iter().any(|name| name.contains(char::is_control)) {
                return None;
            }
            inputs.retain(|input| !libraries::is_vain(input, &parts));
        }
        inputs.iter().all(is_elsewhere).then_some(TracedStart { inputs, names })
    }

    /// Returns all that a run which passes looks at.
    fn inputs(&self, environment: Environment, observe: Observe, subject: Subject) -> Option<Vec<Input>> {
        let write = |name: &String| fs::write(self.dir.join(name), "CHECK: a").is_ok();
        self.case_files.iter().all(write).then_some(())?;
        // All of it is cold, and not to be counted among the suite's starts.
        let script = script(&self.tool.program, &self.case_files, environment, &self.dir);
        observe(&script, &Launcher::new(), self.group, subject)
    }

    /// Runs a case. `None` if a signal ended the run, or it was lost.
    fn answer(&self, args: &[String], check: &[u8], input: &[u8], start: Start) -> Option<Answer> {
        let (exit, output) = self.run(self.env.clone(), args, check, input, start)?;
        if self.has_stayed.take() {
            return Some(Answer::Stays);
        }
        if exit.lost || matches!(exit.status, Status::Signaled(_)) {
            return None;
        }
        self.resets.set(self.resets.get() + usize::from(exit.via == Via::Reset));
        if exit.doubtful || matches!(exit.via, Via::Cold(Reason::Instrumented)) {
            return Some(Answer::DoesMore);
        }
        Some(Answer::of(exit.status == Status::OK && output.is_empty()))
    }

    /// Runs it. Returns how it ended, and all that it wrote.
    fn run(
        &self,
        env: EnvBlock,
        args: &[String],
        check: &[u8],
        input: &[u8],
        start: Start,
    ) -> Option<(Exit, Vec<u8>)> {
        let path = |name: &str| self.dir.join(name);
        // A file that is truncated and written again is written to disk at its next close by some file systems.
        for (name, content) in [("check", check), ("input", input), ("output", b"")] {
            let _ = fs::remove_file(path(name));
            fs::write(path(name), content).ok()?;
        }
        let (stdin, output) =
            (File::open(path("input")).ok()?, File::options().write(true).open(path("output")).ok()?);
        let name = self.tool.program.clone().into_os_string();
        let spec = Spec {
            program: self.tool.program.clone(),
            argv: std::iter::once(name).chain(args.iter().map(OsString::from)).collect(),
            env,
            cwd: Path::new(&self.dir).into(),
            stdio: [stdin.as_fd(), output.as_fd(), output.as_fd()],
            extra_fds: Vec::new(),
            umask: None,
            ignored: None,
            limits: Vec::new(),
            keep_cold: start == Start::Cold,
            process_group: ProcessGroup::New,
        };
        let mut child = self.launcher.start(&spec, self.group).ok()?;
        let until = (Instant::now() + CASE).min(self.until);
        let has_ended = child.end_fd().is_ok_and(|end| is_readable(&end, until));
        if !has_ended || child.process_fd().is_some_and(|end| !is_readable(&end, until)) {
            self.has_stayed.set(true);
            child.signal_group(Signal::KILL.as_raw());
            child.kill();
        }
        Some((child.wait(), fs::read(path("output")).ok()?))
    }
}
