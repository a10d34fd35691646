//! `str`: kinds of characters, white space at the ends, lines, and decoding of bytes.

use std::borrow::Cow;
use std::sync::OnceLock;

use fancy_regex::Regex;

/// `str.isspace` for one character.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Whether `\w` matches: a letter, anything numeric, or `_`.
pub fn is_word(c: char) -> bool {
    static WORD: OnceLock<Regex> = OnceLock::new();
    if c.is_ascii() { c.is_ascii_alphanumeric() || c == '_' } else { in_class(&WORD, r"[\p{L}\p{N}]", c) }
}

/// `str.isalpha` for one character.
pub fn is_alpha(c: char) -> bool {
    static ALPHA: OnceLock<Regex> = OnceLock::new();
    if c.is_ascii() { c.is_ascii_alphabetic() } else { in_class(&ALPHA, r"\p{L}", c) }
}

/// `str.isdecimal` for one character, which is what `\d` matches: a decimal digit of any script.
pub fn is_digit(c: char) -> bool {
    static DIGIT: OnceLock<Regex> = OnceLock::new();
    if c.is_ascii() { c.is_ascii_digit() } else { in_class(&DIGIT, r"\p{Nd}", c) }
}

/// `str.isprintable` for one character.
pub fn is_printable(c: char) -> bool {
    static HIDDEN: OnceLock<Regex> = OnceLock::new();
    if c.is_ascii() { (' '..='~').contains(&c) } else { !in_class(&HIDDEN, r"[\p{C}\p{Z}]", c) }
}

/// `str.isidentifier`.
pub fn is_identifier(name: &str) -> bool {
    static NAME: OnceLock<Regex> = OnceLock::new();
    matches(&NAME, r"\A[_\p{XID_Start}]\p{XID_Continue}*\z", name)
}

fn in_class(cell: &OnceLock<Regex>, class: &str, c: char) -> bool {
    matches(cell, class, c.encode_utf8(&mut [0; 4]))
}

fn matches(cell: &OnceLock<Regex>, pattern: &str, text: &str) -> bool {
    let regex = cell.get_or_init(|| Regex::new(pattern).expect("a constant pattern"));
    regex.is_match(text).unwrap_or(false)
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

/// `str.split()`.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
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

/// Decodes bytes from a pipe that is read as text: UTF-8 with replacements, all line ends as `\n`.
pub fn decode_pipe(bytes: Vec<u8>) -> String {
    let text = decode(bytes);
    if text.contains('\r') { universal_newlines(&text).into_owned() } else { text }
}

/// `bytes.decode("utf-8", "replace")`.
pub fn decode(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// Replaces `\r\n` and `\r` with `\n`.
pub fn universal_newlines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")) } else { text.into() }
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
    fn white_space_is_pythons() {
        assert_eq!(strip("\x1c\u{3000} a \x1f"), "a");
        assert_eq!(split(" a\x1c\tb ").collect::<Vec<_>>(), ["a", "b"]);
        assert!(!is_space('\u{200b}'));
        assert!(is_word('é') && is_word('²') && !is_word('\u{301}') && !is_word('-'));
    }

    #[test]
    fn names_are_pythons() {
        assert!(is_identifier("_é1") && is_identifier("a\u{301}"));
        assert!(!is_identifier("") && !is_identifier("1a") && !is_identifier("a-b") && !is_identifier("a\n"));
    }

    #[test]
    fn captured_text() {
        assert_eq!(decode_pipe(b"a\r\nb\rc\xff".to_vec()), "a\nb\nc\u{fffd}");
        assert_eq!(decode(b"a\r\n".to_vec()), "a\r\n");
    }
}
