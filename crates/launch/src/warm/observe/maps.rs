//! The mappings of a traced process.

use std::collections::HashSet;
use std::io;

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

/// Returns the first addresses of the mappings that a process has written to.
pub(super) fn written(pid: i32) -> io::Result<HashSet<u64>> {
    let text = std::fs::read(format!("/proc/{pid}/smaps"))?;
    Ok(written_in(&String::from_utf8_lossy(&text)))
}

fn written_in(smaps: &str) -> HashSet<u64> {
    let (mut written, mut from) = (HashSet::new(), 0);
    for line in smaps.lines() {
        if let Some(mapping) = parse(line) {
            from = mapping.from;
        } else if line.strip_prefix("Private_Dirty:").is_some_and(|size| size.trim() != "0 kB") {
            written.insert(from);
        }
    }
    written
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
    let place = |path: &str| path.rsplit_once('/').map(|(place, name)| (place.to_owned(), name.to_owned()));
    let (Some((place, name)), Some((home, _))) = (place(path), place(loader)) else { return false };
    let is_version = |version: &str| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let old = name.strip_prefix("libc-").and_then(|name| name.strip_suffix(".so"));
    path == loader || (place == home && (name == "libc.so.6" || old.is_some_and(is_version)))
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
    fn what_was_written_is_told_by_the_kernel() {
        let smaps = "1000-2000 r--p 00000000 fe:00 42  /bin/tool
Size:                  4 kB
Private_Dirty:         0 kB
2000-3000 r--p 00001000 fe:00 42  /bin/tool
Private_Dirty:         4 kB
VmFlags: rd mr mw me ac
3000-4000 rw-p 00000000 00:00 0
Private_Dirty:         0 kB
";
        assert_eq!(written_in(smaps), HashSet::from([0x2000]));
    }
}
