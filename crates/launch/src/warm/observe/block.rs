//! The block that the kernel puts on the stack: the number and list of arguments, the environment, the auxiliary vector. Each observation
//! run has it elsewhere than the first.
//!
//! A constructor may keep an address of the block or of its strings, in any form: in a packed structure, with a tag, as a distance. In a
//! zygote that of a string would lead to another one. With the block and all strings at other addresses, whatever was made of one differs
//! between the runs (`compare`). So each further run has its stack in another place, at random, and its strings in a third one, each at
//! another distance from the end.
//!
//! Only the upper half of these addresses is the same in all runs, and a tool may keep it: the runtime places arguments and environment
//! where they have it too (`runtime/reset/strings.c`). Objects that are copied with their gaps often have it there. The lowest six bits of
//! addresses of the stack are the same as well, as the loader aligns its frames.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::Refusal;
use super::calls::refuse;
use super::run::{PAGE, Run, lost};
use crate::Reason;
use crate::sys::registers::Registers;

const WORD: u64 = 8;
/// The number of addresses that differ only in their low bits. A constructor may keep only these, so they differ as well.
const LINE: u64 = 16;
/// The loader aligns some frames to this.
pub(super) const ALIGNED: u64 = 64;
/// The addresses that differ only in their lowest byte, their lowest two bytes, and their lower half.
const BYTE: u64 = 1 << 8;
pub(super) const QUARTER: u64 = 1 << 16;
const HALF: u64 = 1 << 32;
/// Bytes below the block in another place for the stack. The kernel enlarges it from there.
const BELOW: u64 = 1 << 20;
/// How often to look for a free place.
const PLACES: usize = 16;
/// Bytes below the loader where libraries are mapped next, from the top down, and bytes above it, from where the kernel keeps a stack apart
/// from them. With anything else there, they would lie elsewhere. On aarch64 that is always near the stack.
const LIBRARIES: u64 = 1 << 30;
const APART: u64 = 4 << 20;

/// Where a further run has its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Some quarters away, so that the lowest two bytes of its addresses are the same.
    Quarters,
    /// Anywhere.
    Anywhere,
}

pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns the address near `near` whose low bits are the complement of those of `other`.
fn in_line(near: u64, other: u64) -> u64 {
    (near & !(LINE - 1)) | (!other & (LINE - 1))
}

impl Place {
    /// Returns the address near `near` of what was at `at`. If the low bits of each of two strings are the complement, they are as far from
    /// each other as before. So they are at random where all of the address is.
    fn in_line(self, near: u64, at: u64) -> u64 {
        match self {
            Place::Quarters => in_line(near, at),
            Place::Anywhere => in_line(near, random()),
        }
    }

    /// Returns a random address in a range of at least some hundred bytes, for what was at `at`.
    fn elsewhere(self, range: &Range<u64>, at: u64) -> u64 {
        let room = range.end - range.start - 3 * LINE;
        self.in_line(range.start + LINE + random() % room, at)
    }
}

/// Returns where memory may end, a whole number of pages, at random, with the upper half of `end`.
fn another_end(end: u64) -> u64 {
    (end & !(HALF - 1)) | ((random() % HALF) & !(PAGE - 1))
}

/// The block that the kernel puts on the stack.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    pub start: u64,
    pub argc: u64,
    pub argv: u64,
    pub envp: u64,
    pub auxiliary: u64,
    /// Where the block ends, behind the auxiliary vector.
    pub end: u64,
    /// The first string, the program's name.
    pub name: u64,
    /// Address of the second string. From there on the strings fill whole pages.
    pub strings: u64,
}

