//! Starts a program by `vfork` and `exec`, and makes the few calls around exec.
//!
//! `posix_spawn` does the same, but runs no code of ours between the two, so a child could not enter itself in the guard's
//! table before it becomes a program that outlives a killed runner. `std::process::Command` forks if a working directory is
//! combined with other settings, and cannot pass descriptors above 2.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::ptr;
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::slots::Entry;
use crate::spec::{Limit, ProcessGroup};

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
    /// Limits that are set before its exec.
    pub limits: &'a [Limit],
    /// Signals that it finds ignored: bit n - 1 for signal n. `None`: those that the runner ignores.
    pub ignored: Option<u64>,
    /// Whether the starting thread traces it. It then stops when it has become the program.
    pub traced: bool,
}

/// The child's orders, in memory that both share until the child has execed or ended.
struct Order<'a> {
    request: &'a Request<'a>,
    argv: &'a [*const libc::c_char],
    envp: &'a [*const libc::c_char],
    moves: &'a [(i32, i32)],
    copies: std::ops::Range<i32>,
    /// The cell in which the child enters itself before it execs.
    slot: Option<&'a AtomicI64>,
    /// The limit on open files that the runner was started with, if it has raised its own.
    open_files: Option<libc::rlimit>,
    /// The signals that were blocked or ignored when the runner was started.
    inherited: &'static super::signal::Inherited,
    /// Error number of the failed call; 0 if none failed.
    failed: i32,
}

/// The numbers of signals.
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;
/// Bytes of the child's stack: a few frames around system calls.
const STACK: usize = 64 << 10;

/// Whether the programs that this process starts may not read the time stamp counter: where it is traced.
#[cfg(target_arch = "x86_64")]
pub(super) static FORGO_TIME: AtomicBool = AtomicBool::new(false);

/// Starts a process. Returns its number, or the error number of the call that failed. `slot` has its number and process group
/// (0 for the runner's own) before it becomes the program. After an error the slot is unchanged.
pub(crate) fn vfork_exec(request: &Request<'_>, slot: Option<&AtomicI64>) -> Result<i32, i32> {
    let mut argv: Vec<*const libc::c_char> = request.argv.iter().map(|a| a.as_ptr()).collect();
    argv.push(ptr::null());
    let envp = env_pointers(request.env, request.env_count);
    let (moves, copies) = moves(request);
    let vacant = slot.map(|slot| slot.load(Ordering::Acquire));
    let open_files = crate::descriptors::inherited().map(|(soft, hard)| libc::rlimit {
        rlim_cur: soft.unwrap_or(libc::RLIM_INFINITY),
        rlim_max: hard.unwrap_or(libc::RLIM_INFINITY),
    });
    let mut order = Order {
        request,
        argv: &argv,
        envp: &envp,
        moves: &moves,
        copies,
        slot,
        open_files,
        inherited: super::signal::inherited(),
        failed: 0,
    };
    // SAFETY: `become_program` is given an order that nobody else uses meanwhile; it neither allocates nor unwinds, and
    // takes no lock.
    let pid = unsafe { clone_stopped(libc::SIGCHLD, become_program, ptr::from_mut(&mut order).cast()) }?;
    if order.failed == 0 {
        return Ok(pid);
    }
    if let Some((slot, vacant)) = slot.zip(vacant) {
        slot.store(vacant, Ordering::Release);
    }
    super::wait::reap(pid);
    Err(order.failed)
}

/// Makes a child that calls `child`, and stops this thread until the child has execed or ended. `signal` reports its end.
///
/// # Safety
///
/// `child` runs in this process's memory: it must neither allocate nor unwind nor take a lock, and may use `argument`.
pub(super) unsafe fn clone_stopped(
    signal: libc::c_int,
    child: extern "C" fn(*mut libc::c_void) -> libc::c_int,
    argument: *mut libc::c_void,
) -> Result<i32, i32> {
    let mut stack = MaybeUninit::<[u128; STACK / 16]>::uninit();
    // A handler must not run in the child: it would be the runner's, in the runner's memory.
    let (all, mut before) = (super::signal::full_set(), super::signal::empty_set());
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | signal;
    // SAFETY: the sets are initialised. The child has a stack of its own, aligned to 16 bytes and larger than its few
    // frames. It shares this memory, but this thread is stopped until the child has execed or ended, so that the
    // argument and the stack outlive its use of them; the rest is the caller's promise.
    let (pid, errno) = unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let top = stack.as_mut_ptr().add(1).cast();
        let pid = libc::clone(child, top, flags, argument);
        let errno = *libc::__errno_location();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        (pid, errno)
    };
    if pid == -1 { Err(errno) } else { Ok(pid) }
}

