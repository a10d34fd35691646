//! A file's identity: what is compared of it to detect that it is no longer the one that a process has looked at.
//!
//! The identity of a file that is only read is its content's: device, inode, size and times of change. A program that asks about a file
//! is told more, so all of the answer is compared. A look that fails has its error as identity.

use std::ffi::{CStr, OsStr};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Access, AtFlags, CWD, FileType, Stat, Statx, StatxFlags};
use rustix::io::Errno;

use super::exe;

/// The aspect of a path that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Aspect {
    /// The file behind the path, whatever links lead there.
    File,
    /// The link itself, if it is one.
    Link,
    /// Whether there is a directory, whatever is in it, and whichever it is.
    Place,
    /// Its identity without its content, and without following a link: something that is no link.
    NoLink,
    /// Its content, if the system does not report when it changes.
    Content,
    /// The file behind the path, with everything that a call can tell about it: time of last access, mount, blocks.
    Stat,
    /// The same of the link itself.
    LinkStat,
    /// Whether these kinds of access (`W_OK`, `X_OK`) are granted. It depends on the mount as well.
    Access(u8),
    /// The path by which the kernel knows the file behind it.
    Exe,
}

/// A file's identity, or the error with which a look at it fails.
pub(super) type Found = Result<Identity, i32>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    pub device: u64,
    pub inode: u64,
    pub size: i64,
    pub modified: (i64, i64),
    pub changed: (i64, i64),
    pub is_directory: bool,
    /// A hash of what else was told about it.
    pub rest: u64,
}

pub(super) fn identify(path: &CStr) -> Found {
    rustix::fs::stat(path).map(Identity::new).map_err(Errno::raw_os_error)
}

pub(super) fn identify_aspect(path: &CStr, aspect: Aspect) -> Found {
    match aspect {
        Aspect::File => identify(path),
        Aspect::Place => identify(path).and_then(Identity::place),
        Aspect::Link => identify_link(path),
        Aspect::NoLink => rustix::fs::lstat(path).map(Identity::of_kind).map_err(Errno::raw_os_error),
        Aspect::Content => std::fs::read(OsStr::from_bytes(path.to_bytes()))
            .map(|content| Identity::of_text(&content))
            .map_err(|error| error.raw_os_error().unwrap_or(0)),
        Aspect::Stat => identify(path).map(|identity| identity.with_rest(path, AtFlags::empty())),
        Aspect::LinkStat => {
            identify_link(path).map(|identity| identity.with_rest(path, AtFlags::SYMLINK_NOFOLLOW))
        }
        Aspect::Access(kinds) => {
            let kinds = Access::from_bits_truncate(kinds.into());
            rustix::fs::access(path, kinds).map(|()| Identity::default()).map_err(Errno::raw_os_error)
        }
        Aspect::Exe => Ok(Identity::of_text(&exe::of_file(Path::new(OsStr::from_bytes(path.to_bytes()))))),
    }
}

fn identify_link(path: &CStr) -> Found {
    rustix::fs::lstat(path).map(Identity::new).map_err(Errno::raw_os_error)
}

/// Returns whether both are the same but for `rest`.
pub(super) fn is_like(one: Found, other: Found) -> bool {
    let plain = |found: Found| found.map(|identity| Identity { rest: 0, ..identity });
    plain(one) == plain(other)
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Every field of the answer that a kernel of today can give.
fn hash_all(stat: &Statx) -> u64 {
    let times = [stat.stx_atime, stat.stx_btime, stat.stx_ctime, stat.stx_mtime]
        .map(|time| (time.tv_sec, time.tv_nsec));
    let small = [
        stat.stx_mask,
        stat.stx_blksize,
        stat.stx_nlink,
        stat.stx_uid,
        stat.stx_gid,
        stat.stx_mode.into(),
        stat.stx_rdev_major,
        stat.stx_rdev_minor,
        stat.stx_dev_major,
        stat.stx_dev_minor,
        stat.stx_dio_mem_align,
        stat.stx_dio_offset_align,
        stat.stx_dio_read_offset_align,
        stat.stx_atomic_write_unit_min,
        stat.stx_atomic_write_unit_max,
        stat.stx_atomic_write_unit_max_opt,
        stat.stx_atomic_write_segments_max,
    ];
    let large = [
        stat.stx_ino,
        stat.stx_size,
        stat.stx_blocks,
        stat.stx_attributes.bits(),
        stat.stx_attributes_mask.bits(),
        stat.stx_mnt_id,
        stat.stx_subvol,
    ];
    hash((times, small, large))
}

impl Identity {
    fn new(stat: Stat) -> Self {
        Identity {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
            is_directory: FileType::from_raw_mode(stat.st_mode).is_dir(),
            rest: 0,
        }
    }

    /// Of something that has no other identity than its content.
    pub(super) fn of_text(text: &[u8]) -> Self {
        Identity { inode: hash(text), size: text.len() as i64, ..Identity::default() }
    }

    /// With everything else that the kernel tells about the file. If it tells nothing, the file is never the same again.
    fn with_rest(self, path: &CStr, flags: AtFlags) -> Self {
        static UNKNOWN: AtomicU64 = AtomicU64::new(0);
        // All bits but the reserved one: a kernel ignores those that it does not know.
        let all = StatxFlags::from_bits_retain(u32::MAX >> 1);
        let stat = rustix::fs::statx(CWD, path, flags, all);
        let rest = stat.map_or_else(|_| UNKNOWN.fetch_add(1, Ordering::Relaxed), |stat| hash_all(&stat));
        Identity { rest, ..self }
    }

    /// Whether it is a symbolic link, and no more. (The next file may have its number.)
    fn of_kind(stat: Stat) -> Self {
        Identity { inode: FileType::from_raw_mode(stat.st_mode).is_symlink().into(), ..Identity::default() }
    }

    /// Any directory.
    pub(super) fn place(self) -> Found {
        let place = Identity { is_directory: true, ..Identity::default() };
        if self.is_directory { Ok(place) } else { Err(Errno::NOTDIR.raw_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;

    #[test]
    fn each_error_of_a_look_is_an_identity_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (file, below) =
            (dir.path().join("a"), CString::new(dir.path().join("a/x").as_os_str().as_bytes()).unwrap());
        let aspects = [
            Aspect::File,
            Aspect::Link,
            Aspect::Place,
            Aspect::NoLink,
            Aspect::Stat,
            Aspect::LinkStat,
            Aspect::Access(2),
        ];
        let expect = |error| {
            for aspect in aspects {
                assert_eq!(identify_aspect(&below, aspect), Err(error), "{aspect:?}");
            }
        };
        expect(libc::ENOENT);
        std::fs::write(&file, "").unwrap();
        expect(libc::ENOTDIR);
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("a", &file).unwrap();
        expect(libc::ELOOP);
    }

    #[test]
    fn an_access_that_is_granted_differs_from_one_that_is_not() {
        assert!(identify_aspect(c"/bin/sh", Aspect::Access(1)).is_ok());
        assert_eq!(identify_aspect(c"/etc/passwd", Aspect::Access(1)), Err(libc::EACCES));
    }
}
