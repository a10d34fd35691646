//! `hotstart cache`: the knowledge that is stored between runs, and its size.
//!
//! All of it can be made again, so clearing costs only time. Only what hotstart has written is removed: the directory may have
//! been chosen by the user.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hotstart_inputs::{VerdictsReport, verdicts_report};
use hotstart_launch::cache_directory;
use hotstart_shell::{PassesReport, passes_directory, passes_report, remove_damaged_passes};
use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::exit_code::{self, refused, said};

pub(crate) const HELP: &str = "\
usage: hotstart cache stats|clear|verify

What hotstart stores between runs in the user's cache directory (HOTSTART_CACHE_DIR, or hotstart below XDG_CACHE_HOME or
~/.cache): what constructors of tools do, evaluated configs, which FileChecks answer as expected, passes of FileCheck, and tests that passed
(--cache).

  stats    print the directory, and files and bytes of each kind
  clear    remove all of it; the next run is slower, and no verdict changes
  verify   read all passes of FileCheck and of tests, and remove what is damaged

Exit code: 1 if something was damaged, 2 on an error.
";

/// Directories of the store, relative to it, and what is in them.
const CONFIGS: &str = "configs";
const FILECHECKS: &str = "filecheck";
const VERDICTS: &str = "verdicts";

/// Returns why nothing can be kept between runs, in a line for the user; empty if something can.
pub fn hindrance() -> String {
    let named = std::env::var_os("HOTSTART_CACHE_DIR").map(PathBuf::from);
    if let Some(name) = named.filter(|name| !name.as_os_str().is_empty() && !name.is_absolute()) {
        return format!(
            "hotstart: HOTSTART_CACHE_DIR is not used: '{}' is not an absolute path\n",
            name.display()
        );
    }
    let Some(dir) = cache_directory() else {
        return "hotstart: nothing is kept between runs: set HOTSTART_CACHE_DIR or HOME\n".to_owned();
    };
    // What is missing is made in the first directory above it that is there.
    let existing = dir.ancestors().find(|path| fs::symlink_metadata(path).is_ok()).unwrap_or(&dir);
    let may_write = Access::WRITE_OK | Access::EXEC_OK;
    let error = match access(existing, may_write) {
        Ok(()) if existing.is_dir() => return String::new(),
        Ok(()) => Errno::NOTDIR,
        Err(error) => error,
    };
    format!(
        "hotstart: nothing is kept between runs, which is slower: cannot use '{}': {error}; name another directory in \
         HOTSTART_CACHE_DIR\n",
        dir.display()
    )
}

/// Runs `hotstart cache` with the arguments after `cache`.
pub fn run(args: &[OsString]) -> ExitCode {
    let command = match args {
        [command] => command.to_str().unwrap_or_default(),
        _ => "",
    };
    if matches!(command, "--help" | "-h") {
        return said(HELP, exit_code::SUCCESS);
    }
    let Some(dir) = cache_directory() else {
        return refused("hotstart cache: there is no cache directory; set HOTSTART_CACHE_DIR or HOME\n");
    };
    match command {
        "stats" => said(&stats(&dir), exit_code::SUCCESS),
        "clear" => match clear(&dir) {
            Ok(()) => said(&format!("removed what was stored in '{}'\n", dir.display()), exit_code::SUCCESS),
            Err((path, error)) => {
                refused(&format!("hotstart cache: cannot remove '{}': {error}\n", path.display()))
            }
        },
        "verify" => verify(&dir),
        _ => refused(HELP),
    }
}

fn stats(dir: &Path) -> String {
    let passes = passes_directory(dir);
    // Its subdirectories hold other knowledge.
    let of_filechecks = dir.join(FILECHECKS);
    let is_verdict = |file: &PathBuf| file.parent() == Some(&of_filechecks);
    let verdicts = files(&of_filechecks).into_iter().filter(is_verdict).collect();
    let mut text = format!("{}\n", dir.display());
    for (what, files) in [
        ("tools' constructors", observations(dir)),
        ("evaluated configs", files(&dir.join(CONFIGS))),
        ("FileChecks put to the test", verdicts),
    ] {
        let size: u64 =
            files.iter().filter_map(|file| fs::metadata(file).ok()).map(|found| found.len()).sum();
        let _ = writeln!(text, "{:>9} files {size:>12} bytes  {what}", files.len());
    }
    let PassesReport { segments: [good, damaged], hashes, bytes } = passes_report(&passes);
    let _ = writeln!(text, "{:>9} files {bytes:>12} bytes  passes of FileCheck: {hashes}", good + damaged);
    let VerdictsReport { segments: [good, damaged], tests, bytes, off } = verdicts_report(dir, false);
    let _ = writeln!(text, "{:>9} files {bytes:>12} bytes  tests with known inputs: {tests}", good + damaged);
    if off > 0 {
        let _ = writeln!(text, "{off:>9} suites of which no test is remembered, because a verdict was wrong");
    }
    text
}

fn verify(dir: &Path) -> ExitCode {
    let passes = passes_directory(dir);
    let PassesReport { segments: [good, damaged], hashes, .. } = passes_report(&passes);
    remove_damaged_passes(&passes);
    let tests = verdicts_report(dir, true);
    let text = format!(
        "passes of FileCheck: {hashes} in {good} files in order; {damaged} damaged files, removed\n\
         tests with known inputs: {} in {} files in order; {} damaged files, removed\n",
        tests.tests, tests.segments[0], tests.segments[1]
    );
    said(&text, if damaged + tests.segments[1] == 0 { exit_code::SUCCESS } else { exit_code::FAILURE })
}

/// Removes everything of hotstart's. A runner that works now writes its own knowledge again.
fn clear(dir: &Path) -> Result<(), (PathBuf, std::io::Error)> {
    let gone = |path: &Path, done: std::io::Result<()>| match done {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err((path.to_owned(), error)),
        _ => Ok(()),
    };
    for file in observations(dir) {
        gone(&file, fs::remove_file(&file))?;
    }
    // What tests depend on goes after what is known of them.
    for part in [VERDICTS, CONFIGS, FILECHECKS].map(|part| dir.join(part)) {
        gone(&part, fs::remove_dir_all(&part))?;
    }
    Ok(())
}

/// Returns the files that describe constructors of tools: their names are hashes.
fn observations(dir: &Path) -> Vec<PathBuf> {
    let is_hash = |path: &Path| {
        let name = path.file_stem().unwrap_or_default().as_encoded_bytes();
        name.len() == 16 && name.iter().all(u8::is_ascii_hexdigit) && path.is_file()
    };
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| is_hash(path)).collect()
}

/// Returns all files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir { &mut left } else { &mut found }.push(entry.path());
        }
    }
    found
}