/// Runs the child, from its first instruction to exec.
extern "C" fn become_program(order: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `clone_stopped` passes an order that nobody else uses while this child runs in its memory.
    let order = unsafe { &mut *order.cast::<Order<'_>>() };
    order.failed = order.prepare().err().unwrap_or_else(|| order.exec());
    127
}

impl Order<'_> {
    /// Returns the error number if `result` is -1.
    fn check(result: libc::c_int) -> Result<(), i32> {
        // SAFETY: this reads the thread's own error number; the thread is stopped, so for now the number is the child's.
        if result == -1 { Err(unsafe { *libc::__errno_location() }) } else { Ok(()) }
    }

    fn prepare(&self) -> Result<(), i32> {
        self.default_signals();
        let group = match self.request.process_group {
            ProcessGroup::Inherit => None,
            ProcessGroup::New => Some(0),
            ProcessGroup::Join(pgid) => Some(pgid),
        };
        // SAFETY: these calls take numbers and strings that live until this process is replaced or ends.
        unsafe {
            let pid = libc::getpid();
            if let Some(group) = group {
                Self::check(libc::setpgid(0, group))?;
            }
            if let Some(slot) = self.slot {
                let pgid = group.map_or(0, |group| if group == 0 { pid } else { group });
                slot.store(Entry { pid, pgid }.encode(), Ordering::Release);
            }
            Self::check(libc::chdir(self.request.cwd.as_ptr()))?;
            for &(from, to) in self.moves {
                // dup2 onto itself does nothing, and exec would close the descriptor.
                Self::check(if from == to {
                    libc::fcntl(to, libc::F_SETFD, 0)
                } else {
                    libc::dup2(from, to)
                })?;
            }
            for copy in self.copies.clone() {
                Self::check(libc::close(copy))?;
            }
            for limit in self.request.limits {
                Self::check(libc::setrlimit(limit.resource.number() as _, &limit.raw()))?;
            }
            // Last, because until here the child needs numbers that may be above the limit.
            if let Some(limit) = &self.open_files {
                Self::check(libc::setrlimit(libc::RLIMIT_NOFILE, limit))?;
            }
        }
        self.volunteer()
    }

    fn volunteer(&self) -> Result<(), i32> {
        #[cfg(target_arch = "x86_64")]
        if FORGO_TIME.load(Ordering::Relaxed) {
            super::tracer::forgo_time().map_err(|error| error.raw_os_error().unwrap_or(libc::EPERM))?;
        }
        if self.request.traced { super::trace::volunteer() } else { Ok(()) }
    }

    /// Removes the runner's handlers, and restores the default action of the two signals that Rust and Python runtimes
    /// ignore. Other ignored signals stay ignored, as with nohup, unless the request lists the ignored ones.
    fn default_signals(&self) {
        let ignore = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: zeros are an action without flags, whose handler may be this constant.
        let ignore = unsafe { libc::sigaction { sa_sigaction: libc::SIG_IGN, ..ignore.assume_init() } };
        for signal in SIGNALS {
            let was_ignored = signal == libc::SIGCHLD && self.inherited.ignores_children;
            if self.request.ignored.map_or(was_ignored, |set| set >> (signal - 1) & 1 == 1) {
                // SAFETY: the pointer is to an action that lives during the call.
                unsafe { libc::sigaction(signal, &ignore, ptr::null_mut()) };
                continue;
            }
            let always = self.request.ignored.is_some() || matches!(signal, libc::SIGPIPE | libc::SIGXFSZ);
            let mut action = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: the pointers are valid, and zeros are an action: the default one, without flags. Numbers that
            // cannot be asked for or set are refused by an error return.
            unsafe {
                if libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) != 0 {
                    continue;
                }
                let handler = (*action.as_ptr()).sa_sigaction;
                if handler != libc::SIG_DFL && (always || handler != libc::SIG_IGN) {
                    libc::sigaction(signal, MaybeUninit::zeroed().as_ptr(), ptr::null_mut());
                }
            }
        }
    }

    /// Becomes the program, with those signals blocked that were when the runner was started. Returns only an error number.
    fn exec(&self) -> i32 {
        // SAFETY: the mask is initialised; program, argv and envp are NUL-terminated strings and null-terminated arrays
        // of such, all alive until this process is replaced or ends.
        unsafe {
            libc::sigprocmask(libc::SIG_SETMASK, &self.inherited.mask, ptr::null_mut());
            libc::execve(self.request.program.as_ptr(), self.argv.as_ptr(), self.envp.as_ptr());
            *libc::__errno_location()
        }
    }
}

/// Orders the duplications so that none overwrites a descriptor that a later one still needs: a source within the targets is
/// first copied above all of them. Also returns the range of such copies, to be closed at the end.
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

fn env_pointers(blob: &[u8], count: usize) -> Vec<*const libc::c_char> {
    let mut pointers = Vec::with_capacity(count + 1);
    let mut start = 0;
    for (end, _) in blob.iter().enumerate().filter(|&(_, &b)| b == 0) {
        pointers.push(blob[start..].as_ptr().cast::<libc::c_char>());
        start = end + 1;
    }
    pointers.push(ptr::null());
    pointers
}

/// Replaces this process by `program`, with `preload` before the entries of LD_PRELOAD. Returns only an error.
pub(crate) fn exec(program: &Path, argv: &[OsString], preload: Option<&OsStr>) -> io::Error {
    let mut command = std::process::Command::new(program);
    if let Some(preload) = preload {
        let users = std::env::var_os("LD_PRELOAD");
        let parts: Vec<_> = std::iter::once(preload).chain(users.as_deref()).collect();
        command.env("LD_PRELOAD", parts.join(OsStr::new(":")));
    }
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

impl Limit {
    fn raw(&self) -> libc::rlimit {
        libc::rlimit {
            rlim_cur: self.soft.unwrap_or(libc::RLIM_INFINITY),
            rlim_max: self.hard.unwrap_or(libc::RLIM_INFINITY),
        }
    }
}

/// Sets a limit of this process.
pub(crate) fn set_limit(limit: Limit) -> io::Result<()> {
    let resource = limit.resource.number();
    // SAFETY: the pointer is to an initialised rlimit that lives during the call.
    if unsafe { libc::setrlimit(resource, &limit.raw()) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Closes, on exec, every descriptor above 2 that this process was started with: only descriptors that a request names are
/// passed on.
pub(crate) fn keep_inherited_private() {
    // SAFETY: this only sets the close-on-exec flag of open descriptors; kernels before 5.11 refuse it.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}
