//! The state of a test's own files before it runs.
//!
//! lit removes no files, so a test may pass or fail by what earlier invocations have left. A run that repeats another one has to find what
//! that one found. So these files are read before the first attempt, and restored before each further run: content, modes, times, links
//! and directories. Where a state cannot be restored exactly, it is not kept: the test runs cold at once, and only once.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, IFlags, Mode, OFlags, StatxAttributes, StatxFlags, Timespec, Timestamps,
};
use rustix::io::Errno;

use crate::outputs::{names, open, open_outputs, own, place};

/// Most bytes of one test's files that are kept.
const BYTES_MAX: u64 = 16 << 20;
/// The least number of bytes that a file counts for. To read many small ones takes time.
const BYTES_EACH: u64 = 32 << 10;
/// How deeply directories may be nested to be kept, and to be removed. Each level takes a descriptor.
const DEEP_KEPT: usize = 32;
const DEEP: usize = 500;
/// How often a directory is emptied, if a process that the test has left behind keeps writing to it.
const TRIES: usize = 20;

/// The files of one test, each directory before what is in it.
#[derive(Debug, Default)]
pub(crate) struct Kept(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    path: PathBuf,
    before: Metadata,
    what: What,
}

#[derive(Debug)]
enum What {
    Directory,
    Link(PathBuf),
    File(Vec<u8>),
    Fifo,
}

/// Collects the files of a test.
struct Reader {
    kept: Kept,
    /// Bytes that may still be kept.
    left: u64,
    user: u32,
    /// Those that this user may give to files.
    groups: Vec<u32>,
}

impl Kept {
    /// Reads the files at these paths. `None` if they could not be restored exactly: others' files, files with several names or with
    /// attributes, sockets, devices, what cannot be read, and too much.
    pub(crate) fn read(paths: Vec<PathBuf>) -> Option<Kept> {
        let user = rustix::process::geteuid().as_raw();
        let more = rustix::process::getgroups().unwrap_or_default();
        let groups = more.into_iter().chain([rustix::process::getegid()]).map(Gid::as_raw).collect();
        let mut reader = Reader { kept: Kept::default(), left: BYTES_MAX, user, groups };
        paths.into_iter().try_for_each(|path| reader.add(path, 0))?;
        Some(reader.kept)
    }

    /// Reads the files of the test whose `%t` begins with `base` as they are now.
    pub(crate) fn of(base: &Path) -> Option<Kept> {
        Kept::read(own(base).ok()?)
    }

    /// Makes the test's files what they were. Checks that all can be removed before it removes any. Stops at the first error: behind it, a
    /// link may lead elsewhere.
    pub(crate) fn restore(&self, base: &Path) -> io::Result<()> {
        let known: HashMap<&Path, &Entry> =
            self.0.iter().map(|entry| (entry.path.as_path(), entry)).collect();
        let all = own(base)?;
        if let Some((dir, _)) = place(base).filter(|_| !all.is_empty()) {
            let dir = open_outputs(dir)?;
            let named = || all.iter().map(|path| (path, path.file_name().unwrap_or_default()));
            for (path, name) in named() {
                at(path, can_be_removed(dir.as_fd(), name, 0))?;
            }
            for (path, name) in named() {
                at(path, remove_changed(dir.as_fd(), name, path, &known))?;
            }
        }
        if let Some((dir, _)) = place(base).filter(|_| !self.0.is_empty()) {
            fs::create_dir_all(dir)?;
        }
        for entry in &self.0 {
            at(&entry.path, entry.make())?;
        }
        // What is made in a directory changes its time, and may need its mode.
        for entry in self.0.iter().rev() {
            at(&entry.path, entry.finish())?;
        }
        Ok(())
    }
}

