//! The registers of a stopped, traced process, by their roles: observation runs are the same on each processor, but registers and
//! instructions have other names there.
//!
//! A system call is made in a traced process by placing it before the instruction that makes one. A call at whose entry it has stopped is
//! replaced: on aarch64 its number is then no register's.

use std::io;
use std::mem::MaybeUninit;
use std::ops::RangeInclusive;

use super::trace::request;

/// linux/audit.h: the numbers of system calls are those of this architecture.
#[cfg(target_arch = "x86_64")]
pub(crate) const AUDIT_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(crate) const AUDIT_ARCH: u32 = 0xc000_00b7;

/// The instruction that makes a system call.
#[cfg(target_arch = "x86_64")]
pub(crate) const CALL: [u8; 2] = [0x0f, 0x05];
#[cfg(target_arch = "aarch64")]
pub(crate) const CALL: [u8; 4] = 0xd400_0001_u32.to_le_bytes();

/// The instruction of a breakpoint, and how far behind it a process stops.
#[cfg(target_arch = "x86_64")]
pub(crate) const BREAKPOINT: [u8; 1] = [0xcc];
#[cfg(target_arch = "x86_64")]
pub(crate) const BEHIND_BREAKPOINT: u64 = 1;
#[cfg(target_arch = "aarch64")]
pub(crate) const BREAKPOINT: [u8; 4] = 0xd420_0000_u32.to_le_bytes();
#[cfg(target_arch = "aarch64")]
pub(crate) const BEHIND_BREAKPOINT: u64 = 0;

/// Returns what `cpuid` tells in EBX (leaf 1), and the mask of the byte that has the number of the processor it runs on (Intel's manual,
/// volume 2, table 3-17). None where there is no such instruction.
#[cfg(target_arch = "x86_64")]
pub(crate) fn processor_told() -> Option<(u32, u32)> {
    // SAFETY: each x86-64 processor has the instruction, and leaf 1.
    #[allow(unused_unsafe, reason = "safe in later versions of Rust")]
    let told = unsafe { std::arch::x86_64::__cpuid(1) };
    Some((told.ebx, 0xff00_0000))
}
#[cfg(target_arch = "aarch64")]
pub(crate) fn processor_told() -> Option<(u32, u32)> {
    None
}

/// By how many bits libc rotates an address that it has mangled with its pointer guard.
#[cfg(target_arch = "x86_64")]
pub(crate) const GUARD_ROTATION: u32 = 17;
#[cfg(target_arch = "aarch64")]
pub(crate) const GUARD_ROTATION: u32 = 0;

/// How far behind its record of the list of arguments libc has that of their number, modulo all addresses (`HS_LIBC_NUMBER` in
/// `runtime/arch.h`).
#[cfg(target_arch = "x86_64")]
pub(crate) const LIBC_NUMBER: u64 = 8;
#[cfg(target_arch = "aarch64")]
pub(crate) const LIBC_NUMBER: u64 = 8_u64.wrapping_neg();

/// Direction, checks of alignment, CPUID's flag: no ordinary instruction changes these.
#[cfg(target_arch = "x86_64")]
const FLAGS_THAT_STAY: u64 = 1 << 10 | 1 << 18 | 1 << 21;

/// Returns what of a process's registers lasts from one function to the next, beside the stack: how floating-point numbers are rounded and
/// trapped, x87's registers, segments, and some flags.
#[cfg(target_arch = "x86_64")]
pub(crate) fn modes(pid: i32) -> io::Result<Vec<u64>> {
    let floating: libc::user_fpregs_struct = read_set(pid, NT_PRFPREG)?;
    let segments = Registers::of(pid)?.0;
    let words = [floating.cwd, floating.swd, floating.ftw].map(u64::from).into_iter();
    let flags = segments.eflags & FLAGS_THAT_STAY;
    let words = words.chain([
        u64::from(floating.mxcsr),
        segments.gs_base,
        segments.gs,
        segments.fs,
        segments.es,
        segments.ds,
        flags,
    ]);
    Ok(words.chain(floating.st_space.map(u64::from)).collect())
}
#[cfg(target_arch = "aarch64")]
pub(crate) fn modes(_: i32) -> io::Result<Vec<u64>> {
    Ok(Vec::new())
}

