//! Compiles the programs: the acts once, and one program for each choice of acts before `main`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::sources;
use crate::generate::{Catalogue, Role};

/// The age that a program needs for a zygote: one that changed a moment ago starts cold.
const AGE: Duration = Duration::from_millis(15);

/// A compiled program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// The acts that it does before `main`.
    pub before: Vec<String>,
}

/// The directory of the compiled programs, and their acts.
#[derive(Debug)]
pub struct Workshop {
    dir: PathBuf,
    objects: Vec<PathBuf>,
    made: usize,
    /// The acts in every program's `main`.
    pub catalogue: Catalogue,
}

impl Workshop {
    /// Compiles the acts in `dir`. An error has the compiler's output.
    pub fn open(dir: &Path) -> Result<Self, String> {
        let write = |(name, text): (&str, &str)| {
            std::fs::write(dir.join(name), text).map_err(|e| format!("{}: {e}", dir.join(name).display()))
        };
        write(sources::HEADER)?;
        write(sources::BEFORE_HEADER)?;
        sources::BEFORE.into_iter().try_for_each(write)?;
        let mut objects = Vec::new();
        for source in sources::ACTS.into_iter().chain([sources::MAIN]) {
            write(source)?;
            let object = dir.join(source.0).with_extension("o");
            compile(&["-c".as_ref(), "-o".as_ref(), &object, &dir.join(source.0)])?;
            objects.push(object);
        }
        let mut workshop =
            Workshop { dir: dir.to_owned(), objects, made: 0, catalogue: Catalogue::default() };
        let program = workshop.program(&[])?;
        let listed = Command::new(&program.path).arg("--list").output();
        let listed = listed.map_err(|e| format!("{}: {e}", program.path.display()))?;
        workshop.catalogue = Catalogue::parse(&String::from_utf8_lossy(&listed.stdout))?;
        Ok(workshop)
    }

    /// Compiles a program with the acts `before` before its `main`.
    pub fn program(&mut self, before: &[String]) -> Result<Program, String> {
        let path = self.dir.join(format!("acts-{}", self.made));
        self.made += 1;
        let mut arguments: Vec<PathBuf> = vec!["-o".into(), path.clone()];
        if !before.is_empty() {
            arguments.extend(before.iter().map(|name| format!("-DWITH_{name}").into()));
            arguments.extend(sources::BEFORE.map(|(name, _)| self.dir.join(name)));
        }
        arguments.extend(self.objects.iter().cloned());
        compile(&arguments.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
        await_age(&path)?;
        Ok(Program { path, before: before.to_vec() })
    }

    /// Compiles a program from a single C file.
    pub fn program_of(&mut self, source: &Path) -> Result<Program, String> {
        let path = self.dir.join(format!("acts-{}", self.made));
        self.made += 1;
        compile(&["-o".as_ref(), &path, source])?;
        await_age(&path)?;
        Ok(Program { path, before: Vec::new() })
    }

    /// Returns the names of all acts except those before `main`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.catalogue.acts.iter().filter(|act| act.role != Role::Before).map(|act| act.name.as_str())
    }
}

fn compile(arguments: &[&Path]) -> Result<(), String> {
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-O0", "-g0", "-w", "-pthread"]).args(arguments).arg("-lm");
    let output = command.output().map_err(|e| format!("cannot run cc: {e}; install a C compiler"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr)))
}

fn await_age(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let changed = Duration::new(meta.ctime() as u64, meta.ctime_nsec() as u32);
    while SystemTime::UNIX_EPOCH.elapsed().is_ok_and(|now| now < changed + AGE) {
        std::thread::yield_now();
    }
    Ok(())
}
