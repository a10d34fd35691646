//! Finds the file that a command's name means. Nothing is cached, since a test may create its tools as it goes.

use std::env;
use std::path::Path;

use hotstart_python::path::{into_text, is_file, join, join_into, normpath};
use hotstart_python::which::DEFAULT_PATH;

/// Returns the file to execute for `name`. It may not be executable; starting it will show that.
pub(crate) fn which(name: &str, path: &str) -> Option<String> {
    if name.starts_with('/') && is_file(name) {
        return Some(into_text(normpath(name)));
    }
    let path = if path.is_empty() { DEFAULT_PATH } else { path };
    // One buffer for all: PATH is long, and each command misses most of its directories.
    let mut file = String::with_capacity(path.len());
    for dir in path.split(':') {
        file.clear();
        join_into(&mut file, dir, name);
        if exists_as_file(&file) {
            return Some(absolute(&file));
        }
    }
    None
}

fn exists_as_file(path: &str) -> bool {
    Path::new(path).metadata().is_ok_and(|found| !found.is_dir())
}

/// Makes a path absolute. Relative entries of PATH are relative to the runner's own directory, as in lit.
fn absolute(path: &str) -> String {
    if path.starts_with('/') {
        return into_text(normpath(path));
    }
    let here = env::current_dir().map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
    into_text(normpath(join(&here, path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_first_file_along_path_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        fs::create_dir_all(dir.path().join("a/tool")).unwrap();
        fs::create_dir_all(dir.path().join("b/bin")).unwrap();
        fs::write(dir.path().join("b/tool"), "").unwrap();
        let path = format!("{root}/a:{root}/./b");
        assert_eq!(which("tool", &path), Some(format!("{root}/b/tool")));
        assert_eq!(which("bin/tool", &path), None);
        assert_eq!(which(&format!("{root}/b/../b/tool"), ""), Some(format!("{root}/b/tool")));
        assert_eq!(which("", &path), None);
    }
}
