//! Tracing of a whole tree of processes, stopped only at the system calls that a filter does not let pass.
//!
//! `trace` is for one child and every call. Here the kernel filters, so that reads, writes and memory cost nothing. Calls whose result does
//! not matter come as questions by the filter's listener, which costs a third of a stop by ptrace; the kernel makes the call once the
//! question is answered. Only calls whose end counts stop the process, and so do new processes, programs and signals.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::Ordering;

use super::registers::AUDIT_ARCH;
pub(crate) use super::registers::Registers;
use super::signal;

/// linux/prctl.h: makes reading the time stamp counter a fault, or allows it.
const PR_SET_TSC: libc::c_int = 26;
const PR_TSC_ENABLE: libc::c_int = 1;
const PR_TSC_SIGSEGV: libc::c_int = 2;

/// Which system calls pass, and which stop the process so that their end can be seen. All others are only asked about.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'r> {
    /// Numbers of calls that pass.
    pub allowed: &'r [u32],
    /// Calls that pass with some arguments.
    pub allowed_with: &'r [AllowedWith],
    /// Calls whose end matters.
    pub awaited: &'r [Awaited],
}

/// A call that passes with some arguments.
#[derive(Clone, Copy, Debug)]
pub struct AllowedWith {
    /// Its number.
    pub number: u32,
    /// The number of the argument whose lower half decides, without the bits that are not in the mask.
    pub argument: u32,
    /// The bits of that argument that count.
    pub mask: u32,
    /// The values with which the call passes.
    pub values: &'static [u32],
    /// The number of an argument with which it passes as well if all of that is zero.
    pub or_zero: Option<u32>,
}

/// A call whose end matters.
#[derive(Clone, Copy, Debug)]
pub struct Awaited {
    /// Its number.
    pub number: u32,
    /// If it matters only with some flags: the number of the argument, and these flags. They are in the lower half of the argument.
    pub only_with: Option<(u32, u32)>,
}

/// A system call at its entry: number, and arguments. The number is negative for another architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub number: i64,
    pub args: [u64; 6],
}

/// Something that happened to a traced process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// It is about to make a system call whose end matters.
    Call,
    /// It is about to make another system call that the filter does not let pass, and waits for [`Traced::answer`].
    Question(Entry, Question),
    /// The call that it was to report has been made.
    Called,
    /// It has made this process or thread.
    Made(i32),
    /// It has become another program. This was its number.
    Became(i32),
    /// It has stopped as a new process does, or another event asks for nothing.
    Stopped,
    /// It stays stopped by a signal, until another one continues it.
    Halted,
    /// This signal is about to be delivered.
    Signal(i32),
    /// It has ended, with this code (128 + the signal's number).
    Ended(i32),
}

/// A question of the kernel, which has one answer: yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question(u64);

/// The processes that are traced.
#[derive(Debug)]
pub(crate) struct Traced {
    /// The first one.
    pub root: i32,
    /// Where questions come. `None` if the kernel has none (before Linux 5.6), so that each call stops its process.
    listener: Option<OwnedFd>,
    /// Tells that something has happened to a process.
    changes: OwnedFd,
    /// Whether something may have happened to a process.
    may_have_changed: bool,
    _tracer: WithoutTime,
}

/// While it lives, this thread cannot read the time stamp counter either, nor the time by way of the vDSO. Otherwise the kernel would write
/// a control register at each switch between the thread and the processes that it traces, which takes microseconds in a virtual machine.
#[derive(Debug)]
struct WithoutTime;

impl WithoutTime {
    fn begin() -> io::Result<Self> {
        forgo_time().map(|()| WithoutTime)
    }
}

impl Drop for WithoutTime {
    fn drop(&mut self) {
        // SAFETY: the call takes only numbers.
        unsafe { libc::prctl(PR_SET_TSC, PR_TSC_ENABLE) };
    }
}

