//! A server in a run's own process, for commands that the run's tools start themselves.
//!
//! It shares the run's launcher, and so its zygotes, persistent processes, audits and counts; it ends with the run. Only the
//! run's own tools know its directory. If the process dies, no client is left waiting: the run is over, and its guard ends
//! the clients.

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
use crate::serve::{self, ServeError};
use crate::server::{Ended, Role, Server};
use crate::socket_dir::SocketDir;

/// Longest path of a server's directory, in bytes (`client/connect.c`).
const DIRECTORY_MAX: usize = 83;

/// The parts of a server that must exist before the launcher gets its policy.
#[derive(Debug)]
pub struct Prepared {
    directory: Directory,
    client: PathBuf,
    image: OwnedFd,
}

/// A server that serves until it is dropped.
#[derive(Debug)]
pub struct Attached {
    /// `None` only while it is dropped.
    server: Option<Arc<Server>>,
    ended: mpsc::Receiver<Infallible>,
    /// Closed when the run is over.
    lifeline: Option<OwnedFd>,
    // Removed after `drop` has waited for the server's end.
    _directory: Directory,
    _image: OwnedFd,
}

/// A directory that is removed when dropped.
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
        // Best effort: nobody is left who could act on an error.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Prepared {
    /// Creates a private directory in the one for temporary files, and writes the client to memory. Passes the directory to
    /// `announce` before it creates it. After an error, commands that tools start themselves must be cold.
    pub fn new(announce: impl FnOnce(&Path)) -> io::Result<Prepared> {
        let directory = Directory::create(announce)?;
        let (image, client) = image::for_tools()?;
        Ok(Prepared { directory, client, image })
    }

    /// Returns the part of the launcher's policy by which tools of these names start the programs beside them through the server.
    pub fn nested(&self, names: &[&str]) -> Nested {
        Nested {
            client: self.client.clone(),
            directory: self.directory.0.clone(),
            starts: NestedStarts::Of(names.iter().map(|&name| name.to_owned()).collect()),
        }
    }

    /// Starts the server. It calls `ended` with the program and the exit of each job.
    pub fn serve(self, launcher: Arc<Launcher>, ended: Ended) -> Result<Attached, ServeError> {
        let socket_dir = SocketDir::at(&self.directory.0);
        let opened = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| ServeError::Io("make a pipe", error.into()))
            .and_then(|(over, lifeline)| {
                Ok((serve::open(Role::Run { ended, over }, socket_dir, launcher)?, lifeline))
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
                // The launcher knows the client by the number of this descriptor, which must not become another file's.
                std::mem::forget(self.image);
                Err(error)
            }
        }
    }
}

impl Attached {
    /// Returns lines of text: the number of warm and cold starts, and the reasons for the cold ones. Empty if there was no request.
    pub fn told(&self) -> String {
        let counts = self.server.as_ref().map(|server| &server.counts).filter(|counts| !counts.is_empty());
        counts.map(Counts::of_jobs).unwrap_or_default()
    }
}

impl Drop for Attached {
    /// Ends the remaining jobs, since all tests are over, and waits until no thread holds the launcher.
    fn drop(&mut self) {
        self.lifeline = None;
        if let Some(server) = self.server.take() {
            server.close();
            drop(server);
        }
        // Nothing is ever sent: this waits until the sender is dropped.
        let Err(mpsc::RecvError) = self.ended.recv();
    }
}
