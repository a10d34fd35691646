//! The messages of `client/wire.h`, the one source of their layout; a test compares sizes and offsets.

use crate::context::Place;

/// First word of every message.
pub(crate) const MAGIC: u32 = 0x7473_7368;
/// Version of the protocol.
pub(crate) const VERSION: u32 = 3;
/// Name of the socket in its directory.
pub(crate) const SOCKET: &str = "exec-3.socket";
/// Longest message, in bytes.
pub(crate) const MESSAGE_MAX: usize = 128 * 1024;
/// Most descriptors of a request.
pub(crate) const FDS_MAX: usize = 32;
/// Resource limits, in the order of their numbers.
pub(crate) const LIMITS: usize = 16;

/// Sizes of the messages' fixed parts.
pub(crate) const HEAD_SIZE: usize = 16;
pub(crate) const RUN_SIZE: usize = 328;
pub(crate) const SIGNAL_SIZE: usize = 24;
pub(crate) const REPLY_SIZE: usize = 24;

/// `enum hx_request_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Run = 1,
    Status,
    Stop,
    Signal,
    StatusJson,
    Warm,
}

/// `enum hx_reply_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyKind {
    Cold = 1,
    Starting,
    Exited,
    Signaled,
    Text,
    Stopped,
}

/// The fixed part of `struct hx_run`, without its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub argc: usize,
    pub envc: usize,
    pub fd_count: usize,
    pub io_priority: u32,
    pub personality: u32,
    pub securebits: u32,
    pub blocked: u64,
    pub directory: Place,
    pub limits: [(u64, u64); LIMITS],
}

/// Returns the kind of a message; `None` if its magic, version or length is wrong.
pub(crate) fn kind(message: &[u8]) -> Option<Kind> {
    if message.len() < HEAD_SIZE || word(message, 0) != MAGIC || word(message, 4) != VERSION {
        return None;
    }
    if word(message, 8) as usize != message.len() {
        return None;
    }
    let kinds = [Kind::Run, Kind::Status, Kind::Stop, Kind::Signal, Kind::StatusJson, Kind::Warm];
    kinds.into_iter().find(|k| *k as u32 == word(message, 12))
}

impl Run {
    /// Decodes the fixed part.
    pub(crate) fn decode(message: &[u8]) -> Option<Run> {
        if message.len() < RUN_SIZE {
            return None;
        }
        Some(Run {
            argc: word(message, 16) as usize,
            envc: word(message, 20) as usize,
            fd_count: word(message, 24) as usize,
            io_priority: word(message, 28),
            personality: word(message, 32),
            securebits: word(message, 36),
            blocked: long(message, 40),
            directory: Place {
                device: long(message, 48),
                inode: long(message, 56),
                mount: long(message, 64),
            },
            limits: std::array::from_fn(|i| (long(message, 72 + 16 * i), long(message, 80 + 16 * i))),
        })
    }
}

/// What a signal is to do besides.
pub(crate) const ENDS_ALL: u32 = 1;
pub(crate) const STOPS_NOBODY: u32 = 2;

/// Returns the number in a signal message.
pub(crate) fn signal(message: &[u8]) -> Option<i32> {
    let number = (message.len() == SIGNAL_SIZE).then(|| word(message, 16) as i32)?;
    (1..=64).contains(&number).then_some(number)
}

/// Returns the flags of a signal message.
pub(crate) fn flags(message: &[u8]) -> u32 {
    if message.len() == SIGNAL_SIZE { word(message, 20) } else { 0 }
}

/// Encodes a user's request, followed by a text.
pub(crate) fn question(kind: Kind, text: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEAD_SIZE];
    put(&mut bytes, &[MAGIC, VERSION, (HEAD_SIZE + text.len()) as u32, kind as u32]);
    bytes.extend_from_slice(text);
    bytes
}

/// Encodes the fixed part of a reply, which `text` follows.
pub(crate) fn reply(kind: ReplyKind, value: i32, text: &str) -> [u8; REPLY_SIZE] {
    let mut bytes = [0; REPLY_SIZE];
    let length = (REPLY_SIZE + text.len()) as u32;
    put(&mut bytes, &[MAGIC, VERSION, length, kind as u32, value as u32, 0]);
    bytes
}

