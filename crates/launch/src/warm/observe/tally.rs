//! Counts the cold starts of a program that nobody has observed, over all runs: an observation costs as much CPU time as ten
//! starts of a large tool, or a hundred of a small one.
//!
//! The count is a file of a byte for each start. Several runners can append to it, and a run that is killed loses nothing.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Subject, store};

/// CPU time that a byte stands for.
const UNIT: Duration = Duration::from_micros(250);
/// Most starts that are stored.
const STARTS_MAX: u64 = 4096;
/// Starts without which nothing is observed: the CPU time of a few may be the tool's own work.
const STARTS_MIN: u32 = 8;

/// Cold starts of a program, and their CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    starts: u32,
    spent: Duration,
}

impl Tally {
    pub(crate) fn add(&mut self, spent: Duration) {
        self.starts += 1;
        self.spent += spent;
    }

    /// Returns whether these starts took as much as an observation, given as `price`, would.
    pub(crate) fn pays(self, price: Duration) -> bool {
        self.starts >= STARTS_MIN && self.spent >= price
    }
}

fn file(directory: &Path, of: &Subject) -> PathBuf {
    store::file(directory, of).with_extension("starts")
}

/// Returns the starts in earlier runs. A file that cannot be read counts nothing.
pub(super) fn load(directory: &Path, of: &Subject) -> Tally {
    let mut tally = Tally::default();
    let bytes = fs::read(file(directory, of)).unwrap_or_default();
    bytes.iter().for_each(|&byte| tally.add(UNIT * u32::from(byte)));
    tally
}

/// Stores one start. If that fails, later runs do not know of it.
pub(super) fn store(directory: &Path, of: &Subject, spent: Duration) {
    let units = spent.as_nanos().div_ceil(UNIT.as_nanos()).min(u128::from(u8::MAX)) as u8;
    let write = || {
        store::make_directory(directory)?;
        let mut file = File::options().append(true).create(true).mode(0o600).open(file(directory, of))?;
        if file.metadata()?.len() < STARTS_MAX { file.write_all(&[units]) } else { Ok(()) }
    };
    let _: std::io::Result<()> = write();
}

/// Forgets all starts, since the program is observed now.
pub(super) fn clear(directory: &Path, of: &Subject) {
    // There may be none.
    let _ = fs::remove_file(file(directory, of));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn many_small_starts_pay_as_few_large_ones() {
        let of = |starts: u32, each| {
            let mut tally = Tally::default();
            (0..starts).for_each(|_| tally.add(each));
            tally
        };
        assert!(!of(STARTS_MIN - 1, 1000 * MS).pays(100 * MS));
        assert!(of(STARTS_MIN, 100 * MS).pays(100 * MS));
        assert!(!of(99, MS).pays(100 * MS) && of(100, MS).pays(100 * MS));
    }

    #[test]
    fn later_runs_know_of_the_starts_of_earlier_ones() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("new");
        let of = Subject { program: "/bin/tool".into(), allocator: None };
        assert_eq!(load(&dir, &of), Tally::default());
        store(&dir, &of, MS);
        store(&dir, &of, 1000 * MS);
        store(&dir, &Subject { program: "/bin/other".into(), allocator: None }, MS);
        assert_eq!(load(&dir, &of), Tally { starts: 2, spent: MS + UNIT * 255 });
        clear(&dir, &of);
        assert_eq!(load(&dir, &of), Tally::default());
    }
}
