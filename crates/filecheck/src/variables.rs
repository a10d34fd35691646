//! The variables of a check file: strings and numbers, their values, and their scope.
//!
//! FileCheck has rules for names that are both. Most of these cases are errors; here they are always undecided.

use std::collections::HashMap;

use crate::numeric::Format;
use crate::{Certain, undecided};

/// A variable, as an index.
pub(crate) type Variable = usize;

#[derive(Debug)]
struct Entry {
    is_global: bool,
    /// The format of a number; `None` for a string.
    format: Option<Format>,
    text: Option<Vec<u8>>,
    number: Option<i128>,
}

/// All variables of a check file.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    names: HashMap<Vec<u8>, Variable>,
    entries: Vec<Entry>,
}

impl Variables {
    /// Returns the string variable of this name.
    pub fn string(&mut self, name: &[u8]) -> Certain<Variable> {
        let variable = self.entry(name, None);
        match self.entries[variable].format {
            None => Ok(variable),
            Some(_) => undecided("a name of a string and a number"),
        }
    }

    /// Returns the number of this name, which this directive defines. FileCheck requires one format for all
    /// definitions.
    pub fn defined_number(&mut self, name: &[u8], format: Format) -> Certain<Variable> {
        let variable = self.entry(name, Some(format));
        match self.entries[variable].format == Some(format) {
            true => Ok(variable),
            false => undecided("a variable of several formats"),
        }
    }

    /// Returns the number of this name, which must have been defined before.
    pub fn used_number(&self, name: &[u8]) -> Certain<(Variable, Format)> {
        let variable = self.names.get(name).copied();
        match variable.and_then(|variable| Some((variable, self.entries[variable].format?))) {
            Some(found) => Ok(found),
            None => undecided("a number that is not defined"),
        }
    }

    fn entry(&mut self, name: &[u8], format: Option<Format>) -> Variable {
        if let Some(&variable) = self.names.get(name) {
            return variable;
        }
        let is_global = name.first() == Some(&b'$');
        self.names.insert(name.to_vec(), self.entries.len());
        self.entries.push(Entry { is_global, format, text: None, number: None });
        self.entries.len() - 1
    }

    /// Returns the value of a string.
    pub fn text(&self, variable: Variable) -> Certain<&[u8]> {
        match &self.entries[variable].text {
            Some(text) => Ok(text),
            None => undecided("a variable without a value"),
        }
    }

    /// Returns the value of a number.
    pub fn number(&self, variable: Variable) -> Certain<i128> {
        match self.entries[variable].number {
            Some(number) => Ok(number),
            None => undecided("a variable without a value"),
        }
    }

    /// Returns the format of a number.
    pub fn format(&self, variable: Variable) -> Option<Format> {
        self.entries[variable].format
    }

    pub fn set_text(&mut self, variable: Variable, text: &[u8]) {
        self.entries[variable].text = Some(text.to_vec());
    }

    pub fn set_number(&mut self, variable: Variable, number: i128) {
        self.entries[variable].number = Some(number);
    }

    /// Removes the values that `--enable-var-scope` clears at a label.
    pub fn clear_locals(&mut self) {
        for entry in self.entries.iter_mut().filter(|entry| !entry.is_global) {
            (entry.text, entry.number) = (None, None);
        }
    }
}

/// Splits off a variable's name: an optional `$` or `@`, then a C identifier.
pub(crate) fn split_name(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mark = usize::from(matches!(text.first(), Some(b'$' | b'@')));
    let rest = &text[mark..];
    if !rest.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') {
        return None;
    }
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    Some(text.split_at(mark + length))
}
