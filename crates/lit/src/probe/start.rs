//! Starts the helper: finds Python, sends the embedded modules and the settings.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotstart_launch::{EnvBlock, Group, Launcher, ProcessGroup, Spec, StartError};
use hotstart_model::{Environment, Severity};
use hotstart_python::which;

use super::cache::{self, Cache};
use super::line::{Memory, Starter};
use super::process::Inherited;
use super::python::{Interpreter, Place, Surroundings};
use super::wire::Request;
use super::{About, Probe, ProbeError};
use crate::settings::Settings;

/// Version of the protocol on the pipes; `PROTOCOL` in `litprobe/__init__.py`.
pub(super) const PROTOCOL: u32 = 1;

/// Standard input of the helper.
const NOTHING: &str = "/dev/null";

const LOADER: &str = include_str!("../../litprobe/loader.py");

const MODULES: [(&str, &str); 13] = [
    ("litprobe.ahead", include_str!("../../litprobe/ahead.py")),
    ("litprobe", include_str!("../../litprobe/__init__.py")),
    ("litprobe.carry", include_str!("../../litprobe/carry.py")),
    ("litprobe.describe", include_str!("../../litprobe/describe.py")),
    ("litprobe.execute", include_str!("../../litprobe/execute.py")),
    ("litprobe.later", include_str!("../../litprobe/later.py")),
    ("litprobe.names", include_str!("../../litprobe/names.py")),
    ("litprobe.plain", include_str!("../../litprobe/plain.py")),
    ("litprobe.pure", include_str!("../../litprobe/pure.py")),
    ("litprobe.session", include_str!("../../litprobe/session.py")),
    ("litprobe.trace", include_str!("../../litprobe/trace.py")),
    ("litprobe.update", include_str!("../../litprobe/update.py")),
    ("litprobe.server", include_str!("../../litprobe/server.py")),
];

/// The helper's descriptors for requests and replies.
const REQUESTS: i32 = 3;
const REPLIES: i32 = 4;
/// The run's standard error, which the loader puts in its place once Python has started.
const ERRORS: i32 = 5;

/// The most that is read of what a Python wrote instead of starting.
const SAID_MAX: u64 = 1 << 16;

impl<'g> Probe<'g> {
    /// Starts the helper as a part of `group` and waits until it is ready. If no Python is named, takes the first one that
    /// has lit.
    pub fn start(settings: &Settings, launcher: &'g Launcher, group: &'g Group) -> Result<Self, ProbeError> {
        if let Some(python) = named_python(settings)? {
            let named = Interpreter { python, lit_package: settings.lit_package.clone() };
            return Self::start_in(named, settings, launcher, group);
        }
        let mut tried = Vec::new();
        for Place { name, found } in Surroundings::of_process().places(settings) {
            let Some(mut interpreter) = found else {
                tried.push(format!("{name}: there is none"));
                continue;
            };
            interpreter.lit_package = interpreter.lit_package.or_else(|| settings.lit_package.clone());
            let python = interpreter.python.clone();
            let reason = match Self::start_in(interpreter, settings, launcher, group) {
                Err(ProbeError::NoLit { reason, .. }) => reason,
                Err(ProbeError::Start(StartError::Program { source, .. })) if is_no_program(&source) => {
                    format!("it cannot be executed: {source}")
                }
                started => return started,
            };
            tried.push(format!("{name}: '{}': {reason}", python.display()));
        }
        Err(ProbeError::Nowhere(tried))
    }

    fn start_in(
        interpreter: Interpreter,
        settings: &Settings,
        launcher: &'g Launcher,
        group: &'g Group,
    ) -> Result<Self, ProbeError> {
        let mut probe = Self::idle(interpreter, settings, launcher, group);
        if !probe.memory.knows_greeting() {
            probe.launch()?;
        }
        probe.greet()?;
        Ok(probe)
    }

