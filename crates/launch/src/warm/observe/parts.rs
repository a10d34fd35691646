//! Parts of an address on the stack. An object that is copied has in its gaps what lay where it was made: often a part of such an address.
//!
//! In every cold start these bytes are others, as the kernel chooses where the stack is. But `main` could make the list of arguments of
//! them, so a tool that keeps a part is given the list where its constructors have seen it. What keeps a part in another way is cold.

use std::ops::Range;

use super::Refusal;
use super::block::{ALIGNED, QUARTER};
use super::calls::refuse;
use super::counts::{self, Place};
use super::run::Run;
use crate::Reason;

/// Bytes of an address that are not zero.
const BYTES: u32 = 6;
/// So few of the lowest bytes of an address may as well be another number.
const FEWEST: u32 = 2;
/// So many show where they lead to.
const ENOUGH: u32 = 4;
/// Lowest bytes of an address that may be missing where the others are.
const UPPER: [u32; 3] = [1, 2, 3];

/// Returns this many bytes of a word from `byte` on.
fn bytes(word: u64, byte: u32, size: u32) -> u64 {
    word >> (8 * byte) & mask(size)
}

fn mask(size: u32) -> u64 {
    (1 << (8 * size)) - 1
}

/// Returns whether two words differ by this distance in these bytes, and in no others.
fn is_moved(a: u64, b: u64, byte: u32, size: u32, distance: u64) -> bool {
    let are_others_equal = (a ^ b) & !(mask(size) << (8 * byte)) == 0;
    let moved = bytes(a, byte, size).wrapping_sub(bytes(b, byte, size));
    are_others_equal && moved & mask(size) == distance & mask(size)
}

/// Returns whether two words differ only because they end with the lowest bytes of an address of a frame, as memory that was never set may.
/// The other run has its frames `lower`. Elsewhere in a word the bytes may belong to a larger number.
pub(super) fn is_part(a: u64, b: u64, lower: u64, frames: &Range<u64>) -> bool {
    (ENOUGH..BYTES).any(|size| {
        let from_frames = bytes(a, 8 - size, size).wrapping_sub(frames.start) & mask(size);
        from_frames < frames.end - frames.start && is_moved(a, b, 8 - size, size, lower)
    })
}

/// Returns whether two words have the upper bytes of addresses in the `stack`, behind lower bytes of something else. The upper half is the
/// same for both.
pub(super) fn is_upper_part(a: u64, b: u64, lower: u64, stack: &Range<u64>) -> bool {
    UPPER.into_iter().any(|from| {
        let size = BYTES - from;
        let (one, other) = (bytes(a, from, size), bytes(b, from, size));
        let moved = one.wrapping_sub(other) & mask(size);
        // The lower bytes, which are not there, may have borrowed, but not if the stack is by quarters lower.
        let borrowed = u64::from(lower % QUARTER != 0);
        let is_as_far = moved.wrapping_sub(bytes(lower, from, size)) & mask(size) <= borrowed;
        let is_there = (stack.start >> (8 * from)..=stack.end >> (8 * from)).contains(&one);
        (a ^ b) & !(mask(size) << (8 * from)) == 0 && is_as_far && is_there
    })
}

/// Returns whether two words differ as if they had the lowest bytes of an address on the stack. A number may differ so by chance, or as
/// it is a distance from there: [`confirm`] shows whether it is the address.
pub(super) fn may_be_part(a: u64, b: u64, lower: u64) -> bool {
    sizes().any(|(byte, size)| is_moved(a, b, byte, size, lower))
}

/// Where in a word the lowest bytes of an address can be, and how many: at least two, and not all. A word that begins with them may be an
/// address in another form, or a distance.
fn sizes() -> impl Iterator<Item = (u32, u32)> {
    (1..=8 - FEWEST).flat_map(|byte| (FEWEST..BYTES.min(9 - byte)).map(move |size| (byte, size)))
}

/// Returns whether the loader's frames lie alike in two processes, so that addresses in them are as far from each other as the stacks.
pub(super) fn have_like_frames(one: &Run<'_>, other: &Run<'_>) -> bool {
    one.block.start % ALIGNED == other.block.start % ALIGNED
}

