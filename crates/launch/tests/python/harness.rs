//! Runs a script cold and warm, and compares.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use hotstart_launch::{Choice, EnvBlock, Exit, Group, Launcher, OnDoubt, Policy, Reason, Spec, Via};
use hotstart_model::{Environment, Status};

use crate::common::await_age;

/// Most scripts of one run of the tests.
const SCRIPTS_MAX: usize = 2048;
const TRIES: usize = 20;

/// The expected way of the starts after the first ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Warm,
    Cold(Reason),
}

/// The way in which a script is started.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// By its first line, this one.
    Line(&'static str),
    /// By the interpreter, with these options.
    Interpreter(&'static [&'static str]),
}

pub struct Script {
    _dir: tempfile::TempDir,
    pub program: PathBuf,
    pub by: By,
    /// The interpreter's name, if it is not its path.
    pub name: Option<String>,
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
    pub input: &'static str,
    /// What standard output and error already have. They are written at the end.
    pub before: &'static str,
    pub umask: Option<u32>,
    /// The signals that are ignored.
    pub ignored: Option<u64>,
    pub launcher: Arc<Launcher>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub status: Status,
    pub stdout: String,
    pub stderr: String,
}

/// The Python of the tests: HOTSTART_TEST_PYTHON, or the system's.
pub fn python() -> PathBuf {
    let named = std::env::var_os("HOTSTART_TEST_PYTHON").map(PathBuf::from);
    named.unwrap_or_else(|| "/usr/bin/python3".into())
}

pub fn launcher() -> Launcher {
    let choice = Choice::Auto { after: 0 };
    let policy = Policy { choice, resets: false, python: true, share_hash_seed: true, ..Policy::default() };
    Launcher::new().with_policy(Policy { on_doubt: OnDoubt::Repeat, ..policy })
}

/// A launcher that does not let runs share a hash seed.
pub fn strict_launcher() -> Launcher {
    let choice = Choice::Auto { after: 0 };
    let policy = Policy { choice, resets: false, python: true, ..Policy::default() };
    Launcher::new().with_policy(Policy { on_doubt: OnDoubt::Repeat, ..policy })
}

/// Returns a directory of one script, of many made beforehand. The interpreter looks at each directory above a script: in the system's
/// directory for temporary files, other programs would change one while it is observed.
fn quiet_directory() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let all = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let is_old = |entry: &std::fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b"python-");
        for entry in std::fs::read_dir(all).unwrap().flatten().filter(is_old) {
            // Another run may be removing it.
            let _ = std::fs::remove_dir_all(entry.path());
        }
        let root = all.join(format!("python-{}", std::process::id()));
        (0..SCRIPTS_MAX).for_each(|number| std::fs::create_dir_all(root.join(number.to_string())).unwrap());
        root
    });
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(number < SCRIPTS_MAX, "raise SCRIPTS_MAX");
    ROOT.join(number.to_string())
}

