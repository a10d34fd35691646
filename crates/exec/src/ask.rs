//! What a user asks a server: its status, and to end.

use std::io;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::place::Place;
use crate::wire::{self, Kind};

/// What came of a question.
#[derive(Debug)]
pub enum Answer {
    /// No server runs.
    None,
    /// What it said.
    Text(String),
}

/// Asks the server for its status, for people or as JSON.
pub fn status(place: &Place, json: bool) -> io::Result<Answer> {
    ask(place, if json { Kind::StatusJson } else { Kind::Status }, |_| ())
}

/// Asks the server to end, and waits until it has. What it says meanwhile is given to `said`.
pub fn stop(place: &Place, said: impl FnMut(&str)) -> io::Result<Answer> {
    ask(place, Kind::Stop, said)
}

fn ask(place: &Place, kind: Kind, mut said: impl FnMut(&str)) -> io::Result<Answer> {
    use rustix::io::Errno;
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    match rustix::net::connect(&socket, &place.address()?) {
        Err(Errno::NOENT | Errno::CONNREFUSED) => return Ok(Answer::None),
        other => other?,
    }
    rustix::net::send(&socket, &wire::question(kind), SendFlags::NOSIGNAL)?;
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
