//! The environment of a process, in the order in which it was built.
//!
//! Order matters: lit passes Python dicts to its children, and `env` without a command prints what a tool sees.

use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};

/// An ordered list of variables. Setting one that exists keeps its place, as a Python dict does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Environment {
    vars: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Returns an environment without variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the value of `key`, if it is set.
    pub fn get(&self, key: impl AsRef<OsStr>) -> Option<&OsStr> {
        let key = key.as_ref();
        self.vars.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_os_str())
    }

    /// Sets `key`, in its old place if it exists, otherwise at the end.
    pub fn set(&mut self, key: impl Into<OsString>, value: impl Into<OsString>) {
        let (key, value) = (key.into(), value.into());
        match self.vars.iter_mut().find(|(k, _)| *k == key) {
            Some(slot) => slot.1 = value,
            None => self.vars.push((key, value)),
        }
    }

    /// Removes `key`. Returns whether it existed.
    pub fn unset(&mut self, key: impl AsRef<OsStr>) -> bool {
        let key = key.as_ref();
        let before = self.vars.len();
        self.vars.retain(|(k, _)| k != key);
        self.vars.len() != before
    }

    /// Removes every variable.
    pub fn clear(&mut self) {
        self.vars.clear();
    }

    /// Iterates over the variables in order.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.vars.iter().map(|(k, v)| (k.as_os_str(), v.as_os_str()))
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Environment {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(pairs: T) -> Self {
        let mut env = Self::new();
        for (k, v) in pairs {
            env.set(k, v);
        }
        env
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_keeps_the_place_of_a_variable() {
        let mut env: Environment = [("A", "1"), ("B", "2")].into_iter().collect();
        env.set("A", "3");
        env.set("C", "4");
        let keys: Vec<_> = env.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        assert_eq!(keys, [("A".into(), "3".into()), ("B".into(), "2".into()), ("C".into(), "4".into())]);
        assert!(env.unset("B") && !env.unset("B"));
        assert_eq!(env.get("B"), None);
    }
}
