//! Python's `str`: white space, `repr`, `int`, and how captured bytes become text.

use std::borrow::Cow;
use std::fmt::Write;

/// `str.isspace` of one character: Unicode's white space and the four ASCII separators.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// `repr` of a `str`.
pub(crate) fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c => escape_code(&mut out, c as u32),
        }
    }
    out.push(quote);
    out
}

fn escape_code(out: &mut String, code: u32) {
    let _ = match code {
        0..=0xff => write!(out, "\\x{code:02x}"),
        0x100..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// `str.isprintable` without Unicode's table of unassigned characters.
fn is_printable(c: char) -> bool {
    if c.is_control() || (c != ' ' && c.is_whitespace()) {
        return false;
    }
    !matches!(c as u32, 0xad | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff
        | 0xe000..=0xf8ff | 0xfff0..=0xfffb | 0xe0000..)
}

/// `repr` of `bytes`.
pub(crate) fn repr_bytes(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { b'"' } else { b'\'' };
    let mut out = String::with_capacity(bytes.len() + 3);
    out.push('b');
    out.push(char::from(quote));
    for &b in bytes {
        match b {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b if b == quote => out.extend(['\\', char::from(b)]),
            b' '..=b'~' => out.push(char::from(b)),
            b => escape_code(&mut out, u32::from(b)),
        }
    }
    out.push(char::from(quote));
    out
}

/// `int(text, base)` for bases 8 and 10; a number too big for us becomes the biggest.
pub(crate) fn int(text: &str, base: u32) -> Option<i128> {
    let trimmed = text.trim_matches(is_space);
    let (negative, digits) = match trimmed.as_bytes().first()? {
        b'-' => (true, &trimmed[1..]),
        b'+' => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let prefixed = if base == 8 { digits.strip_prefix("0o").or(digits.strip_prefix("0O")) } else { None };
    let digits = match prefixed {
        Some(rest) => rest.strip_prefix('_').unwrap_or(rest),
        None => digits,
    };
    let mut value: i128 = 0;
    let mut after_digit = false;
    for c in digits.chars() {
        if c == '_' && after_digit {
            after_digit = false;
            continue;
        }
        value = value.saturating_mul(i128::from(base)).saturating_add(i128::from(c.to_digit(base)?));
        after_digit = true;
    }
    after_digit.then_some(if negative { -value } else { value })
}

/// Bytes from a pipe: UTF-8 with replacements, all line ends made `\n`.
pub(crate) fn decode_pipe(bytes: Vec<u8>) -> String {
    let text = decode(bytes);
    if text.contains('\r') { universal_newlines(&text).into_owned() } else { text }
}

/// Bytes as UTF-8 with replacements.
pub(crate) fn decode(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// `\r\n` and `\r` as `\n`.
pub(crate) fn universal_newlines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")) } else { text.into() }
}

/// `shlex.quote`.
pub(crate) fn shell_quote(text: &str) -> Cow<'_, str> {
    let safe = |b: u8| b.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&b);
    if text.is_empty() {
        "''".into()
    } else if text.bytes().all(safe) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', "'\"'\"'")).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reprs() {
        assert_eq!(repr("a'b"), "\"a'b\"");
        assert_eq!(repr("a'\"\\\n\x01é\u{a0}"), "'a\\'\"\\\\\\n\\x01é\\xa0'");
        assert_eq!(repr_bytes(b"a'\xff"), "b\"a'\\xff\"");
    }

    #[test]
    fn ints() {
        assert_eq!(int(" 0o22 ", 8), Some(18));
        assert_eq!(int("1_000", 10), Some(1000));
        assert_eq!(int("-7", 10), Some(-7));
        for (text, base) in [("", 10), ("8", 8), ("1__0", 10), ("_1", 10), ("0o1", 10), ("-", 10), ("1_", 10)]
        {
            assert_eq!(int(text, base), None, "{text}");
        }
    }

    #[test]
    fn captured_text() {
        assert_eq!(decode_pipe(b"a\r\nb\rc\xff".to_vec()), "a\nb\nc\u{fffd}");
        assert_eq!(decode(b"a\r\n".to_vec()), "a\r\n");
        assert_eq!(shell_quote("it's"), "'it'\"'\"'s'");
    }
}
