//! Commands whose last warm run was doubtful, remembered from run to run.
//!
//! A doubtful run costs a second, cold run of its whole test, and the same command is as a rule doubtful again: a compiler driver that
//! starts its stages, a tool that crashes. So such a command starts cold, and the rest of its test warm. Now and then it is tried, since
//! the tool may be another one by then. All of this decides about time and no verdict.
//!
//! A command whose input comes from a process is not known before it runs. For such commands, the file remembers tools that are doubtful
//! in most runs (`pool/doubt.rs`).
//!
//! A suite of a runtime library compiles and links in each test, and no command is like another. But they begin alike, and the commands of
//! the compiler's own suite begin otherwise. So commands with the same program and first argument are one *kind*. A kind of which runs are
//! often doubtful by what the program does, for children or an unknown system call, starts cold. A start that is cold for nothing costs
//! some 10 ms, and a test that runs again a second.
//!
//! The file is a log of eight bytes for each change. Several runners can append to it, and one that is killed loses nothing.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, RandomState};
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::FileType;

use super::observe;
use crate::Spec;

/// The file's name in the directory of knowledge.
const NAME: &str = "doubtful-commands";
/// One in this many starts of known commands is tried warm, and a known tool in one of this many runs of tests.
const TRIED_ONE_IN: u32 = 32;
const TOOL_TRIED_ONE_IN: u32 = 8;
/// One in this many starts of known kinds is tried warm. A trial repeats a test, which is about ten starts of a compiler.
const KIND_TRIED_ONE_IN: u32 = 512;
/// A kind is known once so many runs were doubtful by its nature, and more than one in so many of all.
const KIND_MIN: u32 = 3;
const KIND_ONE_IN: u32 = 16;
/// Most kinds whose runs are counted.
const KINDS_MAX: usize = 1 << 15;
/// Length from which the file is written anew, without what no longer holds; and the most commands that it keeps then.
const LENGTH_MAX: u64 = 1 << 19;
const KEPT: usize = 1 << 15;
/// The bit of a record that tells whether the command is doubtful. The others are its hash.
const IS_DOUBTFUL: u64 = 1;

/// A command, as a hash of its program, arguments and standard input; or all of a kind, or most commands of a tool, as a hash of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Command(u64);

impl Command {
    /// Returns the command of a request. `None` if its input comes from a process: that may be another one each time.
    pub(crate) fn of(spec: &Spec<'_>) -> Option<Command> {
        let input = rustix::fs::fstat(spec.stdio[0]).ok()?;
        let file = match FileType::from_raw_mode(input.st_mode) {
            FileType::RegularFile => Some((input.st_dev, input.st_ino)),
            FileType::CharacterDevice => None,
            FileType::Fifo if is_empty(spec.stdio[0]) => None,
            _ => return None,
        };
        Some(Command::hashed((&spec.program, &spec.argv, file)))
    }

    /// Returns what stands for all commands of this one's kind.
    fn kind(spec: &Spec<'_>) -> Command {
        Command::hashed(("all commands of", &spec.program, spec.argv.get(1)))
    }

    /// Returns what stands for most commands of a program, as it is now.
    fn of_tool(program: &Path) -> Option<Command> {
        let file = fs::metadata(program).ok()?;
        let identity = (file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec());
        Some(Command::hashed(("most commands of", program, identity)))
    }

    fn hashed(of: impl Hash) -> Command {
        Command(BuildHasherDefault::<DefaultHasher>::default().hash_one(of) & !IS_DOUBTFUL)
    }
}

/// Returns whether nothing will come out of a pipe. Such a pipe is the input of a test's command if it names none.
fn is_empty(pipe: BorrowedFd<'_>) -> bool {
    let mut asked = [PollFd::from_borrowed_fd(pipe, PollFlags::IN)];
    let answer = rustix::event::poll(&mut asked, Some(&Timespec::default()));
    answer.is_ok() && asked[0].revents() == PollFlags::HUP
}

