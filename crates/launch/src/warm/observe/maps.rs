//! The mappings of a traced process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::run::PAGE;

/// One line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub from: u64,
    pub to: u64,
    /// Permissions, as in "rw-p".
    pub access: [u8; 4],
    /// Offset in the file.
    pub offset: u64,
    pub inode: u64,
    pub path: String,
}

impl std::fmt::Display for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let access = String::from_utf8_lossy(&self.access);
        write!(f, "{:x}-{:x} {access} {:x} {}", self.from, self.to, self.offset, self.path)
    }
}

pub(super) fn of(pid: i32) -> io::Result<Vec<Mapping>> {
    let text = std::fs::read(format!("/proc/{pid}/maps"))?;
    let text = String::from_utf8_lossy(&text);
    text.lines().map(|line| parse(line).ok_or_else(|| io::ErrorKind::InvalidData.into())).collect()
}

/// Which pages of a process are its own: it, or its tracer, has written to them. In a private mapping, the others have what their file
/// has there, or zeros.
#[derive(Debug)]
pub(super) struct Pages(File);

impl Pages {
    pub(super) fn of(pid: i32) -> io::Result<Pages> {
        File::open(format!("/proc/{pid}/pagemap")).map(Pages)
    }

    /// Returns one answer for each page from one address to another.
    pub(super) fn are_own(&self, from: u64, to: u64) -> io::Result<Vec<bool>> {
        let pages = from / PAGE..to.div_ceil(PAGE);
        let mut entries = vec![0; (pages.end - pages.start) as usize * size_of::<u64>()];
        self.0.read_exact_at(&mut entries, pages.start * size_of::<u64>() as u64)?;
        let entries = entries.chunks_exact(size_of::<u64>());
        Ok(entries.map(|entry| is_own(u64::from_ne_bytes(entry.try_into().expect("eight bytes")))).collect())
    }
}

/// By Linux's Documentation/admin-guide/mm/pagemap.rst.
fn is_own(entry: u64) -> bool {
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const FILES_OR_SHARED: u64 = 1 << 61;
    entry & (PRESENT | SWAPPED) != 0 && entry & FILES_OR_SHARED == 0
}

pub(super) fn parse(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (from, to) = fields.next()?.split_once('-')?;
    let access = fields.next()?.as_bytes().try_into().ok()?;
    let offset = fields.next()?;
    let inode = fields.nth(1)?.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim_start().to_owned();
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping { from: number(from)?, to: number(to)?, access, offset: number(offset)?, inode, path })
}

/// Returns the owner of each mapping. The tail of an object's data has no name of its own.
pub(super) fn owners(maps: &[Mapping]) -> Vec<&str> {
    let mut owners: Vec<&str> = Vec::with_capacity(maps.len());
    for (at, mapping) in maps.iter().enumerate() {
        let continues = at > 0 && mapping.path.is_empty() && maps[at - 1].to == mapping.from;
        owners.push(if continues { owners[at - 1] } else { &mapping.path });
    }
    owners
}

/// Returns whether this file is the loader, or the libc beside it. Another file may have such a name.
pub(super) fn is_libc(path: &str, loader: &str) -> bool {
    let (Some((place, name)), Some((home, _))) = (path.rsplit_once('/'), loader.rsplit_once('/')) else {
        return false;
    };
    let is_version = |version: &str| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let old = name.strip_prefix("libc-").and_then(|name| name.strip_suffix(".so"));
    path == loader || (place == home && (name == "libc.so.6" || old.is_some_and(is_version)))
}

/// Returns whether this file is the loader's libpthread, a library of its own until glibc 2.33.
pub(super) fn is_libpthread(path: &str, loader: &str) -> bool {
    let (Some((place, name)), Some((home, _))) = (path.rsplit_once('/'), loader.rsplit_once('/')) else {
        return false;
    };
    place == home && (name.starts_with("libpthread.so.") || name.starts_with("libpthread-2."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nameless_tail_belongs_to_what_it_follows() {
        let line = |range: &str, path: &str| {
            parse(&format!("{range} rw-p 00001000 fe:00 42                         {path}")).unwrap()
        };
        let maps = [line("1000-3000", "/lib/libc.so.6"), line("3000-4000", ""), line("6000-7000", "")];
        assert_eq!((maps[0].from, maps[0].to, maps[0].inode), (0x1000, 0x3000, 42));
        assert_eq!(owners(&maps), ["/lib/libc.so.6", "/lib/libc.so.6", ""]);
        let loader = "/lib/ld-linux-x86-64.so.2";
        for libc in [loader, "/lib/libc.so.6", "/lib/libc-2.31.so"] {
            assert!(is_libc(libc, loader), "{libc}");
        }
        for other in [
            "/lib/libcap.so.2",
            "",
            "/tool/libc.so.6",
            "/lib/libc.so.mine",
            "/lib/libc-count.so",
            "/tool/ld-new",
        ] {
            assert!(!is_libc(other, loader), "{other}");
        }
    }

    #[test]
    fn pages_that_were_written_to_are_own() {
        let pages = Pages::of(std::process::id() as i32).unwrap();
        let is_own = |at: u64| pages.are_own(at & !(PAGE - 1), at + 1).unwrap();
        let written = vec![1_u8; 64];
        assert_eq!(is_own(std::hint::black_box(&written).as_ptr() as u64), [true]);
        assert_eq!(is_own(parse as *const () as u64), [false], "code of a file");
        assert_eq!(is_own(0), [false], "nothing is mapped");
        let around = pages.are_own(0, 3 * PAGE - 1).unwrap();
        assert_eq!(around.len(), 3);
    }
}
