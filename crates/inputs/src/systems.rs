//! File systems that hold files of somebody's, and those of them whose stamps can be believed.

use std::path::Path;

/// File systems in which files stay as they are until somebody writes, by their numbers, and whether the kernel stamps each change to a
/// file with its own clock. Images and servers may have any times.
const KNOWN: [(u32, bool); 31] = [
    (0xef53, true),       // ext2, ext3, ext4
    (0x5846_5342, true),  // xfs
    (0x9123_683e, true),  // btrfs
    (0x0102_1994, true),  // tmpfs
    (0x8584_58f6, true),  // ramfs
    (0x794c_7630, true),  // overlayfs
    (0x2fc1_2fc1, true),  // zfs
    (0xf2f5_2010, true),  // f2fs
    (0xca45_1a4e, true),  // bcachefs
    (0x6969, false),      // nfs
    (0x6573_5546, false), // fuse, virtiofs
    (0xe0f5_e1e2, false), // erofs
    (0x7371_7368, false), // squashfs
    (0x28cd_3d45, false), // cramfs
    (0x9660, false),      // iso9660
    (0x1501_3346, false), // udf
    (0xf15f, false),      // ecryptfs
    (0x0102_1997, false), // 9p
    (0xff53_4d42, false), // cifs
    (0xfe53_4d42, false), // smb2
    (0x3153_464a, false), // jfs
    (0x5265_4973, false), // reiserfs
    (0x4d44, false),      // vfat
    (0x2011_bab0, false), // exfat
    (0x7366_746e, false), // ntfs3
    (0x6175_6673, false), // aufs
    (0x00c3_6400, false), // ceph
    (0x0bd0_0bd0, false), // lustre
    (0x786f_4256, false), // vboxsf
    (0x0116_1970, false), // gfs2
    (0x7461_636f, false), // ocfs2
];

/// Returns whether what is at `path` lies in a file system that holds files, and does not make them up.
pub(crate) fn holds_files(path: &Path) -> bool {
    kind_of(path).is_some()
}

/// Returns whether each change to the file at `path` would show in its stamp.
pub(crate) fn stamps_changes(path: &Path) -> bool {
    kind_of(path) == Some(true)
}

fn kind_of(path: &Path) -> Option<bool> {
    let number = rustix::fs::statfs(path).ok()?.f_type as u32;
    KNOWN.iter().find(|(known, _)| *known == number).map(|(_, stamps)| *stamps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_file_systems_hold_no_files() {
        for made_up in ["/proc", "/sys"] {
            assert!(!holds_files(Path::new(made_up)) && !stamps_changes(Path::new(made_up)), "{made_up}");
        }
        assert!(holds_files(&std::env::temp_dir()) && !holds_files(Path::new("/absent")));
    }
}
