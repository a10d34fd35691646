//! The server: one for each user, from its first use until it is idle for long.
//!
//! It outlives the build that started it, because the next build has the same compilers. Nobody starts or ends it by hand, so it has to
//! end itself: when it is idle, when it is of no use any more, or when a client needs another one.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::time::{Duration, Instant};

use hotstart_launch::{Exit, Launcher, Nested, NestedStarts, Policy, signals};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::context::Context;
use crate::counts::Counts;
use crate::refusal::Aspect;
use crate::socket_dir::{SocketDir, SocketDirError};
use crate::{image, wire, workers};

/// Most clients that wait to be accepted; more run cold.
const BACKLOG: i32 = 4096;
/// The time between two checks whether the server is still of use.
const LOOK: Duration = Duration::from_secs(20);
/// If no job started for this long, the server exits when a client with other settings comes, so that a matching one can start.
const QUIET: Duration = Duration::from_secs(5);

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

/// The clients that a server serves.
pub(crate) enum Role {
    /// The user's server, in its own session, for clients of all kinds.
    User,
    /// The server of one run (`attached`). Its clients have the run's terminal, and no other server takes clients that
    /// differ. A job belongs to the group of the tool that started the client.
    Run {
        /// Called at the end of each job.
        ended: Ended,
        /// Becomes readable when the run is over, since the other end of this pipe is closed.
        over: OwnedFd,
    },
}

/// Called with a job's program and its exit.
pub type Ended = Box<dyn Fn(&Path, &Exit) + Send + Sync>;

impl Role {
    pub(crate) fn is_user(&self) -> bool {
        matches!(self, Role::User)
    }
}

impl std::fmt::Debug for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_user() { "User" } else { "Run" })
    }
}

/// The state that all workers share.
#[derive(Debug)]
pub(crate) struct Server {
    pub role: Role,
    pub socket_dir: SocketDir,
    pub listener: OwnedFd,
    pub launcher: Arc<Launcher>,
    pub context: Context,
    pub counts: Counts,
    pub begun: Instant,
    state: Mutex<State>,
    changed: Condvar,
    /// Disconnects when the last thread drops the server. Keep last: fields drop in order.
    _lives: mpsc::Sender<Infallible>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub workers: usize,
    pub idle: usize,
    pub last_use: Instant,
    pub last_served: Instant,
    /// The server was asked to end and takes no new connections.
    ending: bool,
    /// Connections of clients that wait for the end; they close with the process.
    waiting: Vec<OwnedFd>,
}

/// Serves until it is asked to end, or is idle. Signals must be held ([`signals::hold`]) before.
pub fn serve(settings: &Settings) -> Result<(), ServeError> {
    let refused = |what| move |error: io::Error| ServeError::Io(what, error);
    let socket_dir = SocketDir::find().map_err(ServeError::SocketDir)?;
    if let Err(error) = allow_files() {
        // Let the next client start a server at once: its limit may be higher.
        socket_dir.started();
        return Err(ServeError::Io("serve under this limit on file size (ulimit -f)", error));
    }
    let lock = socket_dir.lock().map_err(refused("lock the server's directory"))?;
    let Some(_lock) = lock else { return Err(ServeError::Running) };
    let alive = socket_dir.alive().map_err(refused("lock a file in the server's directory"))?;
    // If files cannot be run from memory, commands that tools start themselves are cold.
    let client = image::for_tools().ok();
    let directory = socket_dir.directory().to_path_buf();
    let starts = NestedStarts::Compilers;
    let nested = client.as_ref().map(|(_, path)| Nested { client: path.clone(), directory, starts });
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
    let (server, _) = Server::open(Role::User, socket_dir, Arc::new(launcher))?;
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

impl Server {
    /// Opens the socket and starts the first worker. The receiver disconnects when the server has been dropped.
    pub(crate) fn open(
        role: Role,
        socket_dir: SocketDir,
        launcher: Arc<Launcher>,
    ) -> Result<(Arc<Server>, mpsc::Receiver<Infallible>), ServeError> {
        let refused = |what| move |error: io::Error| ServeError::Io(what, error);
        let listener = listen(&socket_dir).map_err(refused("make the server's socket"))?;
        let unseen = || ServeError::Io("read /proc/self", io::ErrorKind::NotFound.into());
        let context = Context::own().ok_or_else(unseen)?;
        let now = Instant::now();
        let state = State {
            workers: 0,
            idle: 0,
            last_use: now,
            last_served: now,
            ending: false,
            waiting: Vec::new(),
        };
        let (lives, ended) = mpsc::channel();
        let server = Arc::new(Server {
            role,
            socket_dir,
            listener,
            launcher,
            context,
            counts: Counts::default(),
            begun: now,
            state: Mutex::new(state),
            changed: Condvar::new(),
            _lives: lives,
        });
        workers::start(&server).map_err(refused("start a thread"))?;
        Ok((server, ended))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while locked")
    }

    /// Accepts no more connections. `waiting` is closed when the server has ended.
    pub(crate) fn end(&self, waiting: Option<OwnedFd>) {
        let mut state = self.lock();
        state.ending = true;
        state.waiting.extend(waiting);
        self.changed.notify_all();
    }

    /// Accounts for a worker that ends.
    pub(crate) fn worker_left(&self, state: &mut State) {
        state.workers -= 1;
        self.changed.notify_all();
    }

    /// Handles a client that does not match this server but would match one that it started: exits if no other client is served.
    pub(crate) fn met(&self, aspect: Aspect) {
        let quiet = {
            let state = self.lock();
            // The one busy worker is the one that serves this client.
            state.workers - state.idle <= 1 && state.last_served.elapsed() > QUIET
        };
        if self.role.is_user() && aspect.is_of_habit() && quiet {
            self.end(None);
        }
    }

    fn await_end(&self, idle: Duration) {
        let own = own_file();
        let mut state = self.lock();
        while !state.ending {
            let look = LOOK.min(idle);
            state = self.changed.wait_timeout(state, look).expect("no panic while locked").0;
            let is_idle = state.idle == state.workers && state.last_use.elapsed() >= idle;
            state.ending |= is_idle || own_file() != own;
        }
        drop(state);
        self.close();
    }

    /// Removes the socket, so that new clients find none. Serves the waiting ones, and returns when all workers have ended.
    pub(crate) fn close(&self) {
        let _ = std::fs::remove_file(self.socket_dir.socket());
        let _ = rustix::net::shutdown(&self.listener, Shutdown::Both);
        let mut state = self.lock();
        while state.workers > 0 {
            state = self.changed.wait(state).expect("no panic while locked");
        }
    }
}

/// Identifies the file that a client would start as a server now: device, inode, modification time.
fn own_file() -> Option<(u64, u64, i64)> {
    let path: PathBuf = std::env::current_exe().ok()?;
    let found = File::open(path).and_then(|file| file.metadata()).ok()?;
    Some((found.dev(), found.ino(), found.mtime()))
}

/// The protocol's version, as in the socket's file name and in the status.
pub(crate) const PROTOCOL: u32 = wire::VERSION;
