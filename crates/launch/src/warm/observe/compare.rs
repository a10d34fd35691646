//! Compares two observation runs: every word that a constructor can have written.
//!
//! A list has the differences with a known cause: the number of arguments, and the addresses of their list, of the program's name and of
//! the environment, in libc's own places; addresses on the stack, which is elsewhere; the thread's number; the processor it runs on. The
//! number of arguments may also be in the tool's own data, and is then updated for each start; and so may a plain pointer to their list,
//! for which the zygote looks as well (`runtime/fork/snapshot.c`). Any other difference is a result that another start would not have.

use std::fs::File;
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::FileExt;

use object::{Object, ObjectSymbol};

use super::Refusal;
use super::calls::refuse;
use super::counts::{self, Place};
use super::maps::{self, Mapping, Pages};
use super::parts;
use super::run::{PAGE, Run, lost};
use super::vary::POINTER_GUARD;
use crate::Reason;
use crate::sys::registers::{self, LIBC_NUMBER};
use crate::sys::trace;
use crate::warm::wire;

/// Bytes that are read at a time: two such pieces fit into a processor's cache.
const CHUNK: usize = 128 << 10;

/// The owner of a word, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Loader,
    Libc,
    Stack,
    Tool,
    /// Memory of the tool that cannot be written, or not any more: of a file, where the loader alone has written, or another.
    Relocated,
    Sealed,
}

/// How many words of libc's have the address of the program's name: program_invocation_name and program_invocation_short_name, which the
/// loader may have placed in the tool's own data.
const NAMES_MAX: usize = 2;
/// At most so large is libc's record of a thread (`runtime/fork/snapshot.c`).
const RECORD: u64 = 4096;
/// Bytes below the block where no frame begins: the address to which the loader returns lies there.
const CALLERS: u64 = 16;

/// What two runs have that differ only as they may.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Where the tool keeps the number of arguments.
    pub counts: Vec<Place>,
    /// Words that seem to have the lowest bytes of an address on the stack, or the upper ones, which other processes have to show.
    pub ends: Vec<Place>,
    pub uppers: Vec<Place>,
}

impl Found {
    /// Adds the parts of addresses that other runs have.
    pub(super) fn add(&mut self, other: Found) {
        self.ends.extend(other.ends);
        self.uppers.extend(other.uppers);
    }

    /// Returns whether these words have all parts that are in `other`.
    pub(super) fn has_parts_of(&self, other: &Found) -> bool {
        has_all(&self.ends, &other.ends) && has_all(&self.uppers, &other.uppers)
    }
}

/// Returns whether all of `some` are among `all`.
pub(super) fn has_all(all: &[Place], some: &[Place]) -> bool {
    some.iter().all(|place| all.contains(place))
}

/// The two runs, stopped before `main`.
struct Pair<'r, 'a> {
    one: &'r Run<'a>,
    other: &'r Run<'a>,
    /// How much lower the other has its block and its frames, modulo all addresses.
    lower: u64,
    /// libc's block of the thread, up to the word that the kernel clears when the thread ends. Since glibc 2.43 the number
    /// lies before that.
    thread: RangeInclusive<u64>,
    /// Addresses at which the tool keeps the number of arguments.
    counts: Vec<u64>,
    ends: Vec<u64>,
    uppers: Vec<u64>,
    /// Where libc has its record of the thread, in which the zygote does not look for the list of arguments.
    record: Range<u64>,
    /// Where libc itself keeps the list of arguments, and the end of the stack in that record.
    list: Option<u64>,
    end_of_stack: Option<u64>,
    /// How many words have the address of the program's name.
    names: usize,
    /// All code, and the bits by which an address of it may be signed.
    code: Vec<Range<u64>>,
    signature: u64,
    /// Where the stack begins, which grows down to there.
    stack: u64,
    pages: [Pages; 2],
    /// What has been read of each.
    pieces: [Vec<u8>; 2],
}

