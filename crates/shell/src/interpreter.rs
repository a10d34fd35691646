//! Decides whether lit's `cat` and `diff`, which are Python programs, may run natively.
//!
//! A test can make Python fail, print more, or load other libraries: by a limit, or by a variable. An allow-list decides. With any other
//! variable of Python or of the loader, Python is started as lit does.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use hotstart_launch::may_steer_loader;
use hotstart_model::Environment;

use crate::state::Shell;

/// Variables that change nothing in a program that only copies and compares files, and those of Python's container images, which no
/// interpreter reads.
const HARMLESS: [&str; 9] = [
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONNOUSERSITE",
    "PYTHON_VERSION",
    "PYTHON_SHA256",
    "PYTHON_PIP_VERSION",
    "PYTHON_SETUPTOOLS_VERSION",
    "PYTHON_GET_PIP_URL",
    "PYTHON_GET_PIP_SHA256",
];
/// What begins the names of LLVM's own libraries, which no Python needs.
const LLVMS: [&[u8]; 6] = [b"libLLVM", b"libclang", b"liblld", b"libLTO", b"libMLIR", b"libRemarks"];
/// Directories that the loader searches in each of those of LD_LIBRARY_PATH.
const VARIANTS: [&str; 4] = ["glibc-hwcaps", "tls", "x86_64", "haswell"];
/// Where the loader looks without being told. Its cache has the names in the others.
const DEFAULT: [&str; 4] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"];
const CACHE: &str = "/etc/ld.so.cache";

/// What tells that a directory has changed: device, number, and the time of the last change.
type State = (u64, u64, i64, i64);

/// Returns whether neither the limits nor the variables of this shell change how Python runs. lit sets `PYTHONPATH` itself.
pub(crate) fn is_plain(shell: &Shell, python: Option<&Path>) -> bool {
    shell.limits.is_empty() && is_unchanged(&shell.vars.all(), python)
}

fn is_unchanged(vars: &Environment, python: Option<&Path>) -> bool {
    vars.iter().all(|(name, value)| {
        let name = name.as_bytes();
        if name.starts_with(b"PYTHON") {
            name == b"PYTHONPATH" || is_harmless(name, value.as_bytes())
        } else if name == b"LD_LIBRARY_PATH" {
            let mut parts = value.as_bytes().split(|&byte| matches!(byte, b':' | b';'));
            value.is_empty() || parts.all(|part| hides_nothing(part, python))
        } else {
            !may_steer_loader(name) && name != b"GLIBC_TUNABLES"
        }
    })
}

/// Returns whether this variable of Python changes nothing in a program that prints neither hashes nor sets. Python refuses some seeds.
pub(crate) fn is_harmless(name: &[u8], value: &[u8]) -> bool {
    let is_seed = || value == b"random" || (value.len() < 10 && value.iter().all(u8::is_ascii_digit));
    HARMLESS.iter().any(|harmless| name == harmless.as_bytes()) || (name == b"PYTHONHASHSEED" && is_seed())
}

/// Returns whether this directory of LD_LIBRARY_PATH has no library that Python may load from elsewhere.
fn hides_nothing(dir: &[u8], python: Option<&Path>) -> bool {
    let path = Path::new(OsStr::from_bytes(dir));
    if !path.is_absolute() || dir.contains(&b'$') {
        return false;
    }
    let state = match std::fs::metadata(path) {
        Ok(found) => (found.dev(), found.ino(), found.ctime(), found.ctime_nsec()),
        Err(error) => return error.kind() == std::io::ErrorKind::NotFound,
    };
    static KNOWN: Mutex<BTreeMap<Vec<u8>, (State, bool)>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, answer)) = known().get(dir).filter(|(then, _)| *then == state) {
        return *answer;
    }
    let answer = has_none(path, python);
    // A change within a tick of the clock would not be seen.
    if SystemTime::now().duration_since(UNIX_EPOCH).is_ok_and(|now| now.as_secs() as i64 > state.2 + 1) {
        known().insert(dir.to_owned(), (state, answer));
    }
    answer
}