/// Returns the thread pointer of a stopped process, below which the data of its thread is; `None` where that lies elsewhere.
#[cfg(target_arch = "x86_64")]
pub(crate) fn thread_pointer(pid: i32) -> io::Result<Option<u64>> {
    Ok(Some(Registers::of(pid)?.0.fs_base))
}
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn thread_pointer(_: i32) -> io::Result<Option<u64>> {
    Ok(None)
}

/// Returns the bits that are no part of an address of code in a stopped process, but may sign it: a function that keeps the address to
/// which it returns signs it, by its place on the stack and by a key that each process has for itself.
#[cfg(target_arch = "x86_64")]
pub(crate) fn signature(_: i32) -> u64 {
    0
}
#[cfg(target_arch = "aarch64")]
pub(crate) fn signature(pid: i32) -> u64 {
    // Of data and of code. Processors without pointer authentication have neither.
    read_set(pid, NT_ARM_PAC_MASK).map_or(0, |[_, code]: [u64; 2]| code)
}

/// The registers of a stopped process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers(libc::user_regs_struct);

/// elf.h: the sets of registers.
const NT_PRSTATUS: usize = 1;
#[cfg(target_arch = "x86_64")]
const NT_PRFPREG: usize = 2;
#[cfg(target_arch = "aarch64")]
const NT_ARM_SYSTEM_CALL: usize = 0x404;
#[cfg(target_arch = "aarch64")]
const NT_ARM_PAC_MASK: usize = 0x406;

/// Reads a set of registers. Succeeds only if the kernel's is as large.
fn read_set<T>(pid: i32, set: usize) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut vector = libc::iovec { iov_base: value.as_mut_ptr().cast(), iov_len: size_of::<T>() };
    request(libc::PTRACE_GETREGSET, pid, set, (&raw mut vector).cast())?;
    if vector.iov_len != size_of::<T>() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: callers ask for structures of integers only, for which any bits are valid.
    Ok(unsafe { value.assume_init() })
}

fn write_set<T>(pid: i32, set: usize, value: &T) -> io::Result<()> {
    let base = std::ptr::from_ref(value).cast_mut().cast();
    let mut vector = libc::iovec { iov_base: base, iov_len: size_of::<T>() };
    request(libc::PTRACE_SETREGSET, pid, set, (&raw mut vector).cast()).map(drop)
}

impl Registers {
    pub(crate) fn of(pid: i32) -> io::Result<Registers> {
        read_set(pid, NT_PRSTATUS).map(Registers)
    }

    pub(crate) fn set(&self, pid: i32) -> io::Result<()> {
        write_set(pid, NT_PRSTATUS, &self.0)
    }
}

#[cfg(target_arch = "x86_64")]
impl Registers {
    pub(crate) fn ip(&self) -> u64 {
        self.0.rip
    }

    pub(crate) fn set_ip(&mut self, ip: u64) {
        self.0.rip = ip;
    }

    pub(crate) fn stack(&self) -> u64 {
        self.0.rsp
    }

    pub(crate) fn set_stack(&mut self, stack: u64) {
        self.0.rsp = stack;
    }

    /// The first argument, at the beginning of a function.
    pub(crate) fn argument(&self) -> u64 {
        self.0.rdi
    }

    /// The first five arguments, at the beginning of a function.
    pub(crate) fn arguments(&self) -> [u64; 5] {
        [self.0.rdi, self.0.rsi, self.0.rdx, self.0.rcx, self.0.r8]
    }

    /// The address to which a function returns that has just begun. `word` reads the process's memory.
    pub(crate) fn returns_to<E>(&self, word: impl Fn(u64) -> Result<u64, E>) -> Result<u64, E> {
        word(self.0.rsp)
    }

