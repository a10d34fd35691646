//! Finds directives in a test file.
//!
//! Files are bytes: only the text after a keyword must be UTF-8. Suites hold about a gigabyte of test files and
//! every byte is scanned, so the scan stops only at colons and at `END.`, and looks back from there.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::Path;

use memchr::{memchr, memchr_iter, memmem};
use rustix::io::Errno;

use crate::exception::Exception;

/// A keyword that lit knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// `RUN:`
    Run,
    /// `XFAIL:`
    Xfail,
    /// `REQUIRES:`
    Requires,
    /// `UNSUPPORTED:`
    Unsupported,
    /// `ALLOW_RETRIES:`
    AllowRetries,
    /// `END.`
    End,
    /// `DEFINE:`
    Define,
    /// `REDEFINE:`
    Redefine,
}

impl Keyword {
    /// Returns the keyword as files spell it.
    pub fn text(self) -> &'static str {
        match self {
            Keyword::Run => "RUN:",
            Keyword::Xfail => "XFAIL:",
            Keyword::Requires => "REQUIRES:",
            Keyword::Unsupported => "UNSUPPORTED:",
            Keyword::AllowRetries => "ALLOW_RETRIES:",
            Keyword::End => "END.",
            Keyword::Define => "DEFINE:",
            Keyword::Redefine => "REDEFINE:",
        }
    }

    /// Returns the keyword whose colon ends `text`.
    fn before_colon(text: &[u8]) -> Option<Keyword> {
        let candidates: &[Keyword] = match text.len().checked_sub(2).map(|at| text[at])? {
            b'N' => &[Keyword::Run],
            b'L' => &[Keyword::Xfail],
            b'S' => &[Keyword::Requires, Keyword::AllowRetries],
            b'D' => &[Keyword::Unsupported],
            b'E' => &[Keyword::Redefine, Keyword::Define],
            _ => return None,
        };
        candidates.iter().copied().find(|keyword| text.ends_with(keyword.text().as_bytes()))
    }
}

/// A directive's line.
#[derive(Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// Line number, from 1.
    pub line: usize,
    /// The directive's keyword.
    pub keyword: Keyword,
    /// The rest of the line.
    pub text: &'a str,
}

/// An iterator over the directives in a file. The first keyword on a line takes the rest of it.
pub struct Scanner<'a> {
    content: &'a [u8],
    /// Offset at which to continue; the beginning of a line after each find.
    at: usize,
    line: usize,
    counted: usize,
    next_end: Option<usize>,
    finder: memmem::Finder<'static>,
}

impl<'a> Scanner<'a> {
    /// Creates a scanner at the start of the file.
    pub fn new(content: &'a [u8]) -> Self {
        let finder = memmem::Finder::new("END.");
        let next_end = finder.find(content);
        Scanner { content, at: 0, line: 1, counted: 0, next_end, finder }
    }

    /// Returns the offset and kind of the next keyword.
    fn next_keyword(&mut self) -> Option<(usize, Keyword)> {
        if self.next_end.is_some_and(|end| end < self.at) {
            self.next_end = self.finder.find(&self.content[self.at..]).map(|found| self.at + found);
        }
        let mut from = self.at;
        let colon = loop {
            let limit = self.next_end.map_or(self.content.len(), |end| end + 4);
            let Some(found) = memchr(b':', self.content.get(from..limit)?) else { break None };
            let colon = from + found;
            // Text that was consumed before does not count again.
            if let Some(keyword) = Keyword::before_colon(&self.content[self.at..=colon]) {
                break Some((colon + 1 - keyword.text().len(), keyword));
            }
            from = colon + 1;
        };
        colon.or_else(|| self.next_end.map(|end| (end, Keyword::End)))
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = Result<Found<'a>, Exception>;

    fn next(&mut self) -> Option<Self::Item> {
        let (start, keyword) = self.next_keyword()?;
        self.line += memchr_iter(b'\n', &self.content[self.counted..start]).count();
        self.counted = start;
        let text = start + keyword.text().len();
        let end = memchr(b'\n', &self.content[text..]).map_or(self.content.len(), |found| text + found);
        self.at = (end + 1).min(self.content.len());
        let bytes = &self.content[text..end];
        let line = self.line;
        Some(match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Found { line, keyword, text: text.trim_end_matches('\r') }),
            Err(error) => Err(decode_error(bytes, &error)),
        })
    }
}

/// Returns the exception of Python's codec for a text that is not UTF-8.
fn decode_error(bytes: &[u8], error: &std::str::Utf8Error) -> Exception {
    let start = error.valid_up_to();
    let len = error.error_len().unwrap_or(bytes.len() - start);
    let reason = match bytes[start] {
        0x80..=0xc1 | 0xf5..=0xff => "invalid start byte",
        _ if error.error_len().is_none() => "unexpected end of data",
        _ => "invalid continuation byte",
    };
    let what = match len {
        1 => format!("byte 0x{:02x} in position {start}", bytes[start]),
        _ => format!("bytes in position {start}-{}", start + len - 1),
    };
    Exception::new("UnicodeDecodeError", format!("'utf-8' codec can't decode {what}: {reason}"))
}

/// Large enough for most tests of a compiler.
const AT_ONCE: usize = 64 << 10;
/// A buffer larger than this is not kept for the next file.
const KEEP: usize = 4 << 20;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Reads to the end. `read_to_end` first queries size and position; most tests need one read.
fn read_all(file: &File, buffer: &mut Vec<u8>) -> io::Result<()> {
    loop {
        buffer.reserve(AT_ONCE);
        match rustix::io::read(file, rustix::buffer::spare_capacity(buffer)) {
            Ok(0) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Calls `use_content` with a file's content.
pub fn with_content<T>(path: &Path, use_content: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        read_all(&File::open(path)?, buffer)?;
        let result = use_content(buffer);
        if buffer.capacity() > KEEP {
            *buffer = Vec::new();
        }
        Ok(result)
    })
}
