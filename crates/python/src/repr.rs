//! `repr` of `str` and `bytes`.

use std::fmt::Write;

use crate::text::is_printable;

/// `repr` of a `str`.
pub fn repr(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quoted(&mut out, text.chars(), is_printable);
    out
}

/// `repr` of `bytes`.
pub fn repr_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 3);
    out.push('b');
    quoted(&mut out, bytes.iter().map(|&byte| char::from(byte)), |c| matches!(c, ' '..='~'));
    out
}

fn quoted(out: &mut String, chars: impl Iterator<Item = char> + Clone, is_printable: fn(char) -> bool) {
    let has = |quote| chars.clone().any(|c| c == quote);
    let quote = if has('\'') && !has('"') { '"' } else { '\'' };
    out.push(quote);
    for c in chars {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if c == '\\' || c == quote => out.extend(['\\', c]),
            _ if is_printable(c) => out.push(c),
            _ => push_escape(out, u32::from(c)),
        }
    }
    out.push(quote);
}

fn push_escape(out: &mut String, code: u32) {
    let written = match code {
        0..=0xff => write!(out, "\\x{code:02x}"),
        0x100..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
    written.expect("writing to a string succeeds");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_chosen_and_escapes_written() {
        assert_eq!(repr("a'b"), "\"a'b\"");
        assert_eq!(repr("a'b\"c\\"), r#"'a\'b"c\\'"#);
        assert_eq!(repr("é\u{a0}\x01\u{2028}\u{378}"), "'é\\xa0\\x01\\u2028\\u0378'");
    }

    #[test]
    fn bytes_that_are_not_ascii_are_escaped() {
        assert_eq!(repr_bytes(b"a'\xff\n"), "b\"a'\\xff\\n\"");
        assert_eq!(repr_bytes(b"'\"\\"), r#"b'\'"\\'"#);
    }
}
