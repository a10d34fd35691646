//! One option of the command line: its names, value, effect and help text.

use std::ffi::OsStr;

use super::Invocation;
use super::options::LitOptions;

/// An option.
pub(super) struct Flag {
    /// All its names, in the order in which messages list them.
    pub names: &'static [&'static str],
    /// Its effect, and its value if it takes one.
    pub action: Action,
    /// The environment variable that replaces it if it is not given.
    pub env: Option<&'static str>,
    /// Its help text; `None` for a hidden option.
    pub help: Option<&'static str>,
}

/// Records a value. The error describes the fault of the value.
pub(super) type Record = fn(&mut LitOptions, &OsStr, &Invocation<'_>) -> Result<(), String>;

/// The effect of an option.
#[derive(Clone, Copy)]
pub(super) enum Action {
    /// Takes no value.
    Switch(fn(&mut LitOptions)),
    /// Takes a value; help shows the name.
    Value(&'static str, Record),
    /// Takes a value only in the same argument, after `=`; without one, the value is empty.
    Maybe(&'static str, Record),
    /// Prints all options; by its short name, those that are used most.
    Help,
    /// Prints the version.
    Version,
}

impl Flag {
    /// Creates an option without a value.
    pub(super) const fn switch(
        names: &'static [&'static str],
        record: fn(&mut LitOptions),
        help: &'static str,
    ) -> Flag {
        Flag { names, action: Action::Switch(record), env: None, help: Some(help) }
    }

    /// Creates an option with a value.
    pub(super) const fn value(
        names: &'static [&'static str],
        metavar: &'static str,
        record: Record,
        help: &'static str,
    ) -> Flag {
        Flag { names, action: Action::Value(metavar, record), env: None, help: Some(help) }
    }

    /// Creates an option with an optional value after `=`.
    pub(super) const fn maybe(
        names: &'static [&'static str],
        metavar: &'static str,
        record: Record,
        help: &'static str,
    ) -> Flag {
        Flag { names, action: Action::Maybe(metavar, record), env: None, help: Some(help) }
    }

    /// Adds an environment variable that replaces the option.
    pub(super) const fn or_env(self, name: &'static str) -> Flag {
        Flag { env: Some(name), ..self }
    }

    /// Hides the option from help.
    pub(super) const fn hidden(self) -> Flag {
        Flag { help: None, ..self }
    }

    /// Returns the name in messages: `-j/--threads/--workers`.
    pub(super) fn title(&self) -> String {
        self.names.join("/")
    }

    /// Returns the text after a name in help: ` VALUE`, `[=VALUE]` or nothing.
    pub(super) fn after_name(&self) -> String {
        match self.action {
            Action::Value(metavar, _) => format!(" {metavar}"),
            Action::Maybe(metavar, _) => format!("[={metavar}]"),
            _ => String::new(),
        }
    }
}