    /// At the beginning of a function: returns from it to this address with this result.
    pub(crate) fn return_to(&mut self, address: u64, result: u64) {
        (self.0.rip, self.0.rax) = (address, result);
        self.0.rsp += 8;
    }

    /// Prepares this call, with null for further arguments, of which there are six. The next instruction must be the one that makes it.
    pub(crate) fn set_call(&mut self, number: i64, arguments: &[u64]) {
        let argument = |index: usize| arguments.get(index).copied().unwrap_or_default();
        (self.0.rax, self.0.orig_rax) = (number as u64, u64::MAX);
        (self.0.rdi, self.0.rsi, self.0.rdx) = (argument(0), argument(1), argument(2));
        (self.0.r10, self.0.r8, self.0.r9) = (argument(3), argument(4), argument(5));
    }

    /// Puts another call, with so many arguments, in the place of the one at whose entry the process has stopped.
    pub(crate) fn replace_call(mut self, pid: i32, number: i64, [a, b, c]: [u64; 3]) -> io::Result<()> {
        self.0.orig_rax = number as u64;
        (self.0.rdi, self.0.rsi, self.0.rdx) = (a, b, c);
        self.set(pid)
    }

    /// From the exit of a call: has it return this.
    pub(crate) fn answer(mut self, pid: i32, result: u64) -> io::Result<()> {
        self.0.rax = result;
        self.set(pid)
    }

    /// From the entry of this call: as before its instruction.
    pub(crate) fn call_again(&mut self, number: i64) {
        (self.0.rip, self.0.rax) = (self.0.rip - CALL.len() as u64, number as u64);
    }

    /// Answers the instruction that reads the time stamp counter with zero.
    pub(crate) fn skip_time(mut self, pid: i32, code: [u8; 4]) -> io::Result<()> {
        self.answer_time(0, if code[1] == 0x31 { 2 } else { 3 });
        self.set(pid)
    }

    /// Answers the instruction of this length, which reads the time stamp counter.
    pub(crate) fn answer_time(&mut self, time: u64, length: u64) {
        (self.0.rax, self.0.rdx) = (time & 0xffff_ffff, time >> 32);
        self.0.rip += length;
    }

    /// For whole trees of processes (`tracing`), which only this processor has.
    pub(crate) fn raw(&mut self) -> &mut libc::user_regs_struct {
        &mut self.0
    }
}

#[cfg(target_arch = "aarch64")]
impl Registers {
    pub(crate) fn ip(&self) -> u64 {
        self.0.pc
    }

    pub(crate) fn set_ip(&mut self, ip: u64) {
        self.0.pc = ip;
    }

    pub(crate) fn stack(&self) -> u64 {
        self.0.sp
    }

    pub(crate) fn set_stack(&mut self, stack: u64) {
        self.0.sp = stack;
    }

    /// The first argument, at the beginning of a function.
    pub(crate) fn argument(&self) -> u64 {
        self.0.regs[0]
    }

    /// The first five arguments, at the beginning of a function.
    pub(crate) fn arguments(&self) -> [u64; 5] {
        let [a, b, c, d, e, ..] = self.0.regs;
        [a, b, c, d, e]
    }

    /// The address to which a function returns that has just begun.
    pub(crate) fn returns_to<E>(&self, _: impl Fn(u64) -> Result<u64, E>) -> Result<u64, E> {
        Ok(self.0.regs[30])
    }

    /// At the beginning of a function: returns from it to this address with this result.
    pub(crate) fn return_to(&mut self, address: u64, result: u64) {
        (self.0.pc, self.0.regs[0]) = (address, result);
        self.forget_branch();
    }

    /// Behind an indirect branch, the next instruction has to be a place to which one may lead (BTI), or is a fault (SIGILL). A process
    /// that goes on elsewhere has not come there by that branch.
    fn forget_branch(&mut self) {
        const BRANCH_TYPE: u64 = 0b11 << 10;
        self.0.pstate &= !BRANCH_TYPE;
    }

