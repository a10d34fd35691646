//! `tempfile`: the directory of temporary files, and files without a name.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Access, CWD, Mode, OFlags};
use rustix::io::Errno;

/// `tempfile.gettempdir()`, for the environment of this process.
pub fn directory() -> PathBuf {
    let named = ["TMPDIR", "TEMP", "TMP"].into_iter().filter_map(std::env::var_os);
    let usual = ["/tmp", "/var/tmp", "/usr/tmp"].map(OsString::from);
    let writable =
        |dir: &PathBuf| dir.is_dir() && rustix::fs::access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    let candidates = named.filter(|name| !name.is_empty()).chain(usual).map(PathBuf::from);
    let found = candidates.filter_map(|dir| std::path::absolute(dir).ok()).find(writable);
    found.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// `tempfile.TemporaryFile()`: a file without a name, for its owner only. The directory is looked for once, as by Python.
pub fn nameless() -> Result<OwnedFd, Errno> {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    nameless_in(DIRECTORY.get_or_init(directory))
}

fn nameless_in(directory: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::openat(CWD, directory, flags | OFlags::TMPFILE, mode) {
        // Not every file system has such files.
        Err(Errno::ISDIR | Errno::NOENT | Errno::OPNOTSUPP) => {}
        result => return result,
    }
    for number in 0u32.. {
        let path = directory.join(format!("tmp{}_{number}", std::process::id()));
        match rustix::fs::openat(CWD, &path, flags | OFlags::CREATE, mode) {
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
            Ok(file) => return rustix::fs::unlinkat(CWD, &path, rustix::fs::AtFlags::empty()).map(|()| file),
        }
    }
    Err(Errno::EXIST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nameless_file_is_its_owners_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = nameless_in(dir.path()).unwrap();
        let found = rustix::fs::fstat(&file).unwrap();
        assert_eq!((found.st_mode & 0o7777, found.st_nlink, found.st_size), (0o600, 0, 0));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(nameless_in(&dir.path().join("missing")).unwrap_err(), Errno::NOENT);
    }
}
