//! The words of a command line, for both dialects: each takes `--name value`, `--name=value` and the same with one dash.

use crate::{Certain, undecided};

/// Words that are read from the left.
pub(crate) struct Words<'w> {
    words: &'w [&'w str],
    at: usize,
    /// Options that were given, as far as they were recorded.
    pub seen: Vec<&'w str>,
}

impl<'w> Words<'w> {
    pub(crate) fn new(words: &'w [&'w str]) -> Self {
        Words { words, at: 0, seen: Vec::new() }
    }

    pub(crate) fn next(&mut self) -> Option<&'w str> {
        self.at += 1;
        self.words.get(self.at - 1).copied()
    }

    /// Records an option that may be given once.
    pub(crate) fn once(&mut self, name: &'w str) -> Certain<()> {
        if self.seen.contains(&name) {
            return undecided("an option given twice");
        }
        self.seen.push(name);
        Ok(())
    }

    /// Returns the value of an option: the part behind its `=`, or the next word.
    pub(crate) fn value(&mut self, value: Option<&'w str>) -> Certain<&'w str> {
        match value.or_else(|| self.next().filter(|word| !word.starts_with('-'))) {
            Some(value) if !value.is_empty() => Ok(value),
            _ => undecided("an option without a value"),
        }
    }
}

/// Splits an option into its name and the part behind `=`. `None` if the word is no option.
pub(crate) fn option(word: &str) -> Option<(&str, Option<&str>)> {
    let option = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    Some(option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value))))
}

/// Returns whether both dialects take this for a prefix.
pub(crate) fn is_prefix(prefix: &str) -> bool {
    prefix.starts_with(|c: char| c.is_ascii_alphanumeric())
        && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
