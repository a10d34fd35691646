//! Knows the programs in whose place this shell does something itself, and whether a name still means the same file.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use hotstart_launch::stamps_accesses;
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
const RECORDED: Refusal = "`env` or `not` on a file system that records every access";
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

/// Whether a program that bash has as a builtin is the system's.
pub(super) fn check_system(name: &str, path: &str) -> Result<(), Refusal> {
    if OF_SYSTEM.contains(&name) { system_file(name, path).map(drop) } else { Ok(()) }
}

fn system_file(name: &str, path: &str) -> Result<String, Refusal> {
    which(name, path).filter(|file| is_of_system(Path::new(file))).ok_or(OWN)
}

/// Whether a program lies in a directory of the system's own.
pub(super) fn is_of_system(file: &Path) -> bool {
    file.parent().is_some_and(|directory| DIRECTORIES.iter().any(|known| directory == Path::new(known)))
}

/// The file of `env` or `not`, which this shell does not start: the system's, or LLVM's.
pub(super) fn file_of_prefix(name: &str, path: &str) -> Result<String, Refusal> {
    let file = match name {
        "not" => which(name, path).filter(|file| is_llvms_not(file)).ok_or(OTHER_NOT)?,
        _ => system_file(name, path)?,
    };
    if stamps_accesses(Path::new(&file)) { Err(RECORDED) } else { Ok(file) }
}

/// Whether this file is LLVM's `not`: a native program with its messages that turns statuses around.
fn is_llvms_not(file: &str) -> bool {
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
            let has_messages = |content: Vec<u8>| {
                let says = |words: &&[u8]| memmem::find(&content, words).is_some();
                content.starts_with(b"\x7fELF") && OF_NOT.iter().all(says)
            };
            let is_like = now.is_file() && now.size() <= NOT_MAX && fs::read(file).is_ok_and(has_messages);
            let answer = is_like && turns_around(file);
            answers.insert(file.to_owned(), (identity, answer));
            answer
        }
    }
}

/// Whether it can be run, and does what it is to do.
fn turns_around(file: &str) -> bool {
    let run = |program: &str| Command::new(file).arg(program).stdin(Stdio::null()).output();
    let is = |program: &str, status: i32| {
        let silent = |ran: &Output| ran.stdout.is_empty() && ran.stderr.is_empty();
        run(program).is_ok_and(|ran| ran.status.code() == Some(status) && silent(&ran))
    };
    is("false", 0) && is("true", 1)
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
        assert_eq!(file_of_prefix("env", own), Err(OWN), "there is none");
        assert_eq!(check_system("cat", own), Ok(()), "it is started");
    }

    #[test]
    fn llvms_not_is_known_by_what_it_is_and_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        let find = || file_of_prefix("not", path);
        assert!(find().is_err());
        program(dir.path(), "not", "#!/bin/sh\n# unable to find `x' in PATH:\n! \"$@\"\n");
        assert!(find().is_err(), "a script");
        let mut other = fs::read("/bin/true").unwrap();
        other.extend(b"unable to find `x' in PATH: ");
        fs::write(dir.path().join("not"), other).unwrap();
        assert!(find().is_err(), "it does something else");
    }
}