/// Refuses if any difference is neither on the list nor the number of arguments. `runtime` is the inode of the runtime's file.
pub(super) fn compare(one: &Run<'_>, other: &Run<'_>, runtime: u64) -> Result<Found, Refusal> {
    let (maps, others) = (one.maps()?, other.maps()?);
    have_same(&(one, &maps), &(other, &others))?;
    let (ends, others_ends) = (one.seen.thread_id & !7, other.seen.thread_id & !7);
    let thread = registers::thread_block(one.pid, ends).map_err(lost)?;
    if ends != others_ends {
        return refuse(Reason::ConstructorsDiffer, "where the thread's number is");
    }
    if one.seen.signals != other.seen.signals {
        return refuse(Reason::ConstructorsDiffer, "what is done at signals");
    }
    let modes = registers::modes(one.pid).map_err(lost)?;
    if modes != registers::modes(other.pid).map_err(lost)? {
        return refuse(Reason::ConstructorsDiffer, "floating-point modes, x87 registers, segments or flags");
    }
    let pages = [Pages::of(one.pid).map_err(lost)?, Pages::of(other.pid).map_err(lost)?];
    let pieces = [vec![0; CHUNK], vec![0; CHUNK]];
    let stack = maps.iter().find(|mapping| (mapping.from..mapping.to).contains(&one.block.start));
    let stack = stack.map_or(one.block.start, |mapping| mapping.from);
    let record = registers::thread_pointer(one.pid).map_err(lost)?;
    let mut pair = Pair {
        one,
        other,
        lower: one.block.start.wrapping_sub(other.block.start),
        thread,
        counts: Vec::new(),
        ends: Vec::new(),
        uppers: Vec::new(),
        record: record.map_or(0..0, |from| from..from + RECORD),
        list: None,
        end_of_stack: None,
        names: 0,
        code: maps.iter().filter(|map| map.access[2] == b'x').map(|map| map.from..map.to).collect(),
        signature: registers::signature(one.pid),
        stack,
        pages,
        pieces,
    };
    let owners = maps::owners(&maps);
    let ours = maps.iter().find(|mapping| mapping.inode == runtime).map(|mapping| mapping.path.as_str());
    let code: Vec<_> = maps
        .iter()
        .zip(&owners)
        .filter(|(mapping, owner)| mapping.access[2] == b'x' && one.is_libc(owner))
        .map(|(mapping, _)| (mapping.from, mapping.to))
        .collect();
    for (mapping, owner) in maps.iter().zip(owners) {
        // What cannot be written now may have been written before: by the loader, with a function's answer (IFUNC), or by a constructor.
        // The kernel's own pages are the same for all.
        let is_kernels = owner.starts_with("[v");
        let is_of_file = mapping.access[3] != b'p' && mapping.access[1] != b'w';
        if is_kernels || is_of_file || Some(owner) == ours {
            continue;
        }
        let whose = match owner {
            "[stack]" => Owner::Stack,
            path if one.is_loader_file(path) => Owner::Loader,
            path if one.is_libc(path) => Owner::Libc,
            _ if mapping.access[1] != b'w' && mapping.path.starts_with('/') => Owner::Relocated,
            _ if mapping.access[1] != b'w' => Owner::Sealed,
            _ => Owner::Tool,
        };
        let from = if whose == Owner::Stack { mapping.from.max(frames(one, &code)?) } else { mapping.from };
        let to = if whose == Owner::Stack { mapping.to.min(one.block.start) } else { mapping.to };
        let is_code = mapping.access[2] == b'x' && matches!(whose, Owner::Libc | Owner::Loader);
        if is_code && (mapping.access[1] == b'w' || !pair.has_whole_code(mapping)?) {
            return refuse(Reason::ConstructorCall, format!("the code of '{owner}' is changed"));
        }
        // What lies above the frames may be a mapping of its own, as parts of it are hidden.
        if from >= to {
            continue;
        }
        let compared = match mapping.access[3] {
            b'p' => pair.compare_own(from, to, whose),
            _ => pair.compare(from, to, whose),
        };
        compared
            .map_err(|refusal| Refusal { detail: format!("{} in '{owner}'", refusal.detail), ..refusal })?;
    }
    let places = |words: &[u64]| words.iter().map(|&at| counts::place(&maps, at)).collect::<Option<Vec<_>>>();
    let (Some(ends), Some(uppers)) = (places(&pair.ends), places(&pair.uppers)) else {
        let words = [pair.ends, pair.uppers].concat();
        return refuse(Reason::ConstructorsDiffer, format!("bytes at {words:#x?}, in no file's data"));
    };
    match places(&pair.counts) {
        Some(counts) if counts.len() <= wire::COUNTS_MAX => Ok(Found { counts, ends, uppers }),
        _ => refuse(Reason::KeepsArguments, format!("their number at {:#x?}", pair.counts)),
    }
}

