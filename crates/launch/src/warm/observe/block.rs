//! The block that the kernel puts on the stack: the number and list of arguments, the environment, the auxiliary vector. Each observation
//! run has it elsewhere than the first.
//!
//! A constructor may keep an address of the block or of its strings, in any form: in a packed structure, with a tag, as a distance. In a
//! zygote it would always lead to an empty argument. With the block and all strings at other addresses, whatever was made of one differs
//! between the runs (`compare`). So each further run has its stack in another place, at random, and its strings in a third one, each at
//! another distance from the end.
//!
//! Only the upper half of these addresses is the same in all runs, and a tool may keep it: the runtime places arguments and environment
//! where they have it too (`runtime/reset/strings.c`). Objects that are copied with their gaps often have it there.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::Refusal;
use super::calls::refuse;
use super::run::{PAGE, Run, lost};
use crate::Reason;
use crate::sys::registers::Registers;

/// How much lower each further run has its block, and with it its frames, in its stack. A whole page, so that the loader aligns its frames
/// alike.
const LOWER: u64 = PAGE;
/// The number of addresses that differ only in their low bits. A constructor may keep only these, so they differ as well.
const LINE: u64 = 16;

/// Returns the address near `near` whose low bits are the complement of those of `other`.
fn in_line(near: u64, other: u64) -> u64 {
    (near & !(LINE - 1)) | (!other & (LINE - 1))
}

/// Returns an address far from `at` in a range of at least some hundred bytes.
fn elsewhere(range: &Range<u64>, at: u64) -> u64 {
    let half = (range.end - range.start) / 2;
    let far = if at < range.start + half { at + half - LINE } else { at.saturating_sub(half - LINE) };
    in_line(far.clamp(range.start + LINE, range.end - 2 * LINE), at)
}

/// The block that the kernel puts on the stack.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    pub start: u64,
    pub argc: u64,
    pub argv: u64,
    pub envp: u64,
    /// Where the block ends, behind the auxiliary vector.
    pub end: u64,
    /// The end of the strings and random bytes to which the auxiliary vector points.
    pub told: u64,
    /// The first string, the program's name.
    pub name: u64,
    /// Address of the second string. From there on the strings fill whole pages.
    pub strings: u64,
}

/// The addresses with the same upper half.
const HALF: u64 = 1 << 32;
/// Bytes below the block in another place for the stack. The kernel enlarges it from there.
const BELOW: u64 = 1 << 20;
/// How often to look for a free place.
const PLACES: usize = 16;

/// Returns where a stack may end that now ends at `end`, with the same upper half: at random, a whole number of pages. Each two bytes of an
/// address in the block, which will be by [`LOWER`] lower there, are others then, and of one at the same place in a stack.
fn another_end(end: u64) -> u64 {
    const QUARTER: u64 = 1 << 16;
    let is_other = |distance: u64| distance % QUARTER != 0 && distance % HALF >= QUARTER;
    loop {
        let random = RandomState::new().build_hasher().finish();
        let another = (end & !(HALF - 1)) | ((random % HALF) & !(PAGE - 1));
        let distance = end.wrapping_sub(another);
        if is_other(distance) && is_other(distance.wrapping_add(LOWER)) {
            return another;
        }
    }
}

