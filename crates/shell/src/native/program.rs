//! Knows the programs in whose place this shell does something itself, and whether a name still means the same file.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

use memchr::memmem;
use rustix::fs::{Access, access};

use super::Refusal;
use crate::lookup::which;

/// Programs that bash has as builtins, and `env`, which this shell has.
const OF_SYSTEM: [&str; 5] = ["echo", "env", "false", "test", "true"];
/// The directories of the system's own programs.
const DIRECTORIES: [&str; 2] = ["/bin", "/usr/bin"];

/// Messages of LLVM's `not`, of version 3 and later.
const OF_NOT: [&[u8]; 2] = [b"unable to find `", b"' in PATH"];
/// `not` has some 100 KiB, a static one some MiB.
const NOT_MAX: u64 = 64 << 20;

const OWN: Refusal = "a program of the suite's own in the place of `env` or of a builtin";
const OTHER_NOT: Refusal = "`not` that may not be the program";

/// The files that names without a slash have meant in a script. bash looks a name up once, this shell each time.
pub(crate) type Found = HashMap<String, String>;

/// Notes which file a name means. Refuses one that has meant another before, or that bash would pass over.
pub(super) fn note(found: &mut Found, name: &str, file: &str) -> Result<(), Refusal> {
    if access(file, Access::EXEC_OK).is_err() {
        return Err("a program that may not be executed");
    }
    let earlier = found.entry(name.to_owned()).or_insert_with(|| file.to_owned());
    if name.contains('/') || earlier == file {
        Ok(())
    } else {
        Err("a name that has meant another program before")
    }
}

/// Whether `env` or a program that bash has as a builtin is the system's.
pub(super) fn check_system(name: &str, path: &str) -> Result<(), Refusal> {
    if !OF_SYSTEM.contains(&name) {
        return Ok(());
    }
    let file = which(name, path);
    let directory = file.as_deref().and_then(|file| Path::new(file).parent());
    let is_system =
        directory.is_some_and(|directory| DIRECTORIES.iter().any(|known| directory == Path::new(known)));
    if is_system { Ok(()) } else { Err(OWN) }
}

/// Whether `not` is LLVM's: this shell turns statuses around as that does.
pub(super) fn check_not(path: &str) -> Result<(), Refusal> {
    if which("not", path).is_some_and(|file| is_llvms_not(&file)) { Ok(()) } else { Err(OTHER_NOT) }
}

/// Whether this file is LLVM's `not`, which its messages tell.
pub(super) fn is_llvms_not(file: &str) -> bool {
    /// Device, inode, size and times, and the answer, by path.
    type Answers = HashMap<String, ([i64; 7], bool)>;
    static ANSWERS: LazyLock<Mutex<Answers>> = LazyLock::new(Mutex::default);
    let Ok(now) = fs::metadata(file) else { return false };
    let identity = [
        now.dev() as i64,
        now.ino() as i64,
        now.size() as i64,
        now.mtime(),
        now.mtime_nsec(),
        now.ctime(),
        now.ctime_nsec(),
    ];
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    match answers.get(file) {
        Some((of, answer)) if *of == identity => *answer,
        _ => {
            let has_messages =
                |content: Vec<u8>| OF_NOT.iter().all(|words| memmem::find(&content, words).is_some());
            let answer = now.is_file() && now.size() <= NOT_MAX && fs::read(file).is_ok_and(has_messages);
            answers.insert(file.to_owned(), (identity, answer));
            answer
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(dir: &Path, name: &str, text: &str) -> String {
        let path = dir.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_name_means_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (program(dir.path(), "one", ""), program(dir.path(), "two", ""));
        let plain = dir.path().join("plain");
        fs::write(&plain, "").unwrap();
        let mut found = Found::new();
        assert_eq!(note(&mut found, "a", &one), Ok(()));
        assert_eq!(note(&mut found, "a", &one), Ok(()));
        assert_eq!(note(&mut found, "b", &two), Ok(()));
        assert!(note(&mut found, "a", &two).is_err());
        assert!(note(&mut found, "c", plain.to_str().unwrap()).is_err(), "bash passes over it");
    }

    #[test]
    fn programs_in_other_directories_are_not_the_systems() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().to_str().unwrap();
        program(dir.path(), "test", "");
        assert_eq!(check_system("test", "/usr/bin:/bin"), Ok(()));
        assert_eq!(check_system("test", &format!("{own}:/usr/bin:/bin")), Err(OWN));
        assert_eq!(check_system("env", own), Err(OWN), "there is none");
        assert_eq!(check_system("cat", own), Ok(()), "it is started");
    }

    #[test]
    fn llvms_not_is_known_by_its_words_until_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        assert!(check_not(path).is_err());
        program(dir.path(), "not", "unable to find `x' in PATH: ");
        assert_eq!(check_not(path), Ok(()));
        program(dir.path(), "not", "anything else");
        assert!(check_not(path).is_err());
    }
}
