//! The files that a script needs on another machine, and the reasons for which it has to run here.
//!
//! Files are found without running anything: the directory of the test with its subdirectories, each path and program that a command names,
//! and the libraries of programs. Other files that a tool looks for are not sent. If the tool fails without them, the test runs here. A
//! script in which a failure may go unseen is never sent, since there a missing file could make a pass.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use hotstart_model::{Elsewhere, Environment, Interpreter, Script};

use crate::files::Files;
use crate::words::{self, Named};

/// Most files below a directory that a command names.
const BELOW: usize = 20_000;
/// Interpreters of scripts of the system that need nothing but themselves.
const SHELLS: [&str; 3] = ["sh", "bash", "dash"];
/// Commands of the system, and those that the shell does itself, that fail if a file is missing which they were given.
/// `ls` and `tar` are not among them: they tell times and modes, which are not sent.
const COMMANDS: [&str; 35] = [
    ":", "cat", "cd", "chmod", "cmp", "count", "cp", "cut", "dd", "diff", "echo", "export", "false", "grep",
    "gunzip", "gzip", "head", "ln", "mkdir", "mv", "od", "popd", "printf", "pushd", "pwd", "rm", "sed",
    "sort", "tail", "tee", "touch", "tr", "true", "uniq", "wc",
];
/// Variables whose files are found otherwise, or are not the test's.
const KNOWN_VARIABLES: [&str; 12] = [
    "PATH",
    "HOME",
    "PWD",
    "OLDPWD",
    "SHELL",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "TMPDIR",
    "TMP",
    "TEMP",
    "TEMPDIR",
    "PYTHONPATH",
];
/// Directories with programs of the system, of which only those commands are known.
const SYSTEM: [&str; 5] = ["/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"];
/// Tools that start others, and may go on when these fail.
const STARTERS: [&str; 5] = ["bugpoint", "lit", "llvm-lit", "llvm-reduce", "llvm-profgen"];
/// Files that the C library reads for itself.
const OF_THE_SYSTEM: [&str; 6] =
    ["/etc/ld.so.cache", "/etc/localtime", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/bin/sh"];
const LOCALES: &str = "/usr/lib/locale/C.utf8";

/// The files of one script: sets that it shares with others, and its own.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    shared: Vec<Arc<Files>>,
    own: Files,
}

impl Needed {
    fn share(&mut self, files: &Arc<Files>) {
        if !self.shared.iter().any(|known| Arc::ptr_eq(known, files)) {
            self.shared.push(Arc::clone(files));
        }
    }

    /// Adds these files to those of a batch. `known` are the shared sets that the batch has already.
    pub fn add_to(self, files: &mut Files, known: &mut HashSet<*const Files>) {
        for shared in self.shared {
            if known.insert(Arc::as_ptr(&shared)) {
                files.extend(&shared);
            }
        }
        files.extend(&self.own);
    }
}

/// Files of directories, or the reason why one cannot be sent.
type Directories = HashMap<(PathBuf, bool), Result<Arc<Files>, &'static str>>;

/// The files of programs and directories, each found once.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    programs: Mutex<HashMap<PathBuf, Result<Arc<Files>, String>>>,
    /// The key tells whether directories with tests of their own were left out.
    directories: Mutex<Directories>,
    /// Programs along a PATH, by name. `None` if there is none of that name.
    found: Mutex<HashMap<(String, String), Option<PathBuf>>>,
}

impl Needs {
    /// Returns the files that a script needs. The error says why it has to run here.
    pub fn of(&self, script: &Script, place: &Elsewhere) -> Result<Needed, String> {
        let mut needed = Needed::default();
        self.reasons(script)?;
        if let Interpreter::External(shell) = &script.interpreter {
            needed.share(&self.program(&shell.shell, &script.env)?);
        }
        needed.share(&self.directory(&place.directory, place)?);
        for directory in script.make_dirs.iter().chain([&script.cwd]) {
            needed.own.make(directory);
        }
        let bases = bases(script);
        for named in script.commands.iter().flat_map(|command| words::named(&command.text)) {
            for base in &bases {
                self.add_named(named, base, script, place, &mut needed)?;
            }
        }
        for (name, value) in
            script.env.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
        {
            if KNOWN_VARIABLES.contains(&name) {
                continue;
            }
            for path in words::words(value).map(words::path).filter(|path| path.starts_with('/')) {
                // Most variables name the build directory, and few tests look into it.
                let named = Named { word: path, is_entered: true, is_quoted: true };
                self.add_named(named, &script.cwd, script, place, &mut needed)?;
            }
        }
        Ok(needed)
    }

    /// Returns the files that every action needs besides its program.
    pub fn of_the_system(&self) -> Result<Files, String> {
        let mut files = Files::default();
        for path in OF_THE_SYSTEM {
            files.add(Path::new(path));
        }
        files.add_below(Path::new(LOCALES), &BTreeSet::new(), BELOW)?;
        files.extend(&*self.program(Path::new("/bin/sh"), &Environment::new())?);
        Ok(files)
    }