/// Reads a run's memory: at once where it can be read, else through its file.
pub(super) fn read(run: &Run<'_>, at: u64, bytes: &mut [u8]) -> Result<(), Refusal> {
    match trace::read_memory(run.pid, at, bytes) {
        Ok(size) if size == bytes.len() => Ok(()),
        _ => run.memory.read_exact_at(bytes, at).map_err(lost),
    }
}

/// Returns where the stack's frames begin that constructors have run below. That of main's caller does not count: it was called after
/// them, and where it writes nothing lies what they have left. On aarch64 its frame pointer leads to the next frame. On x86-64 it ends with
/// the first address of `code`, libc's own, above the address to which main returns.
fn frames(run: &Run<'_>, code: &[(u64, u64)]) -> Result<u64, Refusal> {
    const LARGEST: u64 = 1024;
    const WORD: u64 = 8;
    let is_near = |at: u64, from: u64| at % WORD == 0 && (from..from + LARGEST).contains(&at);
    if is_near(run.frame, run.stack) {
        let next = run.word(run.frame)?;
        return Ok(if is_near(next, run.frame) { next } else { run.stack });
    }
    let end = run.block.start.min(run.stack + LARGEST);
    for at in (run.stack + WORD..end).step_by(WORD as usize) {
        let word = run.word(at)?;
        if code.iter().any(|(from, to)| (*from..*to).contains(&word)) {
            return Ok(at);
        }
    }
    Ok(run.stack)
}

/// Returns whether a process's program has a copy of `__libc_stack_end`.
fn has_stack_end(pid: i32) -> bool {
    let Ok(bytes) = std::fs::read(format!("/proc/{pid}/exe")) else { return false };
    let elf = object::read::elf::ElfFile64::<object::Endianness, _>::parse(&*bytes);
    elf.is_ok_and(|elf| elf.dynamic_symbols().any(|symbol| symbol.name_bytes() == Ok(b"__libc_stack_end")))
}

/// Refuses if two runs have not mapped the same, but for their stacks.
fn have_same(one: &(&Run<'_>, &[Mapping]), other: &(&Run<'_>, &[Mapping])) -> Result<(), Refusal> {
    let is_in = |mapping: &Mapping, range: &Range<u64>| mapping.from < range.end && range.start < mapping.to;
    let tools = |(run, maps): &(&Run<'_>, &[Mapping])| {
        let stacks = || std::iter::once(&run.home).chain(&run.away);
        let is_stack = |mapping: &Mapping| stacks().any(|range| is_in(mapping, range));
        maps.iter().filter(|mapping| !is_stack(mapping)).cloned().collect::<Vec<_>>()
    };
    let (maps, others) = (tools(one), tools(other));
    let is_same = |a: &Mapping, b: &Mapping| {
        (a.from, a.to, a.access, a.inode, &a.path) == (b.from, b.to, b.access, b.inode, &b.path)
    };
    if let Some((a, b)) = maps.iter().zip(&others).find(|(a, b)| !is_same(a, b)) {
        return refuse(Reason::ConstructorsDiffer, format!("mapped {a} and {b}"));
    }
    if maps.len() != others.len() {
        return refuse(Reason::ConstructorsDiffer, format!("{} and {} mappings", maps.len(), others.len()));
    }
    let frames = |(run, maps): &(&Run<'_>, &[Mapping])| {
        let stack = maps.iter().find(|mapping| (mapping.from..mapping.to).contains(&run.block.start));
        stack.map(|stack| stack.access)
    };
    match frames(one) == frames(other) {
        true => Ok(()),
        false => refuse(Reason::ConstructorsDiffer, "what is allowed on the stack"),
    }
}

