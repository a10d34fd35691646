//! Gives chosen tools another allocator than libc's.
//!
//! The allocator is a shared library that ld.so loads before libc. A tool gets the same one however it is started. A cold
//! start loads it by LD_PRELOAD, and a second library removes the variable from the environment before anything can read it
//! (runtime/extra/preload.c). A zygote loads it once, and its forks get the request's environment. So no verdict depends on
//! the way of starting. The tool's own children have the system's allocator, unless hotstart starts these, too.

mod find;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Seek};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hotstart_model::Environment;

pub use find::{KNOWN, Known, directories, find, known};

use crate::warm::{eligible, image};
use crate::{EnvBlock, Group, Launcher, ProcessGroup, Reason, Spec};

/// The library for each tool; `None` is the system's allocator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatorChoice {
    /// For tools that `tools` does not name.
    pub all: Option<PathBuf>,
    /// By the last component of the path by which a tool is started. The last entry for a tool counts.
    pub tools: Vec<(String, Option<PathBuf>)>,
}

/// The reason for which the chosen allocator cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AllocatorError {
    /// LD_PRELOAD cannot hold the path.
    #[error("the path of an allocator's library must be absolute, without blanks and colons: '{}'", .0.display())]
    Path(PathBuf),
    /// ld.so does not load it.
    #[error("the allocator '{}' cannot be preloaded: {}", path.display(), said)]
    Refused {
        /// The library.
        path: PathBuf,
        /// The message of a process that was started with it.
        said: String,
    },
    /// The system allows no file for the hiding library that ld.so could load.
    #[error("the system lets no file be made that could hide a preloaded allocator")]
    System,
}

/// The allocators that tools are given.
#[derive(Debug)]
pub struct Allocators {
    choice: AllocatorChoice,
    /// The file of `runtime/extra/preload.c`, which lives as long as this value.
    _scrubber: OwnedFd,
    scrubber: PathBuf,
    programs: Mutex<HashMap<OsString, Allocation>>,
}

/// A program's allocator: `None` is the system's. With an error, too, the program gets the system's; the error is the reason.
pub(crate) type Allocation = Result<Option<Arc<Preload>>, Reason>;

/// The libraries to preload.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Preload {
    /// The allocator.
    pub library: PathBuf,
    /// The entries that a cold start puts before the user's own LD_PRELOAD.
    pub cold: OsString,
}

impl Allocators {
    /// Loads each library once, as a test.
    pub fn new(choice: AllocatorChoice) -> Result<Self, AllocatorError> {
        let file = image::open(image::PRELOAD).ok_or(AllocatorError::System)?;
        // The path goes through this process, so that the tool has no descriptor of the file.
        let scrubber = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
        let mut libraries: Vec<_> = choice.tools.iter().map(|(_, library)| library).collect();
        libraries.push(&choice.all);
        libraries.sort();
        libraries.dedup();
        libraries.into_iter().flatten().try_for_each(|library| check(library, &scrubber))?;
        Ok(Allocators { choice, _scrubber: file, scrubber, programs: Mutex::default() })
    }

    /// Returns the libraries with which `program` is started.
    pub(crate) fn of(&self, program: &Path) -> Allocation {
        let mut programs = self.programs.lock().expect("no panic while locked");
        if let Some(known) = programs.get(program.as_os_str()) {
            return known.clone();
        }
        let Some(library) = self.chosen(program) else { return Ok(None) };
        let fits = match eligible::examine(program) {
            // ld.so alone can follow such a search path.
            Err(Reason::RelativePath) => Ok(()),
            other => other.map(drop),
        };
        let allocation = fits.map(|()| Some(Arc::new(Preload::new(library, &self.scrubber))));
        programs.insert(program.as_os_str().to_owned(), allocation.clone());
        allocation
    }

    fn chosen(&self, program: &Path) -> Option<&Path> {
        let name = program.file_name()?;
        let own = self.choice.tools.iter().rev().find(|(tool, _)| OsStr::new(tool) == name);
        own.map_or(&self.choice.all, |(_, library)| library).as_deref()
    }
}

impl Preload {
    pub(crate) fn new(library: &Path, scrubber: &Path) -> Self {
        let mut cold = scrubber.as_os_str().to_owned();
        cold.push(":");
        cold.push(library);
        Preload { library: library.to_owned(), cold }
    }

    /// Returns the environment of a cold start.
    pub(crate) fn environment(&self, env: &EnvBlock) -> EnvBlock {
        with_preload(env, &self.cold)
    }
}

