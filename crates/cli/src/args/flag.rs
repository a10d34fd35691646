//! One option of the command line: its names, what it takes, what it does, and how it is explained.

use std::ffi::OsStr;

use super::Invocation;
use super::low::LowArgs;

/// An option.
pub(super) struct Flag {
    /// All its names, in the order in which messages list them.
    pub names: &'static [&'static str],
    /// What it does, and whether it takes a value.
    pub action: Action,
    /// The variable that stands in for it where it is not given.
    pub env: Option<&'static str>,
    /// Its explanation; `None` for one that is not listed.
    pub help: Option<&'static str>,
}

/// Records a value; fails with what is wrong with it.
pub(super) type Record = fn(&mut LowArgs, &OsStr, &Invocation<'_>) -> Result<(), String>;

/// What an option does.
#[derive(Clone, Copy)]
pub(super) enum Action {
    /// Takes no value.
    Switch(fn(&mut LowArgs)),
    /// Takes a value, which help calls by this name.
    Value(&'static str, Record),
    /// Takes a value only in the same argument, after `=`; it is empty where there is none.
    Maybe(&'static str, Record),
    /// Prints help.
    Help,
    /// Prints the version.
    Version,
}

impl Flag {
    /// An option without a value.
    pub(super) const fn switch(
        names: &'static [&'static str],
        record: fn(&mut LowArgs),
        help: &'static str,
    ) -> Flag {
        Flag { names, action: Action::Switch(record), env: None, help: Some(help) }
    }

    /// An option with a value.
    pub(super) const fn value(
        names: &'static [&'static str],
        metavar: &'static str,
        record: Record,
        help: &'static str,
    ) -> Flag {
        Flag { names, action: Action::Value(metavar, record), env: None, help: Some(help) }
    }

    /// An option that may have a value after `=`.
    pub(super) const fn maybe(
        names: &'static [&'static str],
        metavar: &'static str,
        record: Record,
        help: &'static str,
    ) -> Flag {
        Flag { names, action: Action::Maybe(metavar, record), env: None, help: Some(help) }
    }

    /// The same, with a variable that stands in for it.
    pub(super) const fn or_env(self, name: &'static str) -> Flag {
        Flag { env: Some(name), ..self }
    }

    /// The same, not listed in help.
    pub(super) const fn hidden(self) -> Flag {
        Flag { help: None, ..self }
    }

    /// As messages name it: `-j/--threads/--workers`.
    pub(super) fn title(&self) -> String {
        self.names.join("/")
    }

    /// What help writes after a name of it: ` VALUE`, `[=VALUE]` or nothing.
    pub(super) fn after_name(&self) -> String {
        match self.action {
            Action::Value(metavar, _) => format!(" {metavar}"),
            Action::Maybe(metavar, _) => format!("[={metavar}]"),
            _ => String::new(),
        }
    }
}
