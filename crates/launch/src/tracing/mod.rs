//! Runs a part of this program in a child, and tells a watcher of the system calls that the child and all its descendants make.
//!
//! Nothing here knows what a call means: the watcher gives the list of calls that pass, and judges the others. What lies below system
//! calls is made visible here: programs get no vDSO, so that they ask the kernel for the time, and an instruction that reads the time stamp
//! counter is a fault that is reported and then made good.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;

use crate::sys::trace;
use crate::sys::tracer::{self, Entry, Happened, Registers, Traced};
pub use crate::sys::tracer::{AllowedWith, Awaited, Rules};

/// A process that is about to make a system call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The process or thread.
    pub pid: i32,
    /// Whether it runs this program's own code: nothing was executed since the first fork.
    pub is_ours: bool,
    /// The number of the call; -1 for calls of another architecture.
    pub number: i64,
    /// Its arguments.
    pub args: [u64; 6],
}

impl Call {
    /// Reads a string that ends with a NUL. `None` if it is not readable, or longer than a path can be.
    pub fn string(&self, address: u64) -> Option<Vec<u8>> {
        // Most paths are shorter. A part does not go beyond the page, since the next one may not be mapped.
        const PART: u64 = 256;
        const LONGEST: usize = 8192;
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < LONGEST {
            let mut part = [0; PART as usize];
            let length = (PART - at % PART) as usize;
            let read = trace::read_memory(self.pid, at, &mut part[..length]).ok()?;
            let part = &part[..read];
            if let Some(end) = part.iter().position(|&byte| byte == 0) {
                text.extend(&part[..end]);
                return Some(text);
            }
            text.extend(part);
            at += read as u64;
        }
        None
    }

    /// Reads a word.
    pub fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (trace::read_memory(self.pid, address, &mut bytes).ok()? == 8).then(|| u64::from_le_bytes(bytes))
    }
}

/// Judges what traced processes do.
pub trait Watcher {
    /// Takes a call that is not allowed, before it is made. Returns whether its end is to be reported, which only awaited calls can be.
    fn call(&mut self, call: &Call) -> bool;

    /// Takes the end of such a call.
    fn called(&mut self, pid: i32, succeeded: bool);

    /// Takes something else that cannot be followed.
    fn refuse(&mut self, why: &'static str);
}

/// Runs `run` in a traced child of this process, which must have one thread. Returns the child's exit code, and whether all processes have
/// ended. Those that are left end with this process, if not before.
pub fn trace_tree(
    rules: Rules<'_>,
    watcher: &mut dyn Watcher,
    run: impl FnOnce() -> u8,
) -> io::Result<(i32, bool)> {
    let Some(traced) = tracer::fork(rules)? else {
        let code = run();
        std::process::exit(code.into());
    };
    Tree {
        watcher,
        ours: HashMap::from([(traced.root, true)]),
        traced,
        early: HashSet::new(),
        forgone: HashSet::new(),
        loaders: HashMap::new(),
    }
    .follow()
}

struct Tree<'w> {
    watcher: &'w mut dyn Watcher,
    traced: Traced,
    /// Processes and threads, and whether they run our own code.
    ours: HashMap<i32, bool>,
    /// Those that have stopped before their maker's event was seen.
    early: HashSet<i32>,
    /// Those of our own that have given up reading the time stamp counter, as they must before they execute a program.
    forgone: HashSet<i32>,
    /// Where processes have mapped the loader.
    loaders: HashMap<i32, Range<u64>>,
}

