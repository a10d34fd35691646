//! What the second observation run is shown in place of what the first one saw. A constructor that keeps any of it, or decides by it, makes
//! the two differ.

use std::os::unix::fs::FileExt;

use super::Refusal;
use super::calls::refuse;
use super::run::{Run, lost};
use crate::Reason;
use crate::sys::registers::Registers;

/// The random bytes of every observation run. libc makes its stack guard of the first half and its pointer guard of the other.
pub(super) const RANDOM: &[u8; 16] = b"\x5ahotstart-observ";
pub(super) const POINTER_GUARD: u64 = u64::from_ne_bytes(*b"t-observ");

/// The place and the size of a field of `struct stat`, which is libc's as well as the kernel's.
macro_rules! field {
    ($name:ident) => {
        (std::mem::offset_of!(libc::stat, $name) as u64, size_of_field(|stat: &libc::stat| &stat.$name))
    };
}

fn size_of_field<T>(_: fn(&libc::stat) -> &T) -> usize {
    size_of::<T>()
}

impl Run<'_> {
    /// Gives the second run other random bytes, once the loader has made its guards of them: it registers the thread, makes the
    /// guards, and then relocates. If a constructor keeps any of them, the runs differ.
    pub(super) fn vary_random(&mut self, number: i64) -> Result<(), Refusal> {
        let registers =
            [libc::SYS_set_tid_address, libc::SYS_set_robust_list, libc::SYS_rseq].contains(&number);
        if self.turn == 1 || self.has_other_random || self.seen.thread_id == 0 || registers {
            return Ok(());
        }
        self.has_other_random = true;
        self.write_random(&self.other_random())
    }

    /// Returns the random bytes of a further run.
    fn other_random(&self) -> [u8; 16] {
        let mask = self.mask.to_ne_bytes();
        std::array::from_fn(|at| RANDOM[at] ^ mask[at % mask.len()].rotate_left(at as u32 / 8))
    }

    /// Returns the number of its thread that libc is told. That of a further run differs from the first one's by the mask: processes that
    /// start one after the other have numbers with the same upper bits, and a constructor could take these from a lock that it holds.
    pub(super) fn number(&self) -> u64 {
        // The kernel's greatest limit of numbers is 2^22.
        const BITS: i32 = 0x3f_ffff;
        (if self.turn == 2 { ((self.first ^ self.mask as i32) & BITS).max(1) } else { self.pid }) as u64
    }

    /// Tells it, at the end of the call that tells it the kernel's.
    pub(super) fn vary_number(&self) -> Result<(), Refusal> {
        let registers = Registers::of(self.pid).map_err(lost)?;
        registers.answer(self.pid, self.number()).map_err(lost)
    }

    /// Refuses a program whose constructors have changed the random bytes, which each start has anew. Then gives it the first ones again.
    pub(super) fn restore_random(&self) -> Result<(), Refusal> {
        let expected = if self.has_other_random { self.other_random() } else { *RANDOM };
        let mut found = expected;
        if self.random != 0 {
            self.memory.read_exact_at(&mut found, self.random).map_err(lost)?;
        }
        if found != expected {
            return refuse(Reason::KeepsArguments, "the kernel's random bytes are changed");
        }
        self.write_random(RANDOM)
    }

    pub(super) fn write_random(&self, bytes: &[u8; 16]) -> Result<(), Refusal> {
        if self.random == 0 { Ok(()) } else { self.write(self.random, bytes) }
    }

    /// Shows a different file of the same kind: changes every field of `struct stat` but the file type and the number of the
    /// null device, which are in the key, and the size of blocks of a file of the kernel's, which is always the same. If a
    /// constructor keeps a field, or a decision made by it, the runs differ.
    pub(super) fn vary_file(&self, stat: u64, is_stream: bool) -> Result<(), Refusal> {
        const PERMISSIONS: u64 = 0o7777;
        let [device, number, inode] = [field!(st_dev), field!(st_rdev), field!(st_ino)];
        let [links, mode, user, group] = [field!(st_nlink), field!(st_mode), field!(st_uid), field!(st_gid)];
        let [size, block_size, blocks] = [field!(st_size), field!(st_blksize), field!(st_blocks)];
        let is_null = self.field(stat, number)? == rustix::fs::makedev(1, 3);
        let others = [(number, !is_null), (block_size, is_stream)];
        let others = others.into_iter().filter_map(|(field, varies)| varies.then_some(field));
        for field in [inode, user, group] {
            self.set_field(stat, field, self.field(stat, field)? ^ self.mask)?;
        }
        for field in others {
            self.set_field(stat, field, self.field(stat, field)? + 1)?;
        }
        // A placeholder lies on no device. What tests write, as a rule, does.
        let now = self.field(stat, device)?;
        self.set_field(stat, device, if is_stream { rustix::fs::makedev(253, 1) } else { now + 1 })?;
        // Served files are empty (stdio.rs).
        for field in [links, size, blocks] {
            self.set_field(stat, field, u64::from(self.field(stat, field)? == 0))?;
        }
        self.set_field(stat, mode, self.field(stat, mode)? ^ PERMISSIONS)?;
        // Three times of two words, in 1970: older than any file they may be compared with, and in another order than a
        // placeholder's.
        let times: [u64; 6] = [3, 0, 2, 0, 1, 0];
        self.write(
            stat + std::mem::offset_of!(libc::stat, st_atime) as u64,
            &times.map(u64::to_le_bytes).concat(),
        )
    }

    /// A field of a structure in the process, by its place and size.
    fn field(&self, at: u64, (place, size): (u64, usize)) -> Result<u64, Refusal> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes[..size], at + place).map_err(lost)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn set_field(&self, at: u64, (place, size): (u64, usize), value: u64) -> Result<(), Refusal> {
        self.write(at + place, &value.to_le_bytes()[..size])
    }
}
