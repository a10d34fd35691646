//! A tool and its library are replaced again and again while several threads start the tool: no start is stale.
//!
//! A start that began when a replacement was complete must show the new version, or a newer one. The versions are one build
//! with a few bytes patched, equal in size and in modification time, so that neither reveals them. `HOTSTART_REPLACEMENTS`
//! sets the number of replacements.

mod common;

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use common::{Victim, await_age, case, compile, start};
use hotstart_launch::{Choice, EnvBlock, Group, Launcher, Policy, ProcessGroup, Reason, Spec, Via};
use hotstart_model::{Environment, Status};

const THREADS: usize = 3;
const MARK: &[u8] = b"version:";
/// Prints the version from read-only data, from initialised data, and as a constructor saw it.
const LIBRARY: &str = r#"
#include <stdlib.h>
static volatile const char text[] = "version:00000000";
static volatile char data[] = "version:00000000";
static long seen;
__attribute__((constructor)) static void note(void) { seen = atol((const char *)data + 8); }
void versions(long *out) { out[0] = atol((const char *)text + 8); out[1] = atol((const char *)data + 8); out[2] = seen; }
"#;
const PROGRAM: &str = r#"
#include <stdio.h>
void versions(long *);
int main(void)
{
    long program[3], library[3];
    versions(program);
    library_versions(library);
    for (int i = 0; i < 3; i++) printf("%ld %ld\n", program[i], library[i]);
    return 0;
}
"#;

/// How a file gets new content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Rename,
    InPlace,
}

/// A file that has versions.
struct Versioned {
    path: PathBuf,
    image: Vec<u8>,
    modified: SystemTime,
    /// The version of the last replacement that was begun, and of the last that was completed.
    begun: AtomicU64,
    done: AtomicU64,
}

impl Versioned {
    fn new(path: PathBuf) -> Self {
        let image = std::fs::read(&path).unwrap();
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        Versioned { path, image, modified, begun: AtomicU64::new(0), done: AtomicU64::new(0) }
    }

    /// Returns the file's content in a version.
    fn version(&self, version: u64) -> Vec<u8> {
        let mut image = self.image.clone();
        for at in 0..image.len() - MARK.len() {
            if image[at..].starts_with(MARK) {
                image[at + 8..at + 16].copy_from_slice(format!("{version:08}").as_bytes());
            }
        }
        image
    }

    /// Writes versions 1 to `count`, for renaming later. If a program were written while other threads start processes, a
    /// child of these might still have it open for writing when it is executed.
    fn prepare(&self, count: u64) {
        for version in 1..=count {
            let new = self.path.with_extension(version.to_string());
            std::fs::copy(&self.path, &new).unwrap();
            self.write(&new, version);
        }
    }

    fn write(&self, path: &Path, version: u64) {
        let file = File::options().write(true).open(path).unwrap();
        file.write_all_at(&self.version(version), 0).unwrap();
        file.set_modified(self.modified).unwrap();
    }

    fn replace(&self, how: How) {
        let version = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        match how {
            How::Rename => {
                std::fs::rename(self.path.with_extension(version.to_string()), &self.path).unwrap()
            }
            How::InPlace => self.write(&self.path, version),
        }
        self.done.store(version, Ordering::SeqCst);
    }
}

struct Tool {
    dir: tempfile::TempDir,
    program: Versioned,
    library: Versioned,
    launcher: Launcher,
}

fn tool() -> Tool {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
    std::fs::write(at("lib.c"), LIBRARY.replace("versions(", "library_versions(")).unwrap();
    std::fs::write(at("own.c"), LIBRARY).unwrap();
    std::fs::write(at("main.c"), format!("void library_versions(long *);\n{PROGRAM}")).unwrap();
    compile(&at("lib.c"), &at("libversion.so"), &["-shared", "-fPIC", "-Wl,-soname,libversion.so"]);
    let (own, library) = (at("own.c"), at("libversion.so"));
    let flags =
        ["-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed", own.to_str().unwrap(), library.to_str().unwrap()];
    compile(&at("main.c"), &at("tool"), &flags);
    let choice = Choice::Only(vec!["tool".into()]);
    let launcher = Launcher::new().with_policy(Policy { choice, ..Policy::default() });
    Tool { program: Versioned::new(at("tool")), library: Versioned::new(library), launcher, dir }
}

impl Tool {
    /// Starts the tool. Returns the three versions of the program and of the library that it shows, and how it was started.
    fn show(&self, env: &EnvBlock, out: &mut File) -> ([u64; 3], [u64; 3], Via) {
        let null = File::open("/dev/null").unwrap();
        out.set_len(0).unwrap();
        out.rewind().unwrap();
        let spec = Spec {
            program: self.program.path.clone(),
            argv: vec!["tool".into()],
            env: env.clone(),
            cwd: Path::new("/").into(),
            stdio: [null.as_fd(), out.as_fd(), out.as_fd()],
            extra_fds: Vec::new(),
            umask: None,
            limits: Vec::new(),
            ignored: None,
            keep_cold: false,
            process_group: ProcessGroup::New,
        };
        let exit = self.launcher.start(&spec, &Group::new()).expect("it starts").wait();
        let mut text = String::new();
        out.rewind().unwrap();
        out.read_to_string(&mut text).unwrap();
        assert_eq!(exit.status, Status::Exited(0), "{text}");
        let numbers: Vec<u64> = text.split_ascii_whitespace().map(|n| n.parse().unwrap()).collect();
        let every_second = |first: usize| std::array::from_fn(|n| numbers[2 * n + first]);
        (every_second(0), every_second(1), exit.via)
    }

