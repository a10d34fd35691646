//! Judges the system calls of constructors. Allowed are those whose answer is the same for every start, is compared, or is in
//! the key.
//!
//! The list names the allowed calls. Any other call keeps the tool cold, with a reason that names it.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::run::{PAGE, Run};
use super::unknown::unknown;
use super::{Refusal, old};
use crate::Reason;
use crate::warm::eligible;
use crate::warm::file_systems::reports_changes;
use crate::warm::identity::Aspect;
use crate::warm::made_up::{is_made_up, leads_through_made_up};
use crate::warm::wire;

/// A system call at its entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub number: i64,
    pub args: [u64; 6],
    pub ip: u64,
}

/// The action when an allowed call returns.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    /// The returned descriptor leads to this file.
    Opened(Opened),
    /// The call has reported on a standard descriptor, or else on a file of the kernel's.
    Stat {
        buffer: u64,
        is_stream: bool,
    },
    /// Other code than the loader was told which file a path leads to, unless the call has failed.
    Compared,
    /// The call has written seconds and a part of a second, which will be replaced.
    Time {
        buffer: u64,
    },
    /// The call has filled a buffer with this many random bytes, which will be replaced.
    Random {
        buffer: u64,
        size: u64,
        /// For libc's own use.
        is_libcs: bool,
    },
    /// The call has told libc the number of its thread.
    Number,
}

/// The file of a descriptor that constructors have opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// A file of hotstart's, and no part of the tool.
    Ours,
    /// Any other file, by its path.
    At(PathBuf),
}

/// The null device, and files below /proc and /sys that stay the same until the next boot, unless the administrator changes
/// them.
const CONSTANT: [&str; 7] = [
    "/dev/null",
    "/proc/filesystems",
    "/proc/sys/vm/overcommit_memory",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/possible",
];
/// Paths there that constructors look for, and that most systems do not have.
const ABSENT: [&str; 2] = ["/sys/fs/selinux", "/selinux"];

const HERE: i32 = libc::AT_FDCWD;
/// linux/prctl.h: names a mapping.
const PR_SET_VMA: u64 = 0x53564d41;
/// asm/prctl.h.
const ARCH_SET_FS: u64 = 0x1002;
const ARCH_CET_STATUS: u64 = 0x3001;

pub(super) fn refuse<T>(reason: Reason, detail: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { reason, detail: detail.into() })
}

/// Decides whether this call may be made. Records the inputs that it looks at.
pub(super) fn judge(run: &mut Run<'_>, call: Entry) -> Result<After, Refusal> {
    let [a, b, c, ..] = call.args;
    let fd = a as i32;
    match call.number {
        libc::SYS_munmap => {
            let is_gone =
                |freed: &Range<u64>| a % PAGE == 0 && freed.start >= a && freed.end <= a.saturating_add(b);
            run.seen.lazily_freed.retain(|freed| !is_gone(freed));
            Ok(After::Nothing)
        }
        libc::SYS_mremap => run.check_memory().map(|()| After::Nothing),
        libc::SYS_brk | libc::SYS_mprotect => Ok(After::Nothing),
        libc::SYS_mmap => map(run, call),
        libc::SYS_madvise => advise(run, call),
        // The loader registers its thread. Of others the answer would tell the process number, and the addresses would be excused.
        libc::SYS_set_tid_address if run.seen.thread_id == 0 && run.is_libcs(call.ip) => {
            run.seen.thread_id = a;
            run.place();
            Ok(After::Number)
        }
        libc::SYS_rseq if run.seen.rseq == (0, 0) && run.is_libcs(call.ip) => {
            run.seen.rseq = (a, b);
            Ok(After::Nothing)
        }
        libc::SYS_rt_sigaction => note_signals(run, call, b, 4),
        libc::SYS_rt_sigprocmask => note_signals(run, call, b, 1),
        // The kernel keeps the address, and tells it again.
        libc::SYS_set_robust_list if !run.has_robust_list && run.is_libcs(call.ip) => {
            run.has_robust_list = true;
            Ok(After::Nothing)
        }
        libc::SYS_getuid | libc::SYS_geteuid | libc::SYS_getgid | libc::SYS_getegid => Ok(After::Nothing),
        // A handler is told a state of its stack that depends on whether anything has ever disabled it.
        libc::SYS_sigaltstack if a == 0 || run.word(a + 8).is_ok_and(|flags| flags as u32 == 0) => {
            note_signals(run, call, a, 3)
        }
        libc::SYS_uname => {
            run.seen.looks.system |= !run.is_loader(call.ip);
            Ok(After::Nothing)
        }
        old::SYS_arch_prctl if matches!(a, ARCH_SET_FS | ARCH_CET_STATUS) => Ok(After::Nothing),
        libc::SYS_prctl if a == PR_SET_VMA => Ok(After::Nothing),
        libc::SYS_futex if b as i32 == libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG => Ok(After::Nothing),
        libc::SYS_prlimit64 if fd == 0 && c == 0 => limit(run, b),
        libc::SYS_getrlimit => limit(run, a),
        libc::SYS_sched_getaffinity if fd == 0 => {
            run.seen.looks.processors = true;
            run.free();
            Ok(After::Nothing)
        }
        libc::SYS_getrandom => random(run, call),
        libc::SYS_clock_gettime if run.is_known_library(call.ip) => Ok(After::Time { buffer: b }),
        libc::SYS_gettimeofday if run.is_known_library(call.ip) => Ok(After::Time { buffer: a }),
        _ => judge_files(run, call),
    }
}

