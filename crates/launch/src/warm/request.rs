//! A start request as a message. A zygote makes a fork for it; a persistent process runs it.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use super::{affinity, wire};
use crate::sys::channel;
use crate::{ProcessGroup, Reason, Spec};

/// The reason for which a request was not sent or not served.
#[derive(Debug)]
pub(crate) enum Failure {
    /// This request cannot be served; its receiver lives.
    Request(Reason),
    /// No persistent process can be made of this tool; it can be forked.
    NoWorker,
    /// Its receiver is gone.
    Died,
}

/// The parts of a request beside the process that the spec describes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'a> {
    pub pgid: i32,
    /// `HS_REQUEST_*`.
    pub flags: u32,
    /// The slot in which a fork's number is entered.
    pub slot: u32,
    /// The receiver, if it is to be bound to this processor.
    pub bind: Option<i32>,
    /// Descriptors that follow those of the process.
    pub own: &'a [RawFd],
    /// Addresses at which the tool keeps the number of arguments.
    pub counts: &'a [u64],
    /// Where a cold process has something on its stack (`observe/residue.rs`).
    pub residue: &'a [u64],
}

/// Sends `spec` as a request.
pub(crate) fn send(socket: &OwnedFd, spec: &Spec<'_>, asked: Asked<'_>) -> Result<(), Failure> {
    let own = asked.own;
    let fd_count = 3 + spec.extra_fds.len();
    let mut targets = [0u8; wire::FDS_MAX * 4];
    let mut fds: [RawFd; wire::FDS_MAX] = [0; wire::FDS_MAX];
    let given = spec.stdio.iter().enumerate().map(|(to, fd)| (to as i32, fd));
    for (index, (to, fd)) in given.chain(spec.extra_fds.iter().map(|(to, fd)| (*to, fd))).enumerate() {
        fds[index] = fd.as_raw_fd();
        targets[index * 4..index * 4 + 4].copy_from_slice(&to.to_ne_bytes());
    }
    fds[fd_count..fd_count + own.len()].copy_from_slice(own);
    let strings = argument_strings(spec).ok_or(Failure::Request(Reason::System))?;
    let limits = limit_bytes(spec);
    let words = asked.counts.iter().chain(asked.residue);
    let words: Vec<u8> = words.flat_map(|word| word.to_ne_bytes()).collect();
    let mut head = head(spec, asked, &strings, &limits);
    if head.length as usize > wire::MESSAGE_MAX {
        return Err(Failure::Request(Reason::LargeRequest));
    }
    // Last, when the request is certain to be sent: only the request frees a bound receiver.
    let bound = asked.bind.zip(affinity::here()).filter(|(pid, processor)| processor.bind(*pid));
    if let Some((_, processor)) = bound {
        head.flags |= processor.way_back.flags();
    }
    let targets = &targets[..fd_count * 4];
    let parts: [&[u8]; 6] = [&head.encode(), &limits, &words, targets, &strings, spec.env.blob()];
    channel::send(socket, &parts, &fds[..fd_count + own.len()]).map_err(|_| Failure::Died)
}

/// Returns the process group that `spec` asks for, in the form of a request.
pub(crate) fn group(spec: &Spec<'_>) -> i32 {
    match spec.process_group {
        ProcessGroup::Inherit => rustix::process::getpgrp().as_raw_nonzero().get(),
        ProcessGroup::New => 0,
        ProcessGroup::Join(pgid) => pgid,
    }
}

/// Returns the working directory and arguments, each ended by a NUL; `None` if one contains a NUL itself.
fn argument_strings(spec: &Spec<'_>) -> Option<Vec<u8>> {
    let mut strings = Vec::with_capacity(1024);
    let mut count = 0;
    for text in std::iter::once(spec.cwd.as_os_str()).chain(spec.argv.iter().map(|arg| arg.as_os_str())) {
        strings.extend_from_slice(text.as_bytes());
        strings.push(0);
        count += 1;
    }
    (strings.iter().filter(|&&b| b == 0).count() == count && count > 1).then_some(strings)
}

fn limit_bytes(spec: &Spec<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for limit in spec.limits.iter().filter(|limit| !limit.resource.is_of_zygote()) {
        let resource = limit.resource.number();
        bytes.extend_from_slice(&resource.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        for value in [limit.soft, limit.hard] {
            bytes.extend_from_slice(&value.unwrap_or(libc::RLIM_INFINITY).to_ne_bytes());
        }
    }
    bytes
}

fn head(spec: &Spec<'_>, asked: Asked<'_>, strings: &[u8], limits: &[u8]) -> wire::Request {
    let fd_count = 3 + spec.extra_fds.len();
    let fixed =
        wire::REQUEST_SIZE + limits.len() + (asked.counts.len() + asked.residue.len()) * 8 + fd_count * 4;
    let length = fixed + strings.len() + spec.env.blob().len();
    wire::Request {
        length: length as u32,
        argc: spec.argv.len() as u32,
        envc: spec.env.count() as u32,
        fd_count: fd_count as u32,
        limit_count: (limits.len() / wire::LIMIT_SIZE) as u32,
        pgid: asked.pgid,
        umask: spec.umask.unwrap_or(wire::UMASK_KEEP),
        runner: rustix::process::getpid().as_raw_nonzero().get(),
        flags: asked.flags,
        slot: asked.slot,
        count_count: asked.counts.len() as u32,
        residue_count: asked.residue.len() as u32,
    }
}
