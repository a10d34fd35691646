//! Starts one tool very often in one runner and watches that nothing grows: `soak COUNT [-i FILE] TOOL ARGS`.
//!
//! Two threads start it at a time. The output of every start is compared with that of a cold one; ten times on the way,
//! memory, descriptors and mappings of the runner and of the tool's processes are printed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hotstart_launch::{Choice, EnvBlock, Group, Launcher, Policy, ProcessGroup, Spec};
use hotstart_model::Status;
use rustix::fs::MemfdFlags;

const THREADS: usize = 2;

struct Command {
    count: u64,
    input: PathBuf,
    argv: Vec<OsString>,
}

fn parse() -> Command {
    let mut args = std::env::args_os().skip(1).peekable();
    let count = args.next().and_then(|n| n.to_str()?.parse().ok()).expect("a count first");
    let mut input = PathBuf::from("/dev/null");
    if args.next_if(|arg| arg == "-i").is_some() {
        input = args.next().expect("a file after -i").into();
    }
    let argv: Vec<_> = args.collect();
    assert!(!argv.is_empty(), "a tool and its arguments last");
    Command { count, input, argv }
}

/// One start; its status and all it wrote.
fn run(launcher: &Launcher, command: &Command, env: &EnvBlock) -> (Status, Vec<u8>) {
    let input = File::open(&command.input).expect("the input can be read");
    let mut output: File = rustix::fs::memfd_create("output", MemfdFlags::CLOEXEC).expect("a file").into();
    let spec = Spec {
        program: command.argv[0].clone().into(),
        argv: command.argv.clone(),
        env: env.clone(),
        cwd: Path::new("/").into(),
        stdio: [input.as_fd(), output.as_fd(), output.as_fd()],
        extra_fds: Vec::new(),
        umask: None,
        limits: Vec::new(),
        ignored: None,
        keep_cold: false,
        process_group: ProcessGroup::New,
    };
    let exit = launcher.start(&spec, &Group::new()).expect("it starts").wait();
    let mut written = Vec::new();
    output.rewind().and_then(|()| output.read_to_end(&mut written)).expect("the output can be read");
    (exit.status, written)
}

/// Resident KiB, descriptors and mappings of a process.
fn size(process: &str) -> String {
    let dir = Path::new("/proc").join(process);
    let status = std::fs::read_to_string(dir.join("status")).unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("?").trim();
    let count = |path: &str| std::fs::read_dir(dir.join(path)).map_or(0, Iterator::count);
    let maps = std::fs::read_to_string(dir.join("maps")).unwrap_or_default().lines().count();
    format!("{resident}, {} descriptors, {maps} mappings", count("fd"))
}

fn report(done: u64, tool: &Path) {
    println!("{done:>9}  runner: {}", size("self"));
    let entries = std::fs::read_dir("/proc").expect("proc").flatten();
    for pid in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        let exe = std::fs::read_link(Path::new("/proc").join(&pid).join("exe"));
        if exe.is_ok_and(|exe| exe == tool) {
            println!("{:>9}  {pid}: {}", "", size(&pid));
        }
    }
}

fn main() {
    let command = parse();
    let tool = Path::new(&command.argv[0]).canonicalize().expect("the tool exists");
    let name = Path::new(&command.argv[0]).file_name().expect("a name").to_string_lossy().into_owned();
    let policy = Policy { choice: Choice::Only(vec![name]), ..Policy::default() };
    let warm = Launcher::new().with_policy(policy);
    let env = EnvBlock::new(&std::env::vars_os().collect());
    let expected = run(&Launcher::new(), &command, &env);
    let taken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let number = taken.fetch_add(1, Ordering::Relaxed);
                    if number >= command.count {
                        return;
                    }
                    if number % (command.count / 10).max(1) == 0 {
                        report(number, &tool);
                    }
                    assert_eq!(run(&warm, &command, &env), expected, "start {number} is as the cold one");
                }
            });
        }
    });
    report(command.count, &tool);
    for tool in warm.statistics().tools {
        println!("{tool:?}");
    }
}
