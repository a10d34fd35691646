//! Serves one connection: a command from its request to its end.
//!
//! The client's own process cannot become the warm one. So it waits, and this passes on whatever a parent could tell apart: signals,
//! the exit status, the use of resources, the process group.

use std::ffi::OsStr;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use hotstart_launch::{Change, Child, Group, ProcessGroup, Reason, Via};
use hotstart_model::Status;
use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendFlags,
};
use rustix::process::{Pid, Signal};
use rustix::time::Timespec;

use crate::batch::TO_CLEAN_UP;
use crate::context::{Place, Seen};
use crate::refusal::{Aspect, Refusal};
use crate::request::Request;
use crate::server::{PROTOCOL, Server};
use crate::tools::{self, Kind};
use crate::wire::{self, ReplyKind};

/// Space for one message, which a worker reuses.
pub(crate) struct Buffer(Vec<u8>);

impl Default for Buffer {
    fn default() -> Self {
        Buffer(vec![0; wire::MESSAGE_MAX + 1])
    }
}

/// Serves one connection. With `refuse`, a request to run is refused, since no worker is left for it.
pub(crate) fn serve(server: &Server, connection: OwnedFd, buffer: &mut Buffer, refuse: bool) {
    let Ok(peer) = socket_peercred(&connection) else { return };
    // The directory's mode keeps other users out already; this is a second check.
    if peer.uid != rustix::process::geteuid() {
        return;
    }
    let Some((message, fds)) = receive(&connection, &mut buffer.0) else { return };
    match wire::kind(message) {
        Some(wire::Kind::Run) if refuse => refuse_one(server, &connection, Refusal::Busy, None),
        Some(wire::Kind::Run) => match Request::decode(message, fds) {
            Some(request) => run(server, &connection, request, Pid::as_raw(Some(peer.pid))),
            None => refuse_one(server, &connection, Refusal::Malformed, None),
        },
        Some(wire::Kind::Status) => send(&connection, ReplyKind::Text, 0, &status(server)),
        Some(wire::Kind::StatusJson) => send(&connection, ReplyKind::Text, 0, &status_json(server)),
        Some(wire::Kind::Warm) => {
            let paths = message[wire::HEAD_SIZE..].split(|&byte| byte == 0).filter(|path| !path.is_empty());
            paths.for_each(|path| server.launcher.make_eager(Path::new(OsStr::from_bytes(path))));
            send(&connection, ReplyKind::Text, 0, "");
        }
        Some(wire::Kind::Stop) => {
            send(&connection, ReplyKind::Text, 0, &stopping(server));
            server.end(Some(connection));
        }
        _ => refuse_one(server, &connection, Refusal::Malformed, None),
    }
}

fn run(server: &Server, connection: &OwnedFd, request: Request, client: i32) {
    let Some(seen) = Seen::of(&client.to_string()) else {
        return refuse_one(server, connection, Refusal::Unseen, None);
    };
    if let Err(refusal) = start(server, connection, request, client, &seen) {
        refuse_one(server, connection, refusal, Some(seen.parent));
        if let Refusal::Differs(aspect) = refusal {
            server.met(aspect);
        }
    }
}

/// Runs the job if it can be started warm, or is to be compared with warm ones. After an error, nothing was started.
fn start(
    server: &Server,
    connection: &OwnedFd,
    mut request: Request,
    client: i32,
    seen: &Seen,
) -> Result<(), Refusal> {
    if let Some(aspect) = server.context.difference(seen, &request.run) {
        return Err(Refusal::Differs(aspect));
    }
    let limits = server.context.limits(&request.run)?;
    // The path may lead elsewhere by now, or to another mount than the client's directory.
    if Place::of(rustix::fs::CWD, &*request.directory) != Some(request.run.directory) {
        return Err(Refusal::Differs(Aspect::Directory));
    }
    match tools::kind(&request.program) {
        Kind::Compiler | Kind::Companion => request.leave_out_unmentioned(),
        Kind::Other if seen.has_terminal => return Err(Refusal::Terminal),
        Kind::Other => {}
    }
    if request.is_script_by_relative_path() {
        return Err(Refusal::Launch(Reason::RelativePath));
    }
    // A relative path starts at the client's directory. The tool's argv[0] stays as it is.
    request.program = request.directory.join(&request.program);
    if !request.is_repeatable() {
        send(connection, ReplyKind::Starting, 0, "");
    }
    let group = Group::new();
    let process_group = process_group(&group, seen, client)?;
    let ignored = server.context.ignored(seen);
    let spec = request.spec(server.context.umask(seen), limits, ignored, process_group);
    let child = server.launcher.start_warm(&spec, &group).map_err(Refusal::Launch)?;
    drop(spec);
    server.launcher.client_was_served(seen.parent);
    // Close the server's copies of the descriptors: a reader of a pipe that the job has closed must see its end.
    drop(request);
    match child.via() {
        Via::Cold(_) => server.counts.compared(),
        Via::Fork | Via::Reset => server.counts.warm(),
    }
    server.lock().last_served = Instant::now();
    accompany(server, connection, child, &group, (seen.parent, client));
    Ok(())
}

