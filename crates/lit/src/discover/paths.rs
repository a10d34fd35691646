//! Paths as Python's `os.path` treats them.

use std::path::{Component, Path, PathBuf};

/// `os.path.normpath`: without `.` and `..`, by the text alone.
pub(super) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if normal.parent().is_none() => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// `os.path.realpath` of an absolute path: without symbolic links, though its end need not exist.
pub(super) fn real_path(path: &Path) -> PathBuf {
    resolve(path, 40)
}

fn resolve(path: &Path, links_left: u32) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let (Some(parent), Some(last)) = (path.parent(), path.components().next_back()) else {
        return path.to_path_buf();
    };
    let mut real = resolve(parent, links_left);
    match last {
        Component::Normal(name) => real.push(name),
        Component::ParentDir => {
            real.pop();
        }
        _ => {}
    }
    match std::fs::read_link(&real) {
        Ok(target) if links_left > 0 => resolve(&real.parent().unwrap_or(&real).join(target), links_left - 1),
        _ => real,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn dots_are_resolved_by_the_text() {
        assert_eq!(normalize(Path::new("/a/./b/../c/")), Path::new("/a/c"));
        assert_eq!(normalize(Path::new("/../a")), Path::new("/a"));
    }

    #[test]
    fn what_does_not_exist_is_kept_behind_what_does() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("real/later", root.join("dangling")).unwrap();
        assert_eq!(real_path(&root.join("link/x/../y")), root.join("real/y"));
        assert_eq!(real_path(&root.join("dangling")), root.join("real/later"));
    }
}
