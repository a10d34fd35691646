//! The command line of PyPI's `filecheck`, as far as it is certain. It takes `--name value`, `--name=value` and the same with one dash.

use crate::words::{self, Words};
use crate::{Certain, undecided};

/// The settings of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The check file, as given.
    pub check_file: String,
    /// The file to check. `None` is standard input.
    pub input_file: Option<String>,
    pub(super) prefixes: Vec<String>,
    pub(super) comment_prefixes: Vec<String>,
    pub(super) defines: Vec<(String, String)>,
    pub(super) strict_whitespace: bool,
    pub(super) match_full_lines: bool,
    pub(super) allow_empty: bool,
}

impl Request {
    /// Reads the arguments after the program's name.
    pub fn parse<S: AsRef<str>>(args: &[S]) -> Certain<Self> {
        let words: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
        let is_plain = |word: &&str| !word.is_empty() && word.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if !words.iter().all(is_plain) {
            return undecided("an argument that is not plain");
        }
        let mut reader = Reader { request: Request::default(), words: Words::new(&words) };
        while let Some(word) = reader.words.next() {
            reader.word(word)?;
        }
        reader.complete()
    }
}

struct Reader<'w> {
    request: Request,
    words: Words<'w>,
}

impl<'w> Reader<'w> {
    fn word(&mut self, word: &'w str) -> Certain<()> {
        if let Some(define) = word.strip_prefix("-D") {
            return self.define(define);
        }
        let Some((name, value)) = words::option(word) else {
            if !self.request.check_file.is_empty() {
                return undecided("an argument that is no check file");
            }
            self.request.check_file = word.to_owned();
            return Ok(());
        };
        let flag = match name {
            "strict-whitespace" => Some(&mut self.request.strict_whitespace),
            "match-full-lines" => Some(&mut self.request.match_full_lines),
            "allow-empty" => Some(&mut self.request.allow_empty),
            _ => None,
        };
        match (flag, value) {
            (Some(flag), None) => *flag = true,
            // The value would be an argument of its own.
            (Some(_), Some(_)) => return undecided("the value of a flag"),
            // Nothing depends on these in this version, except what a capture of nothing means.
            (None, None) if matches!(name, "enable-var-scope" | "reject-empty-vars") => {}
            (None, _) => self.valued(name, value)?,
        }
        Ok(())
    }

    fn define(&mut self, define: &'w str) -> Certain<()> {
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        match define.split_once('=') {
            Some((name, value)) if is_name(name) && !value.is_empty() && !value.starts_with('-') => {
                self.request.defines.push((name.to_owned(), value.to_owned()));
                Ok(())
            }
            _ => undecided("a definition that is not plain"),
        }
    }

    fn valued(&mut self, name: &'w str, value: Option<&'w str>) -> Certain<()> {
        const NAMES: [&str; 5] =
            ["check-prefix", "check-prefixes", "comment-prefixes", "input-file", "dump-input"];
        if !NAMES.contains(&name) {
            return undecided("an option that is not known");
        }
        // Of these, the last one counts, or all together.
        if name != "check-prefix" {
            self.words.once(name)?;
        }
        let value = self.words.value(value)?;
        if value.starts_with('-') {
            return undecided("an option without a value");
        }
        let list = || value.split(',').map(str::to_owned);
        match name {
            // Those of `check-prefix` come first.
            "check-prefix" => {
                if self.words.seen.contains(&"check-prefixes") {
                    return undecided("two options for prefixes");
                }
                self.request.prefixes.extend(list());
            }
            "check-prefixes" => self.request.prefixes.extend(list()),
            "comment-prefixes" => self.request.comment_prefixes.extend(list()),
            "input-file" => self.request.input_file = Some(value.to_owned()),
            // A pass prints nothing.
            _ if matches!(value, "fail" | "never") => {}
            _ => return undecided("the value of an option"),
        }
        Ok(())
    }

    fn complete(self) -> Certain<Request> {
        let mut request = self.request;
        if request.check_file.is_empty() {
            return undecided("no check file");
        }
        if request.prefixes.is_empty() {
            request.prefixes.push("CHECK".to_owned());
        }
        if request.comment_prefixes.is_empty() {
            request.comment_prefixes.extend(["COM".to_owned(), "RUN".to_owned()]);
        }
        if !request.prefixes.iter().chain(&request.comment_prefixes).all(|prefix| words::is_prefix(prefix)) {
            return undecided("a prefix that is not plain");
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_each_spelling() {
        let args = ["-check-prefix=A", "--check-prefix", "B,C", "t", "-DX=a=b", "--match-full-lines"];
        let request = Request::parse(&args).unwrap();
        assert_eq!(request.prefixes, ["A", "B", "C"]);
        assert_eq!((&*request.check_file, request.match_full_lines), ("t", true));
        assert_eq!(request.defines, [("X".to_owned(), "a=b".to_owned())]);
    }

    #[test]
    fn what_is_not_certain_is_undecided() {
        for args in [
            &["t", "-v"][..],
            &["t", "u"],
            &["t", "--help"],
            &["t", "--allow-empty=1"],
            &["t", "--check-prefix"],
            &["t", "--check-prefix="],
            &["t", "--check-prefix=A,"],
            &["t", "--check-prefixes=A", "--check-prefix=B"],
            &["t", "--check-prefixes=A", "--check-prefixes=B"],
            &["t", "--input-file=-"],
            &["t", "--dump-input=always"],
            &["t", "--implicit-check-not=x"],
            &["t", "-DX"],
            &["t", "-D", "X=1"],
            &["t", "-DX=-1"],
            &["t", "--allow_empty"],
            &["t\u{e9}"],
            &[],
        ] {
            assert!(Request::parse(args).is_err(), "{args:?}");
        }
    }
}
