//! The list of substitutions, and how a test's DEFINE and REDEFINE change its own copy.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use hotstart_model::Dialect;
use hotstart_python::re::{Pattern, Replacement};
use hotstart_python::repr;

use super::defaults::{Default as TestValue, TestPaths, entries as default_entries};
use super::pairs::Signature;
use crate::config::Substitution;
use crate::directives::Definition;
use crate::exception::Exception;

/// One substitution, compiled. Its errors are reported when it is applied, as in lit.
#[derive(Debug)]
pub struct Entry {
    /// Python pattern.
    pub key: String,
    /// The replacement of its matches.
    pub value: Value,
    pattern: Result<Pattern, Exception>,
    signature: Signature,
    /// The config's substitution that it was made from, if any.
    origin: Option<Substitution>,
}

/// The replacement of matches.
#[derive(Debug)]
pub enum Value {
    /// The same for all tests, or the error that prevents its use.
    Fixed(Result<Replacement, Exception>),
    /// Depends on the test.
    PerTest(TestValue),
}

impl Entry {
    /// Compiles a config's substitution.
    pub fn new(substitution: &Substitution, dialect: Dialect) -> Self {
        let is_template = substitution.captures || dialect == Dialect::V19;
        let mut entry = Self::build(&substitution.key, |pattern| {
            if is_template {
                Value::Fixed(Replacement::template(&substitution.value, pattern).map_err(|error| {
                    let key = repr(&substitution.key);
                    error.at(format!("value of the substitution {key}"))
                }))
            } else {
                Value::Fixed(Ok(Replacement::Literal(substitution.value.clone())))
            }
        });
        entry.origin = Some(substitution.clone());
        entry
    }

    /// Compiles a substitution whose value depends on the test.
    pub fn per_test(key: &str, value: TestValue) -> Self {
        Self::build(key, |_| Value::PerTest(value))
    }

    fn literal(key: &str, value: &str) -> Self {
        Self::build(key, |_| Value::Fixed(Ok(Replacement::Literal(value.to_owned()))))
    }

    fn build(key: &str, value: impl FnOnce(&Pattern) -> Value) -> Self {
        let pattern =
            Pattern::new(key).map_err(|error| error.at(format!("key of the substitution {}", repr(key))));
        let (value, signature) = match &pattern {
            Ok(pattern) => (value(pattern), Signature::of(pattern.literal())),
            Err(error) => (Value::Fixed(Err(error.clone())), Signature::default()),
        };
        Entry { key: key.to_owned(), value, pattern, signature, origin: None }
    }

    /// Returns the key's pattern, or the error if it is invalid.
    pub fn pattern(&self) -> Result<&Pattern, Exception> {
        self.pattern.as_ref().map_err(Clone::clone)
    }

    /// Returns the pairs of bytes that all matches contain.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Returns the replacement, if it does not depend on the test.
    ///
    /// Where values are templates, lit parses those that depend on the test even if they are not used. Only a path with a
    /// backslash can be wrong then.
    pub fn fixed_replacement(&self, paths: &TestPaths) -> Result<Option<&Replacement>, Exception> {
        match &self.value {
            Value::Fixed(replacement) => replacement.as_ref().map(Some).map_err(Clone::clone),
            Value::PerTest(kind) if paths.values_may_be_wrong() => {
                Replacement::template(&paths.value(*kind), self.pattern()?).map(|_| None)
            }
            Value::PerTest(_) => Ok(None),
        }
    }
}

/// Entries by key. A suite's directories share most substitutions, and compiling one takes time.
#[derive(Debug)]
pub struct Pool {
    dialect: Dialect,
    known: HashMap<String, Vec<Arc<Entry>>>,
    defaults: Vec<Arc<Entry>>,
}

impl Pool {
    /// Creates a pool that has lit's own substitutions only.
    pub fn new(dialect: Dialect) -> Self {
        let defaults = default_entries(dialect).into_iter().map(Arc::new).collect();
        Pool { dialect, known: HashMap::new(), defaults }
    }

    /// Returns the entries for substitutions, followed by lit's own.
    pub fn entries<'s>(&mut self, given: impl Iterator<Item = &'s Substitution>) -> Vec<Arc<Entry>> {
        let mut list: Vec<_> = given.map(|substitution| self.entry(substitution)).collect();
        list.extend(self.defaults.iter().cloned());
        list
    }

    fn entry(&mut self, substitution: &Substitution) -> Arc<Entry> {
        let same_key = self.known.entry(substitution.key.clone()).or_default();
        if let Some(entry) = same_key.iter().find(|entry| entry.origin.as_ref() == Some(substitution)) {
            return Arc::clone(entry);
        }
        let entry = Arc::new(Entry::new(substitution, self.dialect));
        same_key.push(Arc::clone(&entry));
        entry
    }
}

/// A test's substitutions.
#[derive(Clone)]
pub struct List<'a>(Cow<'a, [Arc<Entry>]>);

impl<'a> List<'a> {
    /// Creates a list from a config's entries.
    pub fn new(entries: &'a [Arc<Entry>]) -> Self {
        List(Cow::Borrowed(entries))
    }

    /// Returns the entries in the order of application.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().map(Arc::as_ref)
    }

    /// Applies a DEFINE or REDEFINE.
    pub fn define(&mut self, definition: &Definition) -> Result<(), Exception> {
        let Definition { name, value, .. } = definition;
        let existing: Vec<usize> = (0..self.0.len()).filter(|&i| self.0[i].key.contains(name)).collect();
        let known: String =
            existing.iter().map(|&i| format!("\nExisting pattern: {}", self.0[i].key)).collect();
        let before = format!("'{}' directive {}", definition.keyword(), definition.place());
        let entry = || Arc::new(Entry::literal(name, value));
        match existing[..] {
            [] if definition.is_new => self.0.to_mut().insert(0, entry()),
            _ if definition.is_new => {
                return Err(Exception::value(format!(
                    "Substitution whose pattern contains '{name}' is already defined before {before}{known}"
                )));
            }
            [] => {
                return Err(Exception::value(format!(
                    "No substitution for '{name}' is defined before {before}"
                )));
            }
            [only] if self.0[only].key == *name => self.0.to_mut()[only] = entry(),
            [_] => {
                return Err(Exception::value(format!(
                    "Existing substitution whose pattern contains '{name}' does not have the pattern specified by \
                     {before}\nExpected pattern: {name}{known}"
                )));
            }
            _ => {
                return Err(Exception::value(format!(
                    "Multiple substitutions whose patterns contain '{name}' are defined before {before}{known}"
                )));
            }
        }
        Ok(())
    }
}
