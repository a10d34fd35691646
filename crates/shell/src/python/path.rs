//! `os.path`: purely textual joins and splits, and `realpath`, which tolerates what does not exist.

use std::fs;
use std::path::Path;

/// `os.path.join` of two parts.
pub(crate) fn join(base: &str, tail: &str) -> String {
    let mut path = String::with_capacity(base.len() + tail.len() + 1);
    join_into(&mut path, base, tail);
    path
}

/// The same, behind what is there.
pub(crate) fn join_into(path: &mut String, base: &str, tail: &str) {
    if !tail.starts_with('/') && !base.is_empty() {
        path.push_str(base);
        if !base.ends_with('/') {
            path.push('/');
        }
    }
    path.push_str(tail);
}

/// `os.path.split`.
pub(crate) fn split(path: &str) -> (&str, &str) {
    let at = path.rfind('/').map_or(0, |i| i + 1);
    let (head, tail) = path.split_at(at);
    let trimmed = head.trim_end_matches('/');
    (if trimmed.is_empty() { head } else { trimmed }, tail)
}

/// `os.path.normpath`.
pub(crate) fn normpath(path: &str) -> String {
    let slashes = path.len() - path.trim_start_matches('/').len();
    let root = match slashes {
        0 => "",
        2 => "//",
        _ => "/",
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if root.is_empty() && parts.last().is_none_or(|last| *last == "..") => parts.push(part),
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let joined = format!("{root}{}", parts.join("/"));
    if joined.is_empty() { ".".to_owned() } else { joined }
}

/// `os.path.realpath` of an absolute path: links resolved as far as they lead, the rest kept.
pub(crate) fn realpath(path: &str) -> String {
    let mut links = 40;
    resolve("/".to_owned(), path, &mut links)
}

fn resolve(mut done: String, rest: &str, links: &mut u32) -> String {
    for part in rest.split('/') {
        match part {
            "" | "." => continue,
            ".." => {
                done = split(&done).0.to_owned();
                continue;
            }
            _ => {}
        }
        let next = join(&done, part);
        match fs::read_link(&next) {
            Ok(target) if *links > 0 => {
                *links -= 1;
                let target = target.to_string_lossy().into_owned();
                let base = if target.starts_with('/') { "/".to_owned() } else { done };
                done = resolve(base, &target, links);
            }
            _ => done = next,
        }
    }
    done
}

/// `os.path.isfile`
pub(crate) fn is_file(path: &str) -> bool {
    Path::new(path).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textual() {
        assert_eq!(join("/a", "b"), "/a/b");
        assert_eq!(join("/a/", "/b"), "/b");
        assert_eq!(split("/a/b"), ("/a", "b"));
        assert_eq!(split("/a"), ("/", "a"));
        assert_eq!(split("a//b"), ("a", "b"));
        assert_eq!(normpath("/a//./b/../c/"), "/a/c");
        assert_eq!(normpath("//a"), "//a");
        assert_eq!(normpath("../a/../.."), "../..");
    }

    #[test]
    fn realpath_follows_links_and_keeps_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap().to_string_lossy().into_owned();
        fs::create_dir(format!("{root}/d")).unwrap();
        std::os::unix::fs::symlink("d/../d", format!("{root}/l")).unwrap();
        std::os::unix::fs::symlink("loop", format!("{root}/loop")).unwrap();
        assert_eq!(realpath(&format!("{root}/l/../l/x/../y")), format!("{root}/d/y"));
        assert_eq!(realpath(&format!("{root}/loop/z")), format!("{root}/loop/z"));
    }
}
