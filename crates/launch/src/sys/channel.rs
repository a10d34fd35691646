//! A pair of connected sockets that keep message boundaries and carry descriptors.
//!
//! It uses `libc` and not `rustix`, since one send per process start should neither allocate nor copy the parts of the
//! message together.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Most descriptors in one message.
const FDS_MAX: usize = 32;
const CONTROL_BYTES: usize = 256;

/// Returns the two ends of a SOCK_SEQPACKET connection, closed on exec.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the pointer is valid for writes of two descriptors.
    let result = unsafe {
        libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, fds.as_mut_ptr())
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors are new and owned by nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Limits how long [`receive`] waits.
pub(crate) fn set_patience(socket: &OwnedFd, patience: Duration) -> io::Result<()> {
    let value = libc::timeval {
        tv_sec: patience.as_secs() as libc::time_t,
        tv_usec: patience.subsec_micros() as libc::suseconds_t,
    };
    // SAFETY: the option's value is a timeval, which lives during the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const value).cast(),
            size_of::<libc::timeval>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Space for control messages, aligned as they require.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Sends the parts as one message, with descriptors.
pub(crate) fn send(socket: &OwnedFd, parts: &[&[u8]], fds: &[RawFd]) -> io::Result<()> {
    assert!(parts.len() <= 8 && fds.len() <= FDS_MAX, "the protocol's maxima");
    let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 8];
    for (vector, part) in vectors.iter_mut().zip(parts) {
        *vector = libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
    }
    let mut control = Control([0; CONTROL_BYTES]);
    // SAFETY: an all-zero msghdr is a valid, empty one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = parts.len() as _;
    if !fds.is_empty() {
        let bytes = size_of_val(fds) as u32;
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: CMSG_SPACE is arithmetic only. 32 descriptors fit into the control space.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(bytes) } as _;
        // SAFETY: msg_control points to aligned space of msg_controllen bytes, so the first header and the data of
        // `bytes` bytes behind it lie within it.
        unsafe {
            let head = libc::CMSG_FIRSTHDR(&message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(bytes) as _;
            std::ptr::copy_nonoverlapping(fds.as_ptr().cast(), libc::CMSG_DATA(head), bytes as usize);
        }
    }
    loop {
        // SAFETY: the message's pointers are to live data that sendmsg only reads.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
        if sent >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Receives one message. Returns its length, or 0 at the end.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        // SAFETY: the pointer is valid for writes of the given length.
        let got = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        if got >= 0 {
            return Ok(got as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// The result of a receive within the socket's patience.
#[derive(Debug)]
pub(crate) enum Received {
    /// A message of this length.
    Message(usize),
    /// The other end is closed.
    End,
    /// Nothing yet.
    Nothing,
}

/// Like [`receive`], but distinguishes silence from the end.
pub(crate) fn receive_patiently(socket: &OwnedFd, buffer: &mut [u8]) -> Received {
    match receive(socket, buffer) {
        Ok(0) => Received::End,
        Ok(length) => Received::Message(length),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Received::Nothing,
        Err(_) => Received::End,
    }
}
