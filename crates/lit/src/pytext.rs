//! Python's idea of text: what is white space, a word character or a line end, and how `repr` writes a string.
//!
//! lit's behaviour hangs on these in many small places, and Rust's standard library answers some of them
//! differently. Only questions that are asked of `str` in lit are answered here.

use std::sync::OnceLock;

use fancy_regex::Regex;

/// `str.isspace` for one character.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Whether `\w` matches: a letter, anything numeric, or `_`.
pub fn is_word(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphanumeric() || c == '_' } else { in_class(&WORD, r"[\p{L}\p{N}]", c) }
}

/// Whether `\d` matches: a decimal digit of any script.
pub fn is_digit(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { in_class(&DIGIT, r"\p{Nd}", c) }
}

static WORD: OnceLock<Regex> = OnceLock::new();
static DIGIT: OnceLock<Regex> = OnceLock::new();
static HIDDEN: OnceLock<Regex> = OnceLock::new();

fn in_class(cell: &OnceLock<Regex>, class: &str, c: char) -> bool {
    let regex = cell.get_or_init(|| Regex::new(class).expect("a constant pattern"));
    regex.is_match(c.encode_utf8(&mut [0; 4])).unwrap_or(false)
}

/// `str.strip()`.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `str.lstrip()`.
pub fn strip_start(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

/// `str.rstrip()`.
pub fn strip_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// `str.splitlines()`.
pub fn split_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
        {
            continue;
        }
        lines.push(&text[start..at]);
        start = at + c.len_utf8();
        if c == '\r' && chars.peek().is_some_and(|&(_, next)| next == '\n') {
            chars.next();
            start += 1;
        }
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// `repr` of a `str`.
pub fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if c == quote => out.extend(['\\', c]),
            _ if is_printable(c) => out.push(c),
            _ => push_escape(&mut out, u32::from(c)),
        }
    }
    out.push(quote);
    out
}

/// `repr` of `bytes`.
pub fn repr_bytes(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut out = format!("b{quote}");
    for &byte in bytes {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'\\' => out.push_str("\\\\"),
            _ if char::from(byte) == quote => out.extend(['\\', quote]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => push_escape(&mut out, u32::from(byte)),
        }
    }
    out.push(quote);
    out
}

fn is_printable(c: char) -> bool {
    if c.is_ascii() { (' '..='~').contains(&c) } else { !in_class(&HIDDEN, r"[\p{C}\p{Z}]", c) }
}

fn push_escape(out: &mut String, code: u32) {
    use std::fmt::Write;
    let written = match code {
        0..=0xff => write!(out, "\\x{code:02x}"),
        0x100..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
    written.expect("writing to a string succeeds");
}

/// `int(text)`; `None` where Python raises ValueError. Saturates beyond `i64`.
pub fn parse_int(text: &str) -> Option<i64> {
    let text = strip(text);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut value: i64 = 0;
    let mut after_digit = false;
    for c in digits.chars() {
        match digit_value(c) {
            Some(digit) => {
                value = value.saturating_mul(10).saturating_add(i64::from(digit));
                after_digit = true;
            }
            None if c == '_' && after_digit => after_digit = false,
            None => return None,
        }
    }
    after_digit.then_some(if negative { -value } else { value })
}

/// Value of a decimal digit of any script.
///
/// Unicode puts the ten digits of a script side by side in order, so the distance to the last non-digit tells.
fn digit_value(c: char) -> Option<u32> {
    if c.is_ascii() {
        return c.to_digit(10);
    }
    if !is_digit(c) {
        return None;
    }
    let code = u32::from(c);
    let before = (1..=code).find(|&back| !char::from_u32(code - back).is_some_and(is_digit))?;
    Some((before - 1) % 10)
}

/// `shlex.quote`.
pub fn shell_quote(text: &str) -> String {
    let safe = |b: u8| b.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&b);
    if !text.is_empty() && text.bytes().all(safe) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\"'\"'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_python_says() {
        assert_eq!(split_lines("a\r\nb\rc\x0bd\u{2028}e\n"), ["a", "b", "c", "d", "e"]);
        assert_eq!(split_lines("\n\nx"), ["", "", "x"]);
        assert!(split_lines("").is_empty());
    }

    #[test]
    fn repr_chooses_quotes_and_escapes() {
        assert_eq!(repr("a'b"), "\"a'b\"");
        assert_eq!(repr("a'b\"c\\"), r#"'a\'b"c\\'"#);
        assert_eq!(repr("é\u{a0}\x01\u{2028}"), "'é\\xa0\\x01\\u2028'");
    }

    #[test]
    fn repr_of_bytes_escapes_all_that_is_not_ascii() {
        assert_eq!(repr_bytes(b"a'\xff\n"), "b\"a'\\xff\\n\"");
        assert_eq!(repr_bytes(b"'\"\\"), r#"b'\'"\\'"#);
    }

    #[test]
    fn integers_are_read_as_python_reads_them() {
        assert_eq!(parse_int(" -1_000 "), Some(-1000));
        assert_eq!(parse_int("+\u{663}"), Some(3));
        assert_eq!(
            (parse_int("1__0"), parse_int("_1"), parse_int("1_"), parse_int("")),
            (None, None, None, None)
        );
        assert_eq!(parse_int("1.0"), None);
    }

    #[test]
    fn white_space_is_pythons() {
        assert_eq!(strip("\x1c\u{3000} a \x1f"), "a");
        assert!(!is_space('\u{200b}'));
        assert!(is_word('é') && is_word('²') && !is_word('\u{301}') && !is_word('-'));
    }

    #[test]
    fn quoting_is_shlexs() {
        assert_eq!(shell_quote("a=b%s"), "a=b%s");
        assert_eq!(shell_quote("it's"), r#"'it'"'"'s'"#);
        assert_eq!(shell_quote(""), "''");
    }
}
