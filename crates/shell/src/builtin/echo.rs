//! `echo [-e] [-n] WORDS`: the one builtin that honours redirections, of standard output only.

use std::fs::File;
use std::io::Write;

use super::{Call, Done};
use crate::ast::Word;
use crate::halt::{Halt, Halting};
use crate::redirect::{self, Opened, Slot};

pub(super) fn echo(call: Call<'_>) -> Halting<Done> {
    let mut opened: Vec<Opened> = Vec::new();
    let slots = redirect::process(call.command, call.shell.cwd(), call.dialect, &mut opened)?;
    if slots[0] != Slot::Upstream || !matches!(slots[2], Slot::Pipe | Slot::Upstream) {
        let name = call.words[0].text();
        return Err(Halt::shell(format!("stdin and stderr redirects not supported for {name}")));
    }
    let file = match slots[1] {
        Slot::File(index) => opened[index].file.take(),
        _ => None,
    };
    let mut text = String::new();
    let composed = compose(&call.words[1..], file.is_some(), &mut text);
    let Some(file) = file else {
        composed?;
        return Ok(Done { stdout: text, ..Done::default() });
    };
    // lit has buffered the text before an error, so it still reaches the file.
    let file = file.try_clone().map_err(|error| Halt::internal("cannot duplicate a descriptor", error))?;
    File::from(file).write_all(text.as_bytes()).map_err(|error| {
        Halt::exception(hotstart_python::errors::kind(&error), hotstart_python::errors::message(&error, None))
    })?;
    composed?;
    Ok(Done::default())
}

fn compose(mut words: &[Word], to_file: bool, text: &mut String) -> Halting<()> {
    let (mut escapes, mut newline) = (false, true);
    while let Some((first, rest)) = words.split_first() {
        match first.literal() {
            Some("-e") => escapes = true,
            Some("-n") => newline = false,
            _ => break,
        }
        words = rest;
    }
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        match word {
            Word::Text(word) if escapes => {
                let before = text.len();
                let surrogates = unescape(word, text)?;
                if let Some(surrogates) = surrogates.filter(|_| to_file) {
                    text.truncate(before);
                    return Err(surrogates.unencodable());
                }
            }
            Word::Text(word) => text.push_str(word),
            Word::Glob(_) => return Err(not_a_string(escapes, to_file)),
        }
    }
    if newline {
        text.push('\n');
    }
    Ok(())
}

fn not_a_string(escapes: bool, to_file: bool) -> Halt {
    if escapes {
        Halt::exception("AttributeError", "'GlobItem' object has no attribute 'encode'")
    } else if to_file {
        Halt::exception("TypeError", "write() argument must be str, not GlobItem")
    } else {
        Halt::exception("TypeError", "string argument expected, got 'GlobItem'")
    }
}

/// The first surrogates of a text, which has other characters in their places. They have no UTF-8, so Python cannot write them to a
/// file, but it keeps them in memory.
struct Surrogates {
    first: u32,
    /// Number of characters before them.
    place: usize,
    count: usize,
}

impl Surrogates {
    fn unencodable(&self) -> Halt {
        let Surrogates { first, place, count } = self;
        let which = match count {
            1 => format!("character '\\u{first:04x}' in position {place}"),
            _ => format!("characters in position {place}-{}", place + count - 1),
        };
        Halt::exception(
            "UnicodeEncodeError",
            format!("'utf-8' codec can't encode {which}: surrogates not allowed"),
        )
    }
}

/// Python's `unicode_escape`. It takes the bytes of the UTF-8 text as Latin-1, so `é` becomes two letters.
fn unescape(word: &str, out: &mut String) -> Halting<Option<Surrogates>> {
    let start_len = out.len();
    let mut surrogates: Option<Surrogates> = None;
    let bytes = word.as_bytes();
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        at += 1;
        if b != b'\\' {
            out.push(char::from(b));
            continue;
        }
        let Some(&letter) = bytes.get(at) else {
            out.truncate(start_len);
            return Err(undecodable(bytes, at - 1, at, "\\ at end of string"));
        };
        at += 1;
        let simple = match letter {
            b'\n' => continue,
            b'\\' | b'\'' | b'"' => char::from(letter),
            b'a' => '\x07',
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'v' => '\x0b',
            b'0'..=b'7' | b'x' | b'u' | b'U' | b'N' => match coded(bytes, at - 2) {
                Ok((code, end)) => {
                    at = end;
                    char::from_u32(code).unwrap_or_else(|| {
                        let place = out[start_len..].chars().count();
                        let found = surrogates.get_or_insert(Surrogates { first: code, place, count: 0 });
                        found.count += usize::from(found.place + found.count == place);
                        char::REPLACEMENT_CHARACTER
                    })
                }
                Err(error) => {
                    out.truncate(start_len);
                    return Err(error);
                }
            },
            other => {
                out.push('\\');
                char::from(other)
            }
        };
        out.push(simple);
    }
    Ok(surrogates)
}