/// Notes what a call tells the kernel about signals, which is in no memory: its number, its first argument, and `count` words at `told`.
fn note_signals(run: &mut Run<'_>, call: Entry, told: u64, count: u64) -> Result<After, Refusal> {
    if told != 0 {
        let which = if told == call.args[0] { 0 } else { call.args[0] };
        let mut words = vec![call.number as u64, which];
        // What cannot be read, the kernel refuses.
        words.extend((0..count).map_while(|i| run.word(told + 8 * i).ok()));
        run.seen.signals.push(words);
    }
    Ok(After::Nothing)
}

/// Judges calls about files and descriptors.
fn judge_files(run: &mut Run<'_>, call: Entry) -> Result<After, Refusal> {
    let [a, b, c, d, ..] = call.args;
    let (fd, flags) = (a as i32, c as i32);
    match call.number {
        old::SYS_open => open(run, call, HERE, a, b as i32),
        libc::SYS_openat => open(run, call, fd, b, flags),
        old::SYS_stat => look(run, call, HERE, a, Aspect::File),
        old::SYS_lstat | old::SYS_readlink => look(run, call, HERE, a, Aspect::Link),
        old::SYS_access => permit(run, call, HERE, a, [b, 0]),
        libc::SYS_faccessat => permit(run, call, fd, b, [c, 0]),
        libc::SYS_faccessat2 => permit(run, call, fd, b, [c, d]),
        libc::SYS_newfstatat => look(run, call, fd, b, aspect(d as i32)),
        libc::SYS_statx => look(run, call, fd, b, aspect(flags)),
        libc::SYS_readlinkat => look(run, call, fd, b, Aspect::Link),
        libc::SYS_statfs => absent(run, call),
        libc::SYS_fstat => stat(run, call, fd, Some(b)),
        libc::SYS_lseek if is_standard(fd) && (b, flags) == (0, libc::SEEK_CUR) => stat(run, call, fd, None),
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_getdents64 | libc::SYS_fadvise64
            if run.opened.contains_key(&fd) =>
        {
            run.seen.compares_files |= call.number == libc::SYS_getdents64;
            Ok(After::Nothing)
        }
        // Holes in a file come and go without a trace.
        libc::SYS_lseek
            if run.opened.contains_key(&fd) && (libc::SEEK_SET..=libc::SEEK_END).contains(&flags) =>
        {
            Ok(After::Nothing)
        }
        libc::SYS_fcntl if run.opened.contains_key(&fd) && is_harmless_fcntl(b as i32) => Ok(After::Nothing),
        libc::SYS_close if run.opened.remove(&fd).is_some() => Ok(After::Nothing),
        // The runtime's own.
        libc::SYS_getsockopt | libc::SYS_recvfrom if fd == wire::CONTROL_FD && run.is_runtime(call.ip) => {
            Ok(After::Nothing)
        }
        _ => Err(unknown(call)),
    }
}

pub(super) fn is_standard(fd: i32) -> bool {
    (0..3).contains(&fd)
}

fn is_harmless_fcntl(what: i32) -> bool {
    matches!(what, libc::F_GETFD | libc::F_SETFD | libc::F_GETFL)
}