    /// Returns a program with its loader and libraries.
    pub fn program(&self, path: &Path, env: &Environment) -> Result<Arc<Files>, String> {
        let known = self.programs.lock().expect("no panic while locked").get(path).cloned();
        known.unwrap_or_else(|| {
            let found = program(path, env).map(Arc::new);
            self.programs.lock().expect("no panic while locked").insert(path.to_owned(), found.clone());
            found
        })
    }

    fn reasons(&self, script: &Script) -> Result<(), String> {
        if !script.pipefail {
            return Err("its pipelines hide failures".to_owned());
        }
        if !script.wraps.is_empty() || matches!(script.interpreter, Interpreter::Program(_)) {
            return Err("its tools are started by other programs".to_owned());
        }
        let variables = script.env.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        if let Some(why) = variables.into_iter().find_map(|(name, value)| words::of_the_place(name, value)) {
            return Err(why.to_owned());
        }
        for command in &script.commands {
            let text = &command.text;
            let why = words::hides_failures(text).or_else(|| words::proves_little(text));
            let why = why.or_else(|| words::hides_names(text));
            if let Some(why) = why {
                return Err(why.to_owned());
            }
            let starts = words::starts(&command.text);
            if let Some(unknown) = starts.iter().find(|start| !self.is_known(start, script)) {
                return Err(format!("it is not known that '{unknown}' fails without its files"));
            }
        }
        Ok(())
    }

    /// Whether this command fails if a file that it needs is missing: a known one, or a tool of the project under test.
    fn is_known(&self, start: &str, script: &Script) -> bool {
        let name = start.rsplit('/').next().unwrap_or(start);
        if COMMANDS.contains(&name) {
            return true;
        }
        let path = match start.contains('/') {
            true => Some(script.cwd.join(start)),
            false => self.find(start, script),
        };
        let Some(path) = path.and_then(|path| path.canonicalize().ok()) else { return false };
        let is_of_system = SYSTEM.iter().any(|directory| path.parent() == Some(Path::new(directory)));
        !is_of_system && !STARTERS.contains(&name)
    }

    fn add_named(
        &self,
        named: Named<'_>,
        base: &Path,
        script: &Script,
        place: &Elsewhere,
        needed: &mut Needed,
    ) -> Result<(), String> {
        let Named { word, is_entered, is_quoted } = named;
        let is_output = |path: &Path| {
            path.as_os_str().as_encoded_bytes().starts_with(script.tmp_base.as_os_str().as_encoded_bytes())
        };
        if let Some(directory) = words::searched(word) {
            // What else is there decides what the pattern becomes.
            let directory = base.join(directory);
            return if directory.is_dir() && !is_output(&base.join(word)) {
                self.add_directory(&directory, is_entered || is_quoted, script, place, needed)
            } else {
                Ok(())
            };
        }
        let is_here = !word.contains('/') && ![".", ".."].contains(&word);
        let program = if is_here { self.find(word, script) } else { None };
        let path = match program {
            Some(program) => program,
            None if word.starts_with('-') => return Ok(()),
            None => plain(&base.join(word)),
        };
        if is_output(&path) || path == Path::new("/") {
            return Ok(());
        }
        let Ok(found) = std::fs::metadata(&path) else { return Ok(()) };
        if found.is_dir() {
            self.add_directory(&path, is_entered, script, place, needed)?;
        } else if found.is_file() && found.permissions().mode() & 0o111 != 0 {
            needed.share(&self.program(&path, &script.env)?);
        } else if found.is_file() && path.parent() != Some(&place.directory) {
            needed.own.add(&path);
        }
        // A device is the worker's.
        Ok(())
    }

    /// Adds a directory in which a command may look for something that is not there.
    fn add_directory(
        &self,
        path: &Path,
        is_entered: bool,
        script: &Script,
        place: &Elsewhere,
        needed: &mut Needed,
    ) -> Result<(), String> {
        // Directories of outputs are made, and those of other tests stay here.
        if script.cwd.starts_with(path) || path.starts_with(&script.cwd) {
            let has_tests = place.directory.starts_with(path)
                && place.apart.iter().any(|apart| apart.starts_with(path) && apart != path);
            if has_tests || !is_entered {
                return Err("it names a directory with the outputs of other tests".to_owned());
            }
            needed.own.make(path);
            return Ok(());
        }
        let whole = Elsewhere { apart: Arc::default(), ..place.clone() };
        needed.share(&self.directory(path, &whole)?);
        Ok(())
    }

    fn find(&self, name: &str, script: &Script) -> Option<PathBuf> {
        let search = script.env.get("PATH")?;
        let key = (search.to_string_lossy().into_owned(), name.to_owned());
        let mut found = self.found.lock().expect("no panic while locked");
        let look = || {
            hotstart_python::which::program(name.as_ref(), Some(search), &script.cwd)
                .map(|path| script.cwd.join(path))
        };
        found.entry(key).or_insert_with(look).clone()
    }

