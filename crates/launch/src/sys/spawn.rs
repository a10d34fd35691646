//! `posix_spawn` with a working directory and an exact set of descriptors, and the few calls around exec.
//!
//! `std::process::Command` is not used: it forks where a working directory is combined with other settings it
//! cannot express, and it cannot pass descriptors above 2.

use std::ffi::{CStr, CString, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::ptr;

use crate::spec::{Limit, ProcessGroup, Resource};

/// A process to start, in the kernel's form.
pub(crate) struct Request<'a> {
    pub program: &'a CStr,
    pub argv: &'a [CString],
    /// `K=V` strings, each ended by a NUL.
    pub env: &'a [u8],
    pub env_count: usize,
    pub cwd: &'a CStr,
    pub stdio: [BorrowedFd<'a>; 3],
    pub extra_fds: &'a [(i32, BorrowedFd<'a>)],
    pub process_group: ProcessGroup,
}

/// File actions that are destroyed when dropped.
struct Actions(libc::posix_spawn_file_actions_t);

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised by `Actions::new`, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

impl Actions {
    fn new() -> Result<Self, i32> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the pointer is valid for writes; the value is used only after success.
        check(unsafe { libc::posix_spawn_file_actions_init(raw.as_mut_ptr()) })?;
        // SAFETY: initialised by the successful call above.
        Ok(Actions(unsafe { raw.assume_init() }))
    }

    fn chdir(&mut self, dir: &CStr) -> Result<(), i32> {
        // SAFETY: the actions are initialised; glibc copies the string.
        check(unsafe { libc::posix_spawn_file_actions_addchdir_np(&mut self.0, dir.as_ptr()) })
    }

    fn close(&mut self, fd: i32) -> Result<(), i32> {
        // SAFETY: the actions are initialised.
        check(unsafe { libc::posix_spawn_file_actions_addclose(&mut self.0, fd) })
    }

    fn dup(&mut self, from: i32, to: i32) -> Result<(), i32> {
        // SAFETY: the actions are initialised. Equal numbers are legal and clear close-on-exec (glibc 2.29).
        check(unsafe { libc::posix_spawn_file_actions_adddup2(&mut self.0, from, to) })
    }
}

/// Spawn attributes that are destroyed when dropped.
struct Attributes(libc::posix_spawnattr_t);

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised by `Attributes::new`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}

impl Attributes {
    /// An empty signal mask, and default dispositions for the two signals that Rust and Python runtimes ignore.
    fn new(group: ProcessGroup) -> Result<Self, i32> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the pointer is valid for writes; the value is used only after success.
        check(unsafe { libc::posix_spawnattr_init(raw.as_mut_ptr()) })?;
        // SAFETY: initialised by the successful call above.
        let mut attributes = Attributes(unsafe { raw.assume_init() });
        let mut flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
        let mut defaults = super::signal::empty_set();
        super::signal::add(&mut defaults, libc::SIGPIPE);
        super::signal::add(&mut defaults, libc::SIGXFSZ);
        let mask = super::signal::empty_set();
        // SAFETY: attributes and sets are initialised; the sets are copied.
        check(unsafe { libc::posix_spawnattr_setsigdefault(&mut attributes.0, &defaults) })?;
        // SAFETY: as above.
        check(unsafe { libc::posix_spawnattr_setsigmask(&mut attributes.0, &mask) })?;
        let pgid = match group {
            ProcessGroup::Inherit => None,
            ProcessGroup::New => Some(0),
            ProcessGroup::Join(pgid) => Some(pgid),
        };
        if let Some(pgid) = pgid {
            flags |= libc::POSIX_SPAWN_SETPGROUP;
            // SAFETY: the attributes are initialised.
            check(unsafe { libc::posix_spawnattr_setpgroup(&mut attributes.0, pgid) })?;
        }
        // SAFETY: the attributes are initialised; the flags are known to glibc.
        check(unsafe { libc::posix_spawnattr_setflags(&mut attributes.0, flags as libc::c_short) })?;
        Ok(attributes)
    }
}

