//! Cold starts, by exec: always possible, always right.
//!
//! `vfork` is used because its cost does not grow with the runner's memory. Between `vfork` and exec a child does as little as
//! it can. So a spec with limits or a file mode mask goes through a second exec of this very binary, which sets them and becomes
//! the program. lit does the same with a Python script.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::allocator::Preload;
use crate::slots::Slot;
use crate::spec::{Limit, Resource};
use crate::{EnvBlock, Spec, StartError, anchor, sys};

/// First argument by which the binary recognizes that it must set limits and become another program.
pub const TRAMPOLINE: &str = "__hotstart-enter";

/// Paths and arguments in the kernel's form.
pub(crate) struct Prepared {
    program: CString,
    argv: Vec<CString>,
    env: EnvBlock,
    cwd: CString,
    /// Limits that are set before the first exec.
    limits: Vec<Limit>,
}

/// Returns whether the spec has a setting that cannot be made between `vfork` and exec.
pub(crate) fn needs_trampoline(spec: &Spec<'_>) -> bool {
    spec.umask.is_some() || !spec.limits.is_empty()
}

/// Converts the spec; fails if it contains a NUL.
pub(crate) fn prepare(spec: &Spec<'_>, preload: Option<&Preload>) -> Result<Prepared, StartError> {
    if !needs_trampoline(spec) {
        let direct = prepare_direct(spec)?;
        let env = preload.map_or(direct.env, |preload| preload.environment(&spec.env));
        return Ok(Prepared { env, ..direct });
    }
    let argv = trampoline_argv(spec, preload);
    let argv = argv.iter().map(|arg| cstring(spec, arg)).collect::<Result<_, _>>()?;
    let (program, env) = (c"/proc/self/exe".to_owned(), spec.env.clone());
    Ok(Prepared { program, argv, env, cwd: cstring(spec, spec.cwd.as_os_str())?, limits: Vec::new() })
}

/// Converts a spec without a file mode mask, whose limits do not hinder the child on its way to exec.
pub(crate) fn prepare_direct(spec: &Spec<'_>) -> Result<Prepared, StartError> {
    Ok(Prepared {
        program: cstring(spec, spec.program.as_os_str())?,
        argv: spec.argv.iter().map(|arg| cstring(spec, arg)).collect::<Result<_, _>>()?,
        env: spec.env.clone(),
        cwd: cstring(spec, spec.cwd.as_os_str())?,
        limits: spec.limits.clone(),
    })
}

fn cstring(spec: &Spec<'_>, text: &OsStr) -> Result<CString, StartError> {
    CString::new(text.as_bytes()).map_err(|_| StartError::Nul { path: spec.program.clone() })
}

impl Prepared {
    /// Starts the process, which enters itself in `slot`. Returns its number, or the error number.
    pub(crate) fn spawn(&self, spec: &Spec<'_>, slot: Option<Slot<'_>>) -> Result<i32, i32> {
        let request = sys::spawn::Request {
            program: &self.program,
            argv: &self.argv,
            env: self.env.blob(),
            env_count: self.env.count(),
            cwd: &self.cwd,
            stdio: spec.stdio,
            extra_fds: &spec.extra_fds,
            process_group: spec.process_group,
            limits: &self.limits,
            ignored: spec.ignored,
            traced: false,
        };
        let start = || until_not_busy(|| sys::spawn::vfork_exec(&request, slot.as_ref().map(Slot::cell)));
        match start() {
            // The limit on processes may be reached.
            Err(libc::EAGAIN) if anchor::free_idle() => start(),
            other => other,
        }
    }
}

/// Retries while the program is open for writing. If a test has just written it, this very process did, and a child that
/// another thread starts holds the file open between fork and exec. That is soon over.
fn until_not_busy(mut start: impl FnMut() -> Result<i32, i32>) -> Result<i32, i32> {
    let mut pause = Duration::from_millis(1);
    loop {
        match start() {
            Err(libc::ETXTBSY) if pause < Duration::from_millis(200) => std::thread::sleep(pause),
            other => return other,
        }
        pause *= 2;
    }
}

/// Turns the error number of a failed start into an error that names the directory, else the program.
pub(crate) fn explain(spec: &Spec<'_>, errno: i32) -> StartError {
    let source = io::Error::from_raw_os_error(errno);
    // First, as a file is mostly not executable either.
    if spec.cwd.metadata().is_ok_and(|found| !found.is_dir()) {
        let source = io::Error::from_raw_os_error(libc::ENOTDIR);
        return StartError::Directory { path: spec.cwd.to_path_buf(), source };
    }
    if let Err(source) = rustix::fs::access(&*spec.cwd, rustix::fs::Access::EXEC_OK) {
        return StartError::Directory { path: spec.cwd.to_path_buf(), source: source.into() };
    }
    StartError::Program { path: spec.program.clone(), source }
}

