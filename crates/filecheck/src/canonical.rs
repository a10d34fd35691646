//! Normalizes text as FileCheck does with both of its files: `\r\n` becomes `\n`, and each run of blanks and tabs
//! becomes one blank, unless `--strict-whitespace` keeps them.
//!
//! FileCheck gives a meaning to the remaining carriage returns and NUL bytes. They are rare, and undecided here.

use std::borrow::Cow;

use crate::{Certain, undecided};

/// Returns the text as FileCheck sees it.
pub(crate) fn canonical(text: &[u8], keeps_blanks: bool) -> Certain<Cow<'_, [u8]>> {
    if memchr::memchr(0, text).is_some() {
        return undecided("a NUL byte");
    }
    let is_plain =
        (keeps_blanks || memchr::memchr(b'\t', text).is_none()) && memchr::memchr(b'\r', text).is_none();
    if is_plain && (keeps_blanks || memchr::memmem::find(text, b"  ").is_none()) {
        return Ok(Cow::Borrowed(text));
    }
    match keeps_blanks {
        true => replaced(text, |byte| byte == b'\r'),
        false => replaced(text, |byte| matches!(byte, b'\r' | b' ' | b'\t')),
    }
}

/// Replaces the special bytes. The pieces between them are copied as a whole.
fn replaced<'t>(text: &[u8], is_special: impl Fn(u8) -> bool) -> Certain<Cow<'t, [u8]>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| is_special(byte)) {
        out.extend_from_slice(&rest[..at]);
        let special;
        (special, rest) = (rest[at], &rest[at + 1..]);
        if special != b'\r' {
            out.push(b' ');
            rest = &rest[rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()..];
        } else if rest.first() != Some(&b'\n') {
            return undecided("a carriage return within a line");
        }
    }
    out.extend_from_slice(rest);
    Ok(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_line_ends() {
        assert_eq!(canonical(b"a \t b\r\n\tc ", false).unwrap(), &b"a b\n c "[..]);
        assert_eq!(canonical(b"a \t b\r\n", true).unwrap(), &b"a \t b\n"[..]);
        assert!(canonical(b"a\rb", true).is_err());
        assert!(canonical(b"a\0", false).is_err());
        // What needs no change is not copied.
        assert!(matches!(canonical(b"a b\n", false), Ok(Cow::Borrowed(b"a b\n"))));
        assert!(matches!(canonical(b"a \tb\n", true), Ok(Cow::Borrowed(b"a \tb\n"))));
        assert_eq!(canonical(b"a\tb", false).unwrap(), &b"a b"[..]);
        assert_eq!(canonical(b"a\r\n  b", true).unwrap(), &b"a\n  b"[..]);
    }
}
