//! Detects every variable that is asked for, by any code, with a breakpoint at libc's `getenv`. While `getenv` searches,
//! arguments and environment can be read.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use object::{Endianness, Object, ObjectSymbol};

use super::calls::{self, Opened};
use super::run::{Run, lost};
use super::{Refusal, secret};
use crate::sys::registers::{BEHIND_BREAKPOINT, BREAKPOINT, Registers};
use crate::sys::trace::{self, Stop};
use crate::warm::identity::{Identity, identify};

/// The code that a breakpoint has replaced, and its address.
type Replaced = (u64, [u8; BREAKPOINT.len()]);

/// Instructions that breakpoints have replaced.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Variables {
    function: Option<Replaced>,
    /// The address to which `getenv` returns, while it searches.
    caller: Option<Replaced>,
    /// Where libc has its function `syscall`.
    pub syscall: Option<(u64, u64)>,
}

/// Plants the breakpoint when the loader has mapped libc and closes its file. No code of libc has run by then.
pub(super) fn watch(run: &mut Run<'_>, fd: i32) -> Result<(), Refusal> {
    let Some(Opened::At(path)) = run.opened.get(&fd) else { return Ok(()) };
    let file = std::fs::canonicalize(path).unwrap_or_default();
    if run.variables.function.is_some() || !run.is_libc(&file.to_string_lossy()) {
        return Ok(());
    }
    let inode = std::fs::metadata(path).map(|meta| std::os::unix::fs::MetadataExt::ino(&meta));
    let maps = run.maps()?;
    let base = maps.iter().find(|mapping| inode.as_ref().is_ok_and(|inode| *inode == mapping.inode));
    let places = base.and_then(|base| places_in(path).map(|places| (base.from, places)));
    if let Some((base, [getenv, syscall])) = places {
        run.variables.syscall = Some((base + syscall.0, base + syscall.1));
        run.variables.function = Some(plant(run, base + getenv.0)?);
    }
    Ok(())
}

/// Where `getenv` and `syscall` begin and end.
type Places = [(u64, u64); 2];

/// Returns those of a library. All runs of an observation have the same one, and reading it takes a twentieth of their time.
fn places_in(library: &Path) -> Option<Places> {
    static LAST: Mutex<Option<(Identity, Option<Places>)>> = Mutex::new(None);
    let identity = identify(&CString::new(library.as_os_str().as_bytes()).ok()?).ok()?;
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some((known, places)) if *known == identity => *places,
        _ => last.insert((identity, read_places(library))).1,
    }
}

fn read_places(library: &Path) -> Option<Places> {
    let bytes = std::fs::read(library).ok()?;
    let elf = object::read::elf::ElfFile64::<Endianness, _>::parse(&*bytes).ok()?;
    let place = |name: &[u8]| {
        let symbol = elf.dynamic_symbols().find(|symbol| symbol.name_bytes() == Ok(name))?;
        Some((symbol.address(), symbol.address() + symbol.size()))
    };
    Some([place(b"getenv")?, place(b"syscall")?])
}

fn plant(run: &mut Run<'_>, at: u64) -> Result<Replaced, Refusal> {
    let mut code = BREAKPOINT;
    run.memory.read_exact_at(&mut code, at).map_err(lost)?;
    run.write(at, &BREAKPOINT)?;
    run.planted.extend(at..at + code.len() as u64);
    Ok((at, code))
}

/// Handles a trap if it is at one of these breakpoints, and returns whether it was.
pub(super) fn arrived(run: &mut Run<'_>) -> Result<bool, Refusal> {
    let mut registers = Registers::of(run.pid).map_err(lost)?;
    let at = registers.ip() - BEHIND_BREAKPOINT;
    let Variables { function, caller, .. } = run.variables;
    if let Some((address, code)) = caller.filter(|(address, _)| *address == at) {
        run.write(address, &code)?;
        run.variables.caller = None;
        registers.set_ip(at);
        registers.set(run.pid).map_err(lost)?;
        secret::show(run, false)?;
        return Ok(true);
    }
    let Some((address, code)) = function.filter(|(address, _)| *address == at) else { return Ok(false) };
    let name = run.path(registers.argument())?;
    run.seen.asked_for(std::os::unix::ffi::OsStrExt::as_bytes(name.as_os_str()));
    registers.set_ip(at);
    registers.set(run.pid).map_err(lost)?;
    secret::show(run, true)?;
    if run.variables.caller.is_none() {
        run.variables.caller = Some(plant(run, registers.returns_to(|at| run.word(at))?)?);
    }
    run.write(address, &code)?;
    trace::step(run.pid).map_err(lost)?;
    if run.wait()? != Stop::Signal(libc::SIGTRAP) {
        return calls::refuse(crate::Reason::Signals, "getenv fails");
    }
    run.write(address, &BREAKPOINT)?;
    Ok(true)
}
