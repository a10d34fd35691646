//! What a traced process has mapped.

use std::io;

/// One line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub from: u64,
    pub to: u64,
    /// As in "rw-p".
    pub access: [u8; 4],
    /// Where in the file.
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

/// To whom each mapping belongs: the tail of an object's data has no name of its own.
pub(super) fn owners(maps: &[Mapping]) -> Vec<&str> {
    let mut owners: Vec<&str> = Vec::with_capacity(maps.len());
    for (at, mapping) in maps.iter().enumerate() {
        let continues = at > 0 && mapping.path.is_empty() && maps[at - 1].to == mapping.from;
        owners.push(if continues { owners[at - 1] } else { &mapping.path });
    }
    owners
}

/// Whether this is libc or the loader.
#[cfg(target_arch = "x86_64")]
pub(super) fn is_libc(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.starts_with("libc.so.") || name.starts_with("libc-2.") || name.starts_with("ld-")
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
        assert!(is_libc("/lib/libc.so.6") && is_libc("/lib64/ld-linux-x86-64.so.2"));
        assert!(!is_libc("/lib/libcap.so.2") && !is_libc(""));
    }
}
