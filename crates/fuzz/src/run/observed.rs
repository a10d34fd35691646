//! The observations of one run, and the differences between two of them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use hotstart_model::Status;

use super::place::{NOTES, Streams};

/// Everything about one run that must not depend on the kind of start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Exit code or signal.
    pub status: Status,
    /// Whether it exceeded the time limit and was killed.
    pub timed_out: bool,
    /// Standard output.
    pub output: String,
    /// Standard error; empty if it is the same file.
    pub error: String,
    /// The bytes written to descriptor 3.
    pub extra: String,
    /// The final offset of the input, if that is a file.
    pub offset: Option<u64>,
    /// The contents of its directory and of the shared one: kind, mode, size and content, by path.
    pub files: BTreeMap<String, String>,
}

/// The name of the difference in which a run exceeded the time limit.
pub const TIMED_OUT: &str = "timed out";

/// One difference, as text: its name, the cold run's value, the other's value.
pub type Sight = (String, String, String);

impl Observed {
    pub(super) fn take(
        streams: &mut Streams,
        visible: &Path,
        status: Status,
        timed_out: bool,
    ) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        list(visible, "", &mut files)?;
        let extra = streams.extra.as_mut().map(|[first, _]| content(first)).transpose()?;
        let output = content(&mut streams.output)?;
        let error = content(&mut streams.error)?;
        let is_file = streams.input.metadata()?.is_file();
        Ok(Observed {
            status,
            timed_out,
            output,
            error,
            extra: extra.unwrap_or_default(),
            offset: is_file.then(|| streams.input.stream_position()).transpose()?,
            files,
        })
    }

    /// Returns the differences between `self`, the cold run, and `other`.
    pub fn differences(&self, other: &Observed) -> Vec<Sight> {
        let mut found = Vec::new();
        let mut note = |what: &str, cold: String, warm: String| {
            if cold != warm {
                found.push((what.to_owned(), cold, warm));
            }
        };
        note("status", format!("{:?}", self.status), format!("{:?}", other.status));
        note(TIMED_OUT, self.timed_out.to_string(), other.timed_out.to_string());
        note("standard output", self.output.clone(), other.output.clone());
        note("standard error", self.error.clone(), other.error.clone());
        note("descriptor 3", self.extra.clone(), other.extra.clone());
        note("offset of the input", format!("{:?}", self.offset), format!("{:?}", other.offset));
        let paths =
            self.files.keys().chain(other.files.keys().filter(|path| !self.files.contains_key(*path)));
        for path in paths {
            let at = |files: &BTreeMap<String, String>| files.get(path).cloned().unwrap_or("absent".into());
            note(&format!("file {path}"), at(&self.files), at(&other.files));
        }
        found
    }
}

/// Returns the whole content of a file, whatever its offset.
fn content(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the beginning of a text file. A file with NUL bytes gives no text: programs map and share such files, so
/// they have pointers and process ids in them.
fn text_of(path: &Path) -> String {
    let mut text = fs::read(path).unwrap_or_else(|_| b"(unreadable)".to_vec());
    text.truncate(4096);
    if text.contains(&0) { String::new() } else { format!(": {:?}", String::from_utf8_lossy(&text)) }
}

fn list(dir: &Path, below: &str, into: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if name == NOTES {
            continue;
        }
        let meta = entry.metadata()?;
        let kind = meta.file_type();
        let mode = meta.permissions().mode() & 0o7777;
        let what = if kind.is_dir() {
            list(&entry.path(), &format!("{name}/"), into)?;
            format!("directory {mode:o}")
        } else if kind.is_symlink() {
            format!("link to {}", fs::read_link(entry.path())?.display())
        } else if kind.is_file() {
            format!("file {mode:o} of {} bytes{}", meta.len(), text_of(&entry.path()))
        } else {
            format!("special {mode:o} fifo {}", kind.is_fifo())
        };
        into.insert(name, what);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_named() {
        let cold = Observed {
            status: Status::Exited(0),
            timed_out: false,
            output: "a".into(),
            error: String::new(),
            extra: String::new(),
            offset: None,
            files: BTreeMap::from([("x".into(), "file".into())]),
        };
        assert!(cold.differences(&cold).is_empty());
        let warm = Observed { output: "b".into(), files: BTreeMap::new(), ..cold.clone() };
        let found = cold.differences(&warm);
        assert_eq!(found[0], ("standard output".into(), "a".into(), "b".into()));
        assert_eq!(found[1], ("file x".into(), "file".into(), "absent".into()));
    }
}