/// Returns the process group that the command would have without a server, as far as the command can tell: it leads a group
/// only if the client does.
fn process_group(group: &Group, seen: &Seen, client: i32) -> Result<ProcessGroup, Refusal> {
    if seen.group == client {
        return Ok(ProcessGroup::New);
    }
    group.process_group().map_err(|_| Refusal::Launch(Reason::System))
}

/// The time between two looks whether a job has stopped itself. The kernel wakes nobody for that who waits for other things, too.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The time in which processes of a job stop by a signal that was passed on. A client of the job's own stops at the server's next look.
const TO_STOP: Duration = Duration::from_secs(2);

/// A client whose job runs.
struct Waiting<'a> {
    connection: &'a OwnedFd,
    pid: i32,
    lives: bool,
    /// SIGCONTs that it has passed on.
    continued: u32,
    /// It was told that its job has stopped.
    was_told: bool,
    /// It has passed on a stop that is to end what the job leaves behind, too.
    ends_all: bool,
    /// Until when what stops in the job is to be continued.
    stops_nobody_until: Option<Instant>,
}

impl Waiting<'_> {
    /// Accounts for a signal that the client has passed on.
    fn passes(&mut self, signal: i32, flags: u32) {
        self.ends_all |= flags & wire::ENDS_ALL != 0;
        if flags & wire::STOPS_NOBODY != 0 {
            self.stops_nobody_until = Some(Instant::now() + TO_STOP);
        }
        if signal == Signal::CONT.as_raw() {
            self.continued += 1;
            self.was_told = false;
        }
    }

    /// Tells the client of a job that has stopped, by whatever signal, or been continued by others than the client.
    fn follow(&mut self, change: Option<Change>) {
        match change {
            Some(Change::Stopped(signal)) => {
                self.was_told = true;
                if signal == Signal::STOP.as_raw() {
                    self.stops_nobody_until = None;
                }
                send_head(self.connection, &wire::stopped(signal, self.continued), "");
            }
            Some(Change::Continued) => self.go_on(),
            _ => {}
        }
    }

    /// Reads what the client has sent before it learns of the job's end.
    fn hear_the_last(&mut self) {
        let mut message = [0; wire::SIGNAL_SIZE];
        while let Ok((1.., _)) = rustix::net::recv(self.connection, &mut message[..], RecvFlags::DONTWAIT) {
            self.ends_all |= wire::flags(&message) & wire::ENDS_ALL != 0;
        }
    }

    /// Continues a client that was told to stop.
    fn go_on(&mut self) {
        let client = Pid::from_raw(self.pid).filter(|_| self.was_told && self.lives);
        if let Some(client) = client {
            let _ = rustix::process::kill_process(client, Signal::CONT);
        }
        self.was_told = false;
    }
}

/// Follows a job from its start to its end: passes signals on, and ends the job if the client is gone.
fn accompany(
    server: &Server,
    connection: &OwnedFd,
    mut child: Child<'_>,
    group: &Group,
    (parent, pid): (i32, i32),
) {
    let mut event = child.end_fd().ok();
    let mut client = Waiting {
        connection,
        pid,
        lives: true,
        continued: 0,
        was_told: false,
        ends_all: false,
        stops_nobody_until: None,
    };
    while let Some(own) = &event {
        let other = client.lives.then_some(connection);
        let mut polled: Vec<_> =
            [own].into_iter().chain(other).map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let _ = rustix::event::poll(&mut polled, client.lives.then_some(&LOOK));
        let is_ready = |index: usize| polled.get(index).is_some_and(|fd| !fd.revents().is_empty());
        let (has_ended, client_speaks) = (is_ready(0), is_ready(1));
        if has_ended {
            event = child.process_fd();
        } else if client_speaks && !pass_signal(&mut client, &child) {
            client.lives = false;
            server.counts.killed();
            child.signal_group(Signal::KILL.as_raw());
        } else if client.lives {
            client.follow(child.change());
            if client.stops_nobody_until.is_some_and(|until| Instant::now() < until) {
                child.continue_group();
            }
        }
    }
    client.go_on();
    client.hear_the_last();
    let exit = child.wait();
    if client.ends_all {
        group.await_left_for(TO_CLEAN_UP, || is_there(connection));
        group.end_left();
    }
    if exit.lost && client.lives {
        return refuse_one(server, connection, Refusal::Launch(Reason::ZygoteDied), Some(parent));
    }
    match exit.status {
        Status::Exited(code) => send(connection, ReplyKind::Exited, code, ""),
        Status::Signaled(signal) => send(connection, ReplyKind::Signaled, signal, ""),
    }
}

