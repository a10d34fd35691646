//! Hides arguments and environment. Constructors may read them only by asking for a variable. The strings lie on pages of
//! their own, which cannot be read during an observation run. Each access to them is a fault, and is allowed only at a
//! variable that is in the key.

use std::ffi::CString;
use std::os::unix::fs::FileExt;

use super::Refusal;
use super::calls::{Entry, refuse};
use super::run::{PAGE, Run, lost};
use crate::Reason;
use crate::sys::registers::{CALL, Registers};
use crate::sys::trace::{self, Stop};
use crate::warm::{key, search};

/// The addresses of the strings, and the means to make system calls in the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Secret {
    from: u64,
    to: u64,
    /// The address of an instruction that makes a system call.
    gate: u64,
}

impl Secret {
    pub(super) fn has(&self, address: u64) -> bool {
        (self.from..self.to).contains(&address)
    }

    fn arguments(&self, access: i32) -> [u64; 3] {
        [self.from, self.to - self.from, access as u64]
    }
}

/// Returns the length of the first argument with which the strings from there on fill whole pages. The kernel puts them at
/// the end of the stack: arguments, environment, the program's path, and a null pointer.
pub(super) fn filling(program: &CString, environment: usize, other_arguments: usize) -> usize {
    let size = other_arguments + environment + program.as_bytes_with_nul().len() + 8 + 1;
    (PAGE as usize - size % PAGE as usize) % PAGE as usize
}

/// Refuses a call that gives the kernel a pointer to the strings, or changes their pages.
pub(super) fn guard(run: &Run<'_>, call: Entry) -> Result<(), Refusal> {
    let Some(secret) = run.secret else { return Ok(()) };
    let [start, size, ..] = call.args;
    let is_memory =
        [libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_mprotect, libc::SYS_madvise]
            .contains(&call.number);
    let covers = is_memory && start < secret.to && start.saturating_add(size.max(1)) > secret.from;
    if covers || call.args.iter().any(|&argument| secret.has(argument)) {
        return refuse(
            Reason::KeepsArguments,
            format!("system call {} on the arguments' pages", call.number),
        );
    }
    Ok(())
}

const READABLE: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Hides the strings at the entry of a system call. The process then makes that call again.
pub(super) fn hide(run: &mut Run<'_>, call: Entry) -> Result<(), Refusal> {
    let from = run.block.strings;
    if from % PAGE != 0 {
        return refuse(Reason::NotObserved, "the strings of a process do not lie where they should");
    }
    let stack = run.maps()?.into_iter().find(|mapping| (mapping.from..mapping.to).contains(&from));
    let to = stack.map_or(from, |stack| stack.to);
    let secret = Secret { from, to, gate: call.ip - CALL.len() as u64 };
    run.secret = Some(secret);
    instead(run, secret, call)
}

/// Shows the strings, or hides them again, while the process is stopped for a signal.
pub(super) fn show(run: &mut Run<'_>, shown: bool) -> Result<(), Refusal> {
    let access = if shown { READABLE } else { libc::PROT_NONE };
    run.secret.map_or(Ok(()), |secret| protect(run, secret, access))
}

/// Hides the strings in place of the system call at whose entry the process has stopped, and has the process make that call
/// again.
fn instead(run: &mut Run<'_>, secret: Secret, call: Entry) -> Result<(), Refusal> {
    let mut registers = Registers::of(run.pid).map_err(lost)?;
    let arguments = secret.arguments(libc::PROT_NONE);
    registers.replace_call(run.pid, libc::SYS_mprotect, arguments).map_err(lost)?;
    run.leave_call()?;
    if !matches!(trace::call(run.pid).map_err(lost)?, trace::Call::Exit { result: 0 }) {
        return refuse(Reason::NotObserved, "the arguments cannot be hidden");
    }
    registers.call_again(call.number);
    registers.set(run.pid).map_err(lost)
}

/// Changes the strings' protection while the process is stopped for a signal.
fn protect(run: &mut Run<'_>, secret: Secret, access: i32) -> Result<(), Refusal> {
    let before = Registers::of(run.pid).map_err(lost)?;
    let mut registers = before;
    registers.set_ip(secret.gate);
    registers.set_call(libc::SYS_mprotect, &secret.arguments(access));
    registers.set(run.pid).map_err(lost)?;
    run.leave_call()?;
    run.leave_call()?;
    before.set(run.pid).map_err(lost)
}

/// Handles an access to the hidden strings: allows it at a variable that is in the key.
pub(super) fn look(run: &mut Run<'_>, address: u64) -> Result<(), Refusal> {
    let Some(secret) = run.secret else { return Ok(()) };
    allow(run, address)?;
    protect(run, secret, READABLE)?;
    trace::step(run.pid).map_err(lost)?;
    if run.wait()? != Stop::Signal(libc::SIGTRAP) {
        return refuse(Reason::Signals, "a look at the environment fails");
    }
    protect(run, secret, libc::PROT_NONE)
}

/// Refuses if the string at this address is an argument, or a variable that is not in the key.
fn allow(run: &mut Run<'_>, address: u64) -> Result<(), Refusal> {
    // In a run with few arguments there are hundreds of variables.
    let mut environment = vec![0; (run.block.auxiliary - run.block.envp) as usize];
    run.memory.read_exact_at(&mut environment, run.block.envp).map_err(lost)?;
    let strings =
        environment.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")));
    let found = strings.take_while(|&string| string != 0).filter(|&string| string <= address).last();
    let Some(string) = found else { return refuse(Reason::KeepsArguments, "an argument is read") };
    let mut bytes = [0; 256];
    let length = run.memory.read_at(&mut bytes, string).map_err(lost)?;
    let end = bytes[..length].iter().position(|&byte| byte == b'=' || byte == 0).unwrap_or(length);
    let name = &bytes[..end];
    let reader = Registers::of(run.pid).map_err(lost)?.ip();
    let is_loader = run.is_loader(reader);
    if name == b"LD_PRELOAD" && !is_loader {
        // A start's own value, or none, is not the one that is here.
        return refuse(Reason::ReadsEnvironment, "LD_PRELOAD");
    }
    if !is_loader {
        // It may look at this one in the same way, where it is set.
        run.seen.asked_for(search::NAME);
    }
    if key::is_always_in(name) || run.seen.names.iter().any(|asked| asked == name) {
        return Ok(());
    }
    refuse(Reason::ReadsEnvironment, String::from_utf8_lossy(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_fill_whole_pages() {
        let program = CString::new("/bin/tool").unwrap();
        for environment in [0, 5, 4000, 4096, 10_000] {
            let first = filling(&program, environment, 1700);
            assert_eq!((first + 1 + 1700 + environment + 10 + 8) % PAGE as usize, 0);
        }
    }
}
