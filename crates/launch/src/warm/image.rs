//! The preload runtime, and what hides a preloaded allocator, as files that ld.so can open without there being paths to
//! them.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};

use super::policy::{Nested, NestedStarts};

/// What stops a tool before its `main`.
const RUNTIME: &[u8] = include_bytes!(env!("HOTSTART_RUNTIME"));
/// What takes an allocator out of LD_PRELOAD again.
pub(crate) const PRELOAD: &[u8] = include_bytes!(env!("HOTSTART_PRELOAD"));

/// What stands before the slot of `runtime/extra/nested.c`, and the slot's size with it.
const SLOT_MARK: &[u8] = b"hotstart-nested-client:\0";
const SLOT_SIZE: usize = 1024;
/// What stands last in the slot if the programs beside a tool go through the client, and not compilers and linkers.
const SIBLINGS: &[u8] = b"siblings";

/// A sealed memfd, or a nameless file where the kernel refuses executable memfds; `None` where neither is possible.
pub(crate) fn open(image: &[u8]) -> Option<OwnedFd> {
    sealed_memory(image).or_else(|| nameless_files().find_map(|file| fill(file, image)))
}

/// The runtime. Copies make their own starts by way of a client, where there is one.
pub(crate) fn open_runtime(nested: Option<&Nested>) -> Option<OwnedFd> {
    open(&with_client(nested))
}

/// A number of this build of the runtime.
pub(crate) fn build() -> u64 {
    let mut hasher = DefaultHasher::new();
    (RUNTIME, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    hasher.finish()
}

/// Paths that do not fit leave the slot empty: what tools start is cold then.
fn with_client(nested: Option<&Nested>) -> Cow<'static, [u8]> {
    let filled = || {
        let Nested { client, directory, starts } = nested?;
        let which: &[u8] = match starts {
            NestedStarts::Compilers => b"",
            NestedStarts::Of(_) => SIBLINGS,
        };
        let (client, directory) = (client.as_os_str().as_bytes(), directory.as_os_str().as_bytes());
        let text = [client, directory, which].join(&0);
        let mark = RUNTIME.windows(SLOT_MARK.len()).position(|window| window == SLOT_MARK)?;
        // The first byte of the slot ends the mark's name, the last one the text.
        let room = mark + SLOT_MARK.len()..mark + SLOT_SIZE - 1;
        let mut image = RUNTIME.to_vec();
        image.get_mut(room)?.get_mut(..text.len())?.copy_from_slice(&text);
        Some(image)
    };
    filled().map_or(RUNTIME.into(), Cow::from)
}

fn sealed_memory(image: &[u8]) -> Option<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 know no EXEC and refuse it; there it is not needed.
    let memory = rustix::fs::memfd_create("hotstart-runtime", flags | MemfdFlags::EXEC)
        .or_else(|error| match error {
            rustix::io::Errno::INVAL => rustix::fs::memfd_create("hotstart-runtime", flags),
            other => Err(other),
        })
        .ok()?;
    let memory = fill(memory, image)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&memory, seals).ok()?;
    Some(memory)
}

/// Files without a name vanish with their last descriptor, however the runner ends.
fn nameless_files() -> impl Iterator<Item = OwnedFd> {
    let named = ["XDG_RUNTIME_DIR", "TMPDIR"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    named.chain([PathBuf::from("/tmp"), PathBuf::from("/var/tmp")]).filter_map(|dir| {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        rustix::fs::open(&dir, flags, Mode::RUSR | Mode::WUSR | Mode::XUSR).ok()
    })
}

fn fill(file: OwnedFd, image: &[u8]) -> Option<OwnedFd> {
    let mut rest = image;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest).ok()?;
        rest = &rest[written..];
    }
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_takes_what_fits_and_stays_empty_otherwise() {
        let nested = |length, starts| {
            let directory = "d".repeat(length).into();
            Nested { client: "/proc/1/fd/7".into(), directory, starts }
        };
        let siblings = NestedStarts::Of(vec!["not".into()]);
        for (starts, which) in [(NestedStarts::Compilers, &b"\0"[..]), (siblings, b"siblings\0")] {
            let image = with_client(Some(&nested(3, starts)));
            let found = [SLOT_MARK, b"/proc/1/fd/7\0ddd\0", which].concat();
            assert!(image.windows(found.len()).any(|window| window == found));
            assert_eq!(image.len(), RUNTIME.len());
        }
        assert_eq!(with_client(Some(&nested(SLOT_SIZE, NestedStarts::Compilers))), RUNTIME);
        assert_eq!(with_client(None), RUNTIME);
    }
}
