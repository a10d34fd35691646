//! A server in a run's own process, for what the run's tools start themselves.
//!
//! It shares the run's launcher, and so its templates, workers, audits and counts; it ends with the run. Nobody but the
//! run's own tools is told of it. No client waits for it when it dies: then the run is over, and its guard ends them.

use std::convert::Infallible;
use std::fs::DirBuilder;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use hotstart_launch::{Launcher, Nested, NestedStarts};
use rustix::pipe::PipeFlags;

use crate::counts::Counts;
use crate::image;
use crate::place::Place;
use crate::server::{Ended, Role, ServeError, Server};

/// Longest path of a server's directory (`client/connect.c`).
const DIRECTORY_MAX: usize = 83;

/// What must be there before the launcher is told its policy.
#[derive(Debug)]
pub struct Prepared {
    directory: Directory,
    client: PathBuf,
    image: OwnedFd,
}

/// A server that serves until it is dropped.
#[derive(Debug)]
pub struct Attached {
    /// Until it is dropped.
    server: Option<Arc<Server>>,
    ended: mpsc::Receiver<Infallible>,
    /// Closed when the run is over.
    lifeline: Option<OwnedFd>,
    // Dropped after the server's end.
    _directory: Directory,
    _image: OwnedFd,
}

/// Removed when dropped.
#[derive(Debug)]
struct Directory(PathBuf);

impl Directory {
    fn create(announce: impl FnOnce(&Path)) -> io::Result<Directory> {
        let number = RandomState::new().hash_one(std::process::id());
        let path = std::path::absolute(std::env::temp_dir())?.join(format!("hotstart-{number:016x}"));
        if path.as_os_str().len() > DIRECTORY_MAX {
            let what = format!("the path '{}' is too long for a socket", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        announce(&path);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Prepared {
    /// Makes a private directory in the one for temporary files, and has the client in memory. `announce` is told of the
    /// directory before it is there. An error means that what tools start themselves has to be cold.
    pub fn new(announce: impl FnOnce(&Path)) -> io::Result<Prepared> {
        let directory = Directory::create(announce)?;
        let (image, client) = image::for_tools()?;
        Ok(Prepared { directory, client, image })
    }

    /// For the launcher's policy: what programs of these names start of those beside them goes through the server.
    pub fn nested(&self, names: &[&str]) -> Nested {
        Nested {
            client: self.client.clone(),
            directory: self.directory.0.clone(),
            starts: NestedStarts::Of(names.iter().map(|&name| name.to_owned()).collect()),
        }
    }

    /// Begins to serve. `ended` is called with each job's program and its end.
    pub fn serve(self, launcher: Arc<Launcher>, ended: Ended) -> Result<Attached, ServeError> {
        let place = Place::at(&self.directory.0);
        let opened = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| ServeError::Io("make a pipe", error.into()))
            .and_then(|(over, lifeline)| {
                Ok((Server::open(Role::Run { ended, over }, place, launcher)?, lifeline))
            });
        match opened {
            Ok(((server, ended), lifeline)) => Ok(Attached {
                server: Some(server),
                ended,
                lifeline: Some(lifeline),
                _directory: self.directory,
                _image: self.image,
            }),
            Err(error) => {
                // The launcher goes by its number, which must not become another file's.
                std::mem::forget(self.image);
                Err(error)
            }
        }
    }
}

impl Attached {
    /// What was started, and why some of it cold, as lines of text; empty if nothing was asked for.
    pub fn told(&self) -> String {
        let counts = self.server.as_ref().map(|server| &server.counts).filter(|counts| !counts.is_empty());
        counts.map(Counts::of_jobs).unwrap_or_default()
    }
}

impl Drop for Attached {
    /// Ends what is left of the jobs, as all tests are over, and waits until no thread has the launcher.
    fn drop(&mut self) {
        self.lifeline = None;
        if let Some(server) = self.server.take() {
            server.close();
            drop(server);
        }
        // Nothing is ever sent.
        let Err(mpsc::RecvError) = self.ended.recv();
    }
}
