//! Tool prediction: guesses which tools the first tests will start, while a config still waits for a process of its own.
//!
//! LLVM's configs ask half a dozen programs for features, one after the other, and their tests then wait for the first
//! start of `opt`. The values that the config has set by then suffice for a guess, and a guess needs only a rough parse of
//! commands. Tools below the directories of the config or the tests are never predicted: these may still write them.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use hotstart_model::Environment;
use rustix::fs::{Mode, OFlags};

use crate::directives::{Keyword, Scanner};
use crate::settings::Settings;

/// Number of tests to read.
const TESTS: usize = 4;
/// Most files and directories to visit for them.
const PLACES: usize = 64;
/// Most bytes to read of a file.
const HEAD: u64 = 64 << 10;
/// Most tools to predict: a common test starts two.
const TOOLS: usize = 3;

/// Tools that will probably start soon, and their environment.
#[derive(Debug)]
pub struct Expected {
    /// Programs, by the names under which they will be invoked.
    pub tools: Vec<PathBuf>,
    /// The environment of tests, as far as the config has set it.
    pub environment: Environment,
}

/// Receives the prediction.
pub struct Listener<'a>(pub &'a (dyn Fn(Expected) + Sync));

impl fmt::Debug for Listener<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

/// The values that a config has set so far.
#[derive(Debug)]
pub(crate) struct Announced {
    pub environment: Environment,
    /// Values of substitutions that may begin with an absolute path.
    pub values: Vec<String>,
    /// Directory of the config, then the one of the tests.
    pub directory: PathBuf,
    pub source_root: Option<PathBuf>,
    /// Directory in which tests write.
    pub exec_root: Option<PathBuf>,
}

/// Predicts the tools of the first tests at `settings.paths`.
pub(crate) fn expected(announced: Announced, settings: &Settings) -> Expected {
    let place = |path| place(&settings.cwd.join(path), &announced);
    let mut places = settings.paths.iter().map(place).collect();
    let Announced { environment, values, directory, source_root, exec_root } = announced;
    let own: Vec<&Path> = [Some(&directory), source_root.as_ref(), exec_root.as_ref()]
        .into_iter()
        .flatten()
        .map(PathBuf::as_path)
        .collect();
    let programs = values.iter().filter_map(|value| value.split_whitespace().next()).map(Path::new);
    let is_ready = |program: &&Path| program.is_absolute() && !own.iter().any(|dir| program.starts_with(dir));
    let programs: Vec<&Path> = programs.filter(is_ready).collect();
    let mut tools: Vec<PathBuf> = Vec::new();
    let mut take = |command: &str| {
        let named = |path: &&&Path| path.file_name().is_some_and(|name| name == command);
        let Some(program) = programs.iter().find(named) else { return };
        if tools.len() < TOOLS && !tools.iter().any(|tool| tool == program) {
            tools.push(program.to_path_buf());
        }
    };
    let (mut left, mut tests) = (PLACES, 0);
    while tests < TESTS {
        let Some(file) = next_file(&mut places, &mut left) else { break };
        let content = head(&file).unwrap_or_default();
        let runs = Scanner::new(&content).flatten().filter(|found| found.keyword == Keyword::Run);
        tests += usize::from(runs.map(|run| commands(run.text).for_each(&mut take)).count() > 0);
    }
    Expected { tools, environment }
}

/// Returns the source path of a path on the command line, which may be below the config's directory while the tests are elsewhere.
fn place(path: &Path, announced: &Announced) -> PathBuf {
    let in_source = || {
        let place = announced.source_root.as_ref()?.join(path.strip_prefix(&announced.directory).ok()?);
        place.exists().then_some(place)
    };
    in_source().unwrap_or_else(|| path.to_path_buf())
}

/// Returns the next file of a walk that visits a directory's files before its subdirectories, and at most `left` places.
fn next_file(places: &mut VecDeque<PathBuf>, left: &mut usize) -> Option<PathBuf> {
    loop {
        let place = places.pop_front()?;
        *left = left.checked_sub(1)?;
        let Ok(entries) = fs::read_dir(&place) else { return Some(place) };
        // Skip links, and `Output`: tests write there.
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        for entry in entries.flatten().filter(|entry| entry.file_name() != "Output") {
            match entry.file_type() {
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                Ok(kind) if kind.is_dir() => directories.push(entry.path()),
                _ => {}
            }
        }
        directories.sort_unstable();
        files.sort_unstable();
        files.into_iter().take(*left).rev().for_each(|file| places.push_front(file));
        places.extend(directories.into_iter().take(*left));
    }
}

/// Reads the beginning of a regular file.
fn head(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    open_regular(path)?.take(HEAD).read_to_end(&mut content).ok()?;
    Some(content)
}

