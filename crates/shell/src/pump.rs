//! Moves bytes between a pipeline's pipes and us, in one thread that never blocks on a single pipe.
//!
//! The order is lit's internal shell's, if that is asked for. Until the last stage has ended, only its output is read. Only
//! then are the pipes between earlier stages drained of what their readers left. So a stage never dies of SIGPIPE because
//! the next one needed no more input. Unlike lit, this cannot deadlock: everything that may be moved at a time is moved at
//! that time.
//!
//! In bash's place (`pipes`) nobody but the next stage holds a pipe's end, so a stage that has more to write dies. All
//! commands share the shell's own streams, and the next one begins when this one has ended, whoever still holds them.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::clock::Clock;
use crate::filecheck::Started;
use crate::halt::{Halt, Halting};
use crate::pipeline::{empty_input, new_pipe};
use crate::stage::Running;
use hotstart_filecheck::MAX_INPUT;
use hotstart_launch::Child;

/// How often to check whether the job was ended while nothing moves. Ended processes close their pipes, so this matters
/// only where a process that escaped still holds one.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
const CHUNK: usize = 8192;

/// A descriptor to move bytes through, or to watch.
pub(crate) struct Port {
    fd: Rc<OwnedFd>,
    role: Role,
}

enum Role {
    /// Output of this stage for the transcript: standard output, or standard error.
    Stdout(usize),
    Stderr(usize),
    /// Input of this native stage.
    Input(usize, Vec<u8>),
    /// The rest of a native stage's output, from this offset on.
    Feed(Vec<u8>, usize),
    /// Output of a stage on its way to the next. It may be recorded.
    Capture(Capture),
    /// The end of this stage's process.
    Exit(usize),
    /// A whole script's output (whether it is its errors), which does not end with a stage.
    Shared(bool),
}

/// Bytes on their way from one pipe to another.
struct Capture {
    /// The stage for which the bytes are recorded, if any.
    stage: Option<usize>,
    from: Rc<OwnedFd>,
    to: Rc<OwnedFd>,
    waiting: Vec<u8>,
    at: usize,
}

impl Port {
    /// Writes what fits, and returns a port for the rest.
    pub fn feed(end: OwnedFd, data: Vec<u8>) -> Option<Port> {
        // Makes only our end non-blocking; the reader's is another open file.
        rustix::fs::fcntl_setfl(&end, OFlags::NONBLOCK).ok()?;
        let mut port = Port { fd: Rc::new(end), role: Role::Feed(data, 0) };
        if port.write() { None } else { Some(port) }
    }

    /// Reads the input of a native stage.
    pub fn input(stage: usize, fd: Rc<OwnedFd>) -> Port {
        Port { fd, role: Role::Input(stage, Vec::new()) }
    }

    /// Forwards the output of `from` and records it.
    pub fn capture(stage: usize, from: Rc<OwnedFd>, to: OwnedFd) -> Port {
        // Fails only for an invalid descriptor.
        let _ = rustix::fs::fcntl_setfl(&to, OFlags::NONBLOCK);
        let capture =
            Capture { stage: Some(stage), from: from.clone(), to: Rc::new(to), waiting: Vec::new(), at: 0 };
        Port { fd: from, role: Role::Capture(capture) }
    }

    /// Forwards `waiting`, then the output of `from`.
    pub fn pass(from: Rc<OwnedFd>, to: OwnedFd, waiting: Vec<u8>) -> Port {
        // Fails only for an invalid descriptor.
        let _ = rustix::fs::fcntl_setfl(&to, OFlags::NONBLOCK);
        let to = Rc::new(to);
        let fd = if waiting.is_empty() { from.clone() } else { to.clone() };
        let capture = Capture { stage: None, from, to, waiting, at: 0 };
        Port { fd, role: Role::Capture(capture) }
    }

    /// Whether it waits to write.
    fn writes(&self) -> bool {
        match &self.role {
            Role::Feed(..) => true,
            Role::Capture(capture) => capture.at < capture.waiting.len(),
            _ => false,
        }
    }

    /// Writes more of the data. Returns whether it is finished.
    fn write(&mut self) -> bool {
        let Role::Feed(data, at) = &mut self.role else { return true };
        while *at < data.len() {
            match rustix::io::write(&self.fd, &data[*at..]) {
                Ok(count) => *at += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return false,
                Err(_) => return true,
            }
        }
        true
    }
}