impl Script {
    pub fn new(body: &str) -> Script {
        let dir = tempfile::tempdir_in(quiet_directory()).unwrap();
        let home = dir.path().canonicalize().unwrap().join("bin");
        std::fs::create_dir(&home).unwrap();
        let program = home.join("tool");
        let script = Script {
            cwd: dir.path().canonicalize().unwrap(),
            _dir: dir,
            program,
            by: By::Line(""),
            name: None,
            env: [("PATH", "/usr/bin:/bin"), ("A", "1"), ("PYTHONDONTWRITEBYTECODE", "1")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            input: "one\ntwo\n",
            before: "",
            umask: None,
            ignored: None,
            launcher: launcher().into(),
        };
        script.write(body);
        script
    }

    /// Replaces the script.
    pub fn write(&self, body: &str) {
        use std::os::unix::fs::PermissionsExt;
        let own = format!("#!{}", python().display());
        let line = if let By::Line(line @ "#!/usr/bin/env python3") = self.by { line } else { &own };
        std::fs::write(&self.program, format!("{line}\n{body}")).unwrap();
        std::fs::set_permissions(&self.program, std::fs::Permissions::from_mode(0o755)).unwrap();
        self.settle();
    }

    /// Writes a file beside the script.
    pub fn beside(&self, name: &str, text: &str) {
        std::fs::write(self.home().join(name), text).unwrap();
        self.settle();
    }

    pub fn home(&self) -> &Path {
        self.program.parent().unwrap()
    }

    fn settle(&self) {
        let home = self.home().to_owned();
        for entry in std::fs::read_dir(&home).unwrap().flatten() {
            await_age(&entry.path());
        }
        await_age(&home);
    }

    pub fn with(mut self, name: &str, value: &str) -> Script {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn run(&self, launcher: &Launcher, args: &[&str]) -> (Ran, Exit) {
        let outputs = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = outputs.path().join(name);
            std::fs::write(&path, text).unwrap();
            File::options().read(true).append(true).open(&path).unwrap()
        };
        let (stdin, mut out, mut err) =
            (file("in", self.input), file("out", self.before), file("err", self.before));
        self.start(launcher, args, [&stdin, &out, &err].map(|file| file.as_fd()))
            .map(|exit| {
                let text = |file: &mut File| {
                    let mut bytes = Vec::new();
                    file.rewind().unwrap();
                    file.read_to_end(&mut bytes).unwrap();
                    String::from_utf8_lossy(&bytes).into_owned()
                };
                let ran = Ran { status: exit.status, stdout: text(&mut out), stderr: text(&mut err) };
                (ran, exit)
            })
            .expect("it starts")
    }

    pub fn start(
        &self,
        launcher: &Launcher,
        args: &[&str],
        stdio: [std::os::fd::BorrowedFd<'_>; 3],
    ) -> Result<Exit, hotstart_launch::StartError> {
        let group = Group::new();
        let env: Environment = self.env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let file = self.program.to_str().unwrap();
        let (interpreter, name) = (python(), self.name.as_deref());
        let name = name.unwrap_or(interpreter.to_str().unwrap());
        let (program, first) = match self.by {
            By::Line(_) => (self.program.clone(), vec!["tool"]),
            By::Interpreter(options) => (interpreter.clone(), [&[name], options, &[file]].concat()),
        };
        let spec = Spec {
            program,
            argv: first.iter().chain(args).map(Into::into).collect(),
            env: EnvBlock::new(&env),
            cwd: self.cwd.as_path().into(),
            stdio,
            extra_fds: Vec::new(),
            umask: self.umask,
            limits: Vec::new(),
            ignored: self.ignored,
            keep_cold: false,
            process_group: group.process_group().unwrap(),
        };
        launcher.start(&spec, &group).map(|child| child.wait())
    }

    /// Starts the script with each of these lists of arguments, cold, and then warm in this order and back.
    pub fn equals(&self, lists: &[&[&str]], ends: Ends) {
        let cold: Vec<Ran> = lists.iter().map(|args| self.run(&Launcher::new(), args).0).collect();
        let mut counted = 0;
        for index in (0..lists.len()).chain((0..lists.len()).rev()) {
            let (ran, exit) = self.run(&self.launcher, lists[index]);
            assert_eq!(ran, cold[index], "{:?} {:?} {}", lists[index], exit.via, self.why());
            let is_as_expected = match ends {
                Ends::Warm => exit.via == Via::Fork,
                Ends::Cold(reason) => exit.via == Via::Cold(reason),
            };
            // Others on this machine may have installed something for the same Python meanwhile.
            let is_passing = exit.via == Via::Cold(Reason::FilesChanging);
            assert!(
                is_as_expected || is_passing,
                "{:?} instead of {ends:?}: {} {ran:?}",
                exit.via,
                self.why()
            );
            counted += u32::from(is_as_expected);
        }
        // Where they do so all the time, a tool rests between two attempts.
        let is_warm_later = || matches!(ends, Ends::Warm) && self.first(lists[0]) == Via::Fork;
        assert!(counted > 0 || is_warm_later(), "never {ends:?}: {}", self.why());
    }

    /// Returns the way of a first start, and tries again if others have changed a directory meanwhile.
    pub fn first(&self, args: &[&str]) -> Via {
        let vias = (0..TRIES).map(|_| self.run(&self.launcher, args).1.via);
        let mut vias = vias.skip_while(|via| *via == Via::Cold(Reason::FilesChanging));
        vias.next().unwrap_or(Via::Cold(Reason::FilesChanging))
    }

    /// Like [`Script::equals`], for a script that one Python's version stops and another does not.
    pub fn equals_somehow(&self, lists: &[&[&str]]) {
        let via = self.first(lists[0]);
        let ends = if let Via::Cold(reason) = via { Ends::Cold(reason) } else { Ends::Warm };
        println!("  {ends:?}");
        self.equals(lists, ends);
    }

    /// Like [`Script::equals`], for a script that is cold for one reason or another.
    pub fn equals_cold(&self, lists: &[&[&str]]) {
        let via = self.first(lists[0]);
        let Via::Cold(reason) = via else { panic!("{via:?}: {}", self.why()) };
        self.equals(lists, Ends::Cold(reason));
    }

    /// Compares the output only: the start may be of the interpreter itself.
    pub fn equals_in_output(&self, lists: &[&[&str]]) {
        for list in lists.iter().chain(lists) {
            let cold = self.run(&Launcher::new(), list).0;
            assert_eq!(self.run(&self.launcher, list).0, cold, "{list:?} {}", self.why());
        }
    }

    /// What is known of the tool, for messages.
    pub fn why(&self) -> String {
        format!("{:?}", self.launcher.statistics())
    }
}
