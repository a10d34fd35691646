//! Tells where a path leads, as far as that may be elsewhere for another process, and whether it still leads there.
//!
//! On /proc and below /dev are files that each process sees differently. bash and this runner are two processes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, lstat, openat, readlinkat, statx};
use rustix::io::Errno;

use super::Refusal;

/// As many links as the kernel follows.
const LINKS: usize = 40;

const SPECIAL: Refusal = "a path that leads to /proc, to a device, or to an unknown file system";
const UNCERTAIN: Refusal = "a path that cannot be followed";

/// Whether a path, as it is written, is on /proc or below /dev. /dev/null is as good as a file.
pub(super) fn is_special(path: &str) -> bool {
    if !path.starts_with('/') || path == "/dev/null" {
        return false;
    }
    let first = Path::new(path).components().find(|part| *part != Component::RootDir);
    matches!(first, Some(Component::Normal(name)) if name == "proc" || name == "dev")
}

/// Follows an absolute path as the kernel does. Accepts it if it leads to an ordinary file or directory, to /dev/null, or to nothing.
pub(super) fn check(path: &Path) -> Result<(), Refusal> {
    let mut ahead = Vec::new();
    push(&mut ahead, path);
    let (mut at, mut device, mut links) = (PathBuf::from("/"), None, 0);
    loop {
        let found = match lstat(&at) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
            Err(_) => return Err(UNCERTAIN),
        };
        if at == Path::new("/proc") {
            return Err(SPECIAL);
        }
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => {
                links += 1;
                let target = readlinkat(CWD, &at, Vec::new()).map_err(|_| UNCERTAIN)?;
                if links > LINKS {
                    return Err(UNCERTAIN);
                }
                at.pop();
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                push(&mut ahead, &target);
            }
            FileType::Directory if at == Path::new("/dev") => {
                return if ahead == ["null"] && is_null() { Ok(()) } else { Err(SPECIAL) };
            }
            FileType::Directory | FileType::RegularFile => {
                // A mount, of a single file, too, is another device.
                let is_other = device.replace(found.st_dev) != Some(found.st_dev);
                if is_other && !hotstart_launch::holds_files(&at) {
                    return Err(SPECIAL);
                }
            }
            _ => return Err(SPECIAL),
        }
        match ahead.pop() {
            Some(part) if part == ".." => drop(at.pop()),
            Some(part) => at.push(part),
            None => return Ok(()),
        }
    }
}

/// Puts a path's components onto the stack of those that are still to follow.
fn push(ahead: &mut Vec<OsString>, path: &Path) {
    let parts = path.as_os_str().as_bytes().split(|&byte| byte == b'/').rev();
    let named = parts.filter(|part| !matches!(*part, b"" | b"."));
    ahead.extend(named.map(|part| OsStr::from_bytes(part).to_owned()));
}

fn is_null() -> bool {
    lstat("/dev/null").is_ok_and(|found| {
        let number = (rustix::fs::major(found.st_rdev), rustix::fs::minor(found.st_rdev));
        FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice && number == (1, 3)
    })
}

/// The directory in which bash would be. Held as bash holds its own: as long as it is, no new one can have its number.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    _file: Arc<OwnedFd>,
    identity: Identity,
}

/// Device, inode and mount.
type Identity = (u32, u32, u64, u64);

impl Held {
    /// Goes to a directory.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let file = openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Held { identity: identity(&file, Path::new(""), AtFlags::EMPTY_PATH)?, _file: Arc::new(file) })
    }

    /// Whether a path still leads to it.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        identity(CWD, path, AtFlags::empty()).is_ok_and(|now| now == self.identity)
    }
}

fn identity(dir: impl std::os::fd::AsFd, path: &Path, flags: AtFlags) -> io::Result<Identity> {
    let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
    let found = statx(dir, path, flags, wanted)?;
    match found.stx_mask & wanted.bits() == wanted.bits() {
        true => Ok((found.stx_dev_major, found.stx_dev_minor, found.stx_ino, found.stx_mnt_id)),
        false => Err(io::ErrorKind::Unsupported.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_are_followed_to_their_ends() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |name: &str| check(&root.join(name));
        fs::write(root.join("file"), "").unwrap();
        for (name, target) in [
            ("null", "/dev/null"),
            ("output", "/proc/self/fd/1"),
            ("over", "output"),
            ("up", "../../../../../../proc/self"),
            ("dev", "/dev"),
            ("fine", "./file"),
            ("dangling", "nothing"),
            ("loop", "loop"),
        ] {
            symlink(target, root.join(name)).unwrap();
        }
        for name in [
            "", "file", "none", "none/x", "file/x", "null", "fine", "dangling", "../..", "dev/null",
            "//./file",
        ] {
            assert_eq!(at(name), Ok(()), "{name}");
        }
        for name in [
            "output",
            "over",
            "up",
            "up/comm",
            "dev/fd/255",
            "dev/stdin",
            "dev/zero",
            "dev",
            "dev/shm/x",
            "/proc/self/../1",
        ] {
            assert_eq!(at(name), Err(SPECIAL), "{name}");
        }
        assert_eq!(at("loop"), Err(UNCERTAIN));
        rustix::fs::mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(at("pipe"), Err(SPECIAL), "who opens it may wait");
    }

    #[test]
    fn what_is_special_shows_as_it_is_written() {
        for path in ["/dev/fd/255", "/proc", "//proc/self", "/./dev/tty", "/dev/null/x", "/dev"] {
            assert!(is_special(path), "{path}");
        }
        for path in ["/dev/null", "/device", "dev/fd/1", "/", "", "/a/proc/b"] {
            assert!(!is_special(path), "{path}");
        }
    }

    #[test]
    fn a_directory_that_is_replaced_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::create_dir(&path).unwrap();
        let held = Held::of(&path).unwrap();
        assert!(held.is_at(&path));
        fs::remove_dir(&path).unwrap();
        assert!(!held.is_at(&path));
        fs::create_dir(&path).unwrap();
        assert!(!held.is_at(&path), "with the same number, if that was free");
        assert!(Held::of(&dir.path().join("none")).is_err());
    }
}
