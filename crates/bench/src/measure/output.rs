//! Reads a command's output in bounded memory: enough to compare two outputs and to find their first difference.
//!
//! Outputs are read through pipes and hashed, so that a gigabyte is neither kept in memory nor written to disk. A reader
//! ends when the command has ended, even if a process that it left behind keeps the pipe open.

use std::hash::{DefaultHasher, Hasher};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PipeFlags;

/// Bytes kept of the beginning, to show where outputs differ.
const HEAD: usize = 1 << 20;
/// Bytes kept of the end, to show the last output of a failing command.
const TAIL: usize = 4096;
/// The time after which a reader checks whether the command has ended, if nothing arrives.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The digest of a stream: length, hashes, beginning and end.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    length: u64,
    hashes: [u64; 2],
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Digest {
    /// Digests data that is in memory.
    pub fn of(data: &[u8]) -> Digest {
        let mut reading = Reading::new();
        reading.take(data);
        reading.finish()
    }

    /// Returns the end of the stream as text, in whole lines where possible.
    pub(super) fn said(&self) -> String {
        let text = String::from_utf8_lossy(&self.tail).into_owned();
        if self.length <= TAIL as u64 {
            return text;
        }
        format!("[…]{}", text.split_once('\n').map_or(text.as_str(), |(_, rest)| rest))
    }

    /// Describes the first difference from `other` for people; `None` if they are equal.
    pub fn difference(&self, other: &Digest) -> Option<String> {
        if self.length == other.length && self.hashes == other.hashes {
            return None;
        }
        let parted = self.head.iter().zip(&other.head).position(|(a, b)| a != b);
        let shorter = self.head.len().min(other.head.len());
        let within = parted.or((self.head.len() != other.head.len()).then_some(shorter));
        let Some(place) = within else {
            return Some(format!(
                "{} and {} bytes that differ beyond the first {HEAD}",
                self.length, other.length
            ));
        };
        let line = self.head[..place].iter().filter(|&&byte| byte == b'\n').count() + 1;
        Some(format!(
            "in line {line}, {:?} and {:?}",
            line_around(&self.head, place),
            line_around(&other.head, place)
        ))
    }
}

fn line_around(data: &[u8], place: usize) -> String {
    let start = data[..place].iter().rposition(|&b| b == b'\n').map_or(0, |n| n + 1);
    let end = data[place..].iter().position(|&b| b == b'\n').map_or(data.len(), |n| place + n);
    let line = String::from_utf8_lossy(&data[start..end]).into_owned();
    if line.chars().count() > 120 { line.chars().take(120).chain("…".chars()).collect() } else { line }
}

/// A digest under construction.
struct Reading {
    digest: Digest,
    hashers: [DefaultHasher; 2],
}

impl Reading {
    fn new() -> Self {
        let mut second = DefaultHasher::new();
        second.write_u8(1);
        Reading { digest: Digest::default(), hashers: [DefaultHasher::new(), second] }
    }

    fn take(&mut self, data: &[u8]) {
        let digest = &mut self.digest;
        digest.length += data.len() as u64;
        let room = HEAD - digest.head.len();
        digest.head.extend_from_slice(&data[..room.min(data.len())]);
        digest.tail.extend_from_slice(&data[data.len().saturating_sub(TAIL)..]);
        digest.tail.drain(..digest.tail.len().saturating_sub(TAIL));
        self.hashers.iter_mut().for_each(|hasher| hasher.write(data));
    }

    fn finish(mut self) -> Digest {
        self.digest.hashes = [self.hashers[0].finish(), self.hashers[1].finish()];
        self.digest
    }
}

/// Shared by the readers of one command's streams.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// The command has ended; the pipe holds only the rest.
    pub ended: AtomicBool,
    /// Bytes read from all streams.
    pub read: AtomicU64,
    /// Most bytes that may be read.
    pub limit: u64,
}

impl Budget {
    /// Returns whether the command printed more than allowed.
    pub(super) fn is_exceeded(&self) -> bool {
        self.read.load(Ordering::SeqCst) > self.limit
    }
}

/// Creates a pipe: the end to read from, then the command's end.
pub(super) fn pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}

/// Reads a stream in a new thread. Calls `exceeded` once the budget is used up.
pub(super) fn read(
    from: OwnedFd,
    budget: std::sync::Arc<Budget>,
    exceeded: impl FnOnce() + Send + 'static,
) -> JoinHandle<Digest> {
    std::thread::spawn(move || {
        let mut reading = Reading::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            // Load this before polling: nothing is written after the end, so one more empty poll means the end of the data.
            let ended = budget.ended.load(Ordering::SeqCst);
            let mut fds = [PollFd::from_borrowed_fd(from.as_fd(), PollFlags::IN)];
            match poll(&mut fds, Some(&LOOK)) {
                Ok(0) if ended => break,
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(_) => break,
            }
            match rustix::io::read(&from, &mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    reading.take(&buffer[..count]);
                    budget.read.fetch_add(count as u64, Ordering::SeqCst);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
            if budget.is_exceeded() {
                exceeded();
                break;
            }
        }
        reading.finish()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_where_outputs_part() {
        let reference = Digest::of(b"one\ntwo\n");
        assert_eq!(reference.difference(&Digest::of(b"one\ntwo\n")), None);
        let found = reference.difference(&Digest::of(b"one\ntoo\n")).unwrap();
        assert_eq!(found, "in line 2, \"two\" and \"too\"");
        assert_eq!(reference.difference(&Digest::of(b"one\n")).unwrap(), "in line 2, \"two\" and \"\"");
    }

    #[test]
    fn differences_beyond_what_is_kept_are_found() {
        let mut long = vec![b'x'; HEAD + 10];
        let reference = Digest::of(&long);
        long[HEAD + 5] = b'y';
        assert!(reference.difference(&Digest::of(&long)).unwrap().contains("beyond the first"));
    }

    #[test]
    fn pieces_digest_as_the_whole() {
        let mut reading = Reading::new();
        b"one\ntwo\n".chunks(3).for_each(|piece| reading.take(piece));
        assert_eq!(Digest::of(b"one\ntwo\n").difference(&reading.finish()), None);
    }
}