/// Allows a mapping of private memory, or of a file that the process has opened for reading.
fn map(run: &Run<'_>, call: Entry) -> Result<After, Refusal> {
    let [_, _, access, flags, fd, _] = call.args;
    let (flags, fd) = (flags as i32, fd as i32);
    // Others are not copied to a fork (MAP_LOCKED), or not in the same way (MAP_HUGETLB, MAP_GROWSDOWN).
    const KNOWN: i32 = libc::MAP_TYPE
        | libc::MAP_FIXED
        | libc::MAP_FIXED_NOREPLACE
        | libc::MAP_ANONYMOUS
        | libc::MAP_DENYWRITE
        | libc::MAP_EXECUTABLE
        | libc::MAP_NORESERVE
        | libc::MAP_POPULATE
        | libc::MAP_STACK;
    #[cfg(target_arch = "x86_64")]
    const KNOWN_HERE: i32 = KNOWN | libc::MAP_32BIT;
    #[cfg(not(target_arch = "x86_64"))]
    const KNOWN_HERE: i32 = KNOWN;
    if flags & !KNOWN_HERE != 0 {
        return refuse(Reason::ConstructorCall, format!("mmap with flags {flags:#x}"));
    }
    let is_shared = flags & libc::MAP_TYPE != libc::MAP_PRIVATE;
    if is_shared && (flags & libc::MAP_ANONYMOUS != 0 || access as i32 & libc::PROT_WRITE != 0) {
        return refuse(Reason::SharedMemory, "mmap");
    }
    if flags & libc::MAP_ANONYMOUS == 0 && !run.opened.contains_key(&fd) {
        return refuse(Reason::ConstructorCall, format!("mmap of descriptor {fd}"));
    }
    Ok(After::Nothing)
}

/// Allows advice that leaves memory as it is, or drops it at once. What the kernel takes away later (MADV_FREE) counts as never
/// written meanwhile: it has to be unmapped before main. (jemalloc asks so whether the kernel knows that advice.)
fn advise(run: &mut Run<'_>, call: Entry) -> Result<After, Refusal> {
    let [from, size, advice, ..] = call.args;
    let advice = advice as i32;
    if advice == libc::MADV_FREE {
        run.seen.lazily_freed.push(from..from.saturating_add(size));
        return Ok(After::Nothing);
    }
    let known = [
        libc::MADV_NORMAL,
        libc::MADV_RANDOM,
        libc::MADV_SEQUENTIAL,
        libc::MADV_WILLNEED,
        libc::MADV_DONTNEED,
        libc::MADV_HUGEPAGE,
        libc::MADV_NOHUGEPAGE,
        libc::MADV_DONTDUMP,
        libc::MADV_DODUMP,
    ];
    if known.contains(&advice) {
        return Ok(After::Nothing);
    }
    refuse(Reason::ConstructorCall, format!("madvise({advice})"))
}

/// libc reads the limit of the stack at every start. If it is not the runner's, it is in the key.
fn limit(run: &mut Run<'_>, resource: u64) -> Result<After, Refusal> {
    let resource = u32::try_from(resource).unwrap_or(u32::MAX);
    if resource != libc::RLIMIT_STACK {
        run.seen.looks.limits.insert(resource);
    }
    Ok(After::Nothing)
}

/// Allows a key by which libc's allocator recognises memory that is freed twice, and what a known library draws.
fn random(run: &Run<'_>, call: Entry) -> Result<After, Refusal> {
    let [buffer, size, flags, ..] = call.args;
    let is_libc_key = size == 8
        && flags == u64::from(libc::GRND_NONBLOCK)
        && run.is_libc_data(buffer)
        && run.is_libcs(call.ip);
    if is_libc_key || run.is_known_library(call.ip) {
        return Ok(After::Random { buffer, size, is_libcs: is_libc_key });
    }
    refuse(Reason::ReadsClock, format!("getrandom of {size} bytes"))
}

fn aspect(flags: i32) -> Aspect {
    if flags & libc::AT_SYMLINK_NOFOLLOW == 0 { Aspect::File } else { Aspect::Link }
}

