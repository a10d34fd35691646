//! Programs that were registered to run other kinds of files (binfmt_misc): the kernel asks them before anything else.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is registered, and enabled.
#[derive(Debug, Default)]
pub(crate) struct Handlers(Vec<Handler>);

#[derive(Debug, PartialEq, Eq)]
enum Handler {
    /// Takes files with this suffix.
    Suffix(Vec<u8>),
    /// Takes files with these bytes here, as far as the mask goes. Without one all bits count.
    Magic { offset: usize, bytes: Vec<u8>, mask: Vec<u8> },
    /// Takes files that are not known.
    Unknown,
}

impl Handlers {
    /// Reads what is registered now.
    pub fn now() -> Handlers {
        Handlers(texts(&places()).iter().filter_map(|text| handler(text)).collect())
    }

    /// Returns whether one of them might take a file that is executed by one of these names and begins so.
    pub fn take(&self, names: [&Path; 2], head: &[u8]) -> bool {
        self.0.iter().any(|handler| match handler {
            Handler::Suffix(suffix) => names.iter().any(|name| {
                let name = name.as_os_str().as_bytes();
                name.rsplit(|&byte| byte == b'.').next() == Some(suffix) && name.len() > suffix.len()
            }),
            Handler::Magic { offset, bytes, mask } => {
                let part = head.get(*offset..).unwrap_or_default();
                // The kernel has zeros behind the end of the file.
                bytes.iter().enumerate().all(|(at, byte)| {
                    (part.get(at).unwrap_or(&0) ^ byte) & mask.get(at).unwrap_or(&0xff) == 0
                })
            }
            Handler::Unknown => true,
        })
    }
}

/// Returns all that is registered, as the kernel tells it.
pub(crate) fn registered() -> String {
    texts(&places()).join("\n")
}

/// Returns the directories in which the kernel shows what is registered.
fn places() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let others = mounts.lines().filter(|line| line.contains(" - binfmt_misc "));
    let others = others.filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
    [PathBuf::from("/proc/sys/fs/binfmt_misc")].into_iter().chain(others).collect()
}

/// Returns the text of each handler in these directories, in the order of their names.
fn texts(places: &[PathBuf]) -> Vec<String> {
    let entries = places.iter().filter_map(|place| fs::read_dir(place).ok()).flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths.dedup();
    let others = ["register", "status"].map(OsStr::new);
    paths.retain(|path| path.file_name().is_some_and(|name| !others.contains(&name)));
    paths.iter().map(|path| fs::read_to_string(path).unwrap_or_default()).collect()
}

/// Reads what the kernel says of a handler. `None` if it is disabled.
fn handler(text: &str) -> Option<Handler> {
    if text.starts_with("disabled") {
        return None;
    }
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let found = || {
        if let Some(suffix) = value("extension") {
            return Some(Handler::Suffix(suffix.strip_prefix('.')?.as_bytes().to_vec()));
        }
        let mask = value("mask").map_or(Some(Vec::new()), bytes);
        Some(Handler::Magic {
            offset: value("offset")?.parse().ok()?,
            bytes: bytes(value("magic")?)?,
            mask: mask?,
        })
    };
    Some(found().unwrap_or(Handler::Unknown))
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_take_what_the_kernel_would_give_them() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        file("status", "enabled\n");
        file("off", "disabled\ninterpreter /x\nflags: \nextension .off\n");
        file("foo", "enabled\ninterpreter /x\nflags: \nextension .foo\n");
        file("arm", "enabled\ninterpreter /x\nflags: F\noffset 1\nmagic 454c46ff\nmask ffffff0f\n");
        let of =
            |dir: &Path| Handlers(texts(&[dir.to_owned()]).iter().filter_map(|text| handler(text)).collect());
        let handlers = of(dir.path());
        let takes = |name: &str, head: &[u8]| handlers.take([Path::new(name), Path::new("/other")], head);
        assert!(takes("/a/b.foo", b"text"));
        assert!(!takes("/a/b.off", b"text") && !takes("/a/foo", b"text") && !takes("foo", b""));
        assert!(takes("/a/b", b"\x7fELF\x1f") && !takes("/a/b", b"\x7fELF\x02"));
        file("odd", "enabled\nsomething new\n");
        assert!(of(dir.path()).take([Path::new("/a"), Path::new("/b")], b""));
    }
}