/// Gives up reading the time stamp counter, for this thread and all that it starts. Async-signal-safe.
pub(super) fn forgo_time() -> io::Result<()> {
    // SAFETY: the call takes only numbers.
    if unsafe { libc::prctl(PR_SET_TSC, PR_TSC_SIGSEGV) } == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Forks this process, which must have one thread. Returns the tracer's side; `None` in the child. The child waits until it is traced and
/// has the filter. It may read the time stamp counter, the programs that it starts may not.
pub(crate) fn fork(rules: Rules<'_>) -> io::Result<Option<Traced>> {
    let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
    let ((wait, go), (told, tell)) = (pipe()?, pipe()?);
    let changes = of_children();
    signal::block(&changes);
    let tracer = WithoutTime::begin()?;
    // SAFETY: the caller has one thread, so that no lock of another one stays held in the child.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            signal::unblock(&changes);
            drop((go, told, tracer));
            super::spawn::FORGO_TIME.store(true, Ordering::Relaxed);
            // A byte says that the parent traces; the end of the pipe, that it has the listener, or has ended.
            let _ = rustix::io::read(&wait, &mut [0; 1]);
            let Ok(listener) = confine(rules) else { std::process::exit(127) };
            let number = listener.as_ref().map_or(-1, AsRawFd::as_raw_fd);
            let _ = rustix::io::write(&tell, &number.to_le_bytes());
            let _ = rustix::io::read(&wait, &mut [0; 1]);
            Ok(None)
        }
        pid => {
            drop((wait, tell));
            seize(pid)?;
            rustix::io::write(&go, &[0])?;
            let mut number = [0; 4];
            let listener = match rustix::io::read(&told, &mut number)? {
                4 if i32::from_le_bytes(number) >= 0 => Some(listener_of(pid, i32::from_le_bytes(number))?),
                4 => None,
                _ => return Err(io::Error::other("a filter of system calls was refused")),
            };
            Ok(Some(Traced {
                root: pid,
                listener,
                changes: changes_of(&changes)?,
                may_have_changed: true,
                _tracer: tracer,
            }))
        }
    }
}

/// Returns the set of the one signal that reports changes of children.
fn of_children() -> libc::sigset_t {
    let mut set = signal::empty_set();
    signal::add(&mut set, libc::SIGCHLD);
    set
}