impl Run<'_> {
    /// Moves the block and the stack to another place, and the strings, of which the last so many arguments are variables now, to a third
    /// one. To the random bytes, the program's path and the platform's name the auxiliary vector leads as before.
    pub(super) fn go_away(&mut self, fewer: u64) -> Result<(), Refusal> {
        let (home, block) = (self.home.clone(), self.block);
        let mut content = vec![0; (home.end - block.start) as usize];
        self.memory.read_exact_at(&mut content, block.start).map_err(lost)?;
        let size = (content.len() as u64 + BELOW).next_multiple_of(PAGE);
        let [stack, strings] = [self.map_elsewhere(size, libc::MAP_GROWSDOWN)?, self.map_elsewhere(size, 0)?];
        let to = |place: &Range<u64>, at: u64| at.wrapping_sub(home.end).wrapping_add(place.end);
        self.write(to(&strings, block.start), &content)?;
        let pointers = 8 * (block.argc + fewer + self.strings.len() as u64 + 1);
        for pointer in content[8..][..pointers as usize].chunks_exact_mut(8) {
            let at = u64::from_ne_bytes(pointer.try_into().expect("eight bytes"));
            pointer.copy_from_slice(&(if at == 0 { 0 } else { to(&strings, at) }).to_ne_bytes());
        }
        self.write(to(&stack, block.start), &content)?;
        let mut registers = Registers::of(self.pid).map_err(lost)?;
        registers.set_stack(to(&stack, block.start));
        registers.set(self.pid).map_err(lost)?;
        let [start, argv, envp, end] =
            [block.start, block.argv, block.envp, block.end].map(|at| to(&stack, at));
        let [name, first] = [block.name, block.strings].map(|at| to(&strings, at));
        self.block = Block { start, argv, envp, end, told: strings.start, name, strings: first, ..block };
        self.strings
            .iter_mut()
            .for_each(|string| *string = to(&strings, string.start)..to(&strings, string.end));
        self.away = [stack, strings];
        Ok(())
    }

    /// Maps memory, as private as the stack, where its addresses have the stack's upper half.
    fn map_elsewhere(&self, size: u64, flag: i32) -> Result<Range<u64>, Refusal> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE | flag;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        for _ in 0..PLACES {
            let end = another_end(self.home.end);
            let Some(from) = end.checked_sub(size).filter(|from| from / HALF == end / HALF) else { continue };
            let arguments = [from, size, access as u64, flags as u64, u64::MAX, 0];
            if self.result_of(libc::SYS_mmap, &arguments)? as u64 == from {
                return Ok(from..end);
            }
        }
        refuse(Reason::NotObserved, "no other place for its stack")
    }

    /// Turns the last arguments into variables.
    pub(super) fn shorten(&mut self, fewer: u64) -> Result<(), Refusal> {
        let Block { start, argc, argv, envp, .. } = self.block;
        let moved = argv + 8 * (argc - fewer);
        let mut pointers = vec![0; 8 * fewer as usize];
        self.memory.read_exact_at(&mut pointers, moved).map_err(lost)?;
        self.write(start, &(argc - fewer).to_ne_bytes())?;
        self.write(moved, &[0; 8])?;
        self.write(moved + 8, &pointers)?;
        self.block = Block { argc: argc - fewer, envp: envp - 8 * fewer, ..self.block };
        Ok(())
    }

    /// Moves the block and the stack down, and all strings to other places, each by another distance. The arguments are other empty strings
    /// of `empties`; of the variables, the first `empty` are as well. A copy of the name lies near its old place.
    pub(super) fn lower(&mut self, empties: Range<u64>, empty: u64) -> Result<(), Refusal> {
        let Block { start, argc, end, told, name, strings, .. } = self.block;
        let mut block = vec![0; (end - start) as usize];
        self.memory.read_exact_at(&mut block, start).map_err(lost)?;
        let mut text = vec![0; strings.saturating_sub(name) as usize];
        self.memory.read_exact_at(&mut text, name).map_err(lost)?;
        let size = text.len() as u64;
        if size == 0 || size > LOWER - LINE {
            return refuse(Reason::NotObserved, "a long name");
        }
        // As far from the other strings as before, nearly: there is room by chance (arch_align_stack in the kernel).
        let near = in_line(name.saturating_sub(size + LINE), name);
        let copy = if near >= told { near } else { in_line(end - size - LINE, name) };
        for (index, argument) in block[8..][..8 * argc as usize].chunks_exact_mut(8).enumerate() {
            let at = u64::from_ne_bytes(argument.try_into().expect("eight bytes"));
            let other = if index == 0 { copy } else { elsewhere(&empties, at) };
            argument.copy_from_slice(&other.to_ne_bytes());
        }
        self.write(copy, &text)?;
        self.lower_variables(&mut block[8 * (argc + 2 + empty) as usize..])?;
        self.write(start - LOWER, &block)?;
        let mut registers = Registers::of(self.pid).map_err(lost)?;
        registers.set_stack(start - LOWER);
        registers.set(self.pid).map_err(lost)?;
        let [argv, envp] = [self.block.argv, self.block.envp].map(|at| at - LOWER);
        self.block = Block { start: start - LOWER, argv, envp, end: end - LOWER, name: copy, ..self.block };
        Ok(())
    }

    /// Moves the strings of the variables in the array `pointers`, which a null pointer ends, over the end of the last argument.
    fn lower_variables(&mut self, pointers: &mut [u8]) -> Result<(), Refusal> {
        let count = self.strings.len() as u64;
        for (index, pointer) in pointers.chunks_exact_mut(8).take(self.strings.len()).enumerate() {
            let Range { start, end } = self.strings[index].clone();
            let other = in_line(start - LOWER - (2 * (count - index as u64) + 1) * LINE, start);
            let mut text = vec![0; (end - start) as usize];
            self.memory.read_exact_at(&mut text, start).map_err(lost)?;
            self.write(other - 1, &[0])?;
            self.write(other, &text)?;
            pointer.copy_from_slice(&other.to_ne_bytes());
            self.strings[index] = other..other + (end - start);
        }
        Ok(())
    }
}
