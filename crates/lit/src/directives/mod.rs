//! The directives of a test file: RUN, REQUIRES, DEFINE and so on.
//!
//! `scan` finds them, `define` parses substitution definitions; this module combines them into [`Directives`].
//! Conditions are only checked for syntax, and substitutions are not applied.

mod cold;
mod define;
mod scan;

use std::collections::BTreeSet;
use std::path::Path;

use hotstart_model::ColdTools;
use hotstart_python::number::int;
use hotstart_python::{errors, repr, text};

use crate::boolexpr::{self, Features};
use crate::exception::Exception;

pub use self::define::Definition;
pub use self::scan::Keyword;
pub(crate) use self::scan::Scanner;

/// The directives of a test file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// RUN, DEFINE and REDEFINE in order.
    pub script: Vec<Directive>,
    /// Items of XFAIL.
    pub xfails: Vec<String>,
    /// Items of REQUIRES.
    pub requires: Vec<String>,
    /// Items of UNSUPPORTED.
    pub unsupported: Vec<String>,
    /// ALLOW_RETRIES.
    pub allowed_retries: Option<i128>,
    /// HOTSTART-COLD.
    pub cold: ColdTools,
}

/// A directive of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// A command, in lit's internal form `%dbg(RUN: at line N) TEXT`, since substitutions see all of it.
    Command {
        /// The text.
        text: String,
        /// Its first and last line.
        lines: (usize, usize),
    },
    /// DEFINE or REDEFINE.
    Definition(Definition),
}

/// Reasons why a file's directives cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The test is UNRESOLVED with this text.
    Malformed(String),
    /// An unexpected exception in lit.
    Exception(Exception),
}

impl From<Exception> for Rejection {
    fn from(error: Exception) -> Self {
        match error.kind.as_str() {
            "ValueError" | "UnicodeDecodeError" => Rejection::Malformed(error.message),
            _ => Rejection::Exception(error),
        }
    }
}

/// Reads a test file's directives. `features` serves only to check the syntax of conditions.
pub fn read(path: &Path, features: &Features, require_script: bool) -> Result<Directives, Rejection> {
    scan::with_content(path, |content| parse(content, features, require_script))
        .map_err(|error| Rejection::Exception(os_error(&error, path)))?
}

/// Parses a test file's content.
pub fn parse(content: &[u8], features: &Features, require_script: bool) -> Result<Directives, Rejection> {
    let mut collector = Collector { found: Directives::default(), retries: Vec::new(), features };
    for found in scan::Scanner::new(content) {
        let found = found?;
        if collector.add(&found).map_err(|error| in_directive(error, &found))? {
            break;
        }
    }
    let found = collector.finish(require_script)?;
    Ok(Directives { cold: cold::tools(content), ..found })
}

/// Returns all features that a test's conditions mention, for `--show-used-features`.
pub fn used_features(path: &Path) -> Result<BTreeSet<String>, Rejection> {
    let found = read(path, &Features::new(&[] as &[String]), false)?;
    let mut names = BTreeSet::new();
    for item in found.unsupported.iter().chain(&found.requires).chain(&found.xfails) {
        if item != "*" {
            boolexpr::operands(item, &mut names)?;
        }
    }
    Ok(names)
}

fn os_error(error: &std::io::Error, path: &Path) -> Exception {
    Exception::new(errors::kind(error), errors::message(error, Some(&repr(&path.to_string_lossy()))))
}

/// Adds the directive to a syntax error. lit does so for these errors only.
fn in_directive(mut error: Exception, found: &scan::Found<'_>) -> Exception {
    if error.kind == "ValueError" {
        let keyword = found.keyword.text();
        error.message.push_str(&format!("\nin {keyword} directive on test line {}", found.line));
    }
    error
}

struct Collector<'f> {
    found: Directives,
    retries: Vec<i128>,
    features: &'f Features,
}