/// Returns whether the client has not closed its connection.
fn is_there(connection: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(connection, PollFlags::IN)];
    let _ = rustix::event::poll(&mut polled, Some(&Timespec::default()));
    !polled[0].revents().contains(PollFlags::HUP)
}

/// Receives one message of a client whose job runs. Returns `false` if the client is gone.
fn pass_signal(client: &mut Waiting<'_>, child: &Child<'_>) -> bool {
    let mut message = [0; wire::SIGNAL_SIZE];
    match rustix::net::recv(client.connection, &mut message[..], RecvFlags::DONTWAIT) {
        Ok((0, _)) => false,
        Ok((length, _)) => {
            let message = &message[..length];
            if let Some(signal) =
                wire::signal(message).filter(|_| wire::kind(message) == Some(wire::Kind::Signal))
            {
                client.passes(signal, wire::flags(message));
                // A job has its own process group, which gets the signal as the client's group would.
                child.signal_group(signal);
            }
            true
        }
        Err(error) => matches!(error, rustix::io::Errno::AGAIN | rustix::io::Errno::INTR),
    }
}

/// Has the client run its command itself, as a child of `parent`.
fn refuse_one(server: &Server, connection: &OwnedFd, why: Refusal, parent: Option<i32>) {
    server.counts.cold(why);
    server.launcher.client_was_refused(parent);
    send(connection, ReplyKind::Cold, 0, &why.to_string());
}

/// Sends a reply. Errors are ignored: a client that is gone needs no answer.
fn send(connection: &OwnedFd, kind: ReplyKind, value: i32, text: &str) {
    send_head(connection, &wire::reply(kind, value, text), text);
}

fn send_head(connection: &OwnedFd, head: &[u8; wire::REPLY_SIZE], text: &str) {
    let parts = [IoSlice::new(head), IoSlice::new(text.as_bytes())];
    let mut nothing = SendAncillaryBuffer::default();
    let _ = rustix::net::sendmsg(connection.as_fd(), &parts, &mut nothing, SendFlags::NOSIGNAL);
}

/// Receives one whole message with its descriptors.
fn receive<'b>(connection: &OwnedFd, buffer: &'b mut [u8]) -> Option<(&'b [u8], Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(wire::FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut *buffer)];
    let received = loop {
        match rustix::net::recvmsg(connection, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => continue,
            other => break other.ok()?,
        }
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if received.flags.contains(ReturnFlags::TRUNC) || received.bytes == 0 {
        return None;
    }
    Some((&buffer[..received.bytes], fds))
}

/// Returns the number of running jobs.
fn running(server: &Server) -> usize {
    let state = server.lock();
    // This worker answers a question and runs no job.
    state.workers - state.idle - 1
}

fn status_json(server: &Server) -> String {
    let head = serde_json::json!({
        "server": std::process::id(),
        "directory": server.socket_dir.directory().to_string_lossy(),
        "protocol": PROTOCOL,
        "seconds": server.begun.elapsed().as_secs_f64(),
        "jobs": running(server),
    });
    server.counts.json(head, &server.launcher.statistics())
}

fn status(server: &Server) -> String {
    let running = running(server);
    let since = server.begun.elapsed().as_secs();
    let head = format!(
        "server {} in {}, protocol {PROTOCOL}, for {since} s, {running} jobs running\n",
        std::process::id(),
        server.socket_dir.directory().display(),
    );
    head + &server.counts.text(&server.launcher.statistics())
}

fn stopping(server: &Server) -> String {
    match running(server) {
        0 => String::new(),
        running => format!("waiting for {running} jobs\n"),
    }
}
