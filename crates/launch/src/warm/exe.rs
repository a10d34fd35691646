//! The path by which the kernel knows a program's file, as the program reads it in `/proc/self/exe`.
//!
//! ld.so puts it in the place of `$ORIGIN`, and programs look for their files beside it. One file can have several such paths: hard links,
//! bind mounts, directories that were renamed. Device and inode are the same then, so a process serves only starts that have its path.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Returns the path that an exec of `program` would show now; empty if it is unknown. No process shows an empty one.
pub(crate) fn of_file(program: &Path) -> Vec<u8> {
    if is_own_path(program) {
        return program.as_os_str().as_bytes().to_vec();
    }
    let Ok(file) = rustix::fs::open(program, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else {
        return Vec::new();
    };
    read(&format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default()
}

/// Returns whether the kernel finds a file at `path` without following a link, so that this is its path: one system call, in a third of
/// the time that a descriptor's link takes. Older kernels cannot tell.
fn is_own_path(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let is_plain = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
    let is_absolute = bytes
        .split_first()
        .is_some_and(|(first, rest)| *first == b'/' && rest.split(|&b| b == b'/').all(is_plain));
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    is_absolute && rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).is_ok()
}

/// Returns the path that a process shows.
pub(crate) fn of_process(pid: i32) -> io::Result<Vec<u8>> {
    Ok(read(&format!("/proc/{pid}/exe"))?)
}

/// Returns whether a process still shows `path`. A dead one shows nothing, and the next request finds that out.
pub(crate) fn is_shown(path: &[u8], pid: i32) -> bool {
    match read(&format!("/proc/{pid}/exe")) {
        Ok(now) => now == path,
        Err(error) => matches!(error, Errno::NOENT | Errno::SRCH),
    }
}

fn read(link: &str) -> Result<Vec<u8>, Errno> {
    // The usual path fits, so this is one system call.
    rustix::fs::readlink(link, Vec::with_capacity(256)).map(|path| path.into_bytes())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_path_is_the_kernels_whatever_links_lead_there() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        let at = |name: &str| real.join(name);
        for dir in ["one", "two"] {
            std::fs::create_dir(at(dir)).unwrap();
        }
        std::fs::write(at("one/tool"), "x").unwrap();
        std::fs::hard_link(at("one/tool"), at("two/tool")).unwrap();
        for target in ["one", "two"] {
            std::os::unix::fs::symlink(target, at("link")).unwrap();
            assert_eq!(of_file(&at("link/tool")), at(target).join("tool").as_os_str().as_bytes(), "{target}");
            std::fs::remove_file(at("link")).unwrap();
        }
        assert!(of_file(&at("absent")).is_empty());
        let path = at("one/tool");
        for other in ["one//tool", "one/./tool", "two/../one/tool"] {
            assert_eq!(of_file(&at(other)), path.as_os_str().as_bytes(), "{other}");
            assert!(!is_own_path(&at(other)), "{other}");
        }
        let bytes = path.as_os_str().as_bytes();
        let file = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        assert_eq!(read(&format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap(), bytes);
        assert_eq!(of_file(&path), bytes);
    }

    #[test]
    fn a_process_shows_its_path_and_a_dead_one_none() {
        let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id() as i32;
        let path = of_process(pid).unwrap();
        assert!(is_shown(&path, pid) && !is_shown(b"/other", pid));
        assert_eq!(path, of_file(Path::new("/bin/cat")));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(of_process(pid).is_err() && is_shown(&path, pid));
    }
}