impl Tree<'_> {
    /// Follows all processes until the first one has ended, and those that have executed nothing: the leader of a job's group ends at once,
    /// but may not have got the time yet.
    fn follow(mut self) -> io::Result<(i32, bool)> {
        let mut code = None;
        while let Some((pid, happened)) = self.traced.next()? {
            match happened {
                Happened::Ended(with) => {
                    self.ours.remove(&pid);
                    self.forgone.remove(&pid);
                    self.loaders.remove(&pid);
                    if pid == self.traced.root {
                        code = Some(with);
                    }
                }
                Happened::Made(child) => {
                    let is_ours = self.is_ours(pid);
                    self.ours.insert(child, is_ours);
                    if self.early.remove(&child) {
                        tracer::resume(child, 0);
                    }
                    tracer::resume(pid, 0);
                }
                Happened::Became(before) => {
                    let was_ours = self.ours.remove(&before) == Some(true);
                    if was_ours && !self.forgone.remove(&before) {
                        self.watcher.refuse("a program that may read the time stamp counter");
                    }
                    self.loaders.remove(&pid);
                    self.ours.insert(pid, false);
                    if remove_vdso(pid).is_none() {
                        self.watcher.refuse("a program whose clock cannot be watched");
                    }
                    tracer::resume(pid, 0);
                }
                Happened::Stopped if !self.ours.contains_key(&pid) => _ = self.early.insert(pid),
                Happened::Stopped => tracer::resume(pid, 0),
                Happened::Halted => tracer::leave_stopped(pid),
                Happened::Signal(signal) => {
                    let is_made_good = signal == libc::SIGSEGV && self.reads_time_stamp(pid);
                    tracer::resume(pid, if is_made_good { 0 } else { signal });
                }
                Happened::Question(entry, question) => {
                    if self.judge(pid, entry) {
                        self.watcher.refuse("a change that was not expected");
                    }
                    self.traced.answer(question);
                }
                Happened::Call if self.report(pid) => tracer::resume_call(pid),
                Happened::Call => tracer::resume(pid, 0),
                Happened::Called => match tracer::succeeded(pid) {
                    Some(succeeded) => {
                        self.watcher.called(pid, succeeded);
                        tracer::resume(pid, 0);
                    }
                    // The beginning, which older kernels report as well.
                    None => tracer::resume_call(pid),
                },
            }
            if let Some(code) = code {
                if !self.early.is_empty() || self.ours.values().any(|is_ours| !is_ours) {
                    self.watcher.refuse("leaves processes behind");
                    return Ok((code, false));
                }
                if self.ours.is_empty() {
                    return Ok((code, true));
                }
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    fn is_ours(&self, pid: i32) -> bool {
        self.ours.get(&pid).copied().unwrap_or(false)
    }

    fn judge(&mut self, pid: i32, entry: Entry) -> bool {
        let is_ours = self.is_ours(pid);
        if is_ours && tracer::forgoes_time(&entry) {
            self.forgone.insert(pid);
        }
        let Entry { number, args } = entry;
        self.watcher.call(&Call { pid, is_ours, number, args })
    }

    /// Reports a call at which a process has stopped. Returns whether its end is to be reported.
    fn report(&mut self, pid: i32) -> bool {
        match tracer::entry(pid) {
            Ok(entry) => self.judge(pid, entry),
            // Killed meanwhile: the call is not made.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => false,
            Err(_) => {
                self.watcher.refuse("a system call that could not be read");
                false
            }
        }
    }

    /// Returns whether an instruction is one of the loader's, which takes the time of its own work for LD_DEBUG=statistics.
    fn is_of_loader(&mut self, pid: i32, address: u64) -> bool {
        if self.loaders.get(&pid).is_some_and(|range| range.contains(&address)) {
            return true;
        }
        let found = loader_at(pid, address);
        found.into_iter().map(|range| self.loaders.insert(pid, range)).count() > 0
    }

    /// If a fault is due to an instruction that reads the time stamp counter, does what that instruction does.
    fn reads_time_stamp(&mut self, pid: i32) -> bool {
        let Ok(mut registers) = Registers::of(pid) else { return false };
        let mut code = [0; 3];
        let read = trace::read_memory(pid, registers.ip(), &mut code).unwrap_or(0);
        let length = match &code[..read] {
            [0x0f, 0x31, ..] => 2,
            [0x0f, 0x01, 0xf9] => {
                registers.raw().rcx = 0;
                3
            }
            _ => return false,
        };
        if !self.is_of_loader(pid, registers.ip()) {
            self.watcher.refuse("reads the processor's time stamp counter");
        }
        let now = tracer::time_stamp();
        registers.answer_time(now, length);
        registers.set(pid).is_ok()
    }
}

/// Returns the mapping of the loader that has an address.
fn loader_at(pid: i32, address: u64) -> Option<Range<u64>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    maps.lines().find_map(|line| {
        let (from, to) = line.split_once(' ')?.0.split_once('-')?;
        let range = number(from)?..number(to)?;
        let name = line.rsplit('/').next()?;
        (range.contains(&address) && (name == LOADER || name.starts_with("ld-2."))).then_some(range)
    })
}

/// Name of glibc's loader. Before 2.35 that is a link to a name with a version.
const LOADER: &str = "ld-linux-x86-64.so.2";

/// Hides the vDSO from a program that has just been executed: its entry in the auxiliary vector becomes one to ignore. `None` if the
/// vector cannot be read.
fn remove_vdso(pid: i32) -> Option<()> {
    const WORDS: usize = 512;
    let mut at = Registers::of(pid).ok()?.stack();
    // The number of arguments; arguments and variables, each list with a null at its end; then pairs of type and value.
    let mut words = vec![0; WORDS * 8];
    let (mut nulls, mut is_first, mut is_type) = (0, true, true);
    loop {
        let read = trace::read_memory(pid, at, &mut words).ok()? & !7;
        if read == 0 {
            return None;
        }
        for (place, word) in words[..read].chunks_exact(8).enumerate() {
            let word = u64::from_le_bytes(word.try_into().ok()?);
            if is_first {
                is_first = false;
            } else if nulls < 2 {
                nulls += u32::from(word == 0);
            } else if !is_type {
                is_type = true;
            } else if word == libc::AT_NULL {
                return Some(());
            } else {
                if word == libc::AT_SYSINFO_EHDR {
                    tracer::write_word(pid, at + place as u64 * 8, libc::AT_IGNORE).ok()?;
                }
                is_type = false;
            }
        }
        at += read as u64;
    }
}