/// What a start is looked up as, and what its run is recorded for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// `None` if its input comes from a process.
    command: Option<Command>,
    kind: Command,
}

/// What is known of a run that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Harmless,
    Doubtful,
    /// It was doubtful by what its program does: it had children, or made an unknown system call.
    ByNature,
}

/// The commands of one user.
#[derive(Debug)]
pub(crate) struct KnownDoubts {
    /// The directory of the file. `None` if nothing is remembered.
    directory: Option<PathBuf>,
    state: Mutex<Option<State>>,
}

#[derive(Debug)]
struct State {
    /// Those of earlier runs. A doubtful run of this one may have to be repeated, warm, to see what its cause was.
    known: HashSet<Command>,
    /// Those of this run.
    new: HashSet<Command>,
    /// The runs of each kind.
    kinds: HashMap<Command, Runs>,
    /// Starts of known commands, from a number by chance on.
    asked: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    all: u32,
    /// Those that were doubtful by nature.
    doubtful: u32,
}

impl State {
    /// Records a run of a kind. Returns whether it is known from now on, if that has changed.
    fn ran_kind(&mut self, kind: Command, outcome: Outcome) -> Option<bool> {
        if self.kinds.len() >= KINDS_MAX {
            self.kinds.clear();
        }
        let runs = self.kinds.entry(kind).or_default();
        runs.all = runs.all.saturating_add(1);
        match outcome {
            Outcome::Doubtful => None,
            Outcome::Harmless => self.known.remove(&kind).then_some(false),
            Outcome::ByNature => {
                runs.doubtful += 1;
                let is_often =
                    runs.doubtful >= KIND_MIN && runs.doubtful.saturating_mul(KIND_ONE_IN) > runs.all;
                (is_often && self.known.insert(kind)).then_some(true)
            }
        }
    }
}

impl KnownDoubts {
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        KnownDoubts { directory, state: Mutex::default() }
    }

    /// Returns what to look up and to record for this start. `None` if nothing is remembered.
    pub(crate) fn request(&self, spec: &Spec<'_>) -> Option<Request> {
        self.directory.as_ref()?;
        Some(Request { command: Command::of(spec), kind: Command::kind(spec) })
    }

    /// Returns what stands for most commands of a tool, if it can be remembered.
    pub(crate) fn of_tool(&self, program: &Path) -> Option<Command> {
        self.directory.as_ref()?;
        Command::of_tool(program)
    }

    /// Returns whether a warm run of this request would probably be doubtful.
    pub(crate) fn expects(&self, request: Option<Request>) -> bool {
        let Some(Request { command, kind }) = request else { return false };
        match self.tries_one_in(Some(kind), KIND_TRIED_ONE_IN) {
            Some(is_tried) => !is_tried,
            None => self.tries_one_in(command, TRIED_ONE_IN) == Some(false),
        }
    }

    /// Returns whether a tool is tried in this run of tests, though it was doubtful in most runs of earlier ones; `None` if it was not.
    /// `tool` is what [`KnownDoubts::of_tool`] returns.
    pub(crate) fn tries(&self, tool: Option<Command>) -> Option<bool> {
        self.tries_one_in(tool, TOOL_TRIED_ONE_IN)
    }

    fn tries_one_in(&self, command: Option<Command>, one_in: u32) -> Option<bool> {
        let (Some(directory), Some(command)) = (&self.directory, command) else { return None };
        self.with(directory, |state| {
            let is_known = state.known.contains(&command);
            state.asked = state.asked.wrapping_add(u32::from(is_known));
            is_known.then_some(state.asked % one_in == 0)
        })
    }

    /// Records how a warm run of this request has ended.
    pub(crate) fn ran(&self, request: Request, outcome: Outcome) {
        if let Some(command) = request.command {
            self.record(command, outcome != Outcome::Harmless);
        }
        let Some(directory) = &self.directory else { return };
        if let Some(is_known) = self.with(directory, |state| state.ran_kind(request.kind, outcome)) {
            let _ = append(directory, request.kind, is_known);
        }
    }

    /// Records whether the warm run of a command, or most of a tool, was doubtful.
    pub(crate) fn record(&self, command: Command, is_doubtful: bool) {
        let Some(directory) = &self.directory else { return };
        let has_changed = self.with(directory, |state| match is_doubtful {
            true => !state.known.contains(&command) && state.new.insert(command),
            false => state.known.remove(&command) | state.new.remove(&command),
        });
        if has_changed {
            // If it cannot be written, later runs do not know of it.
            let _ = append(directory, command, is_doubtful);
        }
    }

    fn with<T>(&self, directory: &Path, use_it: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().expect("no panic while locked");
        let load = || State {
            known: load(directory),
            new: HashSet::new(),
            kinds: HashMap::new(),
            asked: RandomState::new().hash_one(0) as u32,
        };
        use_it(state.get_or_insert_with(load))
    }
}

