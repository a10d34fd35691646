//! The standard descriptors as constructors see them: the classes of descriptors, and a sample of each class.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, MemfdFlags, Mode, SeekFrom, Stat, Timespec, Timestamps};

use crate::Spec;

const PERMISSIONS: u32 = 0o7777;
/// The file system of pipes without a name (linux/magic.h).
const PIPES: u64 = 0x5049_5045;
/// The greatest age of a file that counts as made for its start. A placeholder is new as well.
const NEW: Duration = Duration::from_secs(600);

/// The answers of `fstat` and `lseek` for a descriptor, as far as a zygote can have a similar one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The null device.
    Null,
    /// A pipe without a name.
    Pipe,
    /// A socket.
    Socket,
    /// A terminal.
    Terminal,
    /// An empty regular file of the runner's own user with these permissions and at most one name, made lately. (A constructor may choose
    /// its buffers by the size, or act by the owner or by the age.)
    File(u16),
    /// Any other. A tool that looks at such a descriptor is started cold.
    Other,
}

/// Returns the class of an open descriptor.
pub(crate) fn class(fd: BorrowedFd<'_>) -> Class {
    let Ok(stat) = rustix::fs::fstat(fd) else { return Class::Other };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo if rustix::fs::fstatfs(fd).is_ok_and(|system| system.f_type as u64 == PIPES) => {
            Class::Pipe
        }
        FileType::Socket => Class::Socket,
        FileType::CharacterDevice if is_null(&stat) => Class::Null,
        FileType::CharacterDevice if rustix::termios::isatty(fd) => Class::Terminal,
        FileType::RegularFile
            if stat.st_size == 0 && stat.st_blocks == 0 && stat.st_nlink <= 1 && is_made_for_it(&stat) =>
        {
            let is_at_begin = rustix::fs::seek(fd, SeekFrom::Current(0)) == Ok(0);
            if is_at_begin { Class::File((stat.st_mode & PERMISSIONS) as u16) } else { Class::Other }
        }
        _ => Class::Other,
    }
}

/// Returns whether this is the null device under its own name. Another node may have another owner or age.
fn is_null(stat: &Stat) -> bool {
    let null = rustix::fs::makedev(1, 3);
    let own = || rustix::fs::stat("/dev/null").map(|own| (own.st_dev, own.st_ino));
    stat.st_rdev == null && own() == Ok((stat.st_dev, stat.st_ino))
}

fn is_made_for_it(stat: &Stat) -> bool {
    let is_ours = stat.st_uid == rustix::process::geteuid().as_raw()
        && stat.st_gid == rustix::process::getegid().as_raw();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as i64;
    is_ours
        && [stat.st_atime, stat.st_mtime, stat.st_ctime]
            .iter()
            .all(|time| (now - NEW.as_secs() as i64..=now).contains(time))
}

impl Class {
    /// A temporary file of lit's, which takes a stage's standard error: its owner's only (`tempfile.TemporaryFile`).
    pub(crate) const TEMPORARY: Class = Class::File(0o600);

    /// Appends what tells it from others.
    pub(crate) fn write(self, key: &mut Vec<u8>) {
        let (kind, permissions) = match self {
            Class::Null => (0, 0),
            Class::Pipe => (1, 0),
            Class::Socket => (2, 0),
            Class::Terminal => (3, 0),
            Class::File(permissions) => (4, permissions),
            Class::Other => (5, 0),
        };
        key.push(kind);
        key.extend(permissions.to_le_bytes());
    }
}

/// Returns whether Python's stream on this descriptor is one of a zygote that is opened again: it is no terminal, and can be opened.
pub(crate) fn is_plain(fd: BorrowedFd<'_>) -> bool {
    let Ok(stat) = rustix::fs::fstat(fd) else { return false };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo | FileType::Socket | FileType::RegularFile => true,
        _ => class(fd) == Class::Null,
    }
}

/// Returns the classes of a request's three standard descriptors.
pub(crate) fn classes(spec: &Spec<'_>) -> [Class; 3] {
    spec.stdio.map(class)
}

/// A descriptor of some class, with the other end that keeps it open.
#[derive(Debug)]
pub(crate) struct Stand {
    pub fd: OwnedFd,
    _other_end: Option<OwnedFd>,
}

/// Sets the times of a placeholder in the order read, written, changed. The second observation run is told the opposite order.
fn age(fd: &OwnedFd) -> std::io::Result<()> {
    let ago = |seconds: u64| {
        let since =
            (SystemTime::now() - Duration::from_secs(seconds)).duration_since(UNIX_EPOCH).unwrap_or_default();
        Timespec { tv_sec: since.as_secs() as i64, tv_nsec: 0 }
    };
    Ok(rustix::fs::futimens(fd, &Timestamps { last_access: ago(200), last_modification: ago(100) })?)
}

/// Makes a descriptor of this class. A file is empty.
pub(crate) fn placeholder(class: Class) -> std::io::Result<Stand> {
    let one = |fd| Stand { fd, _other_end: None };
    let two = |(fd, end)| Stand { fd, _other_end: Some(end) };
    let aged = |stand: Stand| age(&stand.fd).map(|()| stand);
    Ok(match class {
        Class::Null => one(File::options().read(true).write(true).open("/dev/null")?.into()),
        Class::Pipe => aged(two(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?))?,
        Class::Socket => aged(two(crate::sys::channel::pair()?))?,
        Class::Terminal => {
            use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
            let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
            grantpt(&ours)?;
            unlockpt(&ours)?;
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let theirs = ioctl_tiocgptpeer(&ours, flags)?;
            two((theirs, ours))
        }
        Class::File(permissions) => {
            let file = rustix::fs::memfd_create("hotstart-output", MemfdFlags::CLOEXEC)?;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(u32::from(permissions)))?;
            aged(one(file))?
        }
        Class::Other => one(rustix::fs::memfd_create("hotstart-output", MemfdFlags::CLOEXEC)?),
    })
}
