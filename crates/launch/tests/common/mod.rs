//! The victim, its starts and its output, shared by the tests of warm starts.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hotstart_launch::{
    Choice, EnvBlock, Exit, Group, Launcher, Limit, OnDoubt, Policy, ProcessGroup, Spec, Via,
};
use hotstart_model::{Environment, Status};

pub struct Victim {
    pub dir: tempfile::TempDir,
    pub program: PathBuf,
}

#[derive(Clone)]
pub struct Case {
    pub argv: Vec<String>,
    pub env: Vec<(&'static str, String)>,
    pub input: &'static str,
    pub umask: Option<u32>,
    pub limits: Vec<Limit>,
    /// `None` is the job's own group.
    pub group: Option<ProcessGroup>,
    pub extra: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub status: Status,
    pub stdout: String,
    pub stderr: String,
    pub extra: String,
}

/// Whether the runtime has resets for this kind of processor. Otherwise tools are forked where they would be reset.
pub const RESETS: bool = cfg!(target_arch = "x86_64");

/// How a tool is started again that may run in a persistent process.
pub const AGAIN: Via = if RESETS { Via::Reset } else { Via::Fork };

/// Values of `Policy::resets` that differ here.
pub const KINDS: &[bool] = if RESETS { &[false, true] } else { &[false] };

pub fn compile(source: &Path, out: &Path, flags: &[&str]) {
    let built =
        Command::new("cc").args(["-std=gnu11", "-O1"]).args(flags).arg("-o").args([out, source]).output();
    let built = built.expect("cc runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    await_age(out);
}

/// Waits until the file is old enough for a zygote: a file that changed a moment ago makes a start cold. The clock that stamps files is
/// late where a virtual machine gets no time.
pub fn await_age(path: &Path) {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(path).unwrap();
    let changed = Duration::new(meta.ctime() as u64, meta.ctime_nsec() as u32);
    let now = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    while now() < changed + Duration::from_millis(15) {
        std::thread::yield_now();
    }
}

pub fn victim() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("victim");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/victim.c");
    // Links the library that backtrace() would load while it runs: a persistent process that has loaded something retires.
    let flags = ["-Wl,--push-state,--no-as-needed", "-lgcc_s", "-Wl,--pop-state"];
    compile(Path::new(source), &program, &flags);
    Victim { dir, program }
}

/// Returns a launcher that starts these tools as forks.
pub fn warm_launcher(names: &[&str]) -> Launcher {
    let choice = Choice::Only(names.iter().map(|n| n.to_string()).collect());
    Launcher::new().with_policy(Policy {
        choice,
        resets: false,
        on_doubt: OnDoubt::Bear,
        ..Policy::default()
    })
}

/// Returns a launcher that starts these tools in persistent processes, and audits each run.
pub fn resetting_launcher(names: &[&str]) -> Launcher {
    Launcher::new().with_policy(resetting_policy(names))
}

pub fn resetting_policy(names: &[&str]) -> Policy {
    let choice = Choice::Only(names.iter().map(|n| n.to_string()).collect());
    Policy { choice, audit_one_in: 1, learn_at_once: true, on_doubt: OnDoubt::Bear, ..Policy::default() }
}

pub fn case(args: &[&str]) -> Case {
    Case {
        argv: std::iter::once("victim").chain(args.iter().copied()).map(str::to_owned).collect(),
        env: vec![("A", "1".into()), ("PATH", "/usr/bin:/bin".into()), ("EMPTY", String::new())],
        input: "one\ntwo\n",
        umask: None,
        limits: Vec::new(),
        group: None,
        extra: false,
    }
}

/// Returns a plain start in a process group of its own.
pub fn plain_spec<'a>(program: &Path, argv: &[&str], cwd: &Path, stdio: [BorrowedFd<'a>; 3]) -> Spec<'a> {
    Spec {
        program: program.into(),
        argv: argv.iter().map(Into::into).collect(),
        env: EnvBlock::new(&Environment::new()),
        cwd: cwd.into(),
        stdio,
        extra_fds: Vec::new(),
        umask: None,
        limits: Vec::new(),
        ignored: None,
        keep_cold: false,
        process_group: ProcessGroup::New,
    }
}

pub fn start(launcher: &Launcher, victim: &Victim, case: &Case) -> (Ran, Exit) {
    start_in(launcher, victim, case, &Group::new())
}

/// The same, as one of the starts of a job.
pub fn start_in(launcher: &Launcher, victim: &Victim, case: &Case, group: &Group) -> (Ran, Exit) {
    let file = |name: &str, text: &str| {
        let path = victim.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        File::options().read(true).write(true).open(&path).unwrap()
    };
    let (stdin, mut out, mut err, mut extra) =
        (file("in", case.input), file("out", ""), file("err", ""), file("extra", ""));
    let env: Environment = case.env.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let spec = Spec {
        program: victim.program.clone(),
        argv: case.argv.iter().map(Into::into).collect(),
        env: EnvBlock::new(&env),
        cwd: victim.dir.path().into(),
        stdio: [stdin.as_fd(), out.as_fd(), err.as_fd()],
        extra_fds: if case.extra { vec![(3, extra.as_fd()), (7, stdin.as_fd())] } else { Vec::new() },
        umask: case.umask,
        limits: case.limits.clone(),
        ignored: None,
        keep_cold: false,
        process_group: case.group.unwrap_or_else(|| group.process_group().unwrap()),
    };
    let exit = launcher.start(&spec, group).expect("it starts").wait();
    let text = |file: &mut File| {
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let ran =
        Ran { status: exit.status, stdout: text(&mut out), stderr: text(&mut err), extra: text(&mut extra) };
    (ran, exit)
}

/// Returns the zygotes and forks that exist, by the name of the victim's file.
pub fn processes_of(program: &Path) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse().ok());
    pids.filter(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program))
        .collect()
}

/// A warm process has one more descriptor than one that was exec'ed. A run that sees it is doubtful.
pub fn without_channel(stdout: &str) -> String {
    stdout.split_inclusive('\n').filter(|line| !line.starts_with("fd 62 type 140000 flags 1")).collect()
}