/// Refuses if one of these words does not differ from that of `other`, a process of its own, by the distance of the two stacks. The kernel
/// has chosen where these are, and how far from the strings above. A number that is no address there differs so once in 512 times.
pub(super) fn confirm(one: &Run<'_>, other: &Run<'_>, places: &[Place]) -> Result<(), Refusal> {
    let addresses = |run: &Run<'_>| counts::addresses(places, run.pid).unwrap_or_default();
    let distance = one.block.start.wrapping_sub(other.block.start);
    let (ours, theirs) = (addresses(one), addresses(other));
    if ours.len() != places.len() || theirs.len() != places.len() {
        return refuse(Reason::ConstructorsDiffer, "where the bytes of an address are");
    }
    for (ours, theirs) in ours.into_iter().zip(theirs) {
        let (a, b) = (one.word(ours)?, other.word(theirs)?);
        let stack = one.home.start..one.block.end;
        let is_end = sizes().any(|(byte, size)| is_moved(a, b, byte, size, distance));
        if !is_end && !is_upper_part(a, b, distance, &stack) {
            return refuse(Reason::ConstructorsDiffer, format!("{a:#x} and {b:#x} at {ours:#x}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: u64 = 0x7ffc_1231_0a30;
    const LOWER: u64 = 0x7654_3000;

    #[test]
    fn parts_of_a_frames_address_are_told_from_other_numbers() {
        let frames = 0x7ffc_1230_0000..0x7ffc_1232_1000;
        let moved = FRAME - LOWER;
        let is = |a, b| is_part(a, b, LOWER, &frames);
        assert!(is(FRAME << 32, moved << 32), "its lower half, behind another word");
        assert!(is((FRAME << 24) | 7, (moved << 24) | 7));
        assert!(!is(FRAME << 48, moved << 48), "two bytes may be a number");
        assert!(!is(FRAME << 24 | 5, (FRAME - 2 * LOWER) << 24 | 5), "another distance");
        assert!(!is(FRAME >> 16, moved >> 16), "its upper bytes");
        let elsewhere = frames.end + 0x10_0000;
        assert!(!is(elsewhere << 32, (elsewhere - LOWER) << 32), "no frame is there");
        let distance = 0x2a_5b6c_7d8e_u64;
        assert!(!is(distance, distance - LOWER), "the distance to a frame");
    }

    #[test]
    fn upper_parts_of_an_address_lie_behind_something_else() {
        let stack = 0x7ffc_1230_0000..0x7ffc_1232_1000;
        let is = |a, b| is_upper_part(a, b, LOWER, &stack);
        for from in UPPER {
            let upper = |address: u64, low: u64| address >> (8 * from) << (8 * from) | low;
            // As found in opt: a number of 16 bits with what lay there behind it.
            assert!(is(upper(FRAME, 0x20), upper(FRAME - LOWER, 0x20)), "{from}");
            assert!(!is(upper(FRAME, 0x20), upper(FRAME - LOWER, 0x21)), "{from}: another number");
            assert!(!is(upper(FRAME, 0x20), upper(FRAME - 3 * LOWER, 0x20)), "{from}: another distance");
            let elsewhere = FRAME + 0x1000_0000;
            assert!(!is(upper(elsewhere, 0x20), upper(elsewhere - LOWER, 0x20)), "{from}: not on the stack");
        }
        assert!(!is(FRAME >> 16, (FRAME - LOWER) >> 16), "by itself");
        let is = |a, b| is_upper_part(a, b, 0x1234_0000, &stack);
        let upper = |address: u64| address >> 16 << 16 | 0x20;
        assert!(is(upper(FRAME), upper(FRAME - 0x1234_0000)));
        assert!(!is(upper(FRAME), upper(FRAME - 0x1235_0000)), "nothing was borrowed");
    }

    #[test]
    fn the_lowest_bytes_of_an_address_move_with_the_stack() {
        // As found in opt: the end of a string that is shorter than its buffer, and a structure with two numbers of 16 bits.
        let ends = |address: u64| address << 48 | 0x5872_6174_7300;
        let between = |address: u64| 1 << 48 | (address & 0xffff_ffff) << 16 | 0x10;
        let may_be = |a, b| may_be_part(a, b, LOWER);
        for make in [ends as fn(u64) -> u64, between] {
            assert!(may_be(make(FRAME), make(FRAME - LOWER)));
            assert!(!may_be(make(FRAME), make(FRAME - 2 * LOWER)), "another distance");
            assert!(!may_be(make(FRAME), make(FRAME - LOWER) ^ 1), "another word before");
            for apart in [0x1234_5640, 0x7_8642_1a00, 0x40_u64.wrapping_neg()] {
                let is_as_far = |a, b| sizes().any(|(byte, size)| is_moved(a, b, byte, size, apart));
                let other = FRAME.wrapping_sub(apart);
                assert!(is_as_far(make(FRAME), make(other)));
                assert!(!is_as_far(make(FRAME), make(other + 64)), "not where the stack is");
                assert!(!is_as_far(make(FRAME), make(other) ^ 1), "another word before");
            }
        }
        assert!(!may_be(between(FRAME), between(FRAME - LOWER) ^ 2 << 48), "another word behind");
        assert!(!may_be(FRAME, FRAME - LOWER), "all of it");
    }
}