fn trampoline_argv(spec: &Spec<'_>, preload: Option<&Preload>) -> Vec<OsString> {
    let mut argv: Vec<OsString> = vec!["hotstart".into(), TRAMPOLINE.into()];
    if let Some(umask) = spec.umask {
        argv.push(format!("umask={umask}").into());
    }
    let value = |v: Option<u64>| v.map_or("unlimited".to_owned(), |v| v.to_string());
    for Limit { resource, soft, hard } in &spec.limits {
        let name = resource_name(*resource);
        argv.push(format!("{name}={}:{}", value(*soft), value(*hard)).into());
    }
    // An argument, since in this process's environment the library that hides it would be loaded here already.
    argv.extend(preload.map(|preload| [OsStr::new("preload="), &preload.cold].join(OsStr::new(""))));
    argv.push("--".into());
    // A script sees the path by which it is started. With limits that is its argument 0, as under lit's Python.
    let by_name = |name: &&OsString| !spec.limits.is_empty() && Path::new(name).components().nth(1).is_some();
    argv.push(spec.argv.first().filter(by_name).cloned().unwrap_or_else(|| spec.program.clone().into()));
    argv.extend(spec.argv.iter().cloned());
    argv
}

fn resource_name(resource: Resource) -> &'static str {
    match resource {
        Resource::AddressSpace => "address-space",
        Resource::OpenFiles => "open-files",
        Resource::Stack => "stack",
        Resource::FileSize => "file-size",
        Resource::Core => "core",
    }
}

/// The other end of the trampoline. Call it first in the binary's `main`, with the process's arguments.
///
/// Returns `None` if the arguments are not a trampoline's. Otherwise it becomes the program; if that fails, it prints the
/// reason and returns exit code 127, or where a limit may not be raised, what lit's launcher in Python says, and its 1.
pub fn enter_trampoline(args: &[OsString]) -> Option<u8> {
    if args.get(1).map(OsString::as_os_str) != Some(OsStr::new(TRAMPOLINE)) {
        return None;
    }
    match become_program(&args[2..]) {
        Unable::Raise => {
            eprintln!("Traceback (most recent call last):\nValueError: not allowed to raise maximum limit");
            Some(1)
        }
        Unable::Other(error) => {
            eprintln!("hotstart: {error}");
            Some(127)
        }
    }
}

/// Why there is no program.
enum Unable {
    /// A limit may not be raised.
    Raise,
    Other(String),
}

fn become_program(args: &[OsString]) -> Unable {
    let mut rest = args;
    let mut preload = None;
    while let Some((setting, tail)) = rest.split_first() {
        rest = tail;
        if let Some(value) = setting.as_bytes().strip_prefix(b"preload=") {
            preload = Some(OsStr::from_bytes(value));
            continue;
        }
        let setting = setting.to_string_lossy();
        if setting == "--" {
            break;
        }
        let Some((name, value)) = setting.split_once('=') else {
            return Unable::Other(format!("malformed setting '{setting}'"));
        };
        if let Err(error) = apply_setting(name, value) {
            return match error.kind() {
                io::ErrorKind::PermissionDenied => Unable::Raise,
                _ => Unable::Other(format!("cannot set {name} to {value}: {error}")),
            };
        }
    }
    let [program, argv @ ..] = rest else { return Unable::Other("no program given".to_owned()) };
    let program = PathBuf::from(program);
    let error = sys::spawn::exec(&program, argv, preload);
    Unable::Other(format!("cannot execute '{}': {error}", program.display()))
}

fn apply_setting(name: &str, value: &str) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    if name == "umask" {
        sys::spawn::set_umask(value.parse().map_err(|_| invalid())?);
        return Ok(());
    }
    const ALL: [Resource; 5] =
        [Resource::AddressSpace, Resource::OpenFiles, Resource::Stack, Resource::FileSize, Resource::Core];
    let resource = ALL.into_iter().find(|r| resource_name(*r) == name).ok_or_else(invalid)?;
    let parse = |text: &str| match text {
        "unlimited" => Ok(None),
        number => number.parse().map(Some).map_err(|_| invalid()),
    };
    let (soft, hard) = value.split_once(':').ok_or_else(invalid)?;
    sys::spawn::set_limit(Limit { resource, soft: parse(soft)?, hard: parse(hard)? })
}