impl Reader {
    fn add(&mut self, path: PathBuf, depth: usize) -> Option<()> {
        let before = path.symlink_metadata().ok()?;
        let (kind, size) = (before.file_type(), before.len().max(BYTES_EACH));
        let is_ours = before.uid() == self.user && self.groups.contains(&before.gid());
        if !is_ours || size > self.left || depth > DEEP_KEPT || has_attributes(&path) {
            return None;
        }
        if hindrance(CWD, path.as_os_str()).is_some() {
            return None;
        }
        let opened = || open(&path, OFlags::NOFOLLOW).ok().filter(|file| !has_flags(file));
        let mut inside = Vec::new();
        let what = if kind.is_symlink() {
            What::Link(read_link(&path, &before).ok()?)
        } else if kind.is_dir() {
            inside = names(opened()?).ok()?.iter().map(|name| path.join(name)).collect();
            What::Directory
        } else if before.nlink() != 1 {
            return None;
        } else if kind.is_fifo() {
            What::Fifo
        } else if kind.is_file() {
            What::File(content(opened()?).ok()?)
        } else {
            return None;
        };
        self.left -= size;
        self.kept.0.push(Entry { path, before, what });
        inside.into_iter().try_for_each(|path| self.add(path, depth + 1))
    }
}

/// Whether a file has extended attributes, access lists among them.
fn has_attributes(path: &Path) -> bool {
    // Each file has one of these, by the system's policy or as NFS tells its mode.
    const LABELS: [&[u8]; 3] = [b"security.selinux\0", b"security.SMACK64\0", b"system.nfs4_acl\0"];
    let mut names = [0u8; 64];
    match rustix::fs::llistxattr(path, &mut names[..]) {
        Ok(size) => size > 0 && !LABELS.contains(&&names[..size]),
        Err(error) => error != Errno::NOTSUP,
    }
}

/// Returns why a file cannot be removed, if the kernel says so. Before 5.8 it does not tell what is mounted.
fn hindrance(dir: BorrowedFd<'_>, name: &OsStr) -> Option<&'static str> {
    const HINDRANCES: [(StatxAttributes, &str); 3] = [
        (StatxAttributes::MOUNT_ROOT, "something is mounted there"),
        (StatxAttributes::IMMUTABLE, "it is immutable"),
        (StatxAttributes::APPEND, "it can only be appended to"),
    ];
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let found = rustix::fs::statx(dir, name, flags, StatxFlags::empty()).ok()?;
    HINDRANCES.iter().find(|(what, _)| found.stx_attributes.contains(*what)).map(|(_, why)| *why)
}

/// Reads a link. The time of its last access, which that may change, is as before.
fn read_link(path: &Path, before: &Metadata) -> io::Result<PathBuf> {
    let target = fs::read_link(path)?;
    let now = path.symlink_metadata()?;
    if (now.atime(), now.atime_nsec()) != (before.atime(), before.atime_nsec()) {
        set_times(path, before)?;
    }
    Ok(target)
}

fn set_times(path: &Path, before: &Metadata) -> io::Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: before.atime(), tv_nsec: before.atime_nsec() },
        last_modification: Timespec { tv_sec: before.mtime(), tv_nsec: before.mtime_nsec() },
    };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Whether somebody has set flags of an inode (`chattr`). A file system sets others, or has none.
fn has_flags(file: &File) -> bool {
    const SET: [IFlags; 11] = [
        IFlags::APPEND,
        IFlags::DIRSYNC,
        IFlags::IMMUTABLE,
        IFlags::JOURNALING,
        IFlags::NOATIME,
        IFlags::NODUMP,
        IFlags::NOTAIL,
        IFlags::SECURE_REMOVAL,
        IFlags::SYNC,
        IFlags::TOPDIR,
        IFlags::UNRM,
    ];
    rustix::fs::ioctl_getflags(file).is_ok_and(|flags| SET.iter().any(|flag| flags.contains(*flag)))
}

fn content(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn at<T>(path: &Path, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), format!("'{}': {error}", path.display())))
}

/// Checks that `name` in `dir` can be removed with all that is in it. Only the devices of directories are compared: on overlayfs, files
/// may have another one than their directory.
fn can_be_removed(dir: BorrowedFd<'_>, name: &OsStr, depth: usize) -> io::Result<()> {
    let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_dir = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    if let Some(why) = hindrance(dir, name) {
        return Err(io::Error::other(why));
    }
    if is_dir && found.st_dev != rustix::fs::fstat(dir)?.st_dev {
        return Err(io::Error::other("another file system is mounted there"));
    }
    if depth > DEEP {
        return Err(io::Error::other("its directories are nested too deeply"));
    }
    if !is_dir {
        return Ok(());
    }
    let inner = open_directory(dir, name, found.st_mode)?;
    names(&inner)?.iter().try_for_each(|name| can_be_removed(inner.as_fd(), name, depth + 1))
}

