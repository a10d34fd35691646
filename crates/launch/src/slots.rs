//! The table in shared memory that lists the processes that are alive.
//!
//! The runner takes a slot before it starts a process. The process's number is entered before the process's first instruction
//! could outlive the runner: by a child of the runner before its exec, or by the very clone that makes a zygote's fork. The guard
//! reads the table when the runner was killed. The runner reads it when a zygote died before it could report its fork.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicI64, Ordering};

use rustix::fs::MemfdFlags;

use crate::ProcessGroup;
use crate::sys::shared::Table;

/// Most processes that can be alive at once (`HS_SLOTS`). Further ones are not guarded, and start cold.
pub(crate) const SLOTS: usize = 4096;

/// The runner's table, and the file through which other processes map it.
#[derive(Debug)]
pub(crate) struct Slots {
    table: Table,
    file: OwnedFd,
}

/// A place in the table. Take it before the process is started, and free it before the process is reaped.
#[derive(Clone, Copy, Debug)]
#[must_use = "a slot that is not freed stays taken"]
pub(crate) struct Slot<'s> {
    cell: &'s AtomicI64,
    index: u32,
}

/// A process and its group as one number: `struct hs_slot` on a little-endian machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Process number; 0 while there is no process.
    pub pid: i32,
    /// Process group: 0 for the runner's own, [`Entry::OWN_GROUP`] for the group with the process's number.
    pub pgid: i32,
}

const _: () = assert!(cfg!(target_endian = "little"), "the halves of a slot are where the kernel writes");

impl Entry {
    pub(crate) const OWN_GROUP: i32 = -1;
    /// A taken slot that has no process yet.
    const TAKEN: Entry = Entry { pid: 0, pgid: Entry::OWN_GROUP };

    pub(crate) fn encode(self) -> i64 {
        i64::from(self.pid) << 32 | i64::from(self.pgid as u32)
    }

    pub(crate) fn decode(value: i64) -> Entry {
        Entry { pid: (value >> 32) as i32, pgid: value as i32 }
    }

    /// Returns the number of the group, unless it is the runner's.
    pub(crate) fn group(self) -> Option<i32> {
        match self.pgid {
            Entry::OWN_GROUP => (self.pid > 0).then_some(self.pid),
            pgid => (pgid > 0).then_some(pgid),
        }
    }
}

impl Slots {
    /// Creates a table of free slots; `None` if the system refuses the memory.
    pub(crate) fn new() -> Option<Slots> {
        let file = rustix::fs::memfd_create("hotstart-slots", MemfdFlags::CLOEXEC).ok()?;
        rustix::fs::ftruncate(&file, Table::bytes(SLOTS) as u64).ok()?;
        Some(Slots { table: Table::map(&file, SLOTS).ok()?, file })
    }

    /// Returns the descriptor through which another process maps the same memory.
    pub(crate) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Takes a slot for a process that will be started; `None` if all are taken.
    pub(crate) fn take(&self) -> Option<Slot<'_>> {
        let taken = Entry::TAKEN.encode();
        let free =
            |cell: &AtomicI64| cell.compare_exchange(0, taken, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let (index, cell) = self.table.slots().iter().enumerate().find(|(_, cell)| free(cell))?;
        Some(Slot { cell, index: index as u32 })
    }

    /// Frees all slots.
    pub(crate) fn clear(&self) {
        self.table.slots().iter().for_each(|slot| slot.store(0, Ordering::Release));
    }
}

/// Returns every slot of `table` that has a process.
pub(crate) fn entries(table: &Table) -> impl Iterator<Item = Entry> {
    let entries = table.slots().iter().map(|slot| Entry::decode(slot.load(Ordering::Acquire)));
    entries.filter(|entry| entry.pid > 0)
}

impl Slot<'_> {
    /// Returns the slot's index in the table.
    pub(crate) fn index(self) -> u32 {
        self.index
    }

    /// Returns the cell in which a process enters itself.
    pub(crate) fn cell(&self) -> &AtomicI64 {
        self.cell
    }

    /// Returns the slot's content.
    pub(crate) fn entry(self) -> Entry {
        Entry::decode(self.cell.load(Ordering::Acquire))
    }

    /// Puts a process under guard.
    pub(crate) fn enter(self, entry: Entry) {
        self.cell.store(entry.encode(), Ordering::Release);
    }

    /// Prepares the slot for a process of which only the group is known.
    pub(crate) fn expect(self, group: ProcessGroup) {
        let pgid = match group {
            ProcessGroup::Inherit => 0,
            ProcessGroup::New => Entry::OWN_GROUP,
            ProcessGroup::Join(pgid) => pgid,
        };
        // Never 0, which would mark the slot as free.
        self.enter(if pgid == 0 { Entry { pid: 0, pgid: i32::MIN } } else { Entry { pid: 0, pgid } });
    }

    /// Frees the slot. Call it before the process is reaped.
    pub(crate) fn free(self) {
        self.cell.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_one_processs_until_it_is_freed() {
        let slots = Slots::new().unwrap();
        let (first, second) = (slots.take().unwrap(), slots.take().unwrap());
        assert_eq!((first.index(), second.index()), (0, 1));
        first.enter(Entry { pid: 7, pgid: 5 });
        second.expect(ProcessGroup::New);
        assert_eq!(entries(&slots.table).collect::<Vec<_>>(), [Entry { pid: 7, pgid: 5 }]);
        first.free();
        assert_eq!(slots.take().unwrap().index(), 0);
    }

    /// The kernel does this for a fork: it writes the number, 4 bytes, beside the group that was there.
    #[test]
    fn a_number_written_beside_an_expected_group_makes_an_entry() {
        let slots = Slots::new().unwrap();
        for (group, wanted) in
            [(ProcessGroup::New, Some(9)), (ProcessGroup::Join(4), Some(4)), (ProcessGroup::Inherit, None)]
        {
            let slot = slots.take().unwrap();
            slot.expect(group);
            assert_eq!(slot.entry().pid, 0);
            slot.cell().fetch_or(9 << 32, Ordering::AcqRel);
            assert_eq!((slot.entry().pid, slot.entry().group()), (9, wanted));
        }
    }
}
