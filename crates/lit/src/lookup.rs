//! Which file a program's name means, as for Python's `subprocess`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where programs are sought if PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file to execute for `name`: along `path` if the name has no slash, else from `cwd`.
pub(crate) fn program(name: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(cwd.join(name));
    }
    std::env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH)))
        .map(|dir| cwd.join(dir).join(name))
        .find(|file| is_executable(file))
}

/// Whether it is a file that may be executed.
pub(crate) fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
