//! The observation runs of a Python script: up to the place where the runtime halts its interpreter (`runtime/python`).
//!
//! Traps in the interpreter halt it before it touches the request. These runs see what traps cannot: system calls, by whatever code.
//! Each must be on a list, and what it looks at joins the zygote's files. Two runs with different requests must halt in the same
//! place, with the same modules, the same variables and the same files.
//!
//! The interpreter itself reads the whole request before any code of the script runs, so the runs' memory is not compared.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::calls::{self, After, Entry, Opened, refuse};
use super::run::{Run, Seen, lost};
use super::stdio::{self, Class};
use super::{Live, Observed, Refusal, twice, variables};
use crate::sys::channel;
use crate::sys::trace::{self, Call, Stop};
use crate::warm::identity::Aspect;
use crate::warm::key::Looks;
use crate::warm::script::Script;
use crate::warm::wire;
use crate::warm::zygote::{self, Means};
use crate::{Reason, Spec};

/// asm-generic/ioctls.h.
const TCGETS: u64 = 0x5401;
const TIOCGWINSZ: u64 = 0x5413;
const FIONCLEX: u64 = 0x5450;
const FIOCLEX: u64 = 0x5451;
/// The socket of libc's name service cache.
const NAME_SERVICE: &str = "/var/run/nscd/socket";
/// Bytes of the seed of Python's hashes, of its allocator since 3.13, and of the generator of its module `random`.
const HASH_SEED: u64 = 24;
const ALLOCATOR_SEED: u64 = 32;
const GENERATOR: u64 = 2496;

/// What the process is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The interpreter begins. No code of a module can have touched the request.
    Begins,
    /// The script and its modules run.
    Watched,
    /// It has halted, and the runtime looks at it.
    Halted,
}

/// The progress of a run.
#[derive(Debug)]
struct Progress {
    phase: Phase,
    /// Whether the next call asks for the time, for the thread's number or for the seed of `random`, which each fork renews.
    renews: bool,
}

/// Runs the script with no argument and with those of `spec`, or with one.
pub(super) fn observe(spec: &Spec<'_>, script: &Script, means: Means<'_>, live: &Live) -> Observed {
    let mut seen = Seen::default();
    let refusal = compare(spec, script, means, live, &mut seen).err();
    Observed {
        names: seen.names,
        looks: Looks { python: true, ..seen.looks },
        files: seen.files,
        relative: seen.relative.into_iter().collect(),
        // That of the script. The interpreter's is watched.
        exe: Vec::new(),
        libraries: seen.libraries,
        counts: Vec::new(),
        ends: Vec::new(),
        uppers: Vec::new(),
        residue: Vec::new(),
        numbers: Arc::default(),
        place: seen.place,
        line: seen.line,
        refusal,
        key: Vec::new(),
    }
}

fn compare(
    spec: &Spec<'_>,
    script: &Script,
    means: Means<'_>,
    live: &Live,
    seen: &mut Seen,
) -> Result<(), Refusal> {
    if means.allocator.is_some() {
        return refuse(Reason::Script, "with another allocator");
    }
    let mut other: Vec<CString> =
        script.arguments(spec).iter().filter_map(|arg| CString::new(arg.as_bytes()).ok()).collect();
    if other.is_empty() {
        other.push(c"--hotstart".to_owned());
    }
    let mut one =
        run((spec, script), &[], [Class::Null, Class::TEMPORARY, Class::TEMPORARY], means, live, seen)?;
    let mut two = run((spec, script), &other, [Class::Pipe; 3], means, live, seen)?;
    let differs = |what: &str| refuse(Reason::ConstructorsDiffer, what);
    if one.seen.place != two.seen.place {
        return differs("where a Python script looks at its request");
    }
    one.seen.names.sort();
    two.seen.names.sort();
    if one.seen.names != two.seen.names {
        return differs("the variables that a Python script reads");
    }
    if !one.seen.files.cover(&two.seen.files) || !two.seen.files.cover(&one.seen.files) {
        return differs("the files that a Python script reads");
    }
    seen.place = one.seen.place;
    seen.line = one.seen.line.clone();
    Ok(())
}