    /// Creates a probe without a process.
    fn idle(interpreter: Interpreter, settings: &Settings, launcher: &'g Launcher, group: &'g Group) -> Self {
        let about = About {
            python: interpreter.python.clone(),
            interpreter,
            lit_version: (0, 0, 0),
            lit_version_text: String::new(),
            package_dir: PathBuf::new(),
        };
        let package = about.interpreter.lit_package.as_deref();
        // A script (a shim of pyenv's) chooses a Python by rules that the key does not cover.
        let wanted = settings.config_cache.as_ref().filter(|_| is_elf(&about.python));
        let cache = wanted.map(|wanted| {
            let mut key = cache::surroundings(&about.python, &settings.cwd);
            key.push(describe(settings, package));
            let key: Vec<&[u8]> = key.iter().map(Vec::as_slice).collect();
            (Cache::new(&wanted.dir, &key), wanted.checks)
        });
        Probe {
            child: None,
            inherited: None,
            requests: None,
            replies: None,
            said: None,
            line: Vec::new(),
            diagnostics: Vec::new(),
            about,
            waited: Duration::ZERO,
            last_answer: Instant::now(),
            memory: Memory::new(cache, Starter { settings: settings.clone(), launcher, group }),
            listener: None,
        }
    }

    /// Starts the process.
    pub(super) fn launch(&mut self) -> Result<(), ProbeError> {
        let begun = Instant::now();
        let Starter { settings, launcher, group } = self.memory.starter();
        let settings = settings.clone();
        let python = self.about.interpreter.python.clone();
        let flags = rustix::pipe::PipeFlags::CLOEXEC;
        let (for_helper, requests) = rustix::pipe::pipe_with(flags).map_err(io::Error::from)?;
        let (replies, from_helper) = rustix::pipe::pipe_with(flags).map_err(io::Error::from)?;
        let nothing = OpenOptions::new().read(true).open(NOTHING);
        let nothing = nothing.map_err(|error| io::Error::new(error.kind(), format!("{NOTHING}: {error}")))?;
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let said =
            rustix::fs::memfd_create("said", rustix::fs::MemfdFlags::CLOEXEC).map_err(io::Error::from)?;
        let spec = Spec {
            program: python.clone(),
            argv: vec![python.clone().into(), "-c".into(), LOADER.into()],
            env: EnvBlock::new(&std::env::vars_os().collect::<Environment>()),
            cwd: Arc::from(settings.cwd.as_path()),
            stdio: [nothing.as_fd(), stdout.as_fd(), said.as_fd()],
            extra_fds: vec![
                (REQUESTS, for_helper.as_fd()),
                (REPLIES, from_helper.as_fd()),
                (ERRORS, stderr.as_fd()),
            ],
            umask: None,
            limits: Vec::new(),
            ignored: None,
            keep_cold: true,
            // Its own, so that a config's processes end with it when the group is killed.
            process_group: ProcessGroup::New,
        };
        let child = launcher.start(&spec, group)?;
        drop((for_helper, from_helper));
        self.inherited = Inherited::of(child.pid());
        self.child = Some(child);
        self.requests = Some(File::from(requests));
        self.replies = Some(BufReader::with_capacity(1 << 16, File::from(replies)));
        self.said = Some(File::from(said));
        let package = self.about.interpreter.lit_package.clone();
        self.hand_over(&settings, package.as_deref());
        self.waited += begun.elapsed();
        Ok(())
    }

    /// Returns the error for a Python that did not start, in its own words if it wrote any.
    pub(super) fn ended_at_once(&mut self) -> ProbeError {
        let mut text = Vec::new();
        if let Some(mut said) = self.said.take() {
            // Both processes share the file's position. What cannot be read is not told.
            let read = said.rewind().and_then(|()| said.take(SAID_MAX).read_to_end(&mut text));
            read.map_or_else(|_| text.clear(), drop);
        }
        ProbeError::NoLit {
            python: self.about.python.clone(),
            reason: reason(&String::from_utf8_lossy(&text)),
        }
    }

    /// Sends modules and settings. If the helper has died, reading its answer shows it.
    fn hand_over(&mut self, settings: &Settings, package: Option<&Path>) {
        let mut text = format!("{}\n", MODULES.len()).into_bytes();
        for (name, source) in MODULES {
            text.extend_from_slice(format!("{name} {}\n", source.len()).as_bytes());
        }
        MODULES.iter().for_each(|(_, source)| text.extend_from_slice(source.as_bytes()));
        text.extend_from_slice(&describe(settings, package));
        if self.requests.as_mut().is_some_and(|requests| requests.write_all(&text).is_err()) {
            self.requests = None;
        }
    }
}

/// Returns the line that tells why a Python did not start: the last that names an error, else the first.
fn reason(said: &str) -> String {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let named = lines.clone().rfind(|line| line.contains("Error:"));
    named.or_else(|| lines.next()).unwrap_or("it ended at once").to_owned()
}

