//! Requests that are started cold whatever the tool, because a warm start could be told from a cold one.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::LazyLock;

use crate::spec::{Limit, Resource};
use crate::{Reason, Spec};

use super::wire;

/// The file systems whose files do not depend on the process that reads them. The gate uses the same list.
const FILE_SYSTEMS: &str = include_str!("../../runtime/gate/file_systems.h");
/// The file system of sockets without a name (`SOCKFS_MAGIC`).
const SOCKETS: u64 = 0x534f_434b;
/// FUSE (`FUSE_SUPER_MAGIC`). In LXC containers it provides files of `/proc` (lxcfs).
const FUSE: u64 = 0x6573_5546;
/// Under a lower limit on open files, the loader or a constructor may run out of descriptors. A zygote loads under the runner's limit, so
/// such a request is cold.
pub(super) const OPEN_FILES: u64 = 256;
/// More pointers than the auxiliary vector and the ends of the arrays take.
const AUXILIARY: usize = 128;
/// The length of an argument that is as long as all strings of a request can be (`HS_MESSAGE_MAX`), in bytes: whole pages, and below
/// the kernel's limit of 128 KiB (`MAX_ARG_STRLEN`).
pub(super) const LONGEST: usize = 120 * 1024;

/// How much of its stack a request takes for arguments and environment. It is served by a zygote that was given a little more, so that all
/// lies where it would in a fresh process: above that is the end of the stack, some kilobytes further (`runtime/reset/strings.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// As nearly all commands of tests.
    Usual,
    Large,
    /// As large as a request can be.
    Largest,
}

impl Size {
    pub(super) fn of(spec: &Spec<'_>) -> Size {
        let pointers = spec.argv.len() + spec.env.count();
        let strings: usize = spec.argv.iter().map(|argument| argument.len() + 1).sum();
        let strings = strings + spec.env.blob().len();
        let has_room = |size: &Size| strings <= size.strings() && pointers + AUXILIARY <= size.arguments();
        [Size::Usual, Size::Large].into_iter().find(has_room).unwrap_or(Size::Largest)
    }

    /// Returns the number of arguments of such a zygote. No register has it by chance (`runtime/fork/entry.c`).
    pub(super) const fn arguments(self) -> usize {
        match self {
            Size::Usual => 251,
            Size::Large => 1021,
            Size::Largest => wire::ROOM,
        }
    }

    /// Returns how many bytes of strings have room.
    const fn strings(self) -> usize {
        match self {
            Size::Usual => 4 << 10,
            Size::Large => 16 << 10,
            Size::Largest => LONGEST,
        }
    }

    /// Returns the length of the last argument of a zygote, whose other arguments and environment have `others` bytes.
    pub(super) fn filling(self, others: usize) -> usize {
        self.strings().saturating_sub(others)
    }
}

/// Returns the reason for which this request is started cold, if any.
pub(super) fn refuses(spec: &Spec<'_>) -> Option<Reason> {
    let is_low = |limit: &Limit| {
        limit.resource == Resource::OpenFiles && limit.soft.is_some_and(|soft| soft < OPEN_FILES)
    };
    if spec.limits.iter().any(is_low) {
        return Some(Reason::Limits);
    }
    // Behind a zygote's arrays lies the kernel's auxiliary vector, and the request's has to come before that (`runtime/reset/strings.c`).
    if spec.argv.len() + spec.env.count() + AUXILIARY > wire::ROOM {
        return Some(Reason::LargeRequest);
    }
    // A zygote does not begin with a mask, and the runtime relies on signals of its own.
    if crate::sys::signal::is_inherited() {
        return Some(Reason::Signals);
    }
    let is_ordinary = |fd: BorrowedFd<'_>| {
        let kind = rustix::fs::fstatfs(fd).map_or(0, |found| found.f_type as u64);
        kind == SOCKETS || is_known(kind, || rustix::fs::fstat(fd).ok().map(|found| found.st_dev))
    };
    let mut given = spec.stdio.iter().copied().chain(spec.extra_fds.iter().map(|(_, fd)| fd.as_fd()));
    let kind = rustix::fs::statfs(&*spec.cwd).map_or(0, |found| found.f_type as u64);
    let device = || rustix::fs::stat(&*spec.cwd).ok().map(|found| found.st_dev);
    let is_all = is_known(kind, device) && given.all(is_ordinary);
    (!is_all).then_some(Reason::KernelFiles)
}

