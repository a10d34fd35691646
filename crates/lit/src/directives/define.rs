//! DEFINE and REDEFINE: a test's own substitutions.

use hotstart_python::text;

use crate::exception::Exception;

/// A DEFINE or REDEFINE with its continuation lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Whether it is DEFINE.
    pub is_new: bool,
    /// First and last line.
    pub lines: (usize, usize),
    /// The substitution's key; empty until the last line has been added.
    pub name: String,
    /// Its value.
    pub value: String,
    body: String,
}

impl Definition {
    /// Starts a definition.
    pub fn new(line: usize, is_new: bool, body: String) -> Result<Self, Exception> {
        let (name, value) = (String::new(), String::new());
        let mut definition = Definition { is_new, lines: (line, line), name, value, body };
        definition.parse()?;
        Ok(definition)
    }

    /// Returns the directive's keyword.
    pub fn keyword(&self) -> &'static str {
        if self.is_new { "DEFINE:" } else { "REDEFINE:" }
    }

    /// Returns its lines, in lit's words.
    pub fn place(&self) -> String {
        place(self.lines)
    }

    /// Returns whether the next line belongs to it.
    pub fn continues(&self) -> bool {
        text::strip_end(&self.body).ends_with('\\')
    }

    /// Adds the next line.
    pub fn add_continuation(&mut self, line: usize, text: &str) -> Result<(), Exception> {
        if text::strip(text).is_empty() {
            return Err(Exception::value("Substitution's continuation is empty"));
        }
        let head = text::strip_end(&self.body);
        let head = text::strip_end(&head[..head.len() - 1]);
        self.body = format!("{head} {}", text::strip_start(text));
        self.lines.1 = line;
        self.parse()
    }

    fn parse(&mut self) -> Result<(), Exception> {
        if self.continues() {
            return Ok(());
        }
        let Some((name, value)) = self.body.split_once('=') else {
            return Err(Exception::value("Substitution's definition does not contain '='"));
        };
        let name = text::strip(name);
        if !is_name(name) {
            return Err(Exception::value(format!(
                "Substitution name '{name}' is malformed as it must start with '%{{', it must end with '}}', and \
                 the rest must start with a letter or underscore and contain only alphanumeric characters, \
                 hyphens, underscores, and colons"
            )));
        }
        self.name = name.to_owned();
        self.value = text::strip(value).to_owned();
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    let Some(inner) = name.strip_prefix("%{").and_then(|rest| rest.strip_suffix('}')) else { return false };
    let first = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    inner.bytes().next().is_some_and(first)
        && inner.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_:".contains(&b))
}

/// Formats a range of lines in lit's words.
pub fn place((first, last): (usize, usize)) -> String {
    if first == last { format!("at line {first}") } else { format!("from line {first} to {last}") }
}
