//! Paths to files that the kernel makes up for each process that asks, and file systems that tell when a file changes.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Directories whose files the kernel generates.
const MADE_UP: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Returns whether a path, in which no link is left, lies in one of these directories.
pub(super) fn is_made_up(real: &Path) -> bool {
    MADE_UP.iter().any(|dir| real.starts_with(dir))
}

/// Whether a path goes through a directory of the kernel's, which may lead out again: `/usr/../proc/self/cwd`, or a link to that.
pub fn leads_through_made_up(path: &Path) -> bool {
    const LINKS_MAX: usize = 40;
    let mut links = 0;
    let mut left: Vec<PathBuf> = vec![path.to_owned()];
    let mut at = PathBuf::from("/");
    while let Some(rest) = left.pop() {
        let mut parts = rest.components();
        let Some(part) = parts.next() else { continue };
        left.push(parts.as_path().to_owned());
        match part {
            Component::RootDir => at = PathBuf::from("/"),
            Component::ParentDir => drop(at.pop()),
            other => at.push(other),
        }
        if is_made_up(&at) {
            return true;
        }
        if let Ok(target) = std::fs::read_link(&at) {
            links += 1;
            if links > LINKS_MAX {
                return true;
            }
            at.pop();
            left.push(target);
        }
    }
    false
}

/// Returns whether the file does not exist, or is in a file system that is known to report changes.
pub fn stamps_files(real: &Path) -> bool {
    const KNOWN: [u32; 19] = [
        0xef53,      // ext2, ext3, ext4
        0x5846_5342, // xfs
        0x9123_683e, // btrfs
        0x0102_1994, // tmpfs
        0x8584_58f6, // ramfs
        0x794c_7630, // overlayfs
        0x6969,      // nfs
        0x6573_5546, // fuse, virtiofs
        0xe0f5_e1e2, // erofs
        0x7371_7368, // squashfs
        0x2fc1_2fc1, // zfs
        0xf2f5_2010, // f2fs
        0x9660,      // iso9660
        0xf15f,      // ecryptfs
        0x0102_1997, // 9p
        0xca45_1a4e, // bcachefs
        0xff53_4d42, // cifs
        0xfe53_4d42, // smb2
        0x3153_464a, // jfs
    ];
    let Ok(path) = CString::new(real.as_os_str().as_bytes()) else { return false };
    match rustix::fs::statfs(path.as_c_str()) {
        Ok(found) => KNOWN.contains(&(found.f_type as u32)),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_in_no_file_system_that_stamps_them() {
        assert!(!stamps_files(Path::new("/proc/self/stat")) && !stamps_files(Path::new("/sys/kernel")));
        assert!(stamps_files(Path::new("/absent")));
    }
}
