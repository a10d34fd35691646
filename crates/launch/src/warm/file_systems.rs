//! File systems that hold somebody's files, and what the stamps of those files tell.
//!
//! The kernel makes up files in others (`/proc`, `/sys`), wherever they are mounted. Only what is listed here is believed.

use std::path::Path;

use rustix::fs::StatVfsMountFlags;
use rustix::io::Errno;

/// What a file's stamps tell: its number, size and times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stamps {
    /// Nothing that is known. An image has the times that its maker chose, and another image can be mounted in its place.
    Unknown,
    /// That the file has changed, by the clock of a server or of another program.
    Reported,
    /// Each change, by this kernel's clock.
    Certain,
}

/// The file systems by their numbers, as statfs returns them.
const KNOWN: [(u32, Stamps); 31] = [
    (0xef53, Stamps::Certain),       // ext2, ext3, ext4
    (0x5846_5342, Stamps::Certain),  // xfs
    (0x9123_683e, Stamps::Certain),  // btrfs
    (0x0102_1994, Stamps::Certain),  // tmpfs
    (0x8584_58f6, Stamps::Certain),  // ramfs
    (0x794c_7630, Stamps::Certain),  // overlayfs
    (0x2fc1_2fc1, Stamps::Certain),  // zfs
    (0xf2f5_2010, Stamps::Certain),  // f2fs
    (0xca45_1a4e, Stamps::Certain),  // bcachefs
    (0x6969, Stamps::Reported),      // nfs
    (0x6573_5546, Stamps::Reported), // fuse, virtiofs
    (0xf15f, Stamps::Reported),      // ecryptfs
    (0x0102_1997, Stamps::Reported), // 9p
    (0xff53_4d42, Stamps::Reported), // cifs
    (0xfe53_4d42, Stamps::Reported), // smb2
    (0x3153_464a, Stamps::Reported), // jfs
    (0xe0f5_e1e2, Stamps::Unknown),  // erofs
    (0x7371_7368, Stamps::Unknown),  // squashfs
    (0x28cd_3d45, Stamps::Unknown),  // cramfs
    (0x9660, Stamps::Unknown),       // iso9660
    (0x1501_3346, Stamps::Unknown),  // udf
    (0x5265_4973, Stamps::Unknown),  // reiserfs
    (0x4d44, Stamps::Unknown),       // vfat
    (0x2011_bab0, Stamps::Unknown),  // exfat
    (0x7366_746e, Stamps::Unknown),  // ntfs3
    (0x6175_6673, Stamps::Unknown),  // aufs
    (0x00c3_6400, Stamps::Unknown),  // ceph
    (0x0bd0_0bd0, Stamps::Unknown),  // lustre
    (0x786f_4256, Stamps::Unknown),  // vboxsf
    (0x0116_1970, Stamps::Unknown),  // gfs2
    (0x7461_636f, Stamps::Unknown),  // ocfs2
];

/// Those in which the stamps of a directory tell each change to its names. An overlay's tell of the topmost layer only.
const STAMP_NAMES: [u32; 6] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x8584_58f6, 0xf2f5_2010];

/// Returns whether what is at `path` lies in a file system that holds files, and does not make them up.
pub fn holds_files(path: &Path) -> bool {
    stamps_at(path).is_ok_and(|stamps| stamps.is_some())
}

/// Returns whether each change to the file at `path` would show in its stamps.
pub fn stamps_changes(path: &Path) -> bool {
    stamps_at(path) == Ok(Some(Stamps::Certain))
}

/// Returns whether each change to the file at `path`, or to the names in the directory, would show in its stamps.
pub(super) fn stamps_names(path: &Path) -> bool {
    file_system(path).is_ok_and(|number| STAMP_NAMES.contains(&number)) && stamps_changes(path)
}

/// Returns whether the file does not exist, or is in a file system that is known to report changes.
pub fn reports_changes(real: &Path) -> bool {
    stamps_at(real).map_or(true, |stamps| stamps >= Some(Stamps::Reported))
}

/// Returns whether the kernel may record each access to the file at `path` (`strictatime`). There the time of last access shows whether a
/// start has read the file. With `relatime`, the default, the kernel records the first access after a change.
pub fn stamps_accesses(path: &Path) -> bool {
    let seldom = StatVfsMountFlags::RDONLY | StatVfsMountFlags::NOATIME | StatVfsMountFlags::RELATIME;
    !rustix::fs::statvfs(path).is_ok_and(|found| found.f_flag.intersects(seldom))
}

/// Returns what the stamps of the file at `path` tell. `None` if its file system is on no list.
fn stamps_at(path: &Path) -> Result<Option<Stamps>, Errno> {
    let number = file_system(path)?;
    Ok(KNOWN.iter().find(|(known, _)| *known == number).map(|(_, stamps)| *stamps))
}

fn file_system(path: &Path) -> Result<u32, Errno> {
    Ok(rustix::fs::statfs(path)?.f_type as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERLAY: u32 = 0x794c_7630;

    #[test]
    fn the_kernels_file_systems_hold_no_files() {
        for made_up in ["/proc", "/proc/self/stat", "/sys/kernel"].map(Path::new) {
            assert!(
                !holds_files(made_up) && !stamps_changes(made_up) && !reports_changes(made_up),
                "{made_up:?}"
            );
        }
    }

    #[test]
    fn a_file_that_does_not_exist_changes_by_being_made() {
        let absent = Path::new("/absent");
        assert!(!holds_files(absent) && !stamps_changes(absent) && reports_changes(absent));
    }

    #[test]
    fn what_stamps_each_change_reports_it() {
        let here = std::env::temp_dir();
        assert!(holds_files(&here) && (reports_changes(&here) || !stamps_changes(&here)));
        assert!(stamps_changes(&here) || !stamps_names(&here));
    }

    #[test]
    fn all_that_stamps_names_stamps_each_change() {
        let stamps = |number| KNOWN.iter().find(|(known, _)| *known == number).map(|(_, stamps)| *stamps);
        assert!(STAMP_NAMES.iter().all(|&number| stamps(number) == Some(Stamps::Certain)));
        assert!(stamps(OVERLAY) == Some(Stamps::Certain) && !STAMP_NAMES.contains(&OVERLAY));
    }
}
