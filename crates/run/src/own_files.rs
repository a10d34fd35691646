//! The files that a script wrote: those whose name begins with its `%t`.
//!
//! By lit's convention a test writes nowhere else. Contents are kept as length and hash, so a report names a difference and
//! does not show it.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hotstart_model::Script;

use crate::outputs::own;

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
    // What cannot be listed is as good as not there: the other run cannot list it either.
    for path in own(&script.tmp_base).unwrap_or_default() {
        add(&mut files, path);
    }
    files
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