fn describe(settings: &Settings, package: Option<&Path>) -> Vec<u8> {
    let texts = |pairs: &'_ [(String, String)]| -> Vec<(Vec<u8>, Vec<u8>)> {
        pairs.iter().map(|(key, value)| (key.clone().into_bytes(), value.clone().into_bytes())).collect()
    };
    let params = texts(&settings.params);
    let level = match settings.diagnostic_level {
        Severity::Debug | Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Doubt | Severity::Error | Severity::Fatal => "error",
    };
    let number = |value: Option<u64>| value.map_or("null".to_owned(), |value| value.to_string());
    let package = package.map(|package| package_parent(&settings.cwd, package));
    Request::new()
        .text("progname", &settings.progname)
        .list("argv", [settings.progname.as_bytes()])
        .optional("lit_package", package.as_ref().map(|path| path.as_os_str().as_bytes()))
        .list("path", settings.path.iter().map(|path| path.as_os_str().as_bytes()))
        .text("diagnostic_level", level)
        .raw("use_valgrind", settings.use_valgrind)
        .raw("valgrind_leak_check", settings.valgrind_leak_check)
        .list("valgrind_args", settings.valgrind_args.iter().map(String::as_bytes))
        .raw("no_execute", settings.no_execute)
        .raw("debug", settings.debug)
        .text("order", settings.order.name())
        .values(
            "builtin_params",
            settings.builtin_params.iter().map(|(key, value)| (key.as_str(), value.as_str())),
        )
        .pairs(
            "config_map",
            settings
                .config_map
                .iter()
                .map(|(from, to)| (from.as_os_str().as_bytes(), to.as_os_str().as_bytes())),
        )
        .pairs("params", params.iter().map(|(key, value)| (&key[..], &value[..])))
        .optional("config_prefix", settings.config_prefix.as_ref().map(|prefix| prefix.as_bytes()))
        .raw("per_test_coverage", settings.per_test_coverage)
        .raw("gtest_sharding", settings.gtest_sharding)
        .raw("max_retries_per_test", number(settings.max_retries_per_test.map(u64::from)))
        .raw("update_tests", settings.update_tests)
        .raw("timeout", number(settings.timeout))
        .raw("trace", settings.config_cache.is_some())
        .end()
}

/// Returns the directory for Python's path. `package` is that directory or the package's own.
fn package_parent(cwd: &Path, package: &Path) -> PathBuf {
    let package = cwd.join(package);
    let is_package = package.join("LitConfig.py").exists();
    match package.parent() {
        Some(parent) if is_package => parent.to_path_buf(),
        _ => package,
    }
}

fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok()) && magic == *b"\x7fELF"
}

/// Returns whether this file can never be started, not only while the system is busy.
fn is_no_program(error: &io::Error) -> bool {
    let never = [rustix::io::Errno::NOENT, rustix::io::Errno::ACCESS, rustix::io::Errno::NOEXEC];
    never.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Returns the Python that the user names by option or variable.
fn named_python(settings: &Settings) -> Result<Option<PathBuf>, ProbeError> {
    let named = settings.python.clone().map(OsString::from);
    let named = named.or_else(|| std::env::var_os("HOTSTART_LIT_PYTHON").filter(|value| !value.is_empty()));
    let Some(name) = named else { return Ok(None) };
    let search = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    match which::program(&name, Some(&search), &settings.cwd) {
        Some(path) if which::is_executable(&path) => Ok(Some(path)),
        Some(path) => match path.try_exists() {
            Ok(true) => Err(ProbeError::NotExecutable(path)),
            Ok(false) => Err(ProbeError::NoPython(PathBuf::from(&name))),
            Err(error) => Err(ProbeError::OutOfReach { python: path, error }),
        },
        None => Err(ProbeError::NoPython(PathBuf::from(&name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_that_does_not_start_says_why_in_a_line() {
        let shim = "\npyenv: python3.13: command not found\n\nThe `python3.13' command exists in these versions:\n  3.13.0\n";
        assert_eq!(reason(shim), "pyenv: python3.13: command not found");
        let broken = "Python path configuration:\n  home = '/x'\nModuleNotFoundError: No module named 'encodings'\n\nframe\n";
        assert_eq!(reason(broken), "ModuleNotFoundError: No module named 'encodings'");
        assert_eq!(reason("\n"), "it ended at once");
    }
}