impl Collector<'_> {
    /// Adds a directive. Returns whether it ends the file.
    fn add(&mut self, found: &scan::Found<'_>) -> Result<bool, Exception> {
        match found.keyword {
            Keyword::End => return Ok(text::strip(found.text).is_empty()),
            Keyword::Run => self.add_command(found.line, found.text),
            Keyword::Define | Keyword::Redefine => {
                let text = line_numbers(found.text, found.line);
                let new = found.keyword == Keyword::Define;
                match self.found.script.last_mut() {
                    Some(Directive::Definition(last)) if last.is_new == new && last.continues() => {
                        return last.add_continuation(found.line, &text).map(|()| false);
                    }
                    _ => {}
                }
                let definition = Definition::new(found.line, new, text.into_owned())?;
                self.found.script.push(Directive::Definition(definition));
            }
            Keyword::Xfail => add_conditions(&mut self.found.xfails, found.text, self.features)?,
            Keyword::Requires => add_conditions(&mut self.found.requires, found.text, self.features)?,
            Keyword::Unsupported => add_conditions(&mut self.found.unsupported, found.text, self.features)?,
            Keyword::AllowRetries => self.retries.push(int(found.text, 10).ok_or_else(|| {
                Exception::value(format!(
                    "INTEGER parser requires the input to be an integer (got {})",
                    found.text
                ))
            })?),
        }
        Ok(false)
    }

    fn add_command(&mut self, line: usize, text: &str) {
        let text = line_numbers(text, line);
        match self.found.script.last_mut() {
            Some(Directive::Command { text: last, lines }) if last.ends_with('\\') => {
                last.pop();
                last.push_str(text::strip_end(&text));
                lines.1 = line;
            }
            _ => {
                let text = format!("%dbg(RUN: at line {line}) {text}");
                let text = text::strip_end(&text).to_owned();
                self.found.script.push(Directive::Command { text, lines: (line, line) });
            }
        }
    }

    fn finish(mut self, require_script: bool) -> Result<Directives, Rejection> {
        let is_command = |d: &Directive| matches!(d, Directive::Command { .. });
        if require_script && !self.found.script.iter().any(is_command) {
            return Err(Rejection::Malformed("Test has no 'RUN:' line".to_owned()));
        }
        for directive in &self.found.script {
            let (keyword, place, open) = match directive {
                Directive::Command { text, lines } => ("RUN:", define::place(*lines), text.ends_with('\\')),
                Directive::Definition(d) => (d.keyword(), define::place(d.lines), d.continues()),
            };
            if open {
                let message = format!("Test has unterminated '{keyword}' directive (with '\\') {place}");
                return Err(Rejection::Malformed(message));
            }
        }
        let lists = [
            ("XFAIL:", &self.found.xfails),
            ("REQUIRES:", &self.found.requires),
            ("UNSUPPORTED:", &self.found.unsupported),
        ];
        for (keyword, items) in lists {
            if items.last().is_some_and(|last| last.ends_with('\\')) {
                return Err(Rejection::Malformed(format!(
                    "Test has unterminated '{keyword}' lines (with '\\')"
                )));
            }
        }
        if self.retries.len() > 1 {
            return Err(Rejection::Malformed("Test has more than one ALLOW_RETRIES lines".to_owned()));
        }
        self.found.allowed_retries = self.retries.pop();
        Ok(self.found)
    }
}

fn add_conditions(list: &mut Vec<String>, text: &str, features: &Features) -> Result<(), Exception> {
    let mut parts = text.split(',').map(text::strip).filter(|part| !part.is_empty());
    if let Some(last) = list.last_mut().filter(|last| last.ends_with('\\')) {
        let Some(next) = parts.next() else {
            return Err(Exception::new("IndexError", "list index out of range"));
        };
        last.pop();
        last.push_str(next);
    }
    list.extend(parts.map(str::to_owned));
    for item in list.iter().filter(|item| *item != "*" && !item.ends_with('\\')) {
        features.evaluate(item)?;
    }
    Ok(())
}

/// Replaces `%(line)`, `%(line+N)` and `%(line-N)`.
fn line_numbers(text: &str, line: usize) -> std::borrow::Cow<'_, str> {
    if !text.contains("%(line") {
        return text.into();
    }
    let text = text.replace("%(line)", &line.to_string());
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find("%(line") {
        out.push_str(&rest[..at]);
        let after = &rest[at + "%(line".len()..];
        match relative_line(after, line) {
            Some((number, len)) => {
                out.push_str(&number.to_string());
                rest = &after[len..];
            }
            None => {
                out.push_str("%(line");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out.into()
}

/// Parses ` + N)`. Returns its value and its length.
fn relative_line(text: &str, line: usize) -> Option<(i128, usize)> {
    let signed = text.trim_start_matches(' ');
    let sign = match signed.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = signed[1..].trim_start_matches(' ');
    let end = digits.find(|c| !text::is_digit(c)).filter(|&end| end > 0 && digits[end..].starts_with(')'))?;
    let number = int(&digits[..end], 10)?;
    let value = (line as i128).saturating_add(sign * number);
    Some((value, text.len() - digits.len() + end + 1))
}

#[cfg(test)]
mod tests;
