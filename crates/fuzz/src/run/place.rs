//! The place of a sequence: a directory made anew for each sequence and mode, at the same path, so that paths are
//! comparable.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::generate::{Input, Request};

/// The directory for values that are new in every run. No two sequences agree on them, so it is not compared.
pub(super) const NOTES: &str = "notes";
/// What the runs of a sequence share.
const COMMON: [&str; 2] = ["shared", NOTES];

/// One job's directories: `cwd`, made anew for each run; `shared` and `notes`, for all runs of a sequence; `streams`,
/// which is invisible to runs.
#[derive(Debug)]
pub struct Place {
    root: PathBuf,
}

/// The open files of one run.
pub(super) struct Streams {
    pub input: File,
    pub output: File,
    pub error: File,
    pub extra: Option<[File; 2]>,
}

impl Place {
    /// `root` belongs to this job alone.
    pub fn new(root: &Path) -> Self {
        Place { root: root.to_owned() }
    }

    /// Returns the working directory of a run.
    pub(super) fn cwd(&self, request: &Request) -> PathBuf {
        let cwd = self.visible().join("cwd");
        if request.below { cwd.join("deeper") } else { cwd }
    }

    /// Returns the directory that runs may see and change.
    pub(super) fn visible(&self) -> PathBuf {
        self.root.join("place")
    }

    /// Creates all directories anew for a sequence.
    pub(super) fn begin_sequence(&self) -> io::Result<()> {
        remove(&self.visible())?;
        for name in COMMON {
            fs::create_dir_all(self.visible().join(name))?;
        }
        fs::create_dir_all(self.root.join("streams"))
    }

    /// Puts aside what the runs of the sequence share, and a copy in its place.
    pub(super) fn set_aside(&self) -> io::Result<()> {
        for name in COMMON {
            let (place, aside) = (self.visible().join(name), self.root.join(name));
            remove(&aside)?;
            fs::rename(&place, &aside)?;
            let copied = Command::new("cp").arg("-a").args([&aside, &place]).status()?;
            if !copied.success() {
                return Err(io::Error::other(format!("{} cannot be copied", aside.display())));
            }
        }
        Ok(())
    }

    /// Replaces the copy by what was put aside.
    pub(super) fn restore(&self) -> io::Result<()> {
        for name in COMMON {
            let place = self.visible().join(name);
            remove(&place)?;
            fs::rename(self.root.join(name), place)?;
        }
        Ok(())
    }

    /// Creates the working directory anew, and opens the streams of a run.
    pub(super) fn begin_run(&self, request: &Request) -> io::Result<Streams> {
        remove(&self.visible().join("cwd"))?;
        let cwd = self.cwd(request);
        fs::create_dir_all(&cwd)?;
        for (name, content) in &request.files {
            fs::write(cwd.join(name), content)?;
        }
        let output = self.stream("output")?;
        let error = if request.merged { output.try_clone()? } else { self.stream("error")? };
        let extra = if request.extra {
            let mut second = self.stream("extra-7")?;
            second.write_all(b"seven")?;
            Some([self.stream("extra-3")?, File::open(self.root.join("streams/extra-7"))?])
        } else {
            None
        };
        Ok(Streams { input: self.input(&request.input)?, output, error, extra })
    }

    fn stream(&self, name: &str) -> io::Result<File> {
        let path = self.root.join("streams").join(name);
        File::options().read(true).append(true).create(true).open(&path).and_then(|file| {
            file.set_len(0)?;
            Ok(file)
        })
    }

    fn input(&self, input: &Input) -> io::Result<File> {
        match input {
            Input::Null => File::open("/dev/null"),
            Input::File(text) => {
                let path = self.root.join("streams/input");
                fs::write(&path, text)?;
                File::open(path)
            }
            Input::Pipe(text) => {
                let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
                File::from(writer).write_all(text.as_bytes())?;
                Ok(File::from(reader))
            }
        }
    }
}

/// Removes a directory if it exists, whatever the modes of its contents.
fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
