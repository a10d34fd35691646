//! FileCheck's command line, as far as it is certain. An unknown option, an unknown value, and an option given twice
//! where LLVM's parser refuses that are undecided.

use crate::words::{self, Words};
use crate::{Certain, undecided};

/// The settings of one call of FileCheck.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The check file, as given.
    pub check_file: String,
    /// The file to check. `None` is standard input.
    pub input_file: Option<String>,
    pub(crate) prefixes: Vec<String>,
    pub(crate) comment_prefixes: Vec<String>,
    pub(crate) has_default_prefix: bool,
    pub(crate) implicit_check_not: Vec<String>,
    pub(crate) defines: Vec<String>,
    pub(crate) strict_whitespace: bool,
    pub(crate) ignore_case: bool,
    pub(crate) allow_empty: bool,
    pub(crate) allow_unused_prefixes: bool,
    pub(crate) match_full_lines: bool,
    pub(crate) enable_var_scope: bool,
    pub(crate) allow_dag_overlap: bool,
}

impl Request {
    /// Reads the arguments after the program's name, and the value of `FILECHECK_OPTS`, which LLVM puts before them.
    pub fn parse<S: AsRef<str>>(args: &[S], environment: Option<&str>) -> Certain<Self> {
        let before = environment.unwrap_or_default();
        if before.contains(['"', '\'', '\\']) {
            return undecided("quotes in FILECHECK_OPTS");
        }
        // LLVM treats no other bytes as blanks.
        let before = before.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty());
        let words: Vec<&str> = before.chain(args.iter().map(AsRef::as_ref)).collect();
        // LLVM replaces such a word by the content of the file that it names, even where it is an option's value.
        if words.iter().any(|word| word.starts_with('@')) {
            return undecided("a response file");
        }
        let mut reader = Reader { request: Request::default(), words: Words::new(&words) };
        while let Some(word) = reader.words.next() {
            reader.word(word)?;
        }
        let mut request = reader.request;
        if request.check_file.is_empty() {
            return undecided("no check file");
        }
        request.complete_prefixes()?;
        Ok(request)
    }

    /// Returns equivalent options with one word each, without files and without options that only affect failures.
    pub fn options(&self) -> Vec<String> {
        let flags = [
            ("--strict-whitespace", self.strict_whitespace),
            ("--ignore-case", self.ignore_case),
            ("--allow-empty", self.allow_empty),
            ("--allow-unused-prefixes", self.allow_unused_prefixes),
            ("--match-full-lines", self.match_full_lines),
            ("--enable-var-scope", self.enable_var_scope),
            ("--allow-deprecated-dag-overlap", self.allow_dag_overlap),
        ];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag.to_owned());
        let mut options: Vec<String> = flags.collect();
        if !self.has_default_prefix {
            options.push(format!("--check-prefixes={}", self.prefixes.join(",")));
        }
        if self.comment_prefixes != ["COM", "RUN"] {
            options.push(format!("--comment-prefixes={}", self.comment_prefixes.join(",")));
        }
        options.extend(self.implicit_check_not.iter().map(|text| format!("--implicit-check-not={text}")));
        options.extend(self.defines.iter().map(|define| format!("-D{define}")));
        options
    }

    /// Adds the default prefixes, and rejects what FileCheck rejects.
    fn complete_prefixes(&mut self) -> Certain<()> {
        if self.prefixes.is_empty() {
            self.has_default_prefix = true;
            self.prefixes.push("CHECK".to_owned());
        }
        if self.comment_prefixes.is_empty() {
            self.comment_prefixes.extend(["COM".to_owned(), "RUN".to_owned()]);
        }
        let all: Vec<&String> = self.prefixes.iter().chain(&self.comment_prefixes).collect();
        for (index, prefix) in all.iter().enumerate() {
            if !words::is_prefix(prefix) || all[..index].contains(prefix) {
                return undecided("a prefix that is not plain or not unique");
            }
        }
        Ok(())
    }
}

struct Reader<'w> {
    request: Request,
    /// It records the options of which only one is allowed.
    words: Words<'w>,
}

