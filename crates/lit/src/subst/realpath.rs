//! `os.path.realpath`: resolves symbolic links in a path of which the end need not exist.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

/// The path without symbolic links; what does not exist, and links that lead in a circle, stay as they are.
pub fn real_path(path: &str) -> String {
    let mut seen = HashSet::new();
    resolve(PathBuf::from("/"), Path::new(path), &mut seen).0.to_string_lossy().into_owned()
}

/// Appends `rest` to a resolved path; tells whether all of it could be resolved.
fn resolve(mut path: PathBuf, rest: &Path, seen: &mut HashSet<PathBuf>) -> (PathBuf, bool) {
    let mut complete = true;
    for component in rest.components() {
        match component {
            Component::RootDir | Component::Prefix(_) => path = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => {
                let next = path.join(name);
                let target = if complete { std::fs::read_link(&next).ok() } else { None };
                path = match target {
                    None => next,
                    Some(_) if !seen.insert(next.clone()) => {
                        complete = false;
                        next
                    }
                    Some(target) => {
                        let (resolved, ok) = resolve(path, &target, seen);
                        seen.remove(&next);
                        complete &= ok;
                        resolved
                    }
                };
            }
        }
    }
    (path, complete)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_and_missing_ends_kept() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let root = root.to_str().unwrap();
        assert_eq!(real_path(&format!("{root}/link/no/../x.tmp")), format!("{root}/real/x.tmp"));
        assert_eq!(real_path(&format!("{root}/loop/a")), format!("{root}/loop/a"));
    }
}
