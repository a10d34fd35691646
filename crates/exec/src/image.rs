//! The client's file: embedded in this binary, run from memory by `hotstart exec`, and installed where builds find it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::MemfdFlags;
use rustix::process::Resource;

const IMAGE: &[u8] = include_bytes!(env!("HOTSTART_CLIENT"));
/// The client's name. If its argv[0] begins otherwise, the client runs the program of that name.
pub(crate) const NAME: &str = "hotstart-exec";

/// Executes the client with these arguments after its name. Returns only an error. If the system does not let files be run
/// from memory, or a limit forbids a file of this size, executes the command itself.
pub fn become_client(arguments: &[OsString]) -> io::Error {
    let own = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let mut named = OsString::from("--hotstart=");
    named.push(own);
    if let Ok(memory) = in_memory() {
        let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
        let _ = Command::new(path).arg0(NAME).arg(named).args(arguments).exec();
    }
    let arguments = match arguments {
        [dashes, rest @ ..] if dashes == "--" => rest,
        all => all,
    };
    match arguments {
        [program, rest @ ..] => Command::new(program).args(rest).exec(),
        [] => io::ErrorKind::InvalidInput.into(),
    }
}

/// Writes the client to memory. Processes that this one starts can execute it by the returned path.
pub(crate) fn for_tools() -> io::Result<(OwnedFd, PathBuf)> {
    let memory = in_memory()?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
    Ok((memory, path.into()))
}

fn in_memory() -> io::Result<OwnedFd> {
    // A write beyond the limit would end this process (SIGXFSZ).
    if rustix::process::getrlimit(Resource::Fsize).current.is_some_and(|most| most < IMAGE.len() as u64) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // Kernels before 6.3 do not know MFD_EXEC and refuse it; they do not need it either.
    let memory = rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC | MemfdFlags::EXEC)
        .or_else(|_| rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC))?;
    let mut rest = IMAGE;
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(&memory, rest)?..];
    }
    Ok(memory)
}

/// Writes the client to `directory`, with links to it by the names of `tools`. Unless the binary itself is there, also makes
/// the link `hotstart` to it, by which the client starts a server. Returns the paths it made.
pub fn install(directory: &Path, tools: &[OsString]) -> io::Result<Vec<PathBuf>> {
    if let Some(tool) =
        tools.iter().find(|tool| Path::new(tool).file_name() == Some(tool) && find(tool).is_none())
    {
        return Err(nowhere(tool));
    }
    std::fs::create_dir_all(directory)?;
    let client = directory.join(NAME);
    // A running client's file can be replaced but not written to.
    let new = directory.join(format!(".{NAME}.{}", std::process::id()));
    let mut file = std::fs::File::options().write(true).create(true).truncate(true).mode(0o755).open(&new)?;
    io::Write::write_all(&mut file, IMAGE)?;
    drop(file);
    std::fs::rename(&new, &client)?;
    let mut made = vec![client];
    let own = std::env::current_exe()?;
    if own.parent() != Some(directory) {
        made.push(link(&own, directory, OsStr::new("hotstart"))?);
    }
    for tool in tools {
        made.push(link(Path::new(NAME), directory, tool)?);
    }
    Ok(made)
}

/// Removes the files that [`install`] has made in `directory`, and the directory if it is empty then. Returns the paths it removed.
pub fn uninstall(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let leads_to = std::fs::read_link(&path).unwrap_or_default();
        let is_link = leads_to == Path::new(NAME)
            || (path.file_name() == Some(OsStr::new("hotstart")) && !leads_to.as_os_str().is_empty());
        if is_link || (path.file_name() == Some(OsStr::new(NAME)) && is_client(&path)) {
            std::fs::remove_file(&path)?;
            removed.push(path);
        }
    }
    if std::fs::read_dir(directory)?.next().is_none() {
        std::fs::remove_dir(directory)?;
        removed.push(directory.to_path_buf());
    }
    removed.sort();
    Ok(removed)
}

/// Returns the program that a link by this name would run: the first in PATH that is no client.
pub(crate) fn find(name: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file())
            && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    let found = std::env::split_paths(&path).map(|dir| dir.join(name));
    found.filter(is_program).find(|path| !is_client(path)).and_then(|path| std::path::absolute(path).ok())
}

/// Returns the error that PATH has no such program.
pub(crate) fn nowhere(name: &OsStr) -> io::Error {
    let what = format!("there is no program '{}' in PATH that it could run", name.to_string_lossy());
    io::Error::new(io::ErrorKind::NotFound, what)
}

/// Returns whether a file carries the client's mark.
fn is_client(path: &Path) -> bool {
    let mut start = [0; 16];
    let read = std::fs::File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut start));
    read.is_ok() && start[9..] == IMAGE[9..16]
}

fn link(target: &Path, directory: &Path, name: &OsStr) -> io::Result<PathBuf> {
    if Path::new(name).file_name() != Some(name) {
        let what = format!("'{}' is not the name of a tool", name.to_string_lossy());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let path = directory.join(name);
    match std::fs::symlink_metadata(&path) {
        Ok(found) if found.is_symlink() => std::fs::remove_file(&path)?,
        Ok(_) => {
            let what = format!("'{}' is there and not a link", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        Err(_) => {}
    }
    symlink(target, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_marked_and_links_lead_to_it() {
        assert_eq!(&IMAGE[9..16], b"hotstrt");
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("bin");
        let made = install(&place, &["sh".into()]).unwrap();
        assert_eq!(made.len(), 3);
        assert_eq!(std::fs::read(place.join("sh")).unwrap(), IMAGE);
        assert_eq!(std::fs::canonicalize(place.join("hotstart")).unwrap(), std::env::current_exe().unwrap());
        install(&place, &["sh".into()]).expect("a second time");
        assert!(is_client(&place.join("sh")) && !is_client(Path::new("/bin/sh")));
        std::fs::write(place.join("cc"), "mine").unwrap();
        assert!(install(&place, &["cc".into()]).unwrap_err().to_string().contains("not a link"));
        assert!(install(&place, &["a/b".into()]).is_err());
        let nowhere = install(&dir.path().join("none"), &["absent-tool".into()]).unwrap_err();
        assert!(nowhere.to_string().contains("no program 'absent-tool' in PATH"));
        assert!(!dir.path().join("none").exists());
        assert_eq!(uninstall(&place).unwrap().len(), 3);
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 1, "what is not ours stays");
        std::fs::remove_file(place.join("cc")).unwrap();
        assert_eq!(uninstall(&place).unwrap(), std::slice::from_ref(&place));
        assert!(!place.exists());
    }
}
