//! Requests of a user to a server: report the status, prepare warm tools, end.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::socket_dir::SocketDir;
use crate::wire::{self, Kind};

/// The answer of a server.
#[derive(Debug)]
pub enum Answer {
    /// No server runs.
    None,
    /// The text of its replies.
    Text(String),
}

/// Asks the server for its status, as text for people or as JSON.
pub fn status(socket_dir: &SocketDir, json: bool) -> io::Result<Answer> {
    ask(socket_dir, if json { Kind::StatusJson } else { Kind::Status }, b"", |_| ())
}

/// Asks the server to start these programs warm from their next start on.
pub(crate) fn warm(socket_dir: &SocketDir, programs: &[PathBuf]) -> io::Result<Answer> {
    let paths: Vec<u8> =
        programs.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
    ask(socket_dir, Kind::Warm, &paths, |_| ())
}

/// Asks the server to end, and waits until it has. Passes each message of the server to `said`.
pub fn stop(socket_dir: &SocketDir, said: impl FnMut(&str)) -> io::Result<Answer> {
    ask(socket_dir, Kind::Stop, b"", said)
}

fn ask(socket_dir: &SocketDir, kind: Kind, text: &[u8], mut said: impl FnMut(&str)) -> io::Result<Answer> {
    use rustix::io::Errno;
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    match rustix::net::connect(&socket, &socket_dir.address()?) {
        Err(Errno::NOENT | Errno::CONNREFUSED) => return Ok(Answer::None),
        other => other?,
    }
    rustix::net::send(&socket, &wire::question(kind, text), SendFlags::NOSIGNAL)?;
    let mut text = String::new();
    let mut buffer = vec![0; wire::MESSAGE_MAX];
    loop {
        match rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((0, _)) | Err(Errno::CONNRESET) => return Ok(Answer::Text(text)),
            Ok((length, _)) => {
                let message =
                    String::from_utf8_lossy(buffer[..length].get(wire::REPLY_SIZE..).unwrap_or_default());
                said(&message);
                text.push_str(&message);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
