//! Substitutions: replacements in commands for paths, tools and a test's own definitions.
//!
//! Each entry of a list replaces all its matches in the current line, in order, so later entries see the text that
//! earlier ones insert. A list has about 240 entries, of which a line uses three or four. Therefore every entry knows
//! a text that its matches contain, and is skipped if the line lacks that text's pairs of bytes.

mod conditional;
mod defaults;
mod list;
mod pairs;

use hotstart_python::re::Replacement;
use hotstart_python::text;
use memchr::memmem;

pub use self::defaults::{TestPaths, tmp_dir};
pub use self::list::{Entry, List, Pool, Value};
use self::pairs::Pairs;
use crate::boolexpr::Features;
use crate::exception::Exception;

/// Stands for `%%` while substitutions are applied.
const MARKER: &str = "#_MARKER_#";

/// The data for substituting a line.
pub struct Substituter<'a> {
    /// Substitutions in the order of application.
    pub list: List<'a>,
    /// Features for `%if`.
    pub features: &'a Features,
    /// Paths for the default substitutions.
    pub paths: &'a TestPaths,
    /// Most extra passes; it is an error if they leave changes. `None` is a single pass, unchecked.
    pub recursion_limit: Option<u32>,
}

impl Substituter<'_> {
    /// Applies all substitutions to a line.
    pub fn apply(&self, line: &str) -> Result<String, Exception> {
        let mut processed = self.pass(line)?;
        if let Some(limit) = self.recursion_limit {
            let mut current = line.to_owned();
            let mut steps = 0;
            while processed != current && steps < limit {
                current = processed;
                processed = self.pass(&current)?;
                steps += 1;
            }
            if processed != current {
                return Err(Exception::value(format!(
                    "Recursive substitution of '{line}' did not complete in the provided recursion limit ({limit})"
                )));
            }
        }
        Ok(if processed.contains(MARKER) { processed.replace(MARKER, "%") } else { processed })
    }

    fn pass(&self, line: &str) -> Result<String, Exception> {
        let mut line = conditional::expand(&protect_percents(line.to_owned()), self.features)?;
        let mut pairs = Pairs::of(&line);
        // Whether `%%` may have appeared since the last check.
        let mut unprotected = true;
        for entry in self.list.entries() {
            if unprotected && line.contains("%%") {
                line = protect_percents(line);
                pairs = Pairs::of(&line);
            }
            unprotected = false;
            let pattern = entry.pattern()?;
            let replacement = entry.fixed_replacement(self.paths)?;
            if !pairs.may_contain(entry.signature()) {
                continue;
            }
            let replaced = match (&entry.value, replacement) {
                (_, Some(replacement)) => pattern.sub(replacement, &line)?,
                // Compute a test's value only when it is used.
                (Value::PerTest(kind), None)
                    if memmem::find(line.as_bytes(), entry.key.as_bytes()).is_some() =>
                {
                    pattern.sub(&self.per_test(entry, *kind)?, &line)?
                }
                _ => None,
            };
            if let Some(replaced) = replaced {
                line = replaced;
                pairs = Pairs::of(&line);
                unprotected = true;
            }
        }
        Ok(text::strip(&line).to_owned())
    }

    fn per_test(&self, entry: &Entry, kind: defaults::Default) -> Result<Replacement, Exception> {
        let value = self.paths.value(kind);
        match self.paths.values_are_templates() {
            true => Replacement::template(&value, entry.pattern()?),
            false => Ok(Replacement::Literal(value)),
        }
    }
}

fn protect_percents(line: String) -> String {
    if line.contains("%%") { line.replace("%%", MARKER) } else { line }
}

#[cfg(test)]
mod tests;
