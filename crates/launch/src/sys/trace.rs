//! Tracing of one child, as observation runs need it. Every call must come from the thread that started the child.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use super::registers::AUDIT_ARCH;

/// The reason for which a traced child has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// At the entry or the exit of a system call.
    Call,
    /// Before this signal is delivered.
    Signal(i32),
    /// The child has ended, and is reaped.
    Ended,
}

/// A system call, at its entry or at its exit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    /// Its number and arguments, and the address after its instruction.
    Entry { number: i64, args: [u64; 6], ip: u64 },
    /// Its result.
    Exit { result: i64 },
}

/// linux/prctl.h: makes reading the time stamp counter a fault. On aarch64 that is the virtual counter, and Linux has it since 6.12.
const PR_SET_TSC: libc::c_int = 26;
const PR_TSC_ENABLE: libc::c_int = 1;
const PR_TSC_SIGSEGV: libc::c_int = 2;

/// The call by which a traced child gives up reading the time stamp counter when it has executed its program, if it cannot do so before:
/// aarch64 does not keep that from one program to the next.
pub(crate) const FORGO_TIME: Option<(i64, [u64; 3])> = match cfg!(target_arch = "x86_64") {
    true => None,
    false => Some((libc::SYS_prctl, [PR_SET_TSC as u64, PR_TSC_SIGSEGV as u64, 0])),
};

/// The call by which a traced child may read that counter again, if it could not since its exec.
pub(crate) const REGAIN_TIME: Option<(i64, [u64; 3])> = match cfg!(target_arch = "x86_64") {
    true => Some((libc::SYS_prctl, [PR_SET_TSC as u64, PR_TSC_ENABLE as u64, 0])),
    false => None,
};

/// Prepares a child for tracing, before its exec: it cannot read the time stamp counter, and ends with its tracer. Returns
/// the error number if the system refuses any of this. Async-signal-safe.
pub(crate) fn volunteer() -> Result<(), i32> {
    let nothing: libc::c_ulong = 0;
    // SAFETY: these calls take only numbers, and null pointers that are not used.
    unsafe {
        let refused = libc::prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == -1
            || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1
            || libc::ptrace(libc::PTRACE_TRACEME, 0, nothing, nothing) == -1;
        if refused { Err(*libc::__errno_location()) } else { Ok(()) }
    }
}

/// Makes a ptrace request that reads or writes at `data`.
pub(super) fn request(
    what: libc::c_uint,
    pid: i32,
    address: usize,
    data: *mut libc::c_void,
) -> io::Result<i64> {
    // SAFETY: each caller passes data that this request may read or write, as large as it says.
    match unsafe { libc::ptrace(what, pid, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

/// Sets options: stops for system calls differ from signals, the child's forks are traced, and it ends with its tracer.
pub(crate) fn set_options(pid: i32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACEFORK;
    request(libc::PTRACE_SETOPTIONS, pid, 0, options as usize as *mut libc::c_void).map(drop)
}

/// Lets the child run to its next stop.
pub(crate) fn resume(pid: i32) -> io::Result<()> {
    request(libc::PTRACE_SYSCALL, pid, 0, ptr::null_mut()).map(drop)
}

/// Lets the child run to its next signal.
pub(crate) fn resume_to_signal(pid: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, pid, 0, ptr::null_mut()).map(drop)
}

/// Lets the child execute one instruction.
pub(crate) fn step(pid: i32) -> io::Result<()> {
    request(libc::PTRACE_SINGLESTEP, pid, 0, ptr::null_mut()).map(drop)
}

/// Waits for the child's next stop.
pub(crate) fn wait(pid: i32) -> io::Result<Stop> {
    let mut status = 0;
    loop {
        // SAFETY: the pointer is valid for writes.
        if unsafe { libc::waitpid(pid, &mut status, libc::__WALL) } == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    if !libc::WIFSTOPPED(status) {
        return Ok(Stop::Ended);
    }
    Ok(match libc::WSTOPSIG(status) {
        signal if signal == libc::SIGTRAP | 0x80 => Stop::Call,
        signal => Stop::Signal(signal),
    })
}

/// Returns the system call at which the child has stopped.
pub(crate) fn call(pid: i32) -> io::Result<Call> {
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of::<libc::ptrace_syscall_info>();
    request(libc::PTRACE_GET_SYSCALL_INFO, pid, size, info.as_mut_ptr().cast())?;
    // SAFETY: zeros are a valid value of it, and the kernel writes only valid ones.
    let info = unsafe { info.assume_init() };
    if info.arch != AUDIT_ARCH {
        return Err(io::Error::other("a system call of another architecture"));
    }
    match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: `op` says that this is the member that was written.
            let entry = unsafe { info.u.entry };
            Ok(Call::Entry { number: entry.nr as i64, args: entry.args, ip: info.instruction_pointer })
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => {
            // SAFETY: as above.
            Ok(Call::Exit { result: unsafe { info.u.exit.sval } })
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Returns the child that it has just forked, at the stop that reports the fork.
pub(crate) fn forked(pid: i32) -> io::Result<i32> {
    let mut child: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, pid, 0, (&raw mut child).cast())?;
    i32::try_from(child).map_err(io::Error::other)
}

/// Returns the address of a fault, at a signal for it; zero if the signal has no address.
pub(crate) fn fault_address(pid: i32) -> io::Result<u64> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    request(libc::PTRACE_GETSIGINFO, pid, 0, info.as_mut_ptr().cast())?;
    // SAFETY: zeros are a valid siginfo_t, which the kernel fills.
    let info = unsafe { info.assume_init() };
    // SAFETY: the signal is one that carries an address, which is zero if there is none.
    Ok(if info.si_code > 0 && info.si_code < 0x80 { unsafe { info.si_addr() as u64 } } else { 0 })
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