    /// Starts the tool until `stop` is set. Returns how often it was warm and how often cold.
    fn keep_starting(&self, stop: &AtomicBool, starts: &AtomicU64) -> (u64, u64) {
        let env = EnvBlock::new(&Environment::new());
        let mut out = tempfile::tempfile_in(self.dir.path()).unwrap();
        let (mut warm, mut cold) = (0, 0);
        while !stop.load(Ordering::SeqCst) {
            let files = [&self.program, &self.library];
            let before = files.map(|f| f.done.load(Ordering::SeqCst));
            let (program, library, via) = self.show(&env, &mut out);
            let after = files.map(|f| f.begun.load(Ordering::SeqCst));
            for (index, shown) in [program, library].into_iter().enumerate() {
                let (low, high) = (before[index], after[index]);
                let fits = shown.iter().all(|v| (low..=high).contains(v));
                assert!(fits, "{via:?} start shows {shown:?} of file {index}, not {low} to {high}");
            }
            *if via.is_warm() { &mut warm } else { &mut cold } += 1;
            starts.fetch_add(1, Ordering::SeqCst);
        }
        (warm, cold)
    }
}

/// Stops the threads, even if an assertion fails.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn replacements(default: u64) -> u64 {
    std::env::var("HOTSTART_REPLACEMENTS")
        .map_or(default, |n| n.parse().expect("HOTSTART_REPLACEMENTS is a number"))
}

/// Starts between two replacements, in turn: none, some while zygotes are made, and many once they are in use.
const PAUSES: [u64; 4] = [0, 2, 9, 60];

/// Replaces files under load.
fn replace_under_load(tool: &Tool, count: u64, replace: impl Fn(u64)) {
    let (stop, starts) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = Instant::now();
    let (warm, cold) = std::thread::scope(|scope| {
        let guard = Stop(&stop);
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let _guard = Stop(&stop);
                    tool.keep_starting(&stop, &starts)
                })
            })
            .collect();
        for turn in 0..count {
            replace(turn);
            let until = starts.load(Ordering::SeqCst) + PAUSES[turn as usize % PAUSES.len()];
            while starts.load(Ordering::SeqCst) < until && !stop.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }
        drop(guard);
        threads.into_iter().fold((0, 0), |sum, thread| {
            let (warm, cold) = thread.join().expect("no stale start");
            (sum.0 + warm, sum.1 + cold)
        })
    });
    let took = begun.elapsed();
    println!(
        "{count} replacements in {took:.1?}, {warm} starts warm, {cold} cold: {:?}",
        tool.launcher.statistics()
    );
    assert!(warm > count / 4, "{warm} warm starts prove nothing");
    assert!(took < Duration::from_secs(600));
}

#[test]
fn no_start_is_stale_when_the_program_is_renamed_over() {
    let (tool, count) = (tool(), replacements(60));
    tool.program.prepare(count);
    replace_under_load(&tool, count, |_| tool.program.replace(How::Rename));
}

#[test]
fn no_start_is_stale_when_a_library_is_renamed_over() {
    let (tool, count) = (tool(), replacements(60));
    tool.library.prepare(count);
    replace_under_load(&tool, count, |_| tool.library.replace(How::Rename));
}

#[test]
fn no_start_is_stale_when_a_library_is_rewritten_in_place() {
    let (tool, count) = (tool(), replacements(60));
    replace_under_load(&tool, count, |_| tool.library.replace(How::InPlace));
}

/// If there is no zygote to compare with, the program is read again: a program that ignores the preloaded runtime would run
/// its `main`.
#[test]
fn a_program_replaced_by_an_unfit_one_is_cold_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("tool");
    let path = dir.path().to_owned();
    let build = |flags: &[&str]| {
        let source = path.join("t.c");
        // Records its argument each time `main` runs.
        let text = "#include <stdio.h>\nint main(int n, char **v) { FILE *f = fopen(\"log\", \"a\"); \
                    fputs(n > 1 ? v[1] : \"-\", f); return fclose(f); }";
        std::fs::write(&source, text).unwrap();
        compile(&source, &path.join("new"), flags);
        std::fs::rename(path.join("new"), &program).unwrap();
        await_age(&program);
    };
    let victim = Victim { dir, program: program.clone() };
    let choice = Choice::Only(vec!["tool".into()]);
    let policy = Policy { choice, starts_per_zygote: 1, ..Policy::default() };
    let launcher = Launcher::new().with_policy(policy);
    let via = || start(&launcher, &victim, &case(&["x"])).1.via;
    build(&[]);
    assert_eq!([via(), via()], [Via::Fork; 2]);
    build(&["-static"]);
    assert_eq!([via(), via()], [Via::Cold(Reason::Static); 2]);
    assert_eq!(std::fs::read_to_string(victim.dir.path().join("log")).unwrap(), "xxxx");
}