/// Puts `first` before the entries of LD_PRELOAD, in its place; without LD_PRELOAD, at the end.
fn with_preload(env: &EnvBlock, first: &OsStr) -> EnvBlock {
    let mut blob = Vec::with_capacity(env.blob().len() + first.len() + 16);
    let entry = |blob: &mut Vec<u8>, users: Option<&[u8]>| {
        blob.extend_from_slice(b"LD_PRELOAD=");
        blob.extend_from_slice(first.as_bytes());
        if let Some(users) = users {
            blob.push(b':');
            blob.extend_from_slice(users);
        }
        blob.push(0);
    };
    let mut is_set = false;
    for assignment in env.strings() {
        match assignment.strip_prefix(b"LD_PRELOAD=") {
            Some(users) => {
                entry(&mut blob, Some(users));
                is_set = true;
            }
            None => {
                blob.extend_from_slice(assignment);
                blob.push(0);
            }
        }
    }
    if !is_set {
        entry(&mut blob, None);
    }
    EnvBlock::from_strings(&blob).expect("each string is ended")
}

/// Starts a shell with the library: it must load without a message, and must not be visible in the environment.
fn check(library: &Path, scrubber: &Path) -> Result<(), AllocatorError> {
    let text = library.as_os_str().as_bytes();
    if !library.is_absolute() || text.iter().any(|byte| byte.is_ascii_whitespace() || *byte == b':') {
        return Err(AllocatorError::Path(library.to_owned()));
    }
    let refused = |said: String| AllocatorError::Refused { path: library.to_owned(), said };
    let said = said_by_shell(library, scrubber).map_err(|error| refused(error.to_string()))?;
    if said == "unset\n" { Ok(()) } else { Err(refused(said.trim().replace('\n', "; "))) }
}

fn said_by_shell(library: &Path, scrubber: &Path) -> std::io::Result<String> {
    let memory = || rustix::fs::memfd_create("hotstart-said", rustix::fs::MemfdFlags::CLOEXEC);
    let (output, null) = (memory()?, std::fs::File::open("/dev/null")?);
    let spec = Spec {
        program: "/bin/sh".into(),
        argv: ["sh", "-c", "echo ${LD_PRELOAD-unset}"].map(Into::into).to_vec(),
        env: Preload::new(library, scrubber).environment(&EnvBlock::new(&Environment::new())),
        cwd: Path::new("/").into(),
        stdio: [null.as_fd(), output.as_fd(), output.as_fd()],
        extra_fds: Vec::new(),
        umask: None,
        limits: Vec::new(),
        ignored: None,
        keep_cold: true,
        process_group: ProcessGroup::New,
    };
    let group = Group::new();
    let exit = Launcher::new().start(&spec, &group).map_err(std::io::Error::other)?.wait();
    let mut said = String::new();
    let mut output = std::fs::File::from(output);
    output.rewind()?;
    output.read_to_string(&mut said)?;
    if said.is_empty() {
        said = format!("a shell with it ended by {:?}", exit.status);
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tools_own_choice_wins_and_the_last_one_holds() {
        let (a, b) = (PathBuf::from("/a.so"), PathBuf::from("/b.so"));
        let choose = |all: Option<&PathBuf>, tools: &[(&str, Option<&PathBuf>)]| Allocators {
            choice: AllocatorChoice {
                all: all.cloned(),
                tools: tools.iter().map(|(tool, library)| (tool.to_string(), library.cloned())).collect(),
            },
            _scrubber: std::fs::File::open("/dev/null").unwrap().into(),
            scrubber: PathBuf::new(),
            programs: Mutex::default(),
        };
        let some = choose(None, &[("opt", Some(&a)), ("opt", Some(&b))]);
        assert_eq!(some.chosen(Path::new("/bin/opt")), Some(&*b));
        assert_eq!(some.chosen(Path::new("/bin/llc")), None);
        let all = choose(Some(&a), &[("clang", None)]);
        assert_eq!(all.chosen(Path::new("/bin/llc")), Some(&*a));
        assert_eq!(all.chosen(Path::new("/bin/clang")), None);
    }

    #[test]
    fn the_users_own_preloads_keep_their_place() {
        let strings = |text: &[u8]| {
            let env = EnvBlock::from_strings(text).unwrap();
            with_preload(&env, OsStr::new("s:a")).blob().to_vec()
        };
        assert_eq!(strings(b"A=1\0"), b"A=1\0LD_PRELOAD=s:a\0");
        assert_eq!(strings(b"LD_PRELOAD=x y\0A=1\0"), b"LD_PRELOAD=s:a:x y\0A=1\0");
    }

    #[test]
    fn what_cannot_be_preloaded_is_an_error_that_names_it() {
        let try_one = |path: &str| {
            let choice = AllocatorChoice { all: Some(path.into()), tools: Vec::new() };
            Allocators::new(choice).unwrap_err().to_string()
        };
        assert!(try_one("a.so").contains("absolute"));
        assert!(try_one("/tmp/a b.so").contains("'/tmp/a b.so'"));
        let error = try_one("/no/such.so");
        assert!(error.starts_with("the allocator '/no/such.so' cannot be preloaded: "), "{error}");
    }
}