fn append(directory: &Path, command: Command, is_doubtful: bool) -> io::Result<()> {
    let record = command.0 | if is_doubtful { IS_DOUBTFUL } else { 0 };
    observe::make_directory(directory)?;
    let mut file = File::options().append(true).create(true).mode(0o600).open(directory.join(NAME))?;
    file.write_all(&record.to_le_bytes())
}

/// Returns the commands that the file tells. One that cannot be read tells none.
fn load(directory: &Path) -> HashSet<Command> {
    let bytes = fs::read(directory.join(NAME)).unwrap_or_default();
    let mut known = HashSet::new();
    for record in bytes.chunks_exact(8) {
        let record = u64::from_le_bytes(record.try_into().expect("eight bytes"));
        let command = Command(record & !IS_DOUBTFUL);
        let _ = if record & IS_DOUBTFUL != 0 { known.insert(command) } else { known.remove(&command) };
    }
    if bytes.len() as u64 > LENGTH_MAX || bytes.len() % 8 != 0 {
        known = known.into_iter().take(KEPT).collect();
        let _ = rewrite(directory, &known);
    }
    known
}

fn rewrite(directory: &Path, known: &HashSet<Command>) -> io::Result<()> {
    let bytes: Vec<u8> = known.iter().flat_map(|command| (command.0 | IS_DOUBTFUL).to_le_bytes()).collect();
    let new = directory.join(format!("{NAME}.{}", std::process::id()));
    File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?.write_all(&bytes)?;
    fs::rename(new, directory.join(NAME))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::EnvBlock;

    fn known(directory: &Path) -> KnownDoubts {
        KnownDoubts::new(Some(directory.to_owned()))
    }

    fn expected(doubts: &KnownDoubts, command: Option<Command>) -> usize {
        let request = Request { command, kind: Command(0) };
        (0..TRIED_ONE_IN).filter(|_| doubts.expects(Some(request))).count()
    }

    #[test]
    fn a_command_whose_input_is_a_process_is_none() {
        let command = |input: BorrowedFd<'_>| {
            let null = File::open("/dev/null").unwrap();
            let spec = Spec::plain(
                Path::new("/bin/true"),
                "true".into(),
                EnvBlock::from_strings(b"").unwrap(),
                &null,
            );
            Command::of(&Spec { stdio: [input, null.as_fd(), null.as_fd()], ..spec })
        };
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        assert_eq!(command(reader.as_fd()), None);
        drop(writer);
        let of_empty = command(reader.as_fd());
        assert_eq!(of_empty, command(File::open("/dev/null").unwrap().as_fd()));
        assert_ne!(of_empty, command(File::open("/bin/sh").unwrap().as_fd()));
    }

    #[test]
    fn a_doubtful_command_is_tried_seldom_until_it_is_doubtful_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let (odd, even) = (Some(Command(0x10)), Some(Command(0x12)));
        let doubts = known(dir.path());
        doubts.record(odd.unwrap(), true);
        doubts.record(even.unwrap(), false);
        assert_eq!(expected(&doubts, odd), 0, "not in the run that sees it");
        let doubts = known(dir.path());
        assert_eq!((expected(&doubts, odd), expected(&doubts, even)), (31, 0));
        assert!(!doubts.expects(None));
        known(dir.path()).record(odd.unwrap(), false);
        assert_eq!(expected(&known(dir.path()), odd), 0);
        assert_eq!(fs::metadata(dir.path().join(NAME)).unwrap().len(), 16, "a record for each change");
    }

    #[test]
    fn a_damaged_or_long_file_is_written_anew() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(NAME);
        fs::write(&file, [0x11, 0, 0, 0, 0, 0, 0, 0, 7]).unwrap();
        assert_eq!(expected(&known(dir.path()), Some(Command(0x10))), 31);
        assert_eq!(fs::metadata(&file).unwrap().len(), 8);
        let many: Vec<u8> = (0..LENGTH_MAX).flat_map(|number| ((2 * number) | 1).to_le_bytes()).collect();
        fs::write(&file, many).unwrap();
        expected(&known(dir.path()), Some(Command(0)));
        assert_eq!(fs::metadata(&file).unwrap().len(), 8 * KEPT as u64);
    }

    #[test]
    fn without_a_directory_nothing_is_remembered() {
        let doubts = KnownDoubts::new(None);
        doubts.record(Command(2), true);
        assert_eq!(expected(&doubts, Some(Command(2))), 0);
    }

    #[test]
    fn a_tool_is_known_until_its_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("grep");
        fs::write(&program, "1").unwrap();
        let tries = |doubts: &KnownDoubts| {
            let tool = doubts.of_tool(&program);
            (0..TOOL_TRIED_ONE_IN).filter_map(|_| doubts.tries(tool)).collect::<Vec<_>>()
        };
        let doubts = known(dir.path());
        doubts.record(doubts.of_tool(&program).unwrap(), true);
        let doubts = known(dir.path());
        let tried = tries(&doubts);
        assert_eq!((tried.len(), tried.iter().filter(|tried| **tried).count()), (8, 1));
        assert_eq!(doubts.tries(doubts.of_tool(Path::new("/bin/true"))), None);
        fs::write(&program, "22").unwrap();
        assert_eq!(tries(&doubts), []);
        assert_eq!(doubts.of_tool(&dir.path().join("none")), None);
        assert_eq!(KnownDoubts::new(None).of_tool(&program), None);
    }

    #[test]
    fn a_kind_that_is_often_doubtful_by_nature_is_known_from_the_third_such_run_on() {
        let dir = tempfile::tempdir().unwrap();
        let starts = |doubts: &KnownDoubts, kind: u64| {
            let request = Request { command: None, kind: Command(kind) };
            (0..KIND_TRIED_ONE_IN).filter(|_| doubts.expects(Some(request))).count()
        };
        let ran = |doubts: &KnownDoubts, kind: u64, outcomes: &[Outcome]| {
            let request = Request { command: None, kind: Command(kind) };
            outcomes.iter().for_each(|outcome| doubts.ran(request, *outcome));
        };
        let (harmless, doubtful, nature) = (Outcome::Harmless, Outcome::Doubtful, Outcome::ByNature);
        let doubts = known(dir.path());
        ran(&doubts, 0x10, &[nature, harmless, nature]);
        assert_eq!(starts(&doubts, 0x10), 0);
        ran(&doubts, 0x10, &[nature]);
        assert_eq!(starts(&doubts, 0x10), 511, "in the run that sees it");
        ran(&doubts, 0x12, &[&[harmless; 60][..], &[nature; 3]].concat());
        ran(&doubts, 0x14, &[doubtful; 8]);
        let all = |doubts: &KnownDoubts| [0x10, 0x12, 0x14].map(|kind| starts(doubts, kind));
        assert_eq!(all(&doubts), [511, 0, 0]);
        let doubts = known(dir.path());
        assert_eq!(all(&doubts), [511, 0, 0], "in the next run as well");
        ran(&doubts, 0x10, &[harmless]);
        assert_eq!((all(&doubts), all(&known(dir.path()))), ([0; 3], [0; 3]), "until a trial is harmless");
    }
}