/// Opens a directory for changes. It may have been closed.
fn open_directory(dir: BorrowedFd<'_>, name: &OsStr, mode: u32) -> io::Result<File> {
    const OPEN: u32 = 0o700;
    if mode & OPEN != OPEN {
        rustix::fs::chmodat(dir, name, Mode::from_raw_mode(mode | OPEN), AtFlags::empty())?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(dir, name, flags, Mode::empty())?))
}

/// Removes what was not there, or is something else now: `name` in `dir`, which has this path. Paths may be too long for the kernel, and
/// what was a directory may be a link.
fn remove_changed(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    path: &Path,
    known: &HashMap<&Path, &Entry>,
) -> io::Result<()> {
    let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let entry = known.get(path);
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        let is_same = entry.is_some_and(|entry| path.symlink_metadata().is_ok_and(|now| entry.is_same(&now)));
        return if is_same { Ok(()) } else { Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?) };
    }
    let inner = open_directory(dir, name, found.st_mode)?;
    let stays = entry.is_some_and(|entry| {
        let is_plain = || !has_attributes(path) && !has_flags(&inner);
        matches!(entry.what, What::Directory) && found.st_uid == entry.before.uid() && is_plain()
    });
    // What is in another directory was not there.
    let nothing = HashMap::new();
    let mut tries = TRIES;
    loop {
        for name in names(&inner)? {
            let path = path.join(&name);
            match remove_changed(inner.as_fd(), &name, &path, if stays { known } else { &nothing }) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        if stays {
            return Ok(());
        }
        tries -= 1;
        match rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY) if tries > 0 => {}
            removed => return Ok(removed?),
        }
    }
}

impl Entry {
    /// Whether a file is the same inode as before, and has what it had, but for modes and times.
    fn is_same(&self, now: &Metadata) -> bool {
        let of = |data: &Metadata| (data.dev(), data.ino(), data.nlink(), data.uid(), data.file_type());
        of(&self.before) == of(now)
            && !has_attributes(&self.path)
            && match &self.what {
                What::Directory => false,
                What::Fifo => true,
                What::Link(target) => fs::read_link(&self.path).is_ok_and(|now| now == *target),
                What::File(bytes) => {
                    let opened = open(&self.path, OFlags::NOFOLLOW).ok().filter(|file| !has_flags(file));
                    now.len() == bytes.len() as u64
                        && opened.and_then(|file| content(file).ok()).is_some_and(|now| now == *bytes)
                }
            }
    }

    fn make(&self) -> io::Result<()> {
        let path = &self.path;
        match (&self.what, path.symlink_metadata()) {
            (What::Directory, Ok(found)) if found.is_dir() => Ok(()),
            (What::Directory, Ok(_)) => Err(ErrorKind::AlreadyExists.into()),
            // Otherwise it would have been removed.
            (_, Ok(_)) => Ok(()),
            (What::Directory, Err(_)) => fs::create_dir(path),
            (What::Link(target), Err(_)) => symlink(target, path),
            (What::File(bytes), Err(_)) => fs::write(path, bytes),
            (What::Fifo, Err(_)) => {
                Ok(rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
            }
        }
    }

    /// Gives it its group, its mode and its times.
    fn finish(&self) -> io::Result<()> {
        let (path, before) = (&self.path, &self.before);
        let found = path.symlink_metadata()?;
        if found.gid() != before.gid() {
            let group = Some(Gid::from_raw(before.gid()));
            rustix::fs::chownat(CWD, path, None, group, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        // After the group, as another one takes bits of the mode away.
        if path.symlink_metadata()?.mode() != before.mode() && !found.is_symlink() {
            fs::set_permissions(path, Permissions::from_mode(before.mode() & 0o7777))?;
        }
        if path.symlink_metadata()?.mode() != before.mode() {
            return Err(io::Error::other("it cannot have its mode again"));
        }
        set_times(path, before)
    }
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