impl Run<'_> {
    /// Moves the block and the stack to another place, and the strings to a third one. There are so many `arguments`. If that is fewer, the
    /// last ones are variables; if it is more, further ones are empty. To the random bytes, the program's path and the platform's name the
    /// auxiliary vector leads as before.
    pub(super) fn go_away(&mut self, arguments: u64, place: Place) -> Result<(), Refusal> {
        let (home, block) = (self.home.clone(), self.block);
        let mut content = vec![0; (home.end - block.start) as usize];
        self.memory.read_exact_at(&mut content, block.start).map_err(lost)?;
        let words = |from: u64, to: u64| {
            let bytes = &content[(from - block.start) as usize..(to - block.start) as usize];
            let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
            bytes.chunks_exact(WORD as usize).map(word).collect::<Vec<_>>()
        };
        let (given, auxiliary) = (words(block.argv, block.envp - WORD), words(block.auxiliary, block.end));
        let extra = WORD * arguments.saturating_sub(block.argc);
        let size = (content.len() as u64 + extra + BELOW).next_multiple_of(PAGE);

        let strings = self.map_elsewhere(size, 0, |_| true)?;
        let to_string = |at: u64| at.wrapping_sub(home.end).wrapping_add(strings.end);
        self.write(to_string(block.start), &content)?;
        // Bytes by which the block is lower than whole pages: the lowest byte of addresses differs, or none of the lowest two.
        // Further arguments make it lower as well.
        let rest = |unit: u64| (unit - extra % unit) % unit;
        let mut shifts = std::iter::repeat_with(|| rest(ALIGNED) + ALIGNED * (random() % (PAGE / ALIGNED)));
        let shift = match place {
            Place::Quarters => rest(PAGE),
            Place::Anywhere => {
                shifts.find(|shift| (shift + extra) % BYTE != 0).expect("there is no last one")
            }
        };
        // How much lower the block is than before, if the stack ends there.
        let distance = |end: u64| home.end.wrapping_sub(end - extra).wrapping_add(shift);
        let stack = self.map_elsewhere(size, libc::MAP_GROWSDOWN, |end| {
            let (low, is_far) = (distance(end) % QUARTER, distance(end) % HALF >= QUARTER);
            is_far && (low == 0) == (place == Place::Quarters)
        })?;
        let start = block.start.wrapping_sub(distance(stack.end));

        let name = self.move_name(&to_string, place)?;
        let empties = to_string(given[2])..to_string(given[given.len() - 1]);
        let empty = |at: &u64| place.elsewhere(&empties, *at);
        let variables = self.move_variables(&to_string, place)?;
        let own = given.len().min(arguments as usize);
        let further = given[2..].iter().cycle().take((extra / WORD) as usize);
        let list = std::iter::once(name).chain(given[1..own].iter().chain(further).map(empty));
        let environment = given[own..].iter().map(empty).chain(variables);
        let list: Vec<u64> = std::iter::once(arguments).chain(list).chain([0]).collect();
        let environment: Vec<u64> = environment.chain([0]).collect();
        let whole: Vec<u8> = [&list, &environment, &auxiliary]
            .into_iter()
            .flatten()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        self.write(start, &whole)?;
        let envp = start + WORD * list.len() as u64;
        let auxiliary = envp + WORD * environment.len() as u64;
        let end = start + whole.len() as u64;
        let argv = start + WORD;
        self.block = Block {
            start,
            argc: arguments,
            argv,
            envp,
            auxiliary,
            end,
            name,
            strings: to_string(block.strings),
        };
        self.away = [stack, strings];
        let mut registers = Registers::of(self.pid).map_err(lost)?;
        registers.set_stack(start);
        registers.set(self.pid).map_err(lost)
    }

    /// Maps memory, as private as the stack, where its addresses have the stack's upper half, and an end that is `fit`.
    fn map_elsewhere(&self, size: u64, flag: i32, fit: impl Fn(u64) -> bool) -> Result<Range<u64>, Refusal> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE | flag;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (bottom, top) = (self.loader.0.saturating_sub(LIBRARIES), self.loader.1 + APART);
        let is_libraries = |end: u64| bottom < end && end - size < top;
        for _ in 0..PLACES {
            let mut ends = std::iter::repeat_with(|| another_end(self.home.end));
            let is_fit = |end: &u64| *end % HALF > size && !is_libraries(*end) && fit(*end);
            let end = ends.find(is_fit).expect("there is no last one");
            let arguments = [end - size, size, access as u64, flags as u64, u64::MAX, 0];
            if self.result_of(libc::SYS_mmap, &arguments)? as u64 == end - size {
                return Ok(end - size..end);
            }
        }
        refuse(Reason::NotObserved, "no other place for its stack")
    }

    /// Copies the program's name, nearly as far from the other strings as before. There is room by chance (arch_align_stack in the kernel).
    fn move_name(&self, to: &impl Fn(u64) -> u64, place: Place) -> Result<u64, Refusal> {
        let Block { name, strings, .. } = self.block;
        let mut text = vec![0; strings.saturating_sub(name) as usize];
        self.memory.read_exact_at(&mut text, name).map_err(lost)?;
        let size = text.len() as u64;
        if size == 0 || size > PAGE - LINE {
            return refuse(Reason::NotObserved, "a long name");
        }
        let copy = place.in_line(to(name) - (size + LINE) - LINE * (random() % (PAGE / LINE)), name);
        self.write(copy, &text)?;
        Ok(copy)
    }

    /// Copies the strings of the variables over the end of the last argument. Returns where each is.
    fn move_variables(&mut self, to: &impl Fn(u64) -> u64, place: Place) -> Result<Vec<u64>, Refusal> {
        /// Most lines by which a variable is further from the next one.
        const GAP: u64 = 4;
        /// No variable begins so near to the end of a page: libc's string functions would read from before it on, and that is a look at
        /// another string.
        const NEAR_END: u64 = 256;
        let mut lower = PAGE + LINE * (random() % (PAGE / LINE));
        let mut places = Vec::new();
        for index in (0..self.strings.len()).rev() {
            let Range { start, end } = self.strings[index].clone();
            lower += LINE * (2 + random() % GAP);
            let mut other = place.in_line(to(start) - lower, start);
            while other % PAGE > PAGE - NEAR_END {
                lower += LINE;
                other = place.in_line(to(start) - lower, start);
            }
            let mut text = vec![0; (end - start) as usize];
            self.memory.read_exact_at(&mut text, start).map_err(lost)?;
            self.write(other - 1, &[0])?;
            self.write(other, &text)?;
            self.strings[index] = other..other + (end - start);
            places.insert(0, other);
        }
        Ok(places)
    }
}
