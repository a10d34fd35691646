//! The files that a script wrote: those whose name begins with its `%t`.
//!
//! By lit's convention a test writes nowhere else. Contents are kept as length and hash, so a report names a difference and
//! does not show it.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hotstart_model::Script;

/// The clock of file systems is behind by up to a tick of the kernel, which is 10 ms at most.
const CLOCK_LAG: Duration = Duration::from_millis(50);

/// The state of each file, by path.
pub(crate) type Files = BTreeMap<PathBuf, Content>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    File { length: u64, hash: u64 },
    Link(PathBuf),
    Directory,
    Unreadable,
}

/// Returns the current state of the script's files.
pub(crate) fn read(script: &Script) -> Files {
    let mut files = Files::new();
    for path in own(script) {
        add(&mut files, path);
    }
    files
}

/// Removes the script's files, so that the next run begins as on a fresh checkout.
pub(crate) fn remove(script: &Script) {
    for path in own(script) {
        let is_dir = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        // A file that cannot be removed shows up as a difference, or does not matter.
        let _ = if is_dir { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}

/// Returns whether an earlier invocation had left files of the script's own when it began at `begun`. lit does not remove them
/// either. On a file system that does not record when a file was made, any file counts.
pub(crate) fn are_older(script: &Script, begun: SystemTime) -> bool {
    let before = begun.checked_sub(CLOCK_LAG).unwrap_or(begun);
    own(script).iter().any(|path| {
        let made = path.symlink_metadata().and_then(|found| found.created());
        made.map_or(true, |made| made < before)
    })
}

fn own(script: &Script) -> Vec<PathBuf> {
    let (Some(dir), Some(name)) = (script.tmp_base.parent(), script.tmp_base.file_name()) else {
        return Vec::new();
    };
    let prefix = [name.as_encoded_bytes(), b".tmp"].concat();
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_own = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(&prefix);
    entries.filter(is_own).map(|entry| entry.path()).collect()
}

fn add(files: &mut Files, path: PathBuf) {
    let content = match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => fs::read_link(&path).map_or(Content::Unreadable, Content::Link),
        Ok(found) if found.is_dir() => {
            for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                add(files, entry.path());
            }
            Content::Directory
        }
        Ok(found) if found.is_file() => {
            hash(&path).map_or(Content::Unreadable, |hash| Content::File { length: found.len(), hash })
        }
        _ => Content::Unreadable,
    };
    files.insert(path, content);
}

fn hash(path: &Path) -> io::Result<u64> {
    let mut file = fs::File::open(path)?;
    let mut hasher = DefaultHasher::new();
    let mut buffer = [0; 32 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            count => hasher.write(&buffer[..count]),
        }
    }
}
