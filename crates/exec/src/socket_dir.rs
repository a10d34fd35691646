//! The directory in which a user's server and clients meet.
//!
//! Only its owner may enter it, since access to the socket is enough to run programs as the user. `client/connect.c` chooses
//! and checks the directory by the same rules.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::net::SocketAddrUnix;

use crate::wire;

/// A directory that belongs to the user and is closed to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketDir {
    directory: PathBuf,
}

/// The reason why there can be no server.
#[derive(Debug)]
pub enum SocketDirError {
    /// Another user may have made the directory.
    Unsafe(PathBuf, &'static str),
    /// The directory can be neither found nor made.
    Io(PathBuf, io::Error),
}

impl fmt::Display for SocketDirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SocketDirError::Unsafe(path, why) => write!(
                f,
                "'{}' {why}, so that no server is used and every command runs as it is; remove it, or name another \
                 directory in HOTSTART_EXEC_DIR",
                path.display()
            ),
            SocketDirError::Io(path, error) => {
                write!(f, "cannot use directory '{}': {error}", path.display())
            }
        }
    }
}

impl std::error::Error for SocketDirError {}

impl SocketDir {
    /// Finds the directory that the environment asks for, and makes it if it is missing.
    pub fn find() -> Result<SocketDir, SocketDirError> {
        let directory = choose();
        match std::fs::DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(SocketDirError::Io(directory, error));
            }
            _ => {}
        }
        Self::check(directory)
    }

    /// Finds the directory without making it. The error of kind `Io` with `NotFound` says that there is none, and so no server.
    pub fn existing() -> Result<SocketDir, SocketDirError> {
        Self::check(choose())
    }

    fn check(directory: PathBuf) -> Result<SocketDir, SocketDirError> {
        let found = match std::fs::symlink_metadata(&directory) {
            Ok(found) => found,
            Err(error) => return Err(SocketDirError::Io(directory, error)),
        };
        let wrong = if found.is_symlink() {
            "is a symbolic link"
        } else if !found.is_dir() {
            "is not a directory"
        } else if found.uid() != own_user() {
            "belongs to another user"
        } else if found.mode() & 0o077 != 0 {
            "is open to others (its mode must be 0700)"
        } else {
            return Ok(SocketDir { directory });
        };
        Err(SocketDirError::Unsafe(directory, wrong))
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join(wire::SOCKET)
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddrUnix> {
        Ok(SocketAddrUnix::new(self.socket())?)
    }

    /// Takes the lock of this user's server; `None` if another process has it.
    pub(crate) fn lock(&self) -> io::Result<Option<File>> {
        Self::locked(&self.directory.join(format!("{}.lock", wire::SOCKET)))
    }

    /// Creates a file whose lock shows that this server or its guard lives. Removes those of dead servers.
    pub(crate) fn alive(&self) -> io::Result<File> {
        for entry in std::fs::read_dir(&self.directory)?.flatten() {
            let is_old = entry.file_name().to_string_lossy().starts_with("alive-");
            if is_old && Self::locked(&entry.path())?.is_some() {
                std::fs::remove_file(entry.path())?;
            }
        }
        let taken = || io::Error::other("another server has this process's number");
        Self::locked(&self.alive_file())?.ok_or_else(taken)
    }

    fn alive_file(&self) -> PathBuf {
        self.directory.join(format!("alive-{}", std::process::id()))
    }

    fn locked(path: &Path) -> io::Result<Option<File>> {
        let no_link = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let mut options = File::options();
        let file =
            options.write(true).create(true).truncate(false).mode(0o600).custom_flags(no_link).open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the file `starting`, so that clients can start the next server at once if this one ends.
    pub(crate) fn started(&self) {
        // If the file is missing, there is nothing to do.
        let _ = std::fs::remove_file(self.directory.join("starting"));
    }

    /// Removes the file that an orderly end would leave.
    pub(crate) fn left(&self) {
        let _ = std::fs::remove_file(self.alive_file());
    }
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn choose() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(named) = variable("HOTSTART_EXEC_DIR") {
        return named;
    }
    // After `su` the variable may name another user's directory.
    let is_own = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == own_user())
    };
    match variable("XDG_RUNTIME_DIR").filter(is_own) {
        Some(session) => session.join("hotstart"),
        None => PathBuf::from(format!("/tmp/hotstart-{}", own_user())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_an_own_private_directory_will_do() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own");
        std::fs::DirBuilder::new().mode(0o700).create(&own).unwrap();
        assert_eq!(SocketDir::check(own.clone()).unwrap().directory(), own);
        let link = dir.path().join("link");
        symlink(&own, &link).unwrap();
        let refused = |path: &Path| SocketDir::check(path.to_owned()).unwrap_err().to_string();
        assert!(refused(&link).contains("is a symbolic link"));
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o750)).unwrap();
        assert!(refused(&own).contains("is open to others"));
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(refused(&dir.path().join("file")).contains("is not a directory"));
        assert!(refused(&dir.path().join("absent")).contains("cannot use"));
    }

    #[test]
    fn one_server_has_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let socket_dir = SocketDir::check(dir.path().to_owned()).unwrap();
        let lock = socket_dir.lock().unwrap();
        assert!(lock.is_some());
        assert!(socket_dir.lock().unwrap().is_none());
        drop(lock);
        assert!(socket_dir.lock().unwrap().is_some());
    }
}