impl<'w> Reader<'w> {
    fn word(&mut self, word: &'w str) -> Certain<()> {
        if let Some(define) = word.strip_prefix("-D") {
            if !define.contains('=') || define.starts_with('=') || define.contains(['\n', '\r', '\0']) {
                return undecided("a definition that is not plain");
            }
            self.request.defines.push(define.to_owned());
            return Ok(());
        }
        let Some((name, value)) = words::option(word) else { return self.positional(word) };
        match name {
            "strict-whitespace" => self.request.strict_whitespace = self.flag(name, value)?,
            "ignore-case" => self.request.ignore_case = self.flag(name, value)?,
            "allow-empty" => self.request.allow_empty = self.flag(name, value)?,
            "allow-unused-prefixes" => self.request.allow_unused_prefixes = self.flag(name, value)?,
            "match-full-lines" => self.request.match_full_lines = self.flag(name, value)?,
            "enable-var-scope" => self.request.enable_var_scope = self.flag(name, value)?,
            "allow-deprecated-dag-overlap" => self.request.allow_dag_overlap = self.flag(name, value)?,
            _ => self.valued(name, value)?,
        }
        Ok(())
    }

    fn positional(&mut self, word: &str) -> Certain<()> {
        if word.is_empty() || word.starts_with('@') || !self.request.check_file.is_empty() {
            return undecided("an argument that is no check file");
        }
        self.request.check_file = word.to_owned();
        Ok(())
    }

    fn flag(&mut self, name: &'w str, value: Option<&str>) -> Certain<bool> {
        self.words.once(name)?;
        match value {
            None | Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(_) => undecided("the value of a flag"),
        }
    }

    fn valued(&mut self, name: &'w str, value: Option<&'w str>) -> Certain<()> {
        const NAMES: [&str; 8] = [
            "check-prefix",
            "check-prefixes",
            "comment-prefixes",
            "implicit-check-not",
            "input-file",
            "dump-input",
            "dump-input-filter",
            "dump-input-context",
        ];
        if !NAMES.contains(&name) {
            return undecided("an option that is not known");
        }
        let value = self.words.value(value)?;
        self.set(name, value)
    }

    fn set(&mut self, name: &'w str, value: &str) -> Certain<()> {
        let list = || value.split(',').map(str::to_owned);
        let is_known = match name {
            // Only the other spelling takes a list. A comma is not allowed in a prefix.
            "check-prefix" => {
                self.request.prefixes.push(value.to_owned());
                !value.contains(',')
            }
            "check-prefixes" => {
                self.request.prefixes.extend(list());
                true
            }
            "comment-prefixes" => {
                self.request.comment_prefixes.extend(list());
                true
            }
            "implicit-check-not" => {
                self.request.implicit_check_not.push(value.to_owned());
                !value.contains(['\n', '\r', '\0'])
            }
            "input-file" => {
                self.words.once(name)?;
                self.request.input_file = (value != "-").then(|| value.to_owned());
                true
            }
            // These affect failures only: a pass prints nothing.
            "dump-input" => matches!(value, "fail" | "never"),
            "dump-input-filter" => matches!(value, "all" | "annotation-full" | "annotation" | "error"),
            // LLVM reads a number that begins with 0 as octal.
            _ => {
                let is_number = value.len() < 6 && value.bytes().all(|byte| byte.is_ascii_digit());
                is_number && (value == "0" || !value.starts_with('0'))
            }
        };
        if is_known { Ok(()) } else { undecided("the value of an option") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read() {
        let request = Request::parse(
            &["-check-prefix=A", "--check-prefixes", "B,C", "t.ll", "--implicit-check-not", "x y", "-DV=a=b"],
            Some(" --dump-input=fail  -allow-empty "),
        )
        .unwrap();
        assert_eq!(request.prefixes, ["A", "B", "C"]);
        assert_eq!(request.check_file, "t.ll");
        assert_eq!(request.implicit_check_not, ["x y"]);
        assert_eq!(request.defines, ["V=a=b"]);
        assert!(request.allow_empty && !request.has_default_prefix);
        let options = ["--allow-empty", "--check-prefixes=A,B,C", "--implicit-check-not=x y", "-DV=a=b"];
        assert_eq!(request.options(), options);
    }

    #[test]
    fn what_is_not_certain_is_undecided() {
        for args in [
            &["t", "-v"][..],
            &["t", "u"],
            &["@t"],
            &["-"],
            &["t", "--dump-input=always"],
            &["t", "--allow-empty", "--allow-empty"],
            &["t", "--check-prefix"],
            &["t", "--check-prefix=A,"],
            &["t", "--check-prefix=A,B"],
            &["t", "--dump-input-context=09"],
            &["t", "--check-prefix=A", "--check-prefix=A"],
            &["t", "--check-prefix=RUN"],
            &["t", "-DX"],
            &["t", "--allow-empty=yes"],
            &[],
        ] {
            assert!(Request::parse(args, None).is_err(), "{args:?}");
        }
        assert!(
            Request::parse(&["t"], Some("--allow-empty\u{c}--ignore-case")).is_err(),
            "a form feed is no blank"
        );
    }
}