/// Makes one run, and adds to `seen` what it looks at.
fn run<'a>(
    (spec, script): (&Spec<'_>, &Script),
    arguments: &[CString],
    streams: [Class; 3],
    means: Means<'a>,
    live: &Live,
    seen: &mut Seen,
) -> Result<Run<'a>, Refusal> {
    let everywhere = rustix::thread::sched_getaffinity(None).ok();
    let pid = spawn((spec, script), arguments, streams, means)
        .or_else(|error| refuse(Reason::NotObserved, error.to_string()))?;
    let mut run = Run::of(pid, means, everywhere, live)?;
    run.watch(script.file(), Aspect::File);
    let exe = run.seen.exe.clone();
    run.seen.files.watch_exe(&script.interpreter, &exe);
    if !script.tried.is_empty() {
        run.seen.asked_for(b"PATH");
        script.tried.iter().for_each(|path| run.watch(path, Aspect::File));
    }
    let reached = reach(&mut run);
    everywhere.iter().for_each(|all| _ = rustix::thread::sched_setaffinity(None, all));
    let own = (run.seen.files.clone(), run.seen.names.clone());
    twice::take(&mut run, seen);
    (run.seen.files, run.seen.names) = own;
    reached.map(|()| run)
}

fn spawn(
    (spec, script): (&Spec<'_>, &Script),
    arguments: &[CString],
    streams: [Class; 3],
    means: Means<'_>,
) -> std::io::Result<i32> {
    let (socket, theirs) = channel::pair()?;
    channel::send(&socket, &[&wire::python_mode(true)], &[])?;
    let ends = zygote::ends(theirs, means.runtime, means.slots, |fd| stdio::placeholder(streams[fd]))?;
    let (environment, variables) = zygote::environment(spec, means.allocator);
    let (program, first) = script.command(spec);
    let program = CString::new(program.as_os_str().as_bytes())?;
    let mut argv = first.iter().map(|word| CString::new(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
    argv.extend_from_slice(arguments);
    let inherited = zygote::Inherited::of(spec);
    zygote::spawn(&program, &argv, &environment, variables, &ends, &inherited, true)
        .map_err(std::io::Error::from_raw_os_error)
}

/// Lets the process run until the runtime has halted it.
fn reach(run: &mut Run<'_>) -> Result<(), Refusal> {
    let mut progress = Progress { phase: Phase::Begins, renews: false };
    run.stay_together();
    loop {
        trace::resume(run.pid).map_err(lost)?;
        match run.wait()? {
            Stop::Call => {}
            Stop::Signal(signal) => {
                let past_the_traps = |refusal: Refusal| match refusal.reason {
                    Reason::Signals => Refusal { reason: Reason::NotPython, ..refusal },
                    _ => refusal,
                };
                run.signal(signal).map_err(past_the_traps)?;
                continue;
            }
            Stop::Ended => return refuse(Reason::NotStopped, "it has ended"),
        }
        let Call::Entry { number, args, ip } = trace::call(run.pid).map_err(lost)? else {
            return refuse(Reason::NotObserved, "a system call has returned twice");
        };
        let call = Entry { number, args, ip };
        if number == libc::SYS_close {
            match args[0] {
                wire::MARK_MAIN => {
                    run.check_memory()?;
                    return run.learn(args[1]);
                }
                wire::MARK_PYTHON => {
                    marked(run, &mut progress, args)?;
                    run.leave_call()?;
                    continue;
                }
                _ => variables::watch(run, args[0] as i32)?,
            }
        }
        let after = judge(run, &mut progress, call)?;
        run.finish(after)?;
    }
}

/// Takes note of what the runtime reports.
fn marked(
    run: &mut Run<'_>,
    progress: &mut Progress,
    [_, mark, text, length, ..]: [u64; 6],
) -> Result<(), Refusal> {
    match mark {
        wire::PYTHON_WATCHES => progress.phase = Phase::Watched,
        wire::PYTHON_RENEWS => progress.renews = true,
        wire::PYTHON_CHECKS => {
            progress.phase = Phase::Halted;
            run.seen.line = told(run, text, length)?;
        }
        wire::PYTHON_REFUSES => return refuse(Reason::NotPython, told(run, text, length)?),
        other => return refuse(Reason::NotPython, format!("mark {other}")),
    }
    Ok(())
}

/// Reads a text of the runtime.
fn told(run: &Run<'_>, text: u64, length: u64) -> Result<String, Refusal> {
    let mut bytes = vec![0; length.min(wire::PYTHON_TEXT) as usize];
    run.memory.read_exact_at(&mut bytes, text).map_err(lost)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Decides whether this call may be made: one that constructors may make, or one of the interpreter's own.
fn judge(run: &mut Run<'_>, progress: &mut Progress, call: Entry) -> Result<After, Refusal> {
    let [a, b, c, ..] = call.args;
    let fd = a as i32;
    let (is_standard, is_opened) = ((0..3).contains(&fd), run.opened.contains_key(&fd));
    let begins = progress.phase == Phase::Begins;
    // Of the next call only.
    let renews = std::mem::take(&mut progress.renews);
    match call.number {
        libc::SYS_getrandom => random(run, progress.phase, renews, call),
        // The streams are opened again in each fork, and none is a terminal.
        libc::SYS_fstat | libc::SYS_lseek | libc::SYS_fcntl if is_standard && begins => Ok(After::Nothing),
        libc::SYS_dup if is_standard && begins => Ok(After::Opened(Opened::Ours)),
        libc::SYS_newfstatat if is_standard && begins && run.path(b)?.as_os_str().is_empty() => {
            Ok(After::Nothing)
        }
        libc::SYS_ioctl if is_standard && matches!(b, TCGETS | TIOCGWINSZ) => Ok(After::Nothing),
        libc::SYS_ioctl if is_opened && matches!(b, TCGETS | FIOCLEX | FIONCLEX) => Ok(After::Nothing),
        // libc sorts, and asks for the size of memory. The interpreter tests its clocks, computes the time zone from the year, and
        // notes its thread for debuggers.
        libc::SYS_sysinfo | libc::SYS_gettid | libc::SYS_clock_gettime | libc::SYS_time if begins => {
            Ok(After::Nothing)
        }
        libc::SYS_gettid | libc::SYS_clock_gettime if renews => Ok(After::Nothing),
        // Whether such a thing can be had. It is closed at once, or the zygote has a descriptor too many.
        libc::SYS_epoll_create1 => Ok(After::Opened(Opened::Ours)),
        // libc looks for its name service's cache, and reads the files if there is none.
        libc::SYS_socket if a == libc::AF_UNIX as u64 => Ok(After::Opened(Opened::Ours)),
        libc::SYS_connect if is_opened => connect(run, b),
        libc::SYS_poll if (b, c) == (0, 0) => Ok(After::Nothing),
        _ => calls::judge(run, call),
    }
}

/// Allows to look in vain for the name service's cache.
fn connect(run: &mut Run<'_>, address: u64) -> Result<After, Refusal> {
    let path = run.path(address + size_of::<libc::sa_family_t>() as u64)?;
    if path != Path::new(NAME_SERVICE) || std::fs::symlink_metadata(&path).is_ok() {
        return refuse(Reason::Descriptors, format!("connect to '{}'", path.display()));
    }
    run.watch(&path, Aspect::Link);
    Ok(After::Nothing)
}

/// Allows the seed of hashes, and that of `random`, which each fork renews.
fn random(run: &mut Run<'_>, phase: Phase, renews: bool, call: Entry) -> Result<After, Refusal> {
    let [buffer, size, ..] = call.args;
    let seeds = match (phase, size) {
        (Phase::Begins, HASH_SEED | ALLOCATOR_SEED) | (Phase::Halted, GENERATOR) => true,
        (Phase::Watched, GENERATOR) => renews,
        _ => false,
    };
    if seeds { Ok(After::Random { buffer, size, is_libcs: false }) } else { calls::judge(run, call) }
}