impl Pair<'_, '_> {
    /// Whether a process has the code of a file as it is there, but for the tracer's breakpoints: the runtime calls functions of libc's.
    fn has_whole_code(&self, mapping: &Mapping) -> Result<bool, Refusal> {
        let own = self.pages[0].are_own(mapping.from, mapping.to).map_err(lost)?;
        let own: Vec<u64> = (mapping.from..)
            .step_by(PAGE as usize)
            .zip(own)
            .filter_map(|(at, is)| is.then_some(at))
            .collect();
        if own.is_empty() {
            return Ok(true);
        }
        let file = File::open(&mapping.path).map_err(lost)?;
        for page in own {
            let [mut here, mut there] = [[0; PAGE as usize]; 2];
            read(self.one, page, &mut here)?;
            // Behind the file's end there are zeros.
            let offset = page - mapping.from + mapping.offset;
            let mut filled = 0;
            while let size @ 1.. = file.read_at(&mut there[filled..], offset + filled as u64).map_err(lost)? {
                filled += size;
            }
            let differs = (page..).zip(here.iter().zip(&there)).filter(|(_, (a, b))| a != b);
            if differs.into_iter().any(|(at, _)| !self.one.planted.contains(&at)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares the pages of a private mapping that either has of its own. The rest is the same file's, or zeros: so is nearly all of a
    /// library's code, of which the tracer's breakpoints have changed a page or two.
    fn compare_own(&mut self, from: u64, to: u64, whose: Owner) -> Result<(), Refusal> {
        let [ours, theirs] = &self.pages;
        let (ours, theirs) = (ours.are_own(from, to).map_err(lost)?, theirs.are_own(from, to).map_err(lost)?);
        let pages: Vec<bool> = ours.into_iter().zip(theirs).map(|(ours, theirs)| ours || theirs).collect();
        let first = from / PAGE;
        let mut page = 0;
        for run in pages.chunk_by(|a, b| a == b) {
            let (begin, end) = (first + page, first + page + run.len() as u64);
            page += run.len() as u64;
            if run[0] {
                self.compare((begin * PAGE).max(from), (end * PAGE).min(to), whose)?;
            }
        }
        Ok(())
    }

    fn compare(&mut self, from: u64, to: u64, whose: Owner) -> Result<(), Refusal> {
        let [mut ours, mut theirs] = std::mem::take(&mut self.pieces);
        let mut at = from;
        while at < to {
            let size = ((to - at) as usize).min(CHUNK);
            let (ours, theirs) = (&mut ours[..size], &mut theirs[..size]);
            read(self.one, at, ours)?;
            read(self.other, if whose == Owner::Stack { at.wrapping_sub(self.lower) } else { at }, theirs)?;
            if ours != theirs {
                self.words(at, ours, theirs, whose)?;
            }
            at += size as u64;
        }
        self.pieces = [ours, theirs];
        Ok(())
    }

    fn words(&mut self, at: u64, ours: &[u8], theirs: &[u8], whose: Owner) -> Result<(), Refusal> {
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        let pairs = ours.chunks_exact(8).map(word).zip(theirs.chunks_exact(8).map(word));
        for (index, (a, b)) in pairs.enumerate() {
            if a != b {
                self.explain(at + index as u64 * 8, a, b, whose)?;
            }
        }
        Ok(())
    }

    fn explain(&mut self, at: u64, a: u64, b: u64, whose: Owner) -> Result<(), Refusal> {
        let (one, other) = (&self.one.block, &self.other.block);
        let rseq = self.one.seen.rseq;
        let is_thread = self.thread.contains(&at) && holds((a, b), (self.one.number(), self.other.number()));
        let is_rseq = (rseq.0..rseq.0 + rseq.1).contains(&at);
        // Undoes libc's mangling of registers for a long jump.
        let plain = |word: u64| word.rotate_right(registers::GUARD_ROTATION) ^ POINTER_GUARD;
        let both = [(a, b), (plain(a), plain(b))];
        let is_call =
            both.iter().any(|&pair| holds(pair, (one.argc, other.argc)) || pair == (one.envp, other.envp));
        let is_environ = at == self.one.seen.environ && (a, b) == (one.envp, other.envp);
        // In memory that every process has for itself, and that no constructor is known to use.
        let is_lower =
            both.iter().any(|&(a, b)| b == a.wrapping_sub(self.lower) && (self.stack..one.end).contains(&a));
        // The zygote looks whether something of it is kept.
        let is_variable = self.is_variable(a, b);
        // The auxiliary vector comes behind the environment. Only some runs have it at another distance from the list.
        let is_auxiliary = both.iter().any(|&(a, b)| {
            let offset = a.wrapping_sub(one.auxiliary);
            offset == b.wrapping_sub(other.auxiliary) && offset <= one.end - one.auxiliary
        });
        let is_excused = match whose {
            Owner::Loader => is_call || is_lower || is_auxiliary || is_variable || is_processor(a, b),
            Owner::Stack => {
                is_call
                    || is_lower
                    || is_auxiliary
                    || is_variable
                    || self.is_name(a, b)
                    || self.is_signed(a, b)
            }
            Owner::Libc => is_variable || ((is_call || is_lower) && self.is_record(at)?),
            Owner::Tool => false,
            // The zygote notices who has that.
            Owner::Relocated => (a, b) == (one.start, other.start) && has_stack_end(self.one.pid),
            Owner::Sealed => false,
        };
        if is_thread || is_rseq || is_environ || is_excused {
            return Ok(());
        }
        if whose != Owner::Stack && self.is_name(a, b) && self.names < NAMES_MAX {
            self.names += 1;
            return Ok(());
        }
        // A plain pointer to the list of arguments, which the zygote looks for, or to the auxiliary vector, which each start has there; or
        // one to a frame that is gone, wherever it lies.
        let kept = whose == Owner::Tool && is_lower && b == a.wrapping_sub(self.lower);
        if kept && self.record.contains(&at) && (one.start..one.envp).contains(&a) {
            // One word there is libc's: the end of the stack.
            if a == one.start && *self.end_of_stack.get_or_insert(at) == at {
                return Ok(());
            }
            return refuse(
                Reason::KeepsArguments,
                format!("{a:#x} at {at:#x}, in libc's record of the thread"),
            );
        }
        let is_list = kept && ((one.start..one.envp).contains(&a) || (one.auxiliary..one.end).contains(&a));
        if is_list || self.is_of_frame(at, a, b, whose)? {
            return Ok(());
        }
        if holds((a, b), (one.argc, other.argc)) {
            let halves = [(at, a as u32 != b as u32), (at + 4, a >> 32 != b >> 32)];
            self.counts.extend(halves.iter().filter(|(_, differs)| *differs).map(|(half, _)| half));
            return Ok(());
        }
        if whose == Owner::Tool && parts::is_upper_part(a, b, self.lower, &(self.stack..one.end)) {
            self.uppers.push(at);
            return Ok(());
        }
        if whose == Owner::Tool && parts::may_be_part(a, b, self.lower) {
            self.ends.push(at);
            return Ok(());
        }
        let reason = match (a, b) {
            _ if is_variable => Reason::ReadsEnvironment,
            pair if pair == (one.envp, other.envp) => Reason::ReadsEnvironment,
            _ if b == a.wrapping_sub(self.lower) || self.is_name(a, b) || self.is_argument(a, b) => {
                Reason::KeepsArguments
            }
            _ => Reason::ConstructorsDiffer,
        };
        refuse(reason, format!("{a:#x} and {b:#x} at {at:#x}"))
    }
}

impl Pair<'_, '_> {
    /// Whether this is libc's own record of the list of arguments, of their number, beside it (`runtime/fork/loader.c`), or of the
    /// environment. There is one. Other words of libc's may hold what a constructor has given it (`optind`, `on_exit`).
    fn is_record(&mut self, at: u64) -> Result<bool, Refusal> {
        let is_list = |run: &Run<'_>, at: u64| {
            let number = run.word(at.wrapping_add(LIBC_NUMBER))? as u32;
            Ok(run.word(at)? == run.block.argv && u64::from(number) == run.block.argc)
        };
        let are_lists = |at: u64| Ok(is_list(self.one, at)? && is_list(self.other, at)?);
        for list in [at, at.wrapping_sub(LIBC_NUMBER)] {
            if are_lists(list)? {
                return Ok(*self.list.get_or_insert(list) == list);
            }
        }
        Ok(at == self.one.seen.environ)
    }

    /// Whether these are the same address of code, signed: the signature is another one in each process.
    fn is_signed(&self, a: u64, b: u64) -> bool {
        let [address, other] = [a, b].map(|word| word & !self.signature);
        address == other && self.code.iter().any(|code| code.contains(&address))
    }

    /// Whether these are addresses of the same place in a variable's string.
    fn is_variable(&self, a: u64, b: u64) -> bool {
        let mut pairs = self.one.strings.iter().zip(&self.other.strings);
        pairs.any(|(one, other)| one.contains(&a) && a - one.start == b.wrapping_sub(other.start))
    }

    /// Whether the word holds an address of a frame, or a part of one: an object that is copied has what its function has left in its gaps.
    fn is_of_frame(&self, at: u64, a: u64, b: u64, whose: Owner) -> Result<bool, Refusal> {
        const WORD: usize = 8;
        /// Of an address; the others are zero.
        const BYTES: usize = 6;
        let mut near = [[0; 3 * WORD]; 2];
        near[0][WORD..2 * WORD].copy_from_slice(&a.to_le_bytes());
        near[1][WORD..2 * WORD].copy_from_slice(&b.to_le_bytes());
        let others = if whose == Owner::Stack { at.wrapping_sub(self.lower) } else { at };
        for ((run, at), near) in [(self.one, at), (self.other, others)].into_iter().zip(&mut near) {
            // At the end of a mapping there may be nothing beside it.
            _ = read(run, at - WORD as u64, &mut near[..WORD]);
            _ = read(run, at + WORD as u64, &mut near[2 * WORD..]);
        }
        let differs = |byte: usize| near[0][byte] != near[1][byte];
        let address = |run: usize, from: usize| {
            let mut bytes = [0; WORD];
            bytes[..BYTES].copy_from_slice(&near[run][from..from + BYTES]);
            u64::from_le_bytes(bytes)
        };
        let frames = self.stack..self.one.block.start - CALLERS;
        Ok((WORD + 1 - BYTES..2 * WORD).any(|from| {
            let (one, other) = (address(0, from), address(1, from));
            other == one.wrapping_sub(self.lower)
                && frames.contains(&one)
                && (WORD..2 * WORD).all(|byte| !differs(byte) || (from..from + BYTES).contains(&byte))
        }) || parts::is_part(a, b, self.lower, &frames))
    }

    /// Whether these are addresses of the same argument.
    fn is_argument(&self, a: u64, b: u64) -> bool {
        (1..self.other.block.argc).any(|index| {
            let is = |run: &Run<'_>, word| run.word(run.block.argv + 8 * index).is_ok_and(|at| at == word);
            is(self.one, a) && is(self.other, b)
        })
    }

    /// Whether these are addresses of the program's name, as a whole or behind its directory.
    fn is_name(&self, a: u64, b: u64) -> bool {
        let [one, other] = [self.one, self.other].map(|run| run.block.name);
        a.wrapping_sub(one) == b.wrapping_sub(other) && (one..self.one.block.strings).contains(&a)
    }
}

/// Returns whether two words differ only in the number of the processor that the loader ran on. It keeps what the instruction `cpuid`
/// tells, which has the number in the uppermost byte of EBX (leaf 1).
fn is_processor(a: u64, b: u64) -> bool {
    let Some((told, number)) = registers::processor_told() else { return false };
    let half = |word: u64, shift: u32| (word >> shift) as u32;
    let is_told = |shift: u32| {
        half(a, shift) == half(b, shift)
            || (half(a, shift) & !number == told & !number && half(b, shift) & !number == told & !number)
    };
    is_told(0) && is_told(32)
}

/// Returns whether two words differ only because they hold, in either half, the one number and the other.
fn holds((a, b): (u64, u64), (one, other): (u64, u64)) -> bool {
    let halves = [(a & 0xffff_ffff, b & 0xffff_ffff), (a >> 32, b >> 32)];
    halves.iter().all(|&(a, b)| a == b || (a, b) == (one, other))
}
