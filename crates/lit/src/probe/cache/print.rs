//! Prints of paths: texts that change whenever anything about the path changes that a config can see.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use hotstart_launch::{leads_through_made_up, reports_changes};

/// Ways in which a config can look at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Look {
    /// It read the file.
    Content,
    /// It queried the type of the file that a path leads to.
    Kind,
    /// It queried the type of the path itself.
    Link,
    /// It read the target of a link.
    Target,
    /// It listed the directory.
    Listing,
}

impl Look {
    /// Parses the helper's letter.
    pub fn named(letter: &str) -> Option<Look> {
        match letter {
            "f" => Some(Look::Content),
            "s" => Some(Look::Kind),
            "l" => Some(Look::Link),
            "r" => Some(Look::Target),
            "d" => Some(Look::Listing),
            _ => None,
        }
    }
}

/// Print of a path that does not exist.
const MISSING: &str = "-";

/// Returns the print of a path.
pub(super) fn print(look: Look, path: &Path) -> String {
    let seen = match look {
        Look::Content | Look::Listing => fs::metadata(path).map(|data| whole(&data)),
        Look::Kind => fs::metadata(path).map(|data| kind(path, &data)),
        Look::Link => fs::symlink_metadata(path).map(|data| kind(path, &data)),
        Look::Target => fs::read_link(path).map(|to| format!("{:?}", to.as_os_str().as_bytes())),
    };
    seen.unwrap_or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => MISSING.to_owned(),
        _ => format!("{MISSING}{:?}", error.raw_os_error()),
    })
}

/// Returns whether the path of a print exists.
pub(super) fn is_there(print: &str) -> bool {
    !print.starts_with(MISSING)
}

/// Returns everything that changes with the content. Programs cannot set the inode's change time.
pub(super) fn whole(data: &Metadata) -> String {
    let (dev, ino, mode, size) = (data.dev(), data.ino(), data.mode(), data.size());
    format!(
        "{dev} {ino} {mode:o} {size} {}.{} {}.{}",
        data.mtime(),
        data.mtime_nsec(),
        data.ctime(),
        data.ctime_nsec()
    )
}

/// Returns type, permissions and owner. For Python's modules also their times, which Python checks.
fn kind(path: &Path, data: &Metadata) -> String {
    if data.is_file() && is_module(path) {
        whole(data)
    } else {
        format!("{:o} {} {}", data.mode(), data.uid(), data.gid())
    }
}

fn is_module(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "py" || ending == "pyc")
}

/// Returns whether this print changes whenever the config would see something else. That is not so for files that the kernel makes
/// up, for devices but `/dev/null`, and in file systems that are not known to tell changes.
pub(super) fn is_telling(look: Look, path: &Path) -> bool {
    if path == Path::new("/dev/null") {
        return true;
    }
    let is_whole = matches!(look, Look::Content | Look::Listing) || is_module(path);
    let is_plain = fs::metadata(path).map_or(true, |data| data.is_file() || data.is_dir());
    !leads_through_made_up(path) && (!is_whole || is_plain && reports_changes(path))
}

/// File clocks advance in steps, so that two changes can have the same time. A file that changed within this time could change again
/// unnoticed.
const TICK: Duration = Duration::from_millis(50);

/// Returns whether the path has not changed since a tick before `begun`.
pub(super) fn is_settled(look: Look, path: &Path, begun: SystemTime) -> bool {
    if !matches!(look, Look::Content | Look::Listing) && !is_module(path) {
        return true;
    }
    let Ok(data) = fs::metadata(path) else { return true };
    let since = begun.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().saturating_sub(TICK);
    let changed = i128::from(data.ctime()) * 1_000_000_000 + i128::from(data.ctime_nsec());
    changed < since.as_nanos() as i128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_look_sees_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("f"), dir.path().join("l"));
        let of = |look, path: &Path| print(look, path);
        assert!(!is_there(&of(Look::Kind, &file)) && !is_there(&of(Look::Content, &file)));
        fs::write(&file, "1").unwrap();
        std::os::unix::fs::symlink("f", &link).unwrap();
        let (content, kind_of) = (of(Look::Content, &file), of(Look::Kind, &file));
        fs::write(&file, "22").unwrap();
        assert_ne!(of(Look::Content, &file), content);
        assert_eq!(of(Look::Kind, &file), kind_of, "it is the same kind of file");
        let target = of(Look::Target, &link);
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("./f", &link).unwrap();
        assert_ne!(of(Look::Target, &link), target);
        assert_eq!(of(Look::Kind, &link), kind_of, "it leads to the same");
    }

    #[test]
    fn files_of_the_kernel_tell_nothing() {
        for path in ["/proc/uptime", "/proc", "/proc/self/exe", "/dev/urandom", "/usr/../sys/kernel"] {
            for look in [Look::Content, Look::Kind, Look::Target, Look::Listing] {
                assert!(!is_telling(look, Path::new(path)), "{path}");
            }
        }
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path(), &dir.path().join("absent"), Path::new("/dev/null"), Path::new("/usr/bin")] {
            assert!(is_telling(Look::Content, path) && is_telling(Look::Listing, path), "{path:?}");
        }
    }

    #[test]
    fn what_has_just_changed_is_not_settled() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "1").unwrap();
        assert!(!is_settled(Look::Content, &file, SystemTime::now()));
        assert!(is_settled(Look::Content, &file, SystemTime::now() + Duration::from_secs(1)));
        assert!(is_settled(Look::Kind, &file, SystemTime::now()), "its kind is compared itself");
    }
}
