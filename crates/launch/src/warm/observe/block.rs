//! The block that the kernel puts on the stack: the number and list of arguments, the environment, the auxiliary vector. Each observation
//! run has it elsewhere than the first.
//!
//! A constructor may keep an address of the block or of its strings, in any form: in a packed structure, with a tag, as a distance. In a
//! zygote it would always lead to an empty argument. With the block and all strings at other addresses, whatever was made of one differs
//! between the runs (`compare`).

use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::Refusal;
use super::calls::refuse;
use super::run::{PAGE, Run, lost};
use crate::Reason;
use crate::sys::registers::Registers;

/// How much lower each further run has its block, and with it its stack. A whole page, so that the loader aligns its frames alike.
pub(super) const LOWER: u64 = PAGE;
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

impl Run<'_> {
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
