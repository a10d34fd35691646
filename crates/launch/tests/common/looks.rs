//! Programs whose constructors look at one thing each.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::{Path, PathBuf};

use hotstart_launch::{Launcher, Via};
use hotstart_model::Status;

use crate::common::{Case, Victim, compile, resetting_launcher, start, warm_launcher};

pub const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/before.c");

/// A program whose constructor does `look`; it may read the file `watched` in a directory of its own.
pub struct Looks {
    pub victim: Victim,
    pub watched: PathBuf,
    pub place: tempfile::TempDir,
    /// The program's directory. It is not the working directory, which changes with every run.
    _home: tempfile::TempDir,
}

pub fn looks(look: &str) -> Looks {
    built(Path::new(SOURCE), &[&format!("-DLOOK={look}")])
}

pub fn built(source: &Path, flags: &[&str]) -> Looks {
    let (dir, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let watched = place.path().canonicalize().unwrap().join("watched");
    let program = dir.path().canonicalize().unwrap().join("before");
    let path = format!("-DFILE_PATH=\"{}\"", watched.display());
    compile(source, &program, &[&[&path, "-Wno-unused-function"], flags].concat());
    let victim = Victim { dir: tempfile::tempdir().unwrap(), program };
    Looks { victim, watched, place, _home: dir }
}

impl Looks {
    /// Returns the output of a cold start, and the output and the way of a start with `warm`.
    pub fn start_with(&self, warm: &Launcher, case: &Case) -> (String, String, Via) {
        let (cold, _) = start(&Launcher::new(), &self.victim, case);
        let (ran, exit) = start(warm, &self.victim, case);
        assert_eq!((ran.status, cold.status), (Status::Exited(0), Status::Exited(0)));
        (cold.stdout, ran.stdout, exit.via)
    }

    /// Starts the tool cold and with `warm`, and compares. Returns how `warm` started it.
    pub fn agrees(&self, warm: &Launcher, case: &Case) -> Via {
        let (cold, ran, via) = self.start_with(warm, case);
        assert_eq!(cold, ran, "{via:?}");
        via
    }
}

pub fn launchers() -> [Launcher; 2] {
    [warm_launcher(&["before"]), resetting_launcher(&["before"])]
}
