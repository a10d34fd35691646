//! `shlex`: words to and from the language of POSIX shells.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// `shlex.quote`.
pub fn quote(text: &str) -> Cow<'_, str> {
    let safe = |b: u8| b.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&b);
    if text.is_empty() {
        "''".into()
    } else if text.bytes().all(safe) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', "'\"'\"'")).into()
    }
}

/// `shlex.split`, with quotes but without expansions and comments. The error is the text of Python's ValueError.
pub fn split(text: &OsStr) -> Result<Vec<OsString>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = text.as_bytes().iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => words.extend(word.take()),
            b'\\' => {
                let escaped = bytes.next().ok_or("No escaped character")?;
                word.get_or_insert_default().push(escaped);
            }
            b'\'' | b'"' => quoted(&mut bytes, byte, word.get_or_insert_default())?,
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    Ok(words.into_iter().map(OsString::from_vec).collect())
}

/// Reads up to the closing quote. A backslash counts in double quotes only, and only before a quote or another one.
fn quoted(bytes: &mut impl Iterator<Item = u8>, quote: u8, word: &mut Vec<u8>) -> Result<(), &'static str> {
    loop {
        match bytes.next().ok_or("No closing quotation")? {
            byte if byte == quote => return Ok(()),
            b'\\' if quote == b'"' => {
                let next = bytes.next().ok_or("No escaped character")?;
                if next != b'"' && next != b'\\' {
                    word.push(b'\\');
                }
                word.push(next);
            }
            byte => word.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted() {
        assert_eq!(quote("a=b%s"), "a=b%s");
        assert_eq!(quote("it's"), r#"'it'"'"'s'"#);
        assert_eq!(quote(""), "''");
    }

    #[test]
    fn words_are_split() {
        for (text, words) in [
            (" -v  a\tb\n", &["-v", "a", "b"][..]),
            (r#"--filter='a b' "c d"e"#, &["--filter=a b", "c de"]),
            (r#"a\ b "\$x\"" '\n' ''"#, &["a b", r#"\$x""#, r"\n", ""]),
            ("a#b # c", &["a#b", "#", "c"]),
            ("", &[]),
        ] {
            assert_eq!(split(OsStr::new(text)).unwrap(), words, "{text}");
        }
    }

    #[test]
    fn what_is_not_closed() {
        assert_eq!(split(OsStr::new("'a")), Err("No closing quotation"));
        assert_eq!(split(OsStr::new("a\\")), Err("No escaped character"));
    }
}