/// Opens a regular file. Reading any other kind might block.
pub(crate) fn open_regular(path: &Path) -> Option<File> {
    let flags = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    file.metadata().is_ok_and(|meta| meta.is_file()).then_some(file)
}

/// Returns the first words of the commands on a line.
fn commands(line: &str) -> impl Iterator<Item = &str> {
    let is_before = |word: &str| matches!(word, "not" | "--crash" | "env" | "time") || word.contains('=');
    line.split(['|', ';', '&', '('])
        .filter_map(move |command| command.split_whitespace().find(|word| !is_before(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, name: &str, text: &str) {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn tools(dir: &Path, paths: &[&str]) -> Vec<PathBuf> {
        let settings = Settings {
            paths: paths.iter().map(PathBuf::from).collect(),
            cwd: dir.to_path_buf(),
            ..Settings::default()
        };
        let values =
            ["/bin/opt", "/bin/llc -O0", "/bin/FileCheck --enable-var-scope", "relative/lli", "/bin/not"];
        let values = values.map(str::to_owned).to_vec();
        let announced = Announced {
            environment: Environment::new(),
            values,
            directory: dir.join("build"),
            source_root: Some(dir.to_path_buf()),
            exec_root: Some(dir.join("exec")),
        };
        expected(announced, &settings).tools
    }

    #[test]
    fn first_words_of_commands_are_told() {
        let all = |line| commands(line).collect::<Vec<_>>();
        assert_eq!(all(" opt -S < %s | FileCheck %s"), ["opt", "FileCheck"]);
        assert_eq!(all("env A=1 not --crash llc %s 2>&1 | not FileCheck %s"), ["llc", "1", "FileCheck"]);
        assert_eq!(all("(a; b) && c || d"), ["a", "b)", "c", "d"]);
        assert!(all(" ").is_empty());
    }

    #[test]
    fn tools_of_the_first_tests_that_the_config_names_by_their_path() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        write(dir, "lit.local.cfg", "config.x = 1\n");
        write(dir, "b.ll", "; RUN: opt -S < %s | FileCheck %s\n; RUN: cat %s | lli\n");
        write(dir, "sub/a.ll", "; RUN: llc < %s | FileCheck %s\n");
        assert_eq!(tools(dir, &["."]), ["/bin/opt", "/bin/FileCheck", "/bin/llc"].map(PathBuf::from));
        assert_eq!(tools(dir, &["sub/a.ll"]), ["/bin/llc", "/bin/FileCheck"].map(PathBuf::from));
        write(dir, "build/sub/Output/a.ll.tmp", "; RUN: opt\n");
        assert_eq!(tools(dir, &["build/sub"]), ["/bin/llc", "/bin/FileCheck"].map(PathBuf::from));
        assert!(tools(dir, &["missing", "lit.local.cfg"]).is_empty());
    }

    #[test]
    fn what_keeps_its_reader_waiting_or_never_ends_is_no_test() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let made = std::process::Command::new("mkfifo").args([dir.join("a"), dir.join("sub")]).status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", dir.join("b")).unwrap();
        std::os::unix::fs::symlink(dir, dir.join("c")).unwrap();
        write(dir, "d.ll", "; RUN: opt %s\n");
        write(dir, "Output/e.ll", "; RUN: llc %s\n");
        assert_eq!(tools(dir, &["."]), [PathBuf::from("/bin/opt")]);
        assert!(tools(dir, &["a", "b", "/dev/zero"]).is_empty());
    }

    #[test]
    fn what_tests_and_configs_write_is_not_started() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "a.ll", "; RUN: made %s | opt\n");
        let settings =
            Settings { paths: vec![".".into()], cwd: dir.path().to_path_buf(), ..Settings::default() };
        for part in ["build", "exec", "."] {
            let made = dir.path().join(part).join("made").display().to_string();
            let announced = Announced {
                environment: Environment::new(),
                values: vec![made, "/bin/opt".to_owned()],
                directory: dir.path().join("build"),
                source_root: Some(dir.path().to_path_buf()),
                exec_root: Some(dir.path().join("exec")),
            };
            let expected = expected(announced, &settings);
            assert_eq!(expected.tools, [PathBuf::from("/bin/opt")], "{part}");
        }
    }

    #[test]
    fn only_so_many_tests_are_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..TESTS {
            write(dir.path(), &format!("{number}.ll"), "; RUN: opt %s\n");
        }
        write(dir.path(), "z.ll", "; RUN: llc %s\n");
        assert_eq!(tools(dir.path(), &["."]), [PathBuf::from("/bin/opt")]);
    }
}