/// Returns whether the files of this file system do not depend on the process that reads them. For FUSE, that is so unless it provides
/// files of `/proc`; `device` returns its device number.
fn is_known(kind: u64, device: impl FnOnce() -> Option<u64>) -> bool {
    static KNOWN: LazyLock<Vec<u64>> = LazyLock::new(|| listed().collect());
    const PLACES: [&str; 5] = ["loadavg", "stat", "uptime", "meminfo", "cpuinfo"];
    let stands_in = |device: u64| {
        let has = |name: &&str| {
            rustix::fs::stat(format!("/proc/{name}").as_str()).is_ok_and(|found| found.st_dev == device)
        };
        PLACES.iter().any(has)
    };
    KNOWN.contains(&kind) && (kind != FUSE || device().is_some_and(|device| !stands_in(device)))
}

fn listed() -> impl Iterator<Item = u64> {
    FILE_SYSTEMS.lines().filter_map(|line| {
        let (number, _) = line.strip_prefix("FILE_SYSTEM(0x")?.split_once(')')?;
        u64::from_str_radix(number, 16).ok()
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::EnvBlock;

    #[test]
    fn the_list_is_read_as_the_compiler_reads_it() {
        assert_eq!(listed().count(), FILE_SYSTEMS.matches("\nFILE_SYSTEM(").count());
        assert!(listed().any(|number| number == 0xef53) && listed().any(|number| number == 0x0102_1994));
    }

    #[test]
    fn a_request_has_the_smallest_size_that_has_room_for_it() {
        let null = std::fs::File::open("/dev/null").unwrap();
        let size = |variables: usize, length: usize| {
            let text = format!("A={}\0", "x".repeat(length)).repeat(variables);
            let env = EnvBlock::from_strings(text.as_bytes()).unwrap();
            Size::of(&Spec::plain(Path::new("/bin/tool"), "tool".into(), env, &null))
        };
        assert_eq!(
            [size(1, 4000), size(1, 4096), size(1, 17_000)],
            [Size::Usual, Size::Large, Size::Largest]
        );
        assert_eq!([size(122, 0), size(123, 0), size(893, 0)], [Size::Usual, Size::Large, Size::Largest]);
    }

    #[test]
    fn a_zygote_has_as_many_bytes_of_strings_as_its_requests_at_most() {
        for size in [Size::Usual, Size::Large, Size::Largest] {
            assert_eq!(size.filling(1000) + 1000, size.strings());
            assert_eq!(size.filling(LONGEST), 0);
        }
    }

    #[test]
    fn files_of_the_kernels_and_small_limits_are_refused() {
        let null = std::fs::File::open("/dev/null").unwrap();
        let load = std::fs::File::open("/proc/loadavg").unwrap();
        let plain = |file| {
            Spec::plain(Path::new("/bin/tool"), "tool".into(), EnvBlock::from_strings(b"").unwrap(), file)
        };
        assert_eq!(refuses(&plain(&null)), None);
        assert_eq!(refuses(&plain(&load)), Some(Reason::KernelFiles));
        let there = Spec { cwd: Path::new("/proc/self").into(), ..plain(&null) };
        assert_eq!(refuses(&there), Some(Reason::KernelFiles));
        let limit = |soft| Limit { resource: Resource::OpenFiles, soft: Some(soft), hard: None };
        for (soft, expected) in [(OPEN_FILES, None), (OPEN_FILES - 1, Some(Reason::Limits))] {
            let limited = Spec { limits: vec![limit(soft)], ..plain(&null) };
            assert_eq!(refuses(&limited), expected);
        }
    }
}
