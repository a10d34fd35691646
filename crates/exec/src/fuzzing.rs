//! Entry points for fuzz/ to parsers that are otherwise private.

use std::os::fd::OwnedFd;

use hotstart_launch::ProcessGroup;

use crate::request::Request;
use crate::wire::{self, FDS_MAX, Kind, Run};

/// Decodes a client's message, and a request as the server does. `descriptor` supplies the descriptors that come with it.
pub fn client_message(message: &[u8], descriptor: impl Fn() -> OwnedFd) {
    match wire::kind(message) {
        Some(Kind::Run) => {}
        Some(Kind::Signal) => {
            let _ = wire::signal(message);
            return;
        }
        _ => return,
    }
    let Some(run) = Run::decode(message).filter(|run| run.fd_count <= FDS_MAX) else { return };
    let fds = (0..run.fd_count).map(|_| descriptor()).collect();
    if let Some(mut request) = Request::decode(message, fds) {
        request.leave_out_unmentioned();
        drop(request.spec(Some(0o22), Vec::new(), None, ProcessGroup::New));
    }
}
