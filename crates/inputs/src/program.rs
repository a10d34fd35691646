//! The programs that the kernel opens by itself when one is executed, so that no system call shows them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What a file that is executed leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Leads {
    /// The loader of an ELF program, or the interpreter of a script.
    To(String),
    /// Nothing else: a static program, or a file that the kernel does not execute.
    Nowhere,
    /// It is not known.
    Unknown,
}

/// Bytes that the kernel looks at.
const HEAD: usize = 256;
const PT_INTERP: u32 = 3;

/// Returns what the kernel opens besides this file.
pub(crate) fn leads(path: &Path) -> Leads {
    let Ok(file) = File::open(path) else { return Leads::Unknown };
    let mut head = [0; HEAD];
    let Ok(read) = file.read_at(&mut head, 0) else { return Leads::Unknown };
    match &head[..read] {
        [b'#', b'!', rest @ ..] => interpreter(rest),
        [0x7f, b'E', b'L', b'F', 2, 1, ..] if read >= 64 => loader(&file, &head).unwrap_or(Leads::Unknown),
        // An empty file, or text without `#!`: the kernel refuses it, and a shell runs it by itself.
        head if head.iter().all(|&byte| byte != 0 && byte != 0x7f) => Leads::Nowhere,
        _ => Leads::Unknown,
    }
}

fn interpreter(line: &[u8]) -> Leads {
    let end = line.iter().position(|&byte| byte == b'\n');
    let Some(end) = end else { return Leads::Unknown };
    let words = String::from_utf8_lossy(&line[..end]).into_owned();
    match words.split([' ', '\t', '\r']).find(|word| !word.is_empty()) {
        Some(path) if path.starts_with('/') => Leads::To(path.to_owned()),
        _ => Leads::Unknown,
    }
}

/// Reads PT_INTERP of a 64-bit little-endian ELF file.
fn loader(file: &File, head: &[u8; HEAD]) -> Option<Leads> {
    let half = |at: usize, from: &[u8]| Some(u16::from_le_bytes(from.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize, from: &[u8]| Some(u32::from_le_bytes(from.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize, from: &[u8]| Some(u64::from_le_bytes(from.get(at..at + 8)?.try_into().ok()?));
    let (offset, size, count) = (long(32, head)?, half(54, head)?, half(56, head)?);
    for number in 0..u64::from(count) {
        let mut header = [0; 56];
        file.read_exact_at(&mut header, offset + number * u64::from(size)).ok()?;
        if word(0, &header)? == PT_INTERP {
            let mut path = vec![0; usize::try_from(long(32, &header)?).ok().filter(|&size| size < 4096)?];
            file.read_exact_at(&mut path, long(8, &header)?).ok()?;
            let end = path.iter().position(|&byte| byte == 0)?;
            return String::from_utf8(path[..end].to_vec()).ok().map(Leads::To);
        }
    }
    Some(Leads::Nowhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_programs_lead_to_what_runs_them() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        for (text, expected) in [
            ("#! /bin/sh -e\n", Leads::To("/bin/sh".into())),
            ("#!sh\n", Leads::Unknown),
            ("#!/bin/sh", Leads::Unknown),
            ("true\n", Leads::Nowhere),
            ("\0\0", Leads::Unknown),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(leads(&file), expected, "{text:?}");
        }
        assert!(matches!(leads(Path::new("/bin/sh")), Leads::To(loader) if loader.contains("ld-linux")));
    }
}
