//! Tracing of a whole tree of processes, stopped only at the system calls that a filter does not let pass.
//!
//! `trace` is for one child and every call. Here the kernel filters, so that reads, writes and memory cost nothing.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use super::registers::AUDIT_ARCH;
pub(crate) use super::registers::Registers;

/// linux/prctl.h: makes reading the time stamp counter a fault.
const PR_SET_TSC: libc::c_int = 26;
const PR_TSC_SIGSEGV: libc::c_int = 2;

/// A system call at its entry: number, and arguments. The number is negative for another architecture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub number: i64,
    pub args: [u64; 6],
}

/// Something that happened to a traced process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// It is about to make a system call that the filter does not let pass.
    Call,
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

/// Forks this process, which must have one thread. Returns the child's number, `None` in the child. The child waits until it is traced,
/// has the filter, and cannot read the time stamp counter.
pub(crate) fn fork(allowed: &[u32]) -> io::Result<Option<i32>> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // SAFETY: the caller has one thread, so that no lock of another one stays held in the child.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(write);
            // The end of the pipe says that the parent traces, or has ended.
            let _ = rustix::io::read(&read, &mut [0; 1]);
            confine(allowed)?;
            Ok(None)
        }
        pid => {
            drop(read);
            let traced = seize(pid);
            drop(write);
            traced.map(|()| Some(pid))
        }
    }
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

/// Installs the filter for this process and all that it starts.
fn confine(allowed: &[u32]) -> io::Result<()> {
    let mut filter = filter(allowed);
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(io::Error::other)?,
        filter: filter.as_mut_ptr(),
    };
    let nothing: libc::c_ulong = 0;
    let one: libc::c_ulong = 1;
    // SAFETY: the first two take only numbers; the third reads the program, which lives until it returns.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, nothing, nothing, nothing) == -1
            || libc::prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == -1
            || libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
                nothing,
                nothing,
            ) == -1
    };
    if refused { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets the allowed calls of this architecture pass; for all others the tracer is asked.
fn filter(allowed: &[u32]) -> Vec<libc::sock_filter> {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let end = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // Offsets in struct seccomp_data: the number first, then the architecture.
    let mut steps = vec![
        step(load, 0, 0, 4),
        step(equal, 1, 0, AUDIT_ARCH),
        step(end, 0, 0, libc::SECCOMP_RET_TRACE),
        step(load, 0, 0, 0),
    ];
    for number in allowed {
        steps.push(step(equal, 0, 1, *number));
        steps.push(step(end, 0, 0, libc::SECCOMP_RET_ALLOW));
    }
    steps.push(step(end, 0, 0, libc::SECCOMP_RET_TRACE));
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

/// Waits until something happens to a traced process. `None` if there are none any more.
pub(crate) fn wait() -> io::Result<Option<(i32, Happened)>> {
    let mut status = 0;
    loop {
        // SAFETY: the pointer is valid for writes.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL) };
        if pid > 0 {
            return Ok(Some((pid, happened(pid, status))));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ECHILD) => return Ok(None),
            Some(libc::EINTR) => {}
            _ => return Err(error),
        }
    }
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

/// Reads memory of a stopped process. Returns the number of bytes, which is less at the end of a mapping.
pub(crate) fn read_memory(pid: i32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as usize as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the local vector is the given buffer; the remote one is checked by the kernel.
    match unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) } {
        -1 => Err(io::Error::last_os_error()),
        read => usize::try_from(read).map_err(io::Error::other),
    }
}

/// Writes a word of memory of a stopped process.
pub(crate) fn write_word(pid: i32, address: u64, word: u64) -> io::Result<()> {
    let address = usize::try_from(address).map_err(io::Error::other)?;
    request(libc::PTRACE_POKEDATA, pid, address, word as usize as *mut libc::c_void).map(drop)
}

/// Reads the time stamp counter.
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: each x86-64 processor has the instruction, and this process has not forbidden it to itself.
    unsafe { core::arch::x86_64::_rdtsc() }
}