    /// Prepares this call, with null for further arguments, of which there are six. The next instruction must be the one that makes it.
    pub(crate) fn set_call(&mut self, number: i64, arguments: &[u64]) {
        self.0.regs[8] = number as u64;
        self.0.regs[..6].fill(0);
        self.0.regs[..arguments.len()].copy_from_slice(arguments);
        self.forget_branch();
    }

    /// From the exit of a call: has it return this.
    pub(crate) fn answer(mut self, pid: i32, result: u64) -> io::Result<()> {
        self.0.regs[0] = result;
        self.set(pid)
    }

    /// Puts another call, with so many arguments, in the place of the one at whose entry the process has stopped.
    pub(crate) fn replace_call(mut self, pid: i32, number: i64, arguments: [u64; 3]) -> io::Result<()> {
        self.0.regs[..3].copy_from_slice(&arguments);
        self.set(pid)?;
        // The kernel has taken the number out of its register by now.
        write_set(pid, NT_ARM_SYSTEM_CALL, &(number as i32))
    }

    /// From the entry of this call: as before its instruction.
    pub(crate) fn call_again(&mut self, number: i64) {
        self.0.pc -= CALL.len() as u64;
        self.0.regs[8] = number as u64;
    }

    /// Answers the instruction that reads the virtual counter with zero.
    pub(crate) fn skip_time(mut self, pid: i32, code: [u8; 4]) -> io::Result<()> {
        if let Some(register) = self.0.regs.get_mut(usize::from(code[0] & 31)) {
            *register = 0;
        }
        self.0.pc += CALL.len() as u64;
        self.forget_branch();
        self.set(pid)
    }
}

/// Returns whether code begins with an instruction that reads the time: `rdtsc` or `rdtscp`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn reads_time(code: [u8; 4]) -> bool {
    matches!(code, [0x0f, 0x31, ..] | [0x0f, 0x01, 0xf9, _])
}

/// Returns whether code begins with an instruction that reads the time: `mrs` of CNTVCT_EL0 or CNTVCTSS_EL0, to any register.
#[cfg(target_arch = "aarch64")]
pub(crate) fn reads_time(code: [u8; 4]) -> bool {
    matches!(u32::from_le_bytes(code) & !31, 0xd53b_e040 | 0xd53b_e0c0)
}

/// Returns the memory of libc's in which the thread's number is, up to the word that the kernel clears when the thread ends (`cleared`).
/// The block of the thread begins where the thread's register points.
#[cfg(target_arch = "x86_64")]
pub(crate) fn thread_block(pid: i32, cleared: u64) -> io::Result<RangeInclusive<u64>> {
    Ok(Registers::of(pid)?.0.fs_base..=cleared)
}

/// As on x86-64; but the thread's register points behind the block here. Of that the number, which the kernel clears until glibc 2.42, is
/// in the first 0xd8 bytes.
#[cfg(target_arch = "aarch64")]
pub(crate) fn thread_block(_: i32, cleared: u64) -> io::Result<RangeInclusive<u64>> {
    Ok(cleared.saturating_sub(0xd0)..=cleared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_that_read_the_time_are_known() {
        #[cfg(target_arch = "x86_64")]
        let (time, other) = ([[0x0f, 0x31, 0x90, 0x90], [0x0f, 0x01, 0xf9, 0x90]], [0x0f, 0x05, 0x90, 0x90]);
        // CNTVCT_EL0 to x3, CNTVCTSS_EL0 to x30; CNTFRQ_EL0 to x0.
        #[cfg(target_arch = "aarch64")]
        let (time, other) =
            ([0xd53b_e043_u32, 0xd53b_e0de].map(u32::to_le_bytes), 0xd53b_e000_u32.to_le_bytes());
        assert!(time.into_iter().all(reads_time) && !reads_time(other) && !reads_time([0; 4]));
    }
}
