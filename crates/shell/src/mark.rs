//! Versions of files, to tell later whether they are as they were.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What of a path a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Aspect {
    /// The file that the path leads to.
    Target,
    /// What is at the path: a file, a link, or a directory with its names.
    Itself,
    /// That this directory is there, whatever is in it.
    Place,
    /// That nothing is there.
    Missing,
}

/// A file, and the numbers that identify its version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub path: PathBuf,
    pub aspect: Aspect,
    /// Device, inode, size, and times of modification and change.
    pub numbers: [i64; 7],
}

impl Mark {
    /// Returns the mark of the file as it is now.
    pub fn of(path: &Path) -> Option<Mark> {
        Mark::seen(path, Aspect::Target)
    }

    /// Returns the mark of an aspect as it is now. `None` if it is another one now.
    pub fn seen(path: &Path, aspect: Aspect) -> Option<Mark> {
        Some(Mark { path: path.to_owned(), aspect, numbers: Mark::numbers(path, aspect)? })
    }

    fn numbers(path: &Path, aspect: Aspect) -> Option<[i64; 7]> {
        let found = match aspect {
            Aspect::Target => fs::metadata(path),
            _ => fs::symlink_metadata(path),
        };
        Some(match (aspect, found) {
            (Aspect::Missing, Err(error)) => {
                let is_missing = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
                is_missing.then_some([0; 7])?
            }
            (Aspect::Missing, Ok(_)) | (_, Err(_)) => return None,
            (Aspect::Place, Ok(found)) => {
                let what = [found.dev() as i64, found.ino() as i64, i64::from(found.mode())];
                [what[0], what[1], what[2], 0, 0, 0, 0]
            }
            (Aspect::Target | Aspect::Itself, Ok(found)) => {
                let (device, inode, size) = (found.dev() as i64, found.ino() as i64, found.size() as i64);
                let modified = [found.mtime(), found.mtime_nsec()];
                let changed = [found.ctime(), found.ctime_nsec()];
                [device, inode, size, modified[0], modified[1], changed[0], changed[1]]
            }
        })
    }

    pub fn is_current(&self) -> bool {
        Mark::numbers(&self.path, self.aspect) == Some(self.numbers)
    }
}

/// The links and directories that lead to a file. Each may have been another one for a moment, whatever the file itself says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way(Vec<(PathBuf, Part)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    is_link: bool,
    device: u64,
    inode: u64,
    changed: (i64, i64),
    /// Whether the last change was to the entries of a directory. Other tests change those of the directory that has the `%t` files.
    is_by_entry: bool,
}

impl Part {
    fn of(found: &Metadata) -> Part {
        let (changed, modified) = ((found.ctime(), found.ctime_nsec()), (found.mtime(), found.mtime_nsec()));
        let (is_link, is_by_entry) = (found.is_symlink(), changed == modified);
        Part { is_link, device: found.dev(), inode: found.ino(), changed, is_by_entry }
    }

    fn is_as(&self, before: &Part) -> bool {
        let is_same =
            (self.is_link, self.device, self.inode) == (before.is_link, before.device, before.inode);
        is_same && (self.changed == before.changed || (!self.is_link && self.is_by_entry))
    }
}

impl Way {
    /// The kernel follows as many links.
    const LINKS_MAX: usize = 40;

    /// Returns the way to an absolute path, as it is now. `None` if it leads nowhere.
    pub fn of(path: &Path) -> Option<Way> {
        let mut parts = Vec::new();
        let (mut at, mut links) = (PathBuf::from("/"), 0);
        let words = |path: &Path| path.components().rev().map(|word| word.as_os_str().to_owned()).collect();
        let mut rest: Vec<OsString> = words(path);
        while let Some(word) = rest.pop() {
            match Path::new(&word).components().next() {
                Some(Component::Normal(_)) => {}
                Some(Component::RootDir) => {
                    at = PathBuf::from("/");
                    continue;
                }
                Some(Component::ParentDir) => {
                    at.pop();
                    continue;
                }
                _ => continue,
            }
            let next = at.join(&word);
            let found = fs::symlink_metadata(&next).ok()?;
            if found.is_symlink() {
                links += 1;
                rest.extend::<Vec<OsString>>(words(
                    &fs::read_link(&next).ok().filter(|_| links <= Way::LINKS_MAX)?,
                ));
                parts.push((next, Part::of(&found)));
                continue;
            }
            if found.is_dir() {
                parts.push((next.clone(), Part::of(&found)));
            }
            at = next;
        }
        Some(Way(parts))
    }

