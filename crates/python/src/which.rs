//! Finds the file of a program's name along a search path.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// `os.defpath`: the search path if PATH is not set.
pub const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Returns the file that `subprocess` executes for `name` in the directory `cwd`: the name itself if it has a slash,
/// otherwise the first executable file along `path`. If there is none, it returns a file that cannot be executed, so
/// that the start fails as Python's does.
pub fn program(name: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(cwd.join(name));
    }
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    let mut refused = None;
    let files = std::env::split_paths(path).map(|dir| cwd.join(dir).join(name));
    for file in files.filter(|file| file.exists()) {
        if is_executable(&file) {
            return Some(file);
        }
        refused = refused.or(Some(file));
    }
    refused
}

/// Whether it is a file with permission to execute.
pub fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_first_executable_file_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in ["a/tool", "b", "c"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("b/tool"), "").unwrap();
        fs::write(root.join("b/plain"), "").unwrap();
        symlink("/bin/sh", root.join("c/tool")).unwrap();
        let path = OsStr::new("a:b:c");
        let find = |name: &str| program(OsStr::new(name), Some(path), root);
        assert_eq!(find("tool"), Some(root.join("c/tool")));
        assert_eq!(find("plain"), Some(root.join("b/plain")));
        assert_eq!(find("b/none"), Some(root.join("b/none")));
        assert_eq!(find("none"), None);
        assert!(program(OsStr::new("sh"), None, root).is_some_and(|file| is_executable(&file)));
    }
}
