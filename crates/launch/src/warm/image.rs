//! The runtime and the library that hides a preloaded allocator, as files that ld.so can open although they have no paths.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};

use super::policy::Nested;

/// The runtime, which stops a tool before its `main`; empty where it does not know the processor.
const RUNTIME: &[u8] = include_bytes!(env!("HOTSTART_RUNTIME"));
/// The library that removes an allocator from LD_PRELOAD.
pub(crate) const PRELOAD: &[u8] = include_bytes!(env!("HOTSTART_PRELOAD"));

/// The mark before the slot of `runtime/extra/nested.c`, and the slot's size with the mark.
const SLOT_MARK: &[u8] = b"hotstart-nested-client:\0";
const SLOT_SIZE: usize = 1024;

/// Returns a sealed memfd, or a nameless file if the kernel refuses executable memfds; `None` if neither is possible.
pub(crate) fn open(image: &[u8]) -> Option<OwnedFd> {
    sealed_memory(image).or_else(|| nameless_files().find_map(|file| fill(file, image)))
}

/// Opens the runtime, if there is one. With `nested`, forks make their own starts through the client.
pub(crate) fn open_runtime(nested: Option<&Nested>) -> Option<OwnedFd> {
    if RUNTIME.is_empty() { None } else { open(&with_client(nested)) }
}

/// Returns a hash that identifies this build of the runtime.
pub(crate) fn build() -> u64 {
    let mut hasher = DefaultHasher::new();
    (RUNTIME, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    hasher.finish()
}

/// Returns the oldest glibc with which the runtime can be loaded; `None` where there is no runtime.
pub fn needed_glibc() -> Option<(u32, u32)> {
    let version = |name: &[u8]| {
        let (major, minor) = std::str::from_utf8(name.strip_prefix(b"GLIBC_")?).ok()?.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    };
    RUNTIME.split(|&byte| byte == 0).filter_map(version).max()
}

/// Writes the client's paths into the slot. If they do not fit, the slot stays empty, and tools start their children cold.
fn with_client(nested: Option<&Nested>) -> Cow<'static, [u8]> {
    let filled = || {
        let Nested { client, directory } = nested?;
        let (client, directory) = (client.as_os_str().as_bytes(), directory.as_os_str().as_bytes());
        let text = [client, directory].join(&0);
        let mark = RUNTIME.windows(SLOT_MARK.len()).position(|window| window == SLOT_MARK)?;
        // The slot's first byte ends the mark, its last one the text.
        let room = mark + SLOT_MARK.len()..mark + SLOT_SIZE - 1;
        let mut image = RUNTIME.to_vec();
        image.get_mut(room)?.get_mut(..text.len())?.copy_from_slice(&text);
        Some(image)
    };
    filled().map_or(RUNTIME.into(), Cow::from)
}

fn sealed_memory(image: &[u8]) -> Option<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know EXEC and refuse it. They do not need it.
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

/// Makes files without a name. They vanish with their last descriptor, however the runner ends.
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
    fn the_runtime_needs_a_glibc() {
        let needed = needed_glibc();
        assert!(needed.is_some_and(|needed| (2, 2) < needed && needed < (3, 0)), "{needed:?}");
    }

    #[test]
    fn the_slot_takes_what_fits_and_stays_empty_otherwise() {
        let nested = |length| Nested { client: "/proc/1/fd/7".into(), directory: "d".repeat(length).into() };
        let image = with_client(Some(&nested(3)));
        let found = [SLOT_MARK, b"/proc/1/fd/7\0ddd\0"].concat();
        assert!(image.windows(found.len()).any(|window| window == found));
        assert_eq!(image.len(), RUNTIME.len());
        assert_eq!(with_client(Some(&nested(SLOT_SIZE))), RUNTIME);
        assert_eq!(with_client(None), RUNTIME);
    }
}