    fn directory(&self, path: &Path, place: &Elsewhere) -> Result<Arc<Files>, String> {
        let key = (path.to_owned(), place.apart.is_empty());
        let known = self.directories.lock().expect("no panic while locked").get(&key).cloned();
        let found = known.unwrap_or_else(|| {
            let apart: BTreeSet<&Path> = place.apart.iter().map(PathBuf::as_path).collect();
            let mut files = Files::default();
            let found = files.add_below(path, &apart, BELOW).map(|()| Arc::new(files));
            self.directories.lock().expect("no panic while locked").insert(key, found.clone());
            found
        });
        found.map_err(str::to_owned)
    }
}

/// Returns the directories in which names without a slash at their beginning may be looked for: the script's, and those that a command
/// names, since it may enter them.
fn bases(script: &Script) -> Vec<PathBuf> {
    let mut bases = vec![script.cwd.clone()];
    for named in script.commands.iter().flat_map(|command| words::named(&command.text)) {
        let path = plain(&script.cwd.join(named.word));
        if named.is_entered && path.is_dir() && !bases.contains(&path) {
            bases.push(path);
        }
    }
    bases
}

/// Returns a path without `.`, and without `..` where the system shows that what is before it is no link.
fn plain(path: &Path) -> PathBuf {
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::RootDir));
    // A directory that is reached by `..` is found where it is.
    if is_plain { path.to_owned() } else { path.canonicalize().unwrap_or_else(|_| path.to_owned()) }
}

/// Returns a program's file, and those that the system opens to start it.
fn program(path: &Path, env: &Environment) -> Result<Files, String> {
    let mut files = Files::default();
    let Some((real, _)) = files.add(path) else { return Ok(files) };
    let mut head = [0; 128];
    let count = std::fs::File::open(&real).and_then(|mut file| file.read(&mut head)).unwrap_or(0);
    let head = &head[..count];
    if head.starts_with(b"\x7fELF") {
        let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if ["python", "perl", "ruby"].iter().any(|interpreter| name.starts_with(interpreter)) {
            return Err(format!("it uses {name}, whose own files are not known"));
        }
        libraries(&real, env, &mut files)?;
    } else if let Some(rest) = head.strip_prefix(b"#!") {
        let line = String::from_utf8_lossy(rest.split(|byte| *byte == b'\n').next().unwrap_or_default())
            .into_owned();
        let interpreter = PathBuf::from(line.split_whitespace().next().unwrap_or_default());
        let name = interpreter.file_name().unwrap_or_default().to_string_lossy();
        // A script of the system starts a program of the system.
        let is_of_system = SYSTEM.iter().any(|directory| real.parent() == Some(Path::new(directory)));
        if !SHELLS.contains(&&*name) || !is_of_system {
            return Err(format!("it uses a script for {name}, whose own files are not known"));
        }
        files.extend(&program(&interpreter, env)?);
    }
    Ok(files)
}

/// Adds the loader and the libraries of a program. The loader itself lists them.
fn libraries(program: &Path, env: &Environment, files: &mut Files) -> Result<(), String> {
    let told =
        |why: &dyn std::fmt::Display| format!("the libraries of {} are not known: {why}", program.display());
    let mut command = Command::new(program);
    command.env_clear().env("LD_TRACE_LOADED_OBJECTS", "1").stdin(Stdio::null());
    command.envs(env.get("LD_LIBRARY_PATH").map(|value| ("LD_LIBRARY_PATH", value)));
    if !is_dynamic(program) {
        return Ok(());
    }
    let output = command.output().map_err(|error| told(&error))?;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if line.contains("not found") {
            return Err(told(&line.trim()));
        }
        let words = line.split_whitespace();
        for path in words.filter(|word| word.starts_with('/')) {
            files.add(Path::new(path));
        }
    }
    Ok(())
}

/// Whether a program names a loader. One that does not would run instead of listing its libraries.
fn is_dynamic(program: &Path) -> bool {
    const INTERP: u32 = 3;
    let Ok(mut file) = std::fs::File::open(program) else { return false };
    let mut head = vec![0; 4096];
    let Ok(count) = file.read(&mut head) else { return false };
    head.truncate(count);
    let word = |at: usize, size: usize| -> Option<u64> {
        let bytes = head.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    // The 64-bit little-endian form: the place, size and number of the program headers.
    let (Some(2), Some(at), Some(size), Some(count)) = (word(4, 1), word(32, 8), word(54, 2), word(56, 2))
    else {
        return false;
    };
    (0..count).any(|index| word((at + index * size) as usize, 4) == Some(u64::from(INTERP)))
}

#[cfg(test)]
#[path = "needs_tests.rs"]
mod tests;