/// Returns a descriptor that is readable when one of these signals has come.
fn changes_of(set: &libc::sigset_t) -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised, and the flags are valid.
    let fd = unsafe { libc::signalfd(-1, set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    // SAFETY: a number that is not negative is a descriptor that nobody else has.
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
}

/// Gets the listener that has this number in the child.
fn listener_of(pid: i32, number: i32) -> io::Result<OwnedFd> {
    const SYNC_WAKE_UP: u64 = 1;
    let process = super::wait::pidfd(pid)?;
    // SAFETY: the call takes numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: this is a new descriptor that nobody else has.
    let listener = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    // Best effort, for speed (Linux 6.6): who asks and who answers take turns on one processor.
    // SAFETY: this request takes a number.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
    Ok(listener)
}

fn seize(pid: i32) -> io::Result<()> {
    let options = libc::PTRACE_O_EXITKILL
        | libc::PTRACE_O_TRACESECCOMP
        | libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC;
    request(libc::PTRACE_SEIZE, pid, 0, options as usize as *mut libc::c_void).map(drop)
}

/// Installs the filter for this process and all that it starts. Returns its listener, if the kernel has such.
fn confine(rules: Rules<'_>) -> io::Result<Option<OwnedFd>> {
    let nothing: libc::c_ulong = 0;
    let one: libc::c_ulong = 1;
    // SAFETY: the call takes only numbers.
    let refused = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, nothing, nothing, nothing) == -1 };
    if refused {
        return Err(io::Error::last_os_error());
    }
    let asks = filter(rules, libc::SECCOMP_RET_USER_NOTIF);
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // Once a question is taken, only the end of its process takes it back (Linux 5.19).
    for flags in [flags | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, flags] {
        if let Ok(fd) = install(&asks, flags) {
            // SAFETY: with these flags the result is a new descriptor.
            return Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    install(&filter(rules, libc::SECCOMP_RET_TRACE), 0).map(|_| None)
}

fn install(filter: &[libc::sock_filter], flags: libc::c_ulong) -> io::Result<i32> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(io::Error::other)?,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads the program, which lives until the call returns.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// Lets the allowed calls of this architecture pass; awaited calls, and those of other architectures, stop for the tracer; for all others
/// there is `otherwise`.
fn filter(rules: Rules<'_>, otherwise: u32) -> Vec<libc::sock_filter> {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let any_of = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    let end = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let stop = step(end, 0, 0, libc::SECCOMP_RET_TRACE);
    // Offsets in struct seccomp_data: the number first, then the architecture, the instruction, and the arguments.
    let mut steps = vec![step(load, 0, 0, 4), step(equal, 1, 0, AUDIT_ARCH), stop, step(load, 0, 0, 0)];
    for awaited in rules.awaited {
        match awaited.only_with {
            None => steps.extend([step(equal, 0, 1, awaited.number), stop]),
            Some((argument, flags)) => steps.extend([
                step(equal, 0, 4, awaited.number),
                step(load, 0, 0, 16 + 8 * argument),
                step(any_of, 0, 1, flags),
                stop,
                step(end, 0, 0, otherwise),
            ]),
        }
    }
    for with in rules.allowed_with {
        let mut decide = vec![
            step(load, 0, 0, 16 + 8 * with.argument),
            step((libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16, 0, 0, with.mask),
        ];
        let pass = step(end, 0, 0, libc::SECCOMP_RET_ALLOW);
        with.values.iter().for_each(|value| decide.extend([step(equal, 0, 1, *value), pass]));
        if let Some(argument) = with.or_zero {
            let (low, high) = (16 + 8 * argument, 20 + 8 * argument);
            decide.extend([step(load, 0, 0, low), step(equal, 0, 3, 0), step(load, 0, 0, high)]);
            decide.extend([step(equal, 0, 1, 0), pass]);
        }
        decide.push(step(end, 0, 0, otherwise));
        let length = u8::try_from(decide.len()).expect("few values");
        steps.push(step(equal, 0, length, with.number));
        steps.extend(decide);
    }
    for number in rules.allowed {
        steps.push(step(equal, 0, 1, *number));
        steps.push(step(end, 0, 0, libc::SECCOMP_RET_ALLOW));
    }
    steps.push(step(end, 0, 0, otherwise));
    steps
}

/// Makes a ptrace request that reads or writes at `data`.
fn request(what: libc::c_uint, pid: i32, address: usize, data: *mut libc::c_void) -> io::Result<i64> {
    // SAFETY: each caller passes data that this request may read or write, as large as it says.
    match unsafe { libc::ptrace(what, pid, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

/// Lets a process run on, with this signal (0 for none). One that has been killed meanwhile is no error.
pub(crate) fn resume(pid: i32, signal: i32) {
    let _ = request(libc::PTRACE_CONT, pid, 0, signal as usize as *mut libc::c_void);
}

/// Lets a process run to the end of the call that it is about to make.
pub(crate) fn resume_call(pid: i32) {
    let _ = request(libc::PTRACE_SYSCALL, pid, 0, ptr::null_mut());
}

/// Returns whether the call that a process has just made succeeded. `None` if it is not at the end of a call.
pub(crate) fn succeeded(pid: i32) -> Option<bool> {
    let info = call_info(pid).ok().filter(|info| info.op == libc::PTRACE_SYSCALL_INFO_EXIT)?;
    // SAFETY: `op` says that this is the member that was written.
    Some(unsafe { info.u.exit.is_error } == 0)
}

/// Leaves a process stopped until a signal continues it.
pub(crate) fn leave_stopped(pid: i32) {
    let _ = request(libc::PTRACE_LISTEN, pid, 0, ptr::null_mut());
}

fn message(pid: i32) -> io::Result<i32> {
    let mut value: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, pid, 0, (&raw mut value).cast())?;
    i32::try_from(value).map_err(io::Error::other)
}

impl Traced {
    /// Waits until something happens to a traced process. `None` if there are none any more.
    pub(crate) fn next(&mut self) -> io::Result<Option<(i32, Happened)>> {
        loop {
            if self.may_have_changed {
                let mut status = 0;
                // SAFETY: the pointer is valid for writes.
                let pid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::WNOHANG) };
                if pid > 0 {
                    return Ok(Some((pid, happened(pid, status))));
                }
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    _ if pid == 0 => self.may_have_changed = false,
                    Some(libc::ECHILD) => return Ok(None),
                    Some(libc::EINTR) => continue,
                    _ => return Err(error),
                }
            }
            if self.sleep()? {
                if let Some(asked) = self.listener.as_ref().and_then(|listener| question(listener.as_fd())) {
                    return Ok(Some(asked));
                }
            }
        }
    }

    /// Sleeps until something may have happened. Returns whether there may be a question.
    fn sleep(&mut self) -> io::Result<bool> {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // A negative number is passed over.
        let mut fds =
            [entry(self.changes.as_raw_fd()), entry(self.listener.as_ref().map_or(-1, AsRawFd::as_raw_fd))];
        // SAFETY: the array is valid for reads and writes, and has two entries.
        if unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) } == -1 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) };
        }
        if fds[0].revents != 0 {
            // Before the processes are looked at, so that a later change is told again.
            let mut signals = [0; 4 * size_of::<libc::signalfd_siginfo>()];
            let _ = rustix::io::read(&self.changes, &mut signals);
            self.may_have_changed = true;
        }
        if fds[1].revents & libc::POLLIN == 0 && fds[1].revents != 0 {
            // No process has the filter any more.
            self.listener = None;
        }
        Ok(fds[1].revents & libc::POLLIN != 0)
    }

    /// Answers a question: the call is made. It is no error if the process has been killed meanwhile.
    pub(crate) fn answer(&self, question: Question) {
        let Some(listener) = &self.listener else { return };
        let mut answer = libc::seccomp_notif_resp {
            id: question.0,
            val: 0,
            error: 0,
            flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        };
        // SAFETY: the kernel reads the answer, which has its form.
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    }
}

