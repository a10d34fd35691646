//! `os.path`: textual joins and splits, and `realpath`, which accepts missing files.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `os.path.join` of two parts.
pub fn join(base: &str, tail: &str) -> String {
    let mut path = String::with_capacity(base.len() + tail.len() + 1);
    join_into(&mut path, base, tail);
    path
}

/// Appends the same to `path`.
pub fn join_into(path: &mut String, base: &str, tail: &str) {
    if !tail.starts_with('/') && !base.is_empty() {
        path.push_str(base);
        if !base.ends_with('/') {
            path.push('/');
        }
    }
    path.push_str(tail);
}

/// `os.path.split`.
pub fn split(path: &str) -> (&str, &str) {
    let at = path.rfind('/').map_or(0, |i| i + 1);
    let (head, tail) = path.split_at(at);
    let trimmed = head.trim_end_matches('/');
    (if trimmed.is_empty() { head } else { trimmed }, tail)
}

/// `os.path.normpath`.
pub fn normpath(path: impl AsRef<Path>) -> PathBuf {
    let bytes = path.as_ref().as_os_str().as_bytes();
    let root: &[u8] = match bytes.iter().take_while(|&&byte| byte == b'/').count() {
        0 => b"",
        2 => b"//",
        _ => b"/",
    };
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in bytes.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if root.is_empty() && parts.last().is_none_or(|last| *last == b"..") => parts.push(part),
            b".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let normal = [root, &parts.join(&b'/')].concat();
    OsStr::from_bytes(if normal.is_empty() { b"." } else { &normal }).into()
}

/// `os.path.realpath` of an absolute path: links are resolved as far as possible, the rest is kept.
pub fn realpath(path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    // Most paths exist. If one call resolves the whole path, Python's steps give the same result.
    path.canonicalize().unwrap_or_else(|_| {
        let (real, _) = resolve("/".into(), path.as_os_str().as_bytes(), &mut HashMap::new());
        normpath(real)
    })
}

/// Returns a path as text. Invalid bytes are replaced.
pub fn into_text(path: PathBuf) -> String {
    path.into_os_string().into_string().unwrap_or_else(|path| path.to_string_lossy().into_owned())
}

/// Links and their targets. `None` while a target is being resolved.
type Seen = HashMap<PathBuf, Option<PathBuf>>;

/// Resolves `rest` from `path`. Returns the path, and whether all of it could be resolved.
fn resolve(mut path: PathBuf, rest: &[u8], seen: &mut Seen) -> (PathBuf, bool) {
    if rest.starts_with(b"/") {
        path = "/".into();
    }
    let mut parts = rest.split(|&byte| byte == b'/');
    while let Some(part) = parts.next() {
        match part {
            b"" | b"." => continue,
            b".." => {
                path.pop();
                continue;
            }
            _ => {}
        }
        let next = path.join(OsStr::from_bytes(part));
        let Ok(target) = next.read_link() else {
            path = next;
            continue;
        };
        let left = |path: PathBuf| parts.clone().fold(path, |path, part| path.join(OsStr::from_bytes(part)));
        match seen.get(&next) {
            Some(Some(known)) => path = known.clone(),
            // The link is part of a cycle.
            Some(None) => return (left(next), false),
            None => {
                seen.insert(next.clone(), None);
                let (real, is_resolved) = resolve(path, target.as_os_str().as_bytes(), seen);
                if !is_resolved {
                    return (left(real), false);
                }
                seen.insert(next, Some(real.clone()));
                path = real;
            }
        }
    }
    (path, true)
}

/// `os.path.isfile`.
pub fn is_file(path: &str) -> bool {
    Path::new(path).is_file()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn textual() {
        assert_eq!(join("/a", "b"), "/a/b");
        assert_eq!(join("/a/", "/b"), "/b");
        assert_eq!(split("/a/b"), ("/a", "b"));
        assert_eq!(split("/a"), ("/", "a"));
        assert_eq!(split("a//b"), ("a", "b"));
        for (path, normal) in [
            ("/a//./b/../c/", "/a/c"),
            ("//a", "//a"),
            ("///a", "/a"),
            ("../a/../..", "../.."),
            ("/../a", "/a"),
            ("", "."),
        ] {
            assert_eq!(normpath(path).as_os_str(), normal);
        }
    }

    #[test]
    fn realpath_follows_links_and_keeps_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("d")).unwrap();
        for (target, name) in [("d/../d", "l"), ("loop", "loop"), ("d/later", "dangling")] {
            symlink(target, root.join(name)).unwrap();
        }
        for (path, real) in
            [("l/../l/x/../y", "d/y"), ("loop/z", "loop/z"), ("l/no/../x", "d/x"), ("dangling", "d/later")]
        {
            assert_eq!(realpath(root.join(path)), root.join(real));
        }
    }
}
