//! Tests whether a file can be executed, without executing it.
//!
//! It is for processes with a mask or limits of their own. These are started through a second exec, and a failure of
//! that would look like the program's own. For all others, the kernel reports the error when they are started.

use std::fs::File;
use std::io::{self, Read};

use hotstart_python::errors;
use rustix::fs::{Access, access};
use rustix::io::Errno;

/// Returns the error with which executing `path` would fail.
pub(crate) fn check(path: &str) -> io::Result<()> {
    access(path, Access::EXEC_OK)?;
    let mut head = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(256).read_to_end(&mut head)?,
        // A file that is executable but not readable is fine.
        Err(_) => return Ok(()),
    };
    let Some(line) = head.strip_prefix(b"#!") else {
        let is_program = head.starts_with(b"\x7fELF");
        return if is_program { Ok(()) } else { Err(errors::io_error(Errno::NOEXEC)) };
    };
    let line = line.split(|&b| b == b'\n').next().unwrap_or_default().trim_ascii();
    let interpreter = line.split(|b| matches!(b, b' ' | b'\t')).next().unwrap_or_default();
    Ok(access(interpreter, Access::EXEC_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn kinds_of_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let path = path.to_str().unwrap();
        let errno = |content: &str, mode| {
            fs::write(path, content).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            check(path).err().and_then(|error| Errno::from_io_error(&error))
        };
        assert_eq!(errno("#!/bin/sh -e\n", 0o755), None);
        assert_eq!(errno("#!/bin/sh\n", 0o644), Some(Errno::ACCESS));
        assert_eq!(errno("#! /missing/shell\n", 0o755), Some(Errno::NOENT));
        assert_eq!(errno("echo\n", 0o755), Some(Errno::NOEXEC));
        assert!(check("/bin/sh").is_ok());
    }
}