fn has_none(path: &Path, python: Option<&Path>) -> bool {
    let Ok(entries) = std::fs::read_dir(path) else { return false };
    for entry in entries {
        let Ok(entry) = entry else { return false };
        let name = entry.file_name().into_vec();
        let is_library = memchr::memmem::find(&name, b".so").is_some();
        if VARIANTS.iter().any(|variant| name == variant.as_bytes()) {
            return false;
        }
        let is_llvms = LLVMS.iter().any(|own| name.starts_with(own));
        if is_library && !is_llvms && is_elsewhere(&entry.path(), &name, python) {
            return false;
        }
    }
    true
}

/// Returns whether the loader finds another library of this name without LD_LIBRARY_PATH, or may.
fn is_elsewhere(own: &Path, name: &[u8], python: Option<&Path>) -> bool {
    static CACHED: LazyLock<Option<Vec<u8>>> = LazyLock::new(|| std::fs::read(CACHE).ok());
    let Some(cached) = &*CACHED else { return true };
    let file = Path::new(OsStr::from_bytes(name));
    let beside = python.and_then(Path::parent).map(|dir| dir.join("../lib"));
    let mut places = DEFAULT.iter().map(PathBuf::from).chain(beside);
    let ended = [name, b"\0"].concat();
    // The same file, if the loader has it from this very directory.
    let is_other = |place: PathBuf| {
        let other = place.join(file);
        std::fs::symlink_metadata(&other).is_ok() && other.canonicalize().ok() != own.canonicalize().ok()
    };
    memchr::memmem::find(cached, &ended).is_some() || places.any(is_other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> bool {
        let mut vars = Environment::default();
        vars.set("PATH", "/bin");
        vars.set(name, value);
        is_unchanged(&vars, None)
    }

    #[test]
    fn variables_that_change_python_or_its_loader_start_it() {
        for (name, value) in [
            ("PYTHONPATH", "/lit"),
            ("PYTHONHASHSEED", "0"),
            ("PYTHONHASHSEED", "random"),
            ("PYTHONUNBUFFERED", "1"),
            ("HOME", "/nowhere"),
            ("LD_LIBRARY_PATH", "/nowhere/at/all"),
            ("LD_LIBRARY_PATH", ""),
            ("PYTHON_VERSION", "3.13"),
            ("LD_LLD", "/usr/bin/ld.lld"),
        ] {
            assert!(with(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("PYTHONHOME", "/opt/python"),
            ("PYTHONHASHSEED", "abc"),
            ("PYTHONMALLOC", "foo"),
            ("PYTHONVERBOSE", "1"),
            ("LD_PRELOAD", "/missing.so"),
            ("LD_DEBUG", "all"),
            ("LD_LIBRARY_PATH", ":/nowhere"),
            ("LD_LIBRARY_PATH", "lib"),
            ("LD_LIBRARY_PATH", "/nowhere/$ORIGIN"),
        ] {
            assert!(!with(name, value), "{name}={value}");
        }
    }

    #[test]
    fn a_directory_hides_nothing_if_it_has_none_of_the_systems_libraries() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        for file in ["libLLVM.so.19.1", "libhotstart-nobody.so.1", "libx.a"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        assert!(with("LD_LIBRARY_PATH", path));
        assert!(with("LD_LIBRARY_PATH", &format!("{path}:/nowhere")));
        std::fs::write(dir.path().join("libc.so.6"), "").unwrap();
        assert!(!with("LD_LIBRARY_PATH", path));
        std::fs::remove_file(dir.path().join("libc.so.6")).unwrap();
        std::fs::create_dir(dir.path().join("glibc-hwcaps")).unwrap();
        assert!(!with("LD_LIBRARY_PATH", path));
    }
}
