//! Normalizes text as FileCheck does with both of its files: `\r\n` becomes `\n`, and each run of blanks and tabs
//! becomes one blank, unless `--strict-whitespace` keeps them.
//!
//! FileCheck gives a meaning to the remaining carriage returns and NUL bytes. They are rare, and undecided here.

use crate::{Certain, undecided};

/// Returns the text as FileCheck sees it.
pub(crate) fn canonical(text: &[u8], keeps_blanks: bool) -> Certain<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            0 => return undecided("a NUL byte"),
            b'\r' if text.get(at + 1) == Some(&b'\n') => {}
            b'\r' => return undecided("a carriage return within a line"),
            b' ' | b'\t' if !keeps_blanks => {
                out.push(b' ');
                while matches!(text.get(at + 1), Some(b' ' | b'\t')) {
                    at += 1;
                }
            }
            byte => out.push(byte),
        }
        at += 1;
    }
    Ok(out)
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
    }
}