/// Encodes that the job has stopped by `signal`, when the client had passed on `continued` SIGCONTs.
pub(crate) fn stopped(signal: i32, continued: u32) -> [u8; REPLY_SIZE] {
    let mut bytes = reply(ReplyKind::Stopped, signal, "");
    bytes[20..].copy_from_slice(&continued.to_ne_bytes());
    bytes
}

fn put(bytes: &mut [u8], words: &[u32]) {
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles the header and prints the values that this file repeats.
    #[test]
    fn header_and_wire_agree() {
        let header = concat!(env!("CARGO_MANIFEST_DIR"), "/client/wire.h");
        let dir = tempfile::tempdir().unwrap();
        let (source, binary) = (dir.path().join("wire.c"), dir.path().join("wire"));
        let expected = [
            ("HX_MAGIC", MAGIC as usize),
            ("HX_VERSION", VERSION as usize),
            ("HX_MESSAGE_MAX", MESSAGE_MAX),
            ("HX_FDS_MAX", FDS_MAX),
            ("HX_LIMITS", LIMITS),
            ("sizeof(struct hx_head)", HEAD_SIZE),
            ("sizeof(struct hx_run)", RUN_SIZE),
            ("sizeof(struct hx_signal)", SIGNAL_SIZE),
            ("sizeof(struct hx_reply)", REPLY_SIZE),
            ("offsetof(struct hx_head, kind)", 12),
            ("offsetof(struct hx_run, argc)", 16),
            ("offsetof(struct hx_run, envc)", 20),
            ("offsetof(struct hx_run, fd_count)", 24),
            ("offsetof(struct hx_run, io_priority)", 28),
            ("offsetof(struct hx_run, personality)", 32),
            ("offsetof(struct hx_run, securebits)", 36),
            ("offsetof(struct hx_run, blocked)", 40),
            ("offsetof(struct hx_run, directory_device)", 48),
            ("offsetof(struct hx_run, directory_inode)", 56),
            ("offsetof(struct hx_run, directory_mount)", 64),
            ("offsetof(struct hx_run, limits)", 72),
            ("offsetof(struct hx_signal, signal)", 16),
            ("offsetof(struct hx_signal, flags)", 20),
            ("HX_ENDS_ALL", ENDS_ALL as usize),
            ("HX_STOPS_NOBODY", STOPS_NOBODY as usize),
            ("offsetof(struct hx_reply, value)", 16),
            ("offsetof(struct hx_reply, continued)", 20),
            ("HX_SIGNAL", Kind::Signal as usize),
            ("HX_WARM", Kind::Warm as usize),
            ("HX_TEXT", ReplyKind::Text as usize),
            ("HX_STOPPED", ReplyKind::Stopped as usize),
        ];
        let body: String =
            expected.iter().map(|(what, _)| format!("printf(\"%ld\\n\", (long)({what}));")).collect();
        let body = format!("{body}puts(HX_SOCKET);");
        let head = format!("#include <stddef.h>\n#include <stdio.h>\n#include \"{header}\"\n");
        std::fs::write(&source, format!("{head}int main(void){{{body}}}")).unwrap();
        let run = |command: &mut std::process::Command| command.output().unwrap();
        assert!(run(std::process::Command::new("cc").arg("-o").args([&binary, &source])).status.success());
        let printed = String::from_utf8(run(&mut std::process::Command::new(&binary)).stdout).unwrap();
        let mut lines = printed.lines();
        for ((what, value), line) in expected.iter().zip(lines.by_ref()) {
            assert_eq!(line, value.to_string(), "{what}");
        }
        assert_eq!(lines.next(), Some(SOCKET));
    }

    #[test]
    fn messages_of_other_versions_and_lengths_are_refused() {
        let message = question(Kind::Status, b"");
        assert_eq!(kind(&message), Some(Kind::Status));
        assert_eq!(kind(&message[..12]), None);
        for (at, wrong) in [(0, 0), (4, 9), (8, 17), (12, 99)] {
            let mut message = message.clone();
            message[at] = wrong;
            assert_eq!(kind(&message), None, "byte {at}");
        }
        assert_eq!(Run::decode(&message), None);
        assert_eq!(signal(&[0; SIGNAL_SIZE]), None);
    }
}