/// Decodes the code of a character. `start` is the backslash's place. Returns where to continue.
fn coded(bytes: &[u8], start: usize) -> Halting<(u32, usize)> {
    let letter = bytes[start + 1];
    let (first, most, base, reason) = match letter {
        b'x' => (start + 2, 2, 16, "truncated \\xXX escape"),
        b'u' => (start + 2, 4, 16, "truncated \\uXXXX escape"),
        b'U' => (start + 2, 8, 16, "truncated \\UXXXXXXXX escape"),
        b'N' => return Err(undecodable(bytes, start, start + 2, "malformed \\N character escape")),
        _ => (start + 1, 3, 8, ""),
    };
    let digits = bytes[first..].iter().take(most).take_while(|b| char::from(**b).is_digit(base)).count();
    let end = first + digits;
    if base == 16 && digits < most {
        return Err(undecodable(bytes, start, end, reason));
    }
    let value =
        bytes[first..end].iter().fold(0u32, |v, b| v * base + char::from(*b).to_digit(base).unwrap_or(0));
    if value > 0x10ffff {
        return Err(undecodable(bytes, start, end, "illegal Unicode character"));
    }
    Ok((value, end))
}

fn undecodable(bytes: &[u8], start: usize, end: usize, reason: &str) -> Halt {
    let place = if end == start + 1 {
        format!("byte {:#04x} in position {start}", bytes[start])
    } else {
        format!("bytes in position {start}-{}", end - 1)
    };
    Halt::exception("UnicodeDecodeError", format!("'unicodeescape' codec can't decode {place}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unescaped(word: &str) -> String {
        let mut out = String::new();
        match unescape(word, &mut out) {
            Ok(_) => out,
            Err(Halt::Exception { message, .. }) => message,
            Err(other) => format!("{other:?}"),
        }
    }

    #[test]
    fn escapes() {
        assert_eq!(unescaped(r"a\tb\x41\101\u00e9\q\\"), "a\tbAAé\\q\\");
        assert_eq!(unescaped("é"), "Ã©");
        assert_eq!(unescaped("\\777"), "\u{1ff}");
        assert_eq!(
            unescaped("ab\\"),
            r"'unicodeescape' codec can't decode byte 0x5c in position 2: \ at end of string"
        );
        assert_eq!(
            unescaped("\\x4"),
            r"'unicodeescape' codec can't decode bytes in position 0-2: truncated \xXX escape"
        );
    }

    #[test]
    fn surrogates_cannot_be_written_to_a_file() {
        let composed = |word: &str, to_file| {
            let words: Vec<_> = ["-e", "a", word].map(|w| Word::Text(w.to_owned())).into();
            let mut text = String::new();
            match compose(&words, to_file, &mut text) {
                Err(Halt::Exception { kind, message }) => (text, format!("{kind}: {message}")),
                other => (text, format!("{other:?}")),
            }
        };
        let error = |which: &str| {
            let text =
                format!("UnicodeEncodeError: 'utf-8' codec can't encode {which}: surrogates not allowed");
            ("a ".to_owned(), text)
        };
        assert_eq!(composed(r"bé\ud800", true), error(r"character '\ud800' in position 3"));
        assert_eq!(composed(r"\ud83d\ude00x\ud800", true), error("characters in position 0-1"));
        assert_eq!(composed(r"\ud800", false), ("a \u{fffd}\n".to_owned(), "Ok(())".to_owned()));
        assert_eq!(composed(r"\U0001f600", true), ("a \u{1f600}\n".to_owned(), "Ok(())".to_owned()));
    }

    #[test]
    fn only_whole_flags_count() {
        let words: Vec<_> = ["-n", "-e", "-ne", "-e"].map(|w| Word::Text(w.to_owned())).into();
        let mut text = String::new();
        compose(&words, false, &mut text).unwrap();
        assert_eq!(text, "-ne -e");
    }
}
