//! Expands words to arguments: file names for globs, file contents for `%{readfile:...}`.

use std::fs;
use std::io;

use hotstart_python::glob::glob;
use hotstart_python::path::join;
use hotstart_python::shlex::quote;
use hotstart_python::text::universal_newlines;

use crate::ast::Word;
use crate::halt::{Halt, Halting};

const READFILE: &str = "%{readfile:";

/// Returns the arguments that a word stands for.
pub(crate) fn word(word: &Word, cwd: &str) -> Vec<String> {
    match word {
        Word::Text(text) => vec![text.clone()],
        Word::Glob(pattern) => files(pattern, cwd),
    }
}

/// Returns the files that match `pattern` relative to `cwd`, sorted, or the pattern itself if there are none.
pub(crate) fn files(pattern: &str, cwd: &str) -> Vec<String> {
    let mut found = glob(&join(cwd, pattern));
    if found.is_empty() {
        return vec![pattern.to_owned()];
    }
    found.sort_unstable();
    found
}

/// Returns all arguments of a command. Its first word stays unchanged.
pub(crate) fn arguments(words: &[Word], cwd: &str) -> Vec<String> {
    let mut args = Vec::with_capacity(words.len());
    for (index, item) in words.iter().enumerate() {
        match item {
            Word::Glob(pattern) if index > 0 => args.extend(files(pattern, cwd)),
            other => args.push(other.text().to_owned()),
        }
    }
    args
}

/// Whether a text contains a `%{readfile:`.
pub(crate) fn names_file(text: &str) -> bool {
    text.contains(READFILE)
}

/// Replaces `%{readfile:FILE}` with the contents of the file (lit 23).
pub(crate) fn readfile(words: &mut [Word], cwd: &str) -> Halting<()> {
    for word in words {
        match word {
            Word::Text(text) if text.contains(READFILE) => {
                *text = replace_each(text, |name| content(name, cwd))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Does the same for an external shell: that shell reads the file, and a missing file makes the command fail.
pub(crate) fn readfile_external(command: &str) -> String {
    if !command.contains(READFILE) {
        return command.to_owned();
    }
    let mut names = Vec::new();
    let replaced = replace_each(command, |name| {
        names.push(name.to_owned());
        Ok(format!("$(cat {})", quote(name)))
    });
    let mut out = replaced.unwrap_or_else(|_| command.to_owned());
    for name in names {
        out.push_str(" && test -e ");
        out.push_str(&name);
    }
    out
}

fn replace_each(text: &str, mut value: impl FnMut(&str) -> Halting<String>) -> Halting<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(READFILE) {
        let name_start = start + READFILE.len();
        let Some(length) = rest[name_start..].find('}') else { break };
        out.push_str(&rest[..start]);
        out.push_str(&value(&rest[name_start..name_start + length])?);
        rest = &rest[name_start + length + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn content(name: &str, cwd: &str) -> Halting<String> {
    let path = join(cwd, name);
    match fs::read(&path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(universal_newlines(&text).into_owned()),
            Err(error) => Err(Halt::exception("UnicodeDecodeError", undecodable(&error))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Halt::shell(format!("File specified in readfile substitution does not exist: {path}")))
        }
        Err(error) => Err(Halt::file(&error, &path)),
    }
}

fn undecodable(error: &std::string::FromUtf8Error) -> String {
    let at = error.utf8_error().valid_up_to();
    format!(
        "'utf-8' codec can't decode byte {:#04x} in position {at}: invalid start byte",
        error.as_bytes()[at]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_inserted_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().to_str().unwrap();
        fs::write(dir.path().join("f"), "a b\r\n").unwrap();
        let mut words =
            [Word::Text("x%{readfile:f}y%{readfile:f}".into()), Word::Text("%{readfile:f".into())];
        readfile(&mut words, cwd).unwrap();
        assert_eq!(words[0].text(), "xa b\nya b\n");
        assert_eq!(words[1].text(), "%{readfile:f");
        let mut missing = [Word::Text("%{readfile:g}".into())];
        let Err(Halt::Shell { message, .. }) = readfile(&mut missing, cwd) else { panic!() };
        assert_eq!(message, format!("File specified in readfile substitution does not exist: {cwd}/g"));
    }

    #[test]
    fn an_external_shell_reads_files_itself() {
        assert_eq!(readfile_external("a %{readfile:b c}"), "a $(cat 'b c') && test -e b c");
    }
}
