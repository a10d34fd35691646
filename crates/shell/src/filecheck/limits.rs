//! Limits on processes that the runner was started with, and that each FileCheck inherits.

use std::sync::OnceLock;

use rustix::process::{Resource, getrlimit};

/// Linux gives a process as much stack unless somebody says otherwise.
const STACK: u64 = 8 << 20;

/// More than a FileCheck opens.
const FILES: u64 = 64;

/// Returns whether a FileCheck has room: for a stack as usual, and without a limit on its memory, its time and its files. Under others it
/// may end where the matcher decides.
pub(super) fn are_usual() -> bool {
    static ARE_USUAL: OnceLock<bool> = OnceLock::new();
    *ARE_USUAL.get_or_init(|| {
        let soft = |resource| getrlimit(resource).current;
        let unlimited = [Resource::As, Resource::Data, Resource::Cpu, Resource::Fsize];
        unlimited.into_iter().all(|resource| soft(resource).is_none())
            && soft(Resource::Stack).is_none_or(|bytes| bytes >= STACK)
            && soft(Resource::Nofile).is_none_or(|files| files >= FILES)
    })
}