fn stat(run: &mut Run<'_>, call: Entry, fd: i32, buffer: Option<u64>) -> Result<After, Refusal> {
    if is_standard(fd) {
        let looked = &mut run.seen.looks.stdio;
        looked[fd as usize] = true;
        if looked.iter().filter(|is_looked| **is_looked).count() > 1 {
            // The key has their kinds, but not how they relate: both may be one file.
            return refuse(Reason::Stdio, "more than one standard descriptor");
        }
        return Ok(buffer.map_or(After::Nothing, |buffer| After::Stat { buffer, is_stream: true }));
    }
    match run.opened.get(&fd).cloned() {
        Some(Opened::Ours) => Ok(After::Nothing),
        Some(Opened::At(path)) if is_constant(&path) => vary(run, &path, buffer),
        Some(Opened::At(path)) => {
            if !run.is_loader(call.ip) {
                run.seen.compares_files = true;
                run.watch(&path, Aspect::Stat);
            }
            Ok(After::Nothing)
        }
        None => refuse(Reason::Descriptors, format!("fstat of descriptor {fd}")),
    }
}

/// Has the second run told something else about one of the kernel's own files: nothing shows when these get other times. Runs of scripts
/// are not compared.
fn vary(run: &Run<'_>, path: &Path, buffer: Option<u64>) -> Result<After, Refusal> {
    match buffer.filter(|_| run.means.python.is_none()) {
        Some(buffer) => Ok(After::Stat { buffer, is_stream: false }),
        None => refuse(Reason::ReadsSystem, format!("stat of '{}'", path.display())),
    }
}

fn is_constant(path: &Path) -> bool {
    CONSTANT.iter().any(|known| path == Path::new(known))
}

/// Allows the question whether a file can be used in some way. To read it, its permissions are needed, and a change of those
/// stamps it. Whether it can be written and executed depends on its mount as well.
fn permit(
    run: &mut Run<'_>,
    call: Entry,
    dir: i32,
    path: u64,
    [kinds, flags]: [u64; 2],
) -> Result<After, Refusal> {
    let path = run.path(path)?;
    let flags = flags as i32;
    if path.as_os_str().is_empty() || flags & !(libc::AT_EACCESS | libc::AT_SYMLINK_NOFOLLOW) != 0 {
        return refuse(Reason::Descriptors, "access by descriptor");
    }
    let changes = kinds as i32 & (libc::W_OK | libc::X_OK) != 0;
    if changes && aspect(flags) == Aspect::Link {
        return refuse(Reason::ConstructorCall, "access to a link");
    }
    if let Opened::At(path) = settle(run, call, dir, &path, aspect(flags))? {
        if changes {
            run.watch(&path, Aspect::Access(kinds as u8 & 7));
        }
    }
    Ok(After::Nothing)
}

/// Allows a call only on a path that does not exist.
fn absent(run: &mut Run<'_>, call: Entry) -> Result<After, Refusal> {
    let path = run.path(call.args[0])?;
    if ABSENT.iter().any(|known| path == Path::new(known)) && std::fs::symlink_metadata(&path).is_err() {
        run.watch(&path, Aspect::Link);
        return Ok(After::Nothing);
    }
    refuse(Reason::ReadsSystem, format!("statfs of '{}'", path.display()))
}

fn look(run: &mut Run<'_>, call: Entry, dir: i32, path: u64, aspect: Aspect) -> Result<After, Refusal> {
    let path = run.path(path)?;
    if path.as_os_str().is_empty() {
        return match (dir, call.number) {
            (HERE, _) => refuse(Reason::ReadsDirectory, "stat"),
            (_, libc::SYS_newfstatat) => stat(run, call, dir, Some(call.args[2])),
            (_, libc::SYS_statx) if run.opened.contains_key(&dir) => stat(run, call, dir, None),
            (_, libc::SYS_readlinkat) if run.opened.contains_key(&dir) => Ok(After::Nothing),
            _ => refuse(Reason::Descriptors, format!("statx of descriptor {dir}")),
        };
    }
    let is_readlink = matches!(call.number, old::SYS_readlink | libc::SYS_readlinkat);
    if is_readlink && path == Path::new("/proc/self/exe") {
        return Ok(After::Nothing);
    }
    // A directory in which the loader finds nothing. Each name that it might find there is looked at as well.
    let is_place = aspect == Aspect::File && run.is_loader(call.ip) && path.is_dir();
    let is_no_link = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_symlink());
    let aspect = match is_readlink && path.is_absolute() && is_no_link(&path) {
        // That is all that the call can tell.
        true => Aspect::NoLink,
        false if is_place => Aspect::Place,
        // The loader keeps device and inode. Other code may keep all that it is told.
        false if is_readlink || run.is_loader(call.ip) => aspect,
        false if aspect == Aspect::Link => Aspect::LinkStat,
        false => Aspect::Stat,
    };
    match settle(run, call, dir, &path, aspect)? {
        Opened::At(path) if !is_readlink && is_constant(&path) => {
            let buffer = match call.number {
                old::SYS_stat | old::SYS_lstat => Some(call.args[1]),
                libc::SYS_newfstatat => Some(call.args[2]),
                _ => None,
            };
            run.seen.compares_files = true;
            vary(run, &path, buffer)
        }
        _ if is_readlink || run.is_loader(call.ip) => Ok(After::Nothing),
        _ => Ok(After::Compared),
    }
}

