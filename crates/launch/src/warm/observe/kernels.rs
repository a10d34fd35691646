//! Keeps the kernel's own library (vDSO) from a program until its `main`: that tells the time, random bytes and the processor's number
//! without a system call. In a zygote `runtime/fork/vdso.c` does so, after libc has begun and before constructors.

use super::Refusal;
use super::calls::{Entry, refuse};
use super::maps::Mapping;
use super::run::{PAGE, Run, lost};
use crate::Reason;
use crate::sys::registers::Registers;
use crate::sys::vdso;

/// As the kernel lists the library, and what begins the names of its data.
const LIBRARY: &str = "[vdso]";
const DATA: &str = "[vvar";

/// Returns where the library is mapped; an empty range if it is not.
pub(super) fn find(maps: &[Mapping]) -> std::ops::Range<u64> {
    maps.iter().find(|mapping| mapping.path == LIBRARY).map_or(0..0, |mapping| mapping.from..mapping.to)
}

/// At the exec: makes the library's code not executable, and its data not readable. The kernel must not have sealed them.
pub(super) fn hide(run: &Run<'_>, maps: &[Mapping]) -> Result<(), Refusal> {
    for mapping in maps {
        let access = match &mapping.path {
            path if path == LIBRARY => libc::PROT_READ,
            path if path.starts_with(DATA) => libc::PROT_NONE,
            _ => continue,
        };
        let arguments = [mapping.from, mapping.to - mapping.from, access as u64];
        run.call_first((libc::SYS_mprotect, arguments), "the kernel's library cannot be hidden")?;
    }
    Ok(())
}

/// Whether the runtime hides the library by this call. In a zygote a question is a fault from there on.
pub(super) fn is_hidden_by(run: &Run<'_>, call: Entry) -> bool {
    call.number == libc::SYS_mprotect && run.kernels.contains(&call.args[0])
}

/// Handles a fault in the library. Until the runtime hides it, which is before any constructor, it answers the question by which glibc
/// begins: how large a state of random numbers is. The answer is the kernel's for all processes, and is written to a variable of the
/// caller's. Everything else keeps the tool cold.
pub(super) fn answer(run: &Run<'_>, mut registers: Registers, address: u64) -> Result<(), Refusal> {
    let unknown = || refuse(Reason::ReadsClock, "the kernel's own library (vDSO)");
    let Some(function) = vdso::random_function() else { return unknown() };
    let [buffer, size, flags, layout, state_size] = registers.arguments();
    let is_question = !run.has_hidden_kernels
        && address == registers.ip()
        && address == run.kernels.start + function.offset
        && [buffer, size, flags as u32 as u64, state_size] == [0, 0, 0, vdso::ASKS_FOR_LAYOUT]
        && (registers.stack()..registers.stack() + PAGE).contains(&layout);
    if !is_question {
        return unknown();
    }
    run.write(layout, &function.layout)?;
    let caller = registers.returns_to(|at| run.word(at))?;
    registers.return_to(caller, 0);
    registers.set(run.pid).map_err(lost)
}
