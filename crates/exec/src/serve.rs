//! Assembles a server: its directory, socket, launcher and first worker.
//!
//! The server runs in the foreground of a process of its own, which a client has started.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use hotstart_launch::{Launcher, Nested, Policy, signals};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::server::Server;
use crate::socket_dir::{SocketDir, SocketDirError};
use crate::{image, workers};

/// Most clients that wait to be accepted; more run cold.
const BACKLOG: i32 = 4096;
/// Bytes that a server must be able to write to one file: zygotes are made through a file in memory.
const FILE_SIZE: u64 = 16 << 20;
/// Forks of a zygote before its text is put on large pages. Builds are shorter than runs of tests and start each tool less often.
const ENLARGE_AFTER: u32 = 400;
/// The time for which parallel first clients wait for the one zygote that all of them can use.
const FIRST_WAIT: Duration = Duration::from_millis(400);

/// Settings of a user's server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server ends after this long without a request.
    pub idle: Duration,
    /// The rules by which tools are started warm.
    pub policy: Policy,
}

/// The reason why a server does not run.
#[derive(Debug)]
pub enum ServeError {
    /// There is one already.
    Running,
    /// Its directory is unsuitable.
    SocketDir(SocketDirError),
    /// A step failed, which the text names.
    Io(&'static str, io::Error),
}

impl std::fmt::Display for ServeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ServeError::Running => f.write_str("a server runs already"),
            ServeError::SocketDir(error) => error.fmt(f),
            ServeError::Io(what, error) => write!(f, "cannot {what}: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

/// Serves until it is asked to end, or is idle. Signals must be held ([`signals::serve`]) before.
pub fn serve(settings: &Settings) -> Result<(), ServeError> {
    let refused = |what| move |error: io::Error| ServeError::Io(what, error);
    let socket_dir = SocketDir::find().map_err(ServeError::SocketDir)?;
    if let Err(error) = allow_files() {
        // Let the next client start a server at once: its limit may be higher.
        socket_dir.started();
        return Err(ServeError::Io("serve under this limit on file size (ulimit -f)", error));
    }
    let lock = socket_dir.lock().map_err(refused("lock the server's directory"))?;
    let Some(_lock) = lock else {
        // The other server may be about to end. Then the next client may start one without a pause.
        socket_dir.started();
        return Err(ServeError::Running);
    };
    let alive = socket_dir.alive().map_err(refused("lock a file in the server's directory"))?;
    // If files cannot be run from memory, commands that tools start themselves are cold.
    let client = image::for_tools().ok();
    let directory = socket_dir.directory().to_path_buf();
    let nested = client.as_ref().map(|(_, path)| Nested { client: path.clone(), directory });
    // No affinity: compilations are long, and each client waits on a processor of its own choice.
    let policy = Policy {
        nested,
        near: false,
        first_wait: FIRST_WAIT,
        enlarge_after: ENLARGE_AFTER,
        compare: true,
        ..settings.policy.clone()
    };
    let launcher = Launcher::new().with_guard_holding(alive.as_fd()).with_policy(policy);
    let server = open(socket_dir, launcher)?;
    server.socket_dir.started();
    watch_signals(&server).map_err(refused("start a thread"))?;
    server.await_end(settings.idle);
    server.socket_dir.left();
    drop((alive, client));
    Ok(())
}

/// Raises the limit on file size where it is too low for a server. Jobs are given their clients' limits.
fn allow_files() -> io::Result<()> {
    let limit = getrlimit(Resource::Fsize);
    if limit.current.is_none_or(|current| current >= FILE_SIZE) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|most| most < FILE_SIZE) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(setrlimit(Resource::Fsize, Rlimit { current: limit.maximum, ..limit })?)
}

fn listen(socket_dir: &SocketDir) -> io::Result<OwnedFd> {
    let path = socket_dir.socket();
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&listener, &socket_dir.address()?)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// Ends the server in order at SIGTERM or Ctrl-C, and at once at the second signal; the guard then ends the jobs.
fn watch_signals(server: &Arc<Server>) -> io::Result<()> {
    let server = Arc::clone(server);
    let watch = move || {
        signals::wait_for_stop();
        server.end(None);
        signals::wait_for_stop();
        std::process::exit(1);
    };
    std::thread::Builder::new().name("signals".into()).spawn(watch)?;
    Ok(())
}

/// Opens the socket and starts the first worker.
fn open(socket_dir: SocketDir, launcher: Launcher) -> Result<Arc<Server>, ServeError> {
    let refused = |what| move |error: io::Error| ServeError::Io(what, error);
    let listener = listen(&socket_dir).map_err(refused("make the server's socket"))?;
    let unseen = || ServeError::Io("read /proc/self", io::ErrorKind::NotFound.into());
    let server = Server::new(socket_dir, listener, launcher).ok_or_else(unseen)?;
    workers::start(&server).map_err(refused("start a thread"))?;
    Ok(server)
}
