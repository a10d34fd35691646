//! Runs many commands through clients, a fixed number at a time, for `hotstart exec --compdb`.
//!
//! Each command has its own process group and a guard, so a stop ends all its processes, even if this process is killed. If
//! make provides a jobserver (MAKEFLAGS), every running command but one needs a token.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use hotstart_launch::{EnvBlock, Group, Launcher, Spec, StartError};
use hotstart_model::Status;
use rustix::event::{PollFd, PollFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::image::{self, NAME};

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its working directory, absolute.
    pub directory: PathBuf,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
}

/// The result of a command.
#[derive(Debug)]
pub struct Outcome {
    /// Index of the command in the list.
    pub index: usize,
    /// `None` if the command could not be started; `output` then says why.
    pub status: Option<Status>,
    /// Its standard output and standard error, together.
    pub output: Vec<u8>,
}

/// How long commands have to clean up after a stop, and what warm ones leave behind after their end, before it is killed.
pub(crate) const TO_CLEAN_UP: Duration = Duration::from_secs(2);

/// A run of commands, which another thread can stop.
#[derive(Debug, Default)]
pub struct Batch {
    running: Mutex<Vec<Group>>,
    /// Signalled when a command has ended.
    ended: Condvar,
    /// The signal by which the run was stopped; 0 while it goes on.
    stopped: AtomicI32,
    next: AtomicUsize,
}

impl Batch {
    /// Starts no more commands and ends the running ones: by `signal`, as a terminal would, since compilers remove their unfinished files
    /// then. What is left after a while is killed.
    pub fn stop(&self, signal: i32) {
        self.stopped.store(signal, Ordering::SeqCst);
        let until = Instant::now() + TO_CLEAN_UP;
        let running = self.running.lock().expect("no panic while locked");
        let groups = running.clone();
        groups.iter().for_each(|group| group.pass_on(signal));
        let waited = self.ended.wait_timeout_while(running, TO_CLEAN_UP, |running| !running.is_empty());
        drop(waited.expect("no panic while locked"));
        for group in groups {
            // A compiler's driver may have ended before its stages.
            group.await_left_for(until.saturating_duration_since(Instant::now()), || true);
            group.kill();
            group.end_left();
        }
    }

    /// Kills the running commands.
    pub fn kill(&self) {
        self.running.lock().expect("no panic while locked").iter().for_each(Group::kill);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst) != 0
    }

    /// Runs the commands, `jobs` at a time. Calls `ended` after each one, from several threads.
    pub fn run(&self, commands: &[Command], jobs: usize, ended: &(dyn Fn(Outcome) + Sync)) -> io::Result<()> {
        let (_image, client) = image::for_tools()?;
        let launcher = Launcher::new().with_guard();
        let starter = Starter { client, own: std::env::current_exe()?, env: own_environment(), launcher };
        let tokens = Tokens::of_make()?;
        std::thread::scope(|scope| {
            for thread in 0..jobs.min(commands.len()) {
                let (starter, tokens) = (&starter, &tokens);
                std::thread::Builder::new().name("command".into()).spawn_scoped(scope, move || {
                    self.work(commands, starter, tokens.as_ref().map(|tokens| (tokens, thread > 0)), ended);
                })?;
            }
            Ok(())
        })
    }

    fn work(
        &self,
        commands: &[Command],
        starter: &Starter,
        tokens: Option<(&Tokens, bool)>,
        ended: &(dyn Fn(Outcome) + Sync),
    ) {
        loop {
            // Get the token before choosing a command: meanwhile another thread may take the last one.
            // make has given this process one token, which the first thread uses.
            let needed = tokens.filter(|(_, needs)| *needs);
            let token = needed.and_then(|(tokens, _)| tokens.take());
            if needed.is_some() && token.is_none() {
                return;
            }
            let index = self.next.fetch_add(1, Ordering::SeqCst);
            let command = commands.get(index).filter(|_| !self.is_stopped());
            if let Some(command) = command {
                ended(self.run_one(index, command, starter));
            }
            if let Some(((tokens, _), token)) = tokens.zip(token) {
                tokens.give(token);
            }
            if command.is_none() {
                tokens.into_iter().for_each(|(tokens, _)| tokens.end());
                return;
            }
        }
    }

    fn run_one(&self, index: usize, command: &Command, starter: &Starter) -> Outcome {
        let group = Group::new();
        self.running.lock().expect("no panic while locked").push(group.clone());
        // A later stop finds the group in the list. After an earlier one, the killed group starts nothing.
        if self.is_stopped() {
            group.kill();
        }
        let begun = || match self.stopped.load(Ordering::SeqCst) {
            0 => {}
            // The stop may have looked before the process was there. If not, the process gets the signal twice, before it has begun
            // anything.
            signal => group.pass_on(signal),
        };
        let (status, output) = match starter.run(command, &group, &begun) {
            Ok((status, output)) => (Some(status), output),
            Err(error) => (None, format!("{error}\n").into_bytes()),
        };
        let mut running = self.running.lock().expect("no panic while locked");
        running.retain(|other| !other.is_same(&group));
        self.ended.notify_all();
        Outcome { index, status, output }
    }
}

/// The parameters that all commands share.
struct Starter {
    client: PathBuf,
    own: PathBuf,
    env: EnvBlock,
    launcher: Launcher,
}