    /// Whether it has been the same all the time. A directory that was moved away and back is noticed as long as none of its entries has
    /// changed since.
    pub fn is_current(&self) -> bool {
        let is_as = |(path, before): &(PathBuf, Part)| {
            fs::symlink_metadata(path).is_ok_and(|found| Part::of(&found).is_as(before))
        };
        self.0.iter().all(is_as)
    }
}

/// A file that the runner reads in the place of a process that would read it later.
///
/// The numbers tell of a change that was undone, and the content of one that follows another within a tick of the kernel's clock.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    way: Way,
    mark: Mark,
    content: blake3::Hash,
}

impl Seen {
    /// Returns a regular file as it is now, and its content as `read` returns it. `None` if there is no such file, or it cannot be read.
    pub fn reading(path: &Path, read: impl FnOnce() -> Option<Vec<u8>>) -> Option<(Seen, Vec<u8>)> {
        let way = Way::of(path)?;
        let mark = Mark::of(path).filter(|_| path.is_file())?;
        let content = read()?;
        Some((Seen { way, mark, content: blake3::hash(&content) }, content))
    }

    /// Whether a process would find the same now, and would have found it since.
    pub fn is_current(&self) -> bool {
        let has_content =
            || fs::read(&self.mark.path).is_ok_and(|content| blake3::hash(&content) == self.content);
        self.way.is_current() && self.mark.is_current() && has_content()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::os::unix::fs::symlink;

    use super::*;

    fn seen(path: &Path) -> Option<Seen> {
        Seen::reading(path, || fs::read(path).ok()).map(|(seen, _)| seen)
    }

    #[test]
    fn changes_are_seen_by_what_they_leave() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert!(seen(&path).is_none() && seen(dir.path()).is_none());
        fs::write(&path, "one").unwrap();
        let first = seen(&path).unwrap();
        assert!(first.is_current());
        // As if within one tick.
        let other = Seen { content: blake3::hash(b"two"), ..seen(&path).unwrap() };
        assert!(!other.is_current());
        // The same again.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "one").unwrap();
        File::options().write(true).open(&path).unwrap().set_times(FileTimes::new()).unwrap();
        assert!(!first.is_current());
        fs::remove_file(&path).unwrap();
        assert!(!first.is_current());
    }

    #[test]
    fn a_way_that_leads_elsewhere_for_a_moment_is_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("real/deep")).unwrap();
        fs::create_dir(at("other")).unwrap();
        fs::write(at("real/deep/file"), "one").unwrap();
        symlink("real/deep/../deep", at("link")).unwrap();
        assert!(Way::of(&at("absent")).is_none() && Way::of(&at("link/absent")).is_none());
        symlink("loop", at("loop")).unwrap();
        assert!(Way::of(&at("loop")).is_none());
        let way = Way::of(&at("link/file")).unwrap();
        let names = way.0.iter().rev().take(4).map(|(path, _)| path.file_name().unwrap()).collect::<Vec<_>>();
        assert_eq!(names, ["deep", "deep", "real", "link"]);
        // Other files beside it, as other tests write them.
        fs::write(at("real/deep/another"), "").unwrap();
        fs::write(at("another"), "").unwrap();
        assert!(way.is_current());
        let swap = |name: &str| {
            fs::rename(at(name), at("away")).unwrap();
            fs::rename(at("other"), at(name)).unwrap();
            fs::rename(at(name), at("other")).unwrap();
            fs::rename(at("away"), at(name)).unwrap();
        };
        for name in ["real", "link"] {
            let way = Way::of(&at("link/file")).unwrap();
            assert!(way.is_current());
            swap(name);
            assert!(!way.is_current(), "{name}");
        }
    }
}
