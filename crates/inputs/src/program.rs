//! The programs that the kernel opens by itself when one is executed, so that no system call shows them.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::handlers::Handlers;

/// What a file that is executed leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Leads {
    /// The loader of an ELF program, or the interpreter of a script.
    To(OsString),
    /// Nothing else: a static program.
    Nowhere,
    /// It is not known.
    Unknown,
}

/// Bytes that the kernel looks at.
const HEAD: usize = 256;
const PT_INTERP: u32 = 3;
/// The architecture of programs that the kernel itself can run. Others may have a handler, which a container does not see.
const EM_X86_64: u16 = 62;

/// Returns what the kernel opens besides this file, which is executed by this name.
pub(crate) fn leads(path: &Path, name: &Path, handlers: &Handlers) -> Leads {
    let Ok(file) = File::open(path) else { return Leads::Unknown };
    let mut head = [0; HEAD];
    let Ok(read) = file.read_at(&mut head, 0) else { return Leads::Unknown };
    match &head[..read] {
        head if handlers.take([path, name], head) => Leads::Unknown,
        [b'#', b'!', rest @ ..] => interpreter(rest),
        [0x7f, b'E', b'L', b'F', 2, 1, ..] if read >= 64 => loader(&file, &head).unwrap_or(Leads::Unknown),
        // Text without `#!` as well: a shell runs it by itself, unless a handler takes it.
        _ => Leads::Unknown,
    }
}

fn interpreter(line: &[u8]) -> Leads {
    let end = line.iter().position(|&byte| byte == b'\n' || byte == 0);
    // The kernel does not go beyond a NUL for the end of the line.
    let Some(end) = end.filter(|&end| line[end] == b'\n') else { return Leads::Unknown };
    // Not at a carriage return, which is a part of the name.
    let mut words = line[..end].split(|byte| matches!(byte, b' ' | b'\t'));
    words.find(|word| !word.is_empty()).map_or(Leads::Unknown, absolute)
}

/// A relative path begins in the directory of the process.
fn absolute(path: &[u8]) -> Leads {
    if path.starts_with(b"/") { Leads::To(OsString::from_vec(path.to_vec())) } else { Leads::Unknown }
}

/// Reads PT_INTERP of a 64-bit little-endian ELF file.
fn loader(file: &File, head: &[u8; HEAD]) -> Option<Leads> {
    let half = |at: usize, from: &[u8]| Some(u16::from_le_bytes(from.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize, from: &[u8]| Some(u32::from_le_bytes(from.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize, from: &[u8]| Some(u64::from_le_bytes(from.get(at..at + 8)?.try_into().ok()?));
    if half(18, head)? != EM_X86_64 {
        return None;
    }
    let (offset, size, count) = (long(32, head)?, half(54, head)?, half(56, head)?);
    for number in 0..u64::from(count) {
        let mut header = [0; 56];
        file.read_exact_at(&mut header, offset + number * u64::from(size)).ok()?;
        if word(0, &header)? == PT_INTERP {
            let mut path = vec![0; usize::try_from(long(32, &header)?).ok().filter(|&size| size < 4096)?];
            file.read_exact_at(&mut path, long(8, &header)?).ok()?;
            let end = path.iter().position(|&byte| byte == 0)?;
            return Some(absolute(&path[..end]));
        }
    }
    Some(Leads::Nowhere)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn leads_of(file: &Path) -> Leads {
        leads(file, file, &Handlers::default())
    }

    #[test]
    fn scripts_and_programs_lead_to_what_runs_them() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        let to = |path: &[u8]| Leads::To(OsString::from_vec(path.to_vec()));
        for (text, expected) in [
            (&b"#! /bin/sh -e\n"[..], to(b"/bin/sh")),
            (b"#!/bin/sh\r\n", to(b"/bin/sh\r")),
            (b"#!/bin/\xff\t-e\n", to(b"/bin/\xff")),
            (b"#!/bin/s\0h\n", Leads::Unknown),
            (b"#!sh\n", Leads::Unknown),
            (b"#!/bin/sh", Leads::Unknown),
            (b"true\n", Leads::Unknown),
            (b"\0\0", Leads::Unknown),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(leads_of(&file), expected, "{text:?}");
        }
    }

    #[test]
    fn only_an_absolute_loader_of_this_architecture_is_followed() {
        let Leads::To(loader) = leads_of(Path::new("/bin/sh")) else { panic!("/bin/sh has no loader") };
        assert!(loader.to_string_lossy().contains("ld-linux"));
        let program = std::fs::read("/bin/sh").unwrap();
        let at = program.windows(loader.len()).position(|part| part == loader.as_bytes()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("program");
        for (at, byte) in [(at, b'l'), (18, 183)] {
            let mut changed = program.clone();
            changed[at] = byte;
            std::fs::write(&file, changed).unwrap();
            assert_eq!(leads_of(&file), Leads::Unknown, "{at}");
        }
    }
}