impl Capture {
    /// Reads if nothing waits, and writes what fits. Returns whether it is finished: `from` has ended, or writing
    /// failed.
    fn advance(&mut self, record: Option<&mut Vec<u8>>) -> bool {
        if self.at == self.waiting.len() {
            (self.waiting, self.at) = (Vec::new(), 0);
            if read(&self.from, &mut self.waiting) {
                return true;
            }
            if let Some(record) = record {
                record.extend_from_slice(&self.waiting);
            }
        }
        while self.at < self.waiting.len() {
            match rustix::io::write(&self.to, &self.waiting[self.at..]) {
                Ok(count) => self.at += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return false,
                Err(_) => return true,
            }
        }
        false
    }
}

/// Writes all of `data` to a file.
pub(crate) fn write_all(fd: &OwnedFd, mut data: &[u8]) -> Result<(), Errno> {
    while !data.is_empty() {
        match rustix::io::write(fd, data) {
            Ok(count) => data = &data[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads what a pipe holds now, and not what somebody may write meanwhile.
fn drain(fd: &OwnedFd, into: &mut Vec<u8>) {
    let most = into.len() + rustix::pipe::fcntl_getpipe_size(fd).unwrap_or(CHUNK);
    while into.len() < most {
        let before = into.len();
        if read(fd, into) || into.len() == before {
            return;
        }
    }
}

/// Reads once. Returns whether that was the end.
fn read(fd: &OwnedFd, into: &mut Vec<u8>) -> bool {
    into.reserve(CHUNK);
    match rustix::io::read(fd, spare_capacity(into)) {
        Ok(count) => count == 0,
        Err(Errno::INTR | Errno::AGAIN) => false,
        Err(_) => true,
    }
}

/// Reads up to the end.
pub(crate) fn read_all(fd: &OwnedFd) -> Vec<u8> {
    let mut data = Vec::new();
    while !read(fd, &mut data) {}
    data
}

/// The standard streams of a script for bash. All its commands share them, as those of the shell's own process.
pub(crate) struct Pipes {
    /// Nothing ever comes from here.
    pub stdin: Rc<OwnedFd>,
    /// Our ends, which do not block, and those of the commands.
    pub stdout: Rc<OwnedFd>,
    pub stderr: Rc<OwnedFd>,
    pub stdout_end: Rc<OwnedFd>,
    pub stderr_end: Rc<OwnedFd>,
}

impl Pipes {
    pub fn new() -> Halting<Self> {
        let output = || {
            let (read, write) = new_pipe()?;
            rustix::fs::fcntl_setfl(&read, OFlags::NONBLOCK)
                .map_err(|error| Halt::internal("cannot set up a pipe", error))?;
            Ok((Rc::new(read), Rc::new(write)))
        };
        let ((stdout, stdout_end), (stderr, stderr_end)) = (output()?, output()?);
        Ok(Pipes { stdin: Rc::new(empty_input()?), stdout, stderr, stdout_end, stderr_end })
    }

    /// Waits until nobody holds the output any more, as lit does when its shell has ended, or until time is up. Returns what came.
    pub fn finish(self, clock: &Clock<'_>) -> Halting<[Vec<u8>; 2]> {
        drop((self.stdout_end, self.stderr_end));
        let mut found = [Vec::new(), Vec::new()];
        let mut open = vec![(0, self.stdout), (1, self.stderr)];
        while !open.is_empty() && !clock.is_killed() {
            let mut fds: Vec<_> =
                open.iter().map(|(_, fd)| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)).collect();
            match poll(&mut fds, Some(&LOOK)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Halt::internal("cannot wait for pipes", error)),
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            let mut ready = ready.into_iter();
            open.retain(|(index, fd)| !ready.next().unwrap_or_default() || !read(fd, &mut found[*index]));
        }
        Ok(found)
    }
}

/// A pipeline whose stages have all been started.
pub(crate) struct Pump<'p, 'g> {
    pub stages: &'p mut [Running<'g>],
    pub ports: Vec<Port>,
    pub clock: &'p Clock<'g>,
    /// When the pipeline began.
    pub begun: Instant,
    /// Set in bash's place, where pipes between stages are only theirs.
    pub pipes: Option<&'p Pipes>,
}

impl Pump<'_, '_> {
    /// Runs until every stage has closed its pipes and the last one's process has ended.
    pub fn run(mut self) -> Halting<()> {
        if let Some(pipes) = self.pipes {
            return self.run_in_bashs_place(pipes);
        }
        let last = self.stages.len() - 1;
        for index in 0..=last {
            let stage = &mut self.stages[index];
            if index == last {
                let end = stage.stdout_end.take();
                self.ports.extend(end.map(|fd| Port { fd, role: Role::Stdout(index) }));
            }
            if index == last || !stage.errors_feed_next {
                let end = stage.stderr_end.take();
                self.ports.extend(end.map(|fd| Port { fd, role: Role::Stderr(index) }));
            }
        }
        self.until_last_ends(last)?;
        let taken: Vec<usize> = self.inputs().collect();
        for index in 0..last {
            let stage = &mut self.stages[index];
            let (out, err) = (stage.stdout_end.take(), stage.stderr_end.take());
            if taken.contains(&(index + 1)) {
                continue;
            }
            self.ports.extend(out.map(|fd| Port { fd, role: Role::Stdout(index) }));
            self.ports.extend(err.map(|fd| Port { fd, role: Role::Stderr(index) }));
        }
        while !self.ports.is_empty() && self.step()? {}
        Ok(())
    }

    /// Runs until every process has ended, whoever else still holds the script's output.
    fn run_in_bashs_place(mut self, pipes: &Pipes) -> Halting<()> {
        for (index, stage) in self.stages.iter_mut().enumerate() {
            // Only the stages on both sides hold a pipe's ends.
            (stage.stdout_end, stage.stderr_end) = (None, None);
            if let Some(child) = &mut stage.child {
                let end =
                    child.end_fd().map_err(|error| Halt::internal("cannot wait for a process", error))?;
                self.ports.push(Port { fd: Rc::new(end), role: Role::Exit(index) });
            }
        }
        let shared = |port: &Port| matches!(port.role, Role::Shared(_));
        self.ports.push(Port { fd: pipes.stdout.clone(), role: Role::Shared(false) });
        self.ports.push(Port { fd: pipes.stderr.clone(), role: Role::Shared(true) });
        while !self.ports.iter().all(shared) && self.step()? {}
        if let Some(last) = self.stages.last_mut() {
            drain(&pipes.stdout, &mut last.stdout);
            drain(&pipes.stderr, &mut last.stderr);
        }
        Ok(())
    }

    /// Returns the native stages that still read.
    fn inputs(&self) -> impl Iterator<Item = usize> {
        self.ports.iter().filter_map(|port| match port.role {
            Role::Input(stage, _) => Some(stage),
            _ => None,
        })
    }

    fn until_last_ends(&mut self, last: usize) -> Halting<()> {
        let mut watched = false;
        loop {
            let is_open = self.ports.iter().any(|port| match port.role {
                Role::Stdout(stage) | Role::Stderr(stage) | Role::Input(stage, _) => stage == last,
                Role::Feed(..) | Role::Capture(_) | Role::Shared(_) => false,
                Role::Exit(_) => true,
            });
            if is_open {
                if !self.step()? {
                    return Ok(());
                }
            } else if self.ports.is_empty() {
                // It may still read, though we get no more output: we do not move the pipes before it yet.
                self.stages[last].wait(|| self.begun.elapsed());
                return Ok(());
            } else if let Some(child) = self.stages[last].child.as_mut().filter(|_| !watched) {
                // It may still need bytes that only we can move, so do not just wait for it.
                watched = true;
                if let Ok(fd) = child.end_fd() {
                    self.ports.push(Port { fd: Rc::new(fd), role: Role::Exit(last) });
                }
            } else {
                return Ok(());
            }
        }
    }

    /// Moves what can be moved. Returns false if the job was ended and nothing moves any more.
    fn step(&mut self) -> Halting<bool> {
        let flags = |port: &Port| if port.writes() { PollFlags::OUT } else { PollFlags::IN };
        let mut fds: Vec<PollFd<'_>> =
            self.ports.iter().map(|port| PollFd::from_borrowed_fd(port.fd.as_fd(), flags(port))).collect();
        match poll(&mut fds, Some(&LOOK)) {
            Ok(0) => return Ok(!self.clock.is_killed()),
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(true),
            Err(error) => return Err(Halt::internal("cannot wait for pipes", error)),
        }
        // POLLHUP alone may come while the pipe still holds its last bytes: only a read shows the end.
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut kept = Vec::with_capacity(self.ports.len());
        for (mut port, ready) in std::mem::take(&mut self.ports).into_iter().zip(ready) {
            if !ready || !self.advance(&mut port, &mut kept)? {
                kept.push(port);
            }
        }
        self.ports = kept;
        Ok(true)
    }

    /// Moves bytes through one port, and returns whether it is finished. A waiting FileCheck adds ports.
    fn advance(&mut self, port: &mut Port, added: &mut Vec<Port>) -> Halting<bool> {
        Ok(match &mut port.role {
            Role::Stdout(stage) => read(&port.fd, &mut self.stages[*stage].stdout),
            Role::Stderr(stage) => read(&port.fd, &mut self.stages[*stage].stderr),
            Role::Feed(..) => port.write(),
            Role::Shared(is_errors) => {
                let Some(last) = self.stages.last_mut() else { return Ok(true) };
                read(&port.fd, if *is_errors { &mut last.stderr } else { &mut last.stdout })
            }
            Role::Exit(stage) => match self.stages[*stage].child.as_mut().and_then(Child::process_fd) {
                Some(process) => {
                    port.fd = Rc::new(process);
                    false
                }
                None => true,
            },
            Role::Capture(capture) => {
                let record = capture.stage.map(|stage| &mut self.stages[stage].capture);
                let ended = capture.advance(record);
                port.fd = if capture.at < capture.waiting.len() {
                    capture.to.clone()
                } else {
                    capture.from.clone()
                };
                ended
            }
            Role::Input(stage, data) => {
                if !read(&port.fd, data) {
                    let is_too_much = data.len() > MAX_INPUT && self.stages[*stage].pending.is_some();
                    if is_too_much {
                        let (index, data) = (*stage, std::mem::take(data));
                        added.extend(self.hand_over(index, data, Some(port.fd.clone()))?);
                    }
                    return Ok(is_too_much);
                }
                let (index, data) = (*stage, std::mem::take(data));
                added.extend(self.complete(index, data)?);
                true
            }
        })
    }

    /// Gives a waiting stage its whole input. Returns the ports that this adds.
    fn complete(&mut self, index: usize, data: Vec<u8>) -> Halting<Vec<Port>> {
        let stage = &mut self.stages[index];
        let Some(mut waiting) = stage.pending.take() else { return Ok(Vec::new()) };
        if waiting.passes(&data) {
            stage.has_matched();
            stage.decided_on = Some(waiting.scene);
            return Ok(Vec::new());
        }
        stage.pending = Some(waiting);
        self.hand_over(index, data, None)
    }

    /// Starts the FileCheck of a waiting stage, with the input so far and the `rest` of it.
    fn hand_over(&mut self, index: usize, data: Vec<u8>, rest: Option<Rc<OwnedFd>>) -> Halting<Vec<Port>> {
        let stage = &mut self.stages[index];
        let Some(waiting) = stage.pending.take() else { return Ok(Vec::new()) };
        let scene = stage.late.insert(waiting.scene.clone());
        if !scene.is_current() {
            // lit would have started FileCheck before its files changed. This run ends here and proves nothing.
            return Err(Halt::internal("cannot start FileCheck", "its files have changed"));
        }
        let Started { child, stdin, stdout, stderr, open } = waiting.start()?;
        (stage.child, stage.open) = (Some(child), open);
        stage.stderr_is_piped = stderr.is_some();
        let mut ports = vec![Port { fd: Rc::new(stdout), role: Role::Stdout(index) }];
        ports.extend(stderr.map(|fd| Port { fd: Rc::new(fd), role: Role::Stderr(index) }));
        ports.extend(match rest {
            Some(rest) => Some(Port::pass(rest, stdin, data)),
            None => Port::feed(stdin, data),
        });
        Ok(ports)
    }
}