/// Starts a process and returns its number, or the error number of whatever failed.
pub(crate) fn posix_spawn(request: &Request<'_>) -> Result<i32, i32> {
    let mut actions = Actions::new()?;
    let mut argv: Vec<*mut libc::c_char> = request.argv.iter().map(|a| a.as_ptr().cast_mut()).collect();
    argv.push(ptr::null_mut());
    let mut envp = env_pointers(request.env, request.env_count);
    actions.chdir(request.cwd)?;
    let (moves, copies) = moves(request);
    for (from, to) in moves {
        actions.dup(from, to)?;
    }
    for copy in copies {
        actions.close(copy)?;
    }
    let attributes = Attributes::new(request.process_group)?;
    let mut pid = 0;
    // SAFETY: every pointer is to a live, NUL-terminated string or a null-terminated array of such, which
    // `request`, `argv` and `envp` keep alive during the call; posix_spawn modifies none of them.
    check(unsafe {
        libc::posix_spawn(
            &mut pid,
            request.program.as_ptr(),
            &actions.0,
            &attributes.0,
            argv.as_mut_ptr(),
            envp.as_mut_ptr(),
        )
    })?;
    Ok(pid)
}

/// Duplications in an order in which none overwrites a descriptor that a later one still needs: a source that
/// lies within the targets is first copied above all of them. Also tells which such copies to close in the end.
fn moves(request: &Request<'_>) -> (Vec<(i32, i32)>, std::ops::Range<i32>) {
    let wanted: Vec<(i32, i32)> = request
        .stdio
        .iter()
        .enumerate()
        .map(|(to, from)| (from.as_raw_fd(), to as i32))
        .chain(request.extra_fds.iter().map(|(to, from)| (from.as_raw_fd(), *to)))
        .collect();
    let clash = |from: i32, own: i32| wanted.iter().any(|&(_, to)| to == from && to != own);
    if !wanted.iter().any(|&(from, to)| clash(from, to)) {
        return (wanted, 0..0);
    }
    // Rare: the runner was started without standard descriptors, so that its own pipes have numbers 0 to 2, or
    // further descriptors have numbers that the runner uses itself.
    let base = wanted.iter().map(|&(from, to)| from.max(to)).max().unwrap_or(2) + 1;
    let (mut saves, mut finals) = (Vec::new(), Vec::new());
    for (index, &(from, to)) in wanted.iter().enumerate() {
        saves.push((from, base + index as i32));
        finals.push((base + index as i32, to));
    }
    let copies = base..base + saves.len() as i32;
    saves.append(&mut finals);
    (saves, copies)
}

fn env_pointers(blob: &[u8], count: usize) -> Vec<*mut libc::c_char> {
    let mut pointers = Vec::with_capacity(count + 1);
    let mut start = 0;
    for (end, _) in blob.iter().enumerate().filter(|&(_, &b)| b == 0) {
        pointers.push(blob[start..].as_ptr().cast::<libc::c_char>().cast_mut());
        start = end + 1;
    }
    pointers.push(ptr::null_mut());
    pointers
}

fn check(errno: i32) -> Result<(), i32> {
    if errno == 0 { Ok(()) } else { Err(errno) }
}

/// Replaces this process by `program`; returns only an error.
pub(crate) fn exec(program: &Path, argv: &[OsString]) -> io::Error {
    let mut command = std::process::Command::new(program);
    if let Some((name, args)) = argv.split_first() {
        command.arg0(name).args(args);
    }
    command.exec()
}

/// Sets the file creation mask of this process.
pub(crate) fn set_umask(mask: u32) {
    // SAFETY: umask has no precondition and cannot fail.
    unsafe { libc::umask(mask) };
}

/// Sets a limit of this process.
pub(crate) fn set_limit(limit: Limit) -> io::Result<()> {
    let resource = match limit.resource {
        Resource::AddressSpace => libc::RLIMIT_AS,
        Resource::OpenFiles => libc::RLIMIT_NOFILE,
        Resource::Stack => libc::RLIMIT_STACK,
        Resource::FileSize => libc::RLIMIT_FSIZE,
    };
    let raw = libc::rlimit {
        rlim_cur: limit.soft.unwrap_or(libc::RLIM_INFINITY),
        rlim_max: limit.hard.unwrap_or(libc::RLIM_INFINITY),
    };
    // SAFETY: the pointer is to an initialised rlimit that lives during the call.
    if unsafe { libc::setrlimit(resource, &raw) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes, on exec, every descriptor above 2 that this process itself was started with: what is not named in a
/// request is not passed on.
pub(crate) fn keep_inherited_private() {
    // SAFETY: this only sets the close-on-exec flag of open descriptors; kernels before 5.11 refuse it.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}