impl Starter {
    /// Runs a command to its end; calls `begun` once its process is in the group.
    fn run(&self, command: &Command, group: &Group, begun: &dyn Fn()) -> io::Result<(Status, Vec<u8>)> {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let mut output = File::from(rustix::fs::memfd_create("hotstart-output", flags)?);
        let mut own = OsString::from("--hotstart=");
        own.push(&self.own);
        let leading = [NAME.into(), own, "--end-all".into(), "--".into()];
        let spec = Spec {
            argv: leading.into_iter().chain(command.argv.iter().cloned()).collect(),
            env: self.env.clone(),
            cwd: Path::new(&command.directory).into(),
            stdio: [null.as_fd(), output.as_fd(), output.as_fd()],
            process_group: group.process_group()?,
            ..Spec::plain(&self.client, NAME.into(), self.env.clone(), &null)
        };
        let started = |error: StartError| io::Error::other(error.to_string());
        let running = self.launcher.start(&spec, group).map_err(started)?;
        begun();
        let status = running.wait().status;
        let mut text = Vec::new();
        output.rewind()?;
        output.read_to_end(&mut text)?;
        Ok((status, text))
    }
}

/// Returns this process's variables in their order.
fn own_environment() -> EnvBlock {
    let mut blob = Vec::new();
    for (name, value) in std::env::vars_os() {
        blob.extend_from_slice(name.as_bytes());
        blob.push(b'=');
        blob.extend_from_slice(value.as_bytes());
        blob.push(0);
    }
    EnvBlock::from_strings(&blob).expect("each variable ends with a NUL")
}

/// A jobserver of make.
#[derive(Debug)]
struct Tokens {
    take: File,
    give: File,
    /// Reports a hang-up once `needed` is dropped, when no more tokens are needed.
    over: OwnedFd,
    needed: Mutex<Option<OwnedFd>>,
}

impl Tokens {
    /// Opens the jobserver that MAKEFLAGS names; `None` if it cannot be reached.
    fn of_make() -> io::Result<Option<Tokens>> {
        let flags = std::env::var_os("MAKEFLAGS").unwrap_or_default();
        let Some((take, give)) = ends(flags.as_bytes()) else { return Ok(None) };
        // Another process may take the token between poll and read. Reopening keeps O_NONBLOCK to this descriptor.
        let no_wait = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let take = File::options().read(true).custom_flags(no_wait).open(take);
        let give = File::options().write(true).open(give);
        let (Ok(take), Ok(give)) = (take, give) else { return Ok(None) };
        Tokens::new(take, give).map(Some)
    }

    fn new(take: File, give: File) -> io::Result<Tokens> {
        let (over, needed) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Tokens { take, give, over, needed: Mutex::new(Some(needed)) })
    }

    /// Waits for a token. Returns `None` if none can come, or if no more are needed.
    fn take(&self) -> Option<u8> {
        loop {
            let polled = [self.over.as_fd(), self.take.as_fd()];
            let mut polled = polled.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            // An interrupted poll is repeated by the loop.
            let _ = rustix::event::poll(&mut polled, None);
            if !polled[0].revents().is_empty() {
                return None;
            }
            let mut token = [0];
            match (&self.take).read(&mut token) {
                Ok(1) => return Some(token[0]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return None,
            }
        }
    }

    /// Ends all waiting for tokens.
    fn end(&self) {
        *self.needed.lock().expect("no panic while locked") = None;
    }

    fn give(&self, token: u8) {
        // If make is gone, it needs no token back.
        let _ = (&self.give).write_all(&[token]);
    }
}

/// Returns the files by which tokens are taken and given: a FIFO, or two inherited descriptors.
fn ends(flags: &[u8]) -> Option<(PathBuf, PathBuf)> {
    let words = flags.split(|&byte| byte == b' ');
    let named = ["--jobserver-auth=", "--jobserver-fds="];
    let value = words
        .filter_map(|word| named.iter().find_map(|name| word.strip_prefix(name.as_bytes())))
        .next_back()?;
    if let Some(path) = value.strip_prefix(b"fifo:") {
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        return Some((path.clone(), path));
    }
    let (take, give) = std::str::from_utf8(value).ok()?.split_once(',')?;
    let descriptor = |text: &str| {
        let number: u32 = text.parse().ok()?;
        Some(PathBuf::from(format!("/proc/self/fd/{number}")))
    };
    Some((descriptor(take)?, descriptor(give)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jobserver_is_a_fifo_or_two_descriptors() {
        let of = |flags: &str| {
            ends(flags.as_bytes())
                .map(|(take, give)| (take.display().to_string(), give.display().to_string()))
        };
        let fds = |a: &str, b: &str| Some((format!("/proc/self/fd/{a}"), format!("/proc/self/fd/{b}")));
        assert_eq!(of("k -j4 --jobserver-auth=3,4"), fds("3", "4"));
        assert_eq!(of("--jobserver-fds=5,6 -j"), fds("5", "6"));
        assert_eq!(of(" -j --jobserver-auth=fifo:/tmp/f"), Some(("/tmp/f".into(), "/tmp/f".into())));
        assert_eq!(of("--jobserver-auth=3,4 --jobserver-auth=7,8"), fds("7", "8"), "the last one counts");
        assert_eq!([of("-j4"), of("--jobserver-auth=-2,-2"), of("")], [None, None, None]);
    }

    #[test]
    fn tokens_are_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        let both = File::options().read(true).write(true).open(&path).unwrap();
        (&both).write_all(b"+").unwrap();
        let tokens = Tokens::new(both.try_clone().unwrap(), both.try_clone().unwrap()).unwrap();
        let token = tokens.take().unwrap();
        tokens.give(token);
        assert_eq!(tokens.take(), Some(b'+'));
        tokens.end();
        assert_eq!(tokens.take(), None, "nobody waits for what nobody gives");
    }
}