/// Takes a question. `None` if it was taken back, because its process was killed or has to see to a signal first.
fn question(listener: BorrowedFd<'_>) -> Option<(i32, Happened)> {
    let mut notice = MaybeUninit::<libc::seccomp_notif>::zeroed();
    // SAFETY: the kernel writes a notice, which has this form, to zeros.
    if unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, notice.as_mut_ptr()) } == -1
    {
        return None;
    }
    // SAFETY: zeros are a valid value of it, and the kernel writes only valid ones.
    let notice = unsafe { notice.assume_init() };
    let number = if notice.data.arch == AUDIT_ARCH { i64::from(notice.data.nr) } else { -1 };
    let entry = Entry { number, args: notice.data.args };
    Some((i32::try_from(notice.pid).ok()?, Happened::Question(entry, Question(notice.id))))
}

fn happened(pid: i32, status: i32) -> Happened {
    if libc::WIFEXITED(status) {
        return Happened::Ended(libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        return Happened::Ended(128 + libc::WTERMSIG(status));
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        0 if signal == libc::SIGTRAP | 0x80 => Happened::Called,
        0 => Happened::Signal(signal),
        libc::PTRACE_EVENT_SECCOMP => Happened::Call,
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            message(pid).map_or(Happened::Stopped, Happened::Made)
        }
        libc::PTRACE_EVENT_EXEC => Happened::Became(message(pid).unwrap_or(pid)),
        // linux/ptrace.h: PTRACE_EVENT_STOP, at the beginning of a process (SIGTRAP) and while a signal keeps it stopped.
        128 if signal != libc::SIGTRAP => Happened::Halted,
        _ => Happened::Stopped,
    }
}

fn call_info(pid: i32) -> io::Result<libc::ptrace_syscall_info> {
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of::<libc::ptrace_syscall_info>();
    request(libc::PTRACE_GET_SYSCALL_INFO, pid, size, info.as_mut_ptr().cast())?;
    // SAFETY: zeros are a valid value of it, and the kernel writes only valid ones.
    Ok(unsafe { info.assume_init() })
}

/// Returns the system call that a process is about to make.
pub(crate) fn entry(pid: i32) -> io::Result<Entry> {
    let info = call_info(pid)?;
    if info.op != libc::PTRACE_SYSCALL_INFO_SECCOMP {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: `op` says that this is the member that was written.
    let seccomp = unsafe { info.u.seccomp };
    let number = if info.arch == AUDIT_ARCH { seccomp.nr as i64 } else { -1 };
    Ok(Entry { number, args: seccomp.args })
}

/// Writes a word of memory of a stopped process.
pub(crate) fn write_word(pid: i32, address: u64, word: u64) -> io::Result<()> {
    let address = usize::try_from(address).map_err(io::Error::other)?;
    request(libc::PTRACE_POKEDATA, pid, address, word as usize as *mut libc::c_void).map(drop)
}

/// Returns whether a call is that of [`forgo_time`].
pub(crate) fn forgoes_time(entry: &Entry) -> bool {
    let [what, how, ..] = entry.args;
    entry.number == libc::SYS_prctl && (what as i32, how as i32) == (PR_SET_TSC, PR_TSC_SIGSEGV)
}

/// Returns a number that grows with time, for a process that has asked for the time stamp counter, which this thread cannot read.
pub(crate) fn time_stamp() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // The call itself, since the vDSO would read the counter.
    // SAFETY: the pointer is valid for writes.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