fn open(run: &mut Run<'_>, call: Entry, dir: i32, path: u64, flags: i32) -> Result<After, Refusal> {
    let path = run.path(path)?;
    let reads = flags & libc::O_ACCMODE == libc::O_RDONLY;
    if !reads || flags & (libc::O_CREAT | libc::O_TRUNC | libc::O_TMPFILE & !libc::O_DIRECTORY) != 0 {
        return refuse(Reason::WritesFiles, format!("open of '{}'", path.display()));
    }
    if flags & libc::O_PATH != 0 && flags & libc::O_NOFOLLOW != 0 {
        // A call on the descriptor would be about the link.
        return refuse(Reason::ConstructorCall, format!("open of the link '{}'", path.display()));
    }
    let aspect = if flags & libc::O_NOFOLLOW == 0 { Aspect::File } else { Aspect::Link };
    if run.is_loader(call.ip) && !run.is_ours(&path) {
        run.seen.libraries.extend(path.file_name().map(OsStr::to_owned));
        run.seen.libraries.extend(eligible::names(&Path::new("/").join(&path)));
    }
    settle(run, call, dir, &path, aspect).map(After::Opened)
}

/// Records a path that is looked at, if that is allowed.
fn settle(run: &mut Run<'_>, call: Entry, dir: i32, path: &Path, aspect: Aspect) -> Result<Opened, Refusal> {
    if run.is_loader(call.ip) && run.is_ours(path) {
        return Ok(Opened::Ours);
    }
    let path = match run.opened.get(&dir) {
        _ if path.is_absolute() => path.to_owned(),
        Some(Opened::At(dir)) => dir.join(path),
        _ if dir == HERE && run.is_loader(call.ip) && !Path::new("/").join(path).exists() => {
            run.seen.relative.insert(path.to_owned());
            return Ok(Opened::At(path.to_owned()));
        }
        _ => return refuse(Reason::RelativePath, format!("'{}'", path.display())),
    };
    if is_constant(&path) {
        run.watch(&path, Aspect::Content);
        return Ok(Opened::At(path));
    }
    let real = path.canonicalize().unwrap_or_else(|_| without_parents(&path));
    if is_made_up(&real) || leads_through_made_up(&path) {
        let reason = match is_random(&path) {
            true => Reason::ReadsClock,
            false => Reason::ReadsSystem,
        };
        return refuse(reason, format!("'{}'", path.display()));
    }
    let meta = std::fs::metadata(&path);
    if meta.is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) || !reports_changes(&real) {
        return refuse(Reason::ReadsSystem, format!("'{}'", path.display()));
    }
    run.watch(&path, aspect);
    Ok(Opened::At(path))
}

fn is_random(path: &Path) -> bool {
    ["/dev/random", "/dev/urandom"].iter().any(|device| path == Path::new(device))
}

/// Returns the path without "..", for one that does not exist.
fn without_parents(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, component| {
        match component {
            Component::ParentDir => drop(path.pop()),
            other => path.push(other),
        }
        path
    })
}

/// Returns the path that a NUL ends in `bytes`.
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    PathBuf::from(OsStr::from_bytes(&bytes[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_parents_is_where_it_leads() {
        assert_eq!(without_parents(Path::new("/etc/../proc/self/x")), Path::new("/proc/self/x"));
        assert_eq!(without_parents(Path::new("/../a/./b")), Path::new("/a/b"));
    }
}
