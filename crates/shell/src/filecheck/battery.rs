//! Tests a FileCheck with the battery: it runs each case, and the matcher answers it, too.
//!
//! Its starts are warm if those of the suite are, which takes a tenth of the time. Only a cold start can refuse it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hotstart_filecheck::{Request, battery};
use hotstart_launch::{EnvBlock, Exit, Group, Launcher, ProcessGroup, Spec};
use hotstart_model::Status;

use super::plain_block;
use super::trust::{Mark, Tool, Verdict};

/// Runs the battery. Returns `None` if it could not run, or if the files changed meanwhile.
pub(super) fn verdict(
    tool: &Tool,
    launcher: &Launcher,
    group: &Group,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Option<Verdict> {
    let bench = Bench::new(tool, launcher, group)?;
    let marks = bench.marks()?;
    let mut refusal = None;
    for case in battery::cases() {
        if is_over() {
            return None;
        }
        let (check, input) = (case.check.as_bytes(), case.input.as_bytes());
        let request = Request::parse(&case.args, None);
        let is_pass = request.is_ok_and(|request| request.decide(check, input).is_ok());
        let mut passes = bench.passes(&case.args, check, input, Start::AsUsual)?;
        if passes != case.passes {
            passes = bench.passes(&case.args, check, input, Start::Cold)?;
        }
        if passes != is_pass || passes != case.passes {
            refusal = Some(format!("it answered otherwise: {case:?}"));
            break;
        }
    }
    (marks == bench.marks()?).then_some(Verdict { refusal, marks })
}

/// How a FileCheck is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    AsUsual,
    Cold,
}

/// A directory in which a FileCheck is run.
struct Bench<'b> {
    tool: &'b Tool,
    env: EnvBlock,
    launcher: &'b Launcher,
    group: &'b Group,
    dir: PathBuf,
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl<'b> Bench<'b> {
    fn new(tool: &'b Tool, launcher: &'b Launcher, group: &'b Group) -> Option<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("hotstart-filecheck-{}-{number}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        launcher.remove_if_killed(&dir);
        Some(Bench { tool, env: plain_block(&tool.environment.0), launcher, group, dir })
    }

    /// Returns the marks of the program's file and of the libraries that the loader takes for it. `None` if it is no
    /// ELF file.
    fn marks(&self) -> Option<Vec<Mark>> {
        let mut magic = [0; 4];
        File::open(&self.tool.program).ok()?.read_exact(&mut magic).ok()?;
        if magic != *b"\x7fELF" {
            return None;
        }
        let trace = [(OsString::from("LD_TRACE_LOADED_OBJECTS"), OsString::from("1"))];
        let env: Vec<_> = self.tool.environment.0.iter().chain(&trace).cloned().collect();
        let (_, output) = self.run(plain_block(&env), (&[], b"", b""), Start::Cold)?;
        let output = String::from_utf8(output).ok()?;
        // `libm.so.6 => /lib/libm.so.6 (0x7f...)`; the loader itself has no arrow.
        let libraries = output.lines().filter_map(|line| {
            let path = line.rsplit("=> ").next()?.trim().split(" (").next()?;
            path.starts_with('/').then(|| PathBuf::from(path))
        });
        let program = fs::canonicalize(&self.tool.program).ok()?;
        let files = [self.tool.program.clone(), program].into_iter().chain(libraries);
        files.map(|file| Mark::of(&file)).collect()
    }

    /// Whether it passes without output. `None` if a signal ended it.
    fn passes(&self, args: &[String], check: &[u8], input: &[u8], start: Start) -> Option<bool> {
        let (exit, output) = self.run(self.env.clone(), (args, check, input), start)?;
        if exit.doubtful && start != Start::Cold {
            return self.passes(args, check, input, Start::Cold);
        }
        let was_ended = matches!(exit.status, Status::Signaled(_));
        (!was_ended).then_some(exit.status == Status::OK && output.is_empty())
    }

    /// Runs it. Returns how it ended, and all that it wrote.
    fn run(
        &self,
        env: EnvBlock,
        (args, check, input): (&[String], &[u8], &[u8]),
        start: Start,
    ) -> Option<(Exit, Vec<u8>)> {
        let path = |name: &str| self.dir.join(name);
        fs::write(path("check"), check).ok()?;
        fs::write(path("input"), input).ok()?;
        let (stdin, output) = (File::open(path("input")).ok()?, File::create(path("output")).ok()?);
        let name = self.tool.program.clone().into_os_string();
        let spec = Spec {
            program: self.tool.program.clone(),
            argv: std::iter::once(name).chain(args.iter().map(OsString::from)).collect(),
            env,
            cwd: Path::new(&self.dir).into(),
            stdio: [stdin.as_fd(), output.as_fd(), output.as_fd()],
            extra_fds: Vec::new(),
            umask: None,
            ignored: None,
            limits: Vec::new(),
            keep_cold: start == Start::Cold,
            process_group: ProcessGroup::New,
        };
        let exit = self.launcher.start(&spec, self.group).ok()?.wait();
        Some((exit, fs::read(path("output")).ok()?))
    }
}
