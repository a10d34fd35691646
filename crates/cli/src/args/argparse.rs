//! Python's argparse, for the features that lit uses: it finds options, their values, and the remaining arguments.
//!
//! The order of work is argparse's, since only the first error is reported: all arguments are classified before any takes
//! effect, values are checked when their options are processed, and defaults from the environment come last.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use hotstart_python::repr;

use super::flag::{Action, Flag};
use super::options::LitOptions;
use super::words::Words;
use super::{Invocation, table};
use crate::misspelt;

/// The reason why parsing ended early.
#[derive(Debug)]
pub(super) enum Stop {
    Help,
    ShortHelp,
    Version,
    Error(String),
}

/// The class of an argument.
enum Kind {
    /// `--`, the first one.
    Separator,
    /// A path, or an option's value.
    Plain,
    /// It looks like an option; `None` if there is no such option.
    Option(Option<Match>),
}

/// An option as it was written.
struct Match {
    flag: &'static Flag,
    /// The full name.
    name: &'static str,
    /// The text after the name in the same argument.
    explicit: Option<Vec<u8>>,
}

/// Parses arguments in which argument files are already expanded.
pub(super) fn run(
    argv: &[OsString],
    invocation: &Invocation<'_>,
    options: &mut LitOptions,
) -> Result<(), Stop> {
    let kinds = classify(argv)?;
    let mut words = Words::new(argv);
    let mut parser = Parser {
        argv,
        kinds,
        invocation,
        options,
        words: &mut words,
        seen: Vec::new(),
        written: "",
        extras: Vec::new(),
    };
    parser.consume()?;
    parser.apply_defaults()?;
    if parser.options.test_paths.is_empty() {
        return Err(Stop::Error("the following arguments are required: TEST_PATH".to_owned()));
    }
    if !parser.extras.is_empty() {
        let extras: Vec<_> = parser.extras.iter().map(|extra| extra.to_string_lossy()).collect();
        let meant = extras.iter().find_map(|extra| meant(extra)).unwrap_or_default();
        return Err(Stop::Error(format!("unrecognized arguments: {}{meant}", extras.join(" "))));
    }
    options.words = words;
    Ok(())
}

/// Returns the end of a message that names the option which a word is like.
fn meant(word: &str) -> Option<String> {
    let name = word.split('=').next().filter(|name| name.starts_with("--"))?;
    let names = table::all().flat_map(|flag| flag.names).copied();
    misspelt::nearest(name, names).map(|name| format!("; did you mean '{name}'?"))
}

fn classify(argv: &[OsString]) -> Result<Vec<Kind>, Stop> {
    let mut kinds = Vec::with_capacity(argv.len());
    let mut options_end = false;
    for arg in argv {
        kinds.push(if options_end {
            Kind::Plain
        } else if arg == "--" {
            options_end = true;
            Kind::Separator
        } else {
            classify_one(arg).map_err(Stop::Error)?
        });
    }
    Ok(kinds)
}

fn classify_one(arg: &OsStr) -> Result<Kind, String> {
    let bytes = arg.as_bytes();
    if bytes.first() != Some(&b'-') {
        return Ok(Kind::Plain);
    }
    if let Some((flag, name)) = table::find(bytes) {
        return Ok(Kind::Option(Some(Match { flag, name, explicit: None })));
    }
    if bytes.len() == 1 {
        return Ok(Kind::Plain);
    }
    if let Some((name, value)) = split_at_equals(bytes) {
        if let Some((flag, name)) = table::find(name) {
            return Ok(Kind::Option(Some(Match { flag, name, explicit: Some(value.to_vec()) })));
        }
    }
    let mut candidates = if bytes[1] == b'-' { long_candidates(bytes) } else { short_candidates(bytes) };
    if candidates.len() > 1 {
        let names: Vec<_> = candidates.iter().map(|candidate| candidate.name).collect();
        let arg = arg.to_string_lossy();
        return Err(format!("ambiguous option: {arg} could match {}", names.join(", ")));
    }
    if let Some(only) = candidates.pop() {
        return Ok(Kind::Option(Some(only)));
    }
    if is_negative_number(bytes) || bytes.contains(&b' ') { Ok(Kind::Plain) } else { Ok(Kind::Option(None)) }
}

/// Returns the options of which this is a prefix. hotstart's own options count only if lit has none, so that they make no
/// abbreviation ambiguous.
fn long_candidates(arg: &[u8]) -> Vec<Match> {
    let (prefix, explicit) = match split_at_equals(arg) {
        Some((prefix, value)) => (prefix, Some(value)),
        None => (arg, None),
    };
    let matching = |flags: &mut dyn Iterator<Item = &'static Flag>| -> Vec<Match> {
        flags
            .flat_map(|flag| flag.names.iter().map(move |name| (flag, *name)))
            .filter(|(_, name)| name.as_bytes().starts_with(prefix))
            .map(|(flag, name)| Match { flag, name, explicit: explicit.map(<[u8]>::to_vec) })
            .collect()
    };
    let of_lit = matching(&mut table::of_lit());
    if of_lit.is_empty() { matching(&mut table::own()) } else { of_lit }
}

/// Returns the options for `-j4` and `-sv`: the letter's option with the rest as its value, or longer names with one dash.
fn short_candidates(arg: &[u8]) -> Vec<Match> {
    let names = table::all().flat_map(|flag| flag.names.iter().map(move |name| (flag, *name)));
    names
        .filter_map(|(flag, name)| {
            if name.as_bytes() == &arg[..2] {
                Some(Match { flag, name, explicit: Some(arg[2..].to_vec()) })
            } else if name.as_bytes().starts_with(arg) {
                Some(Match { flag, name, explicit: None })
            } else {
                None
            }
        })
        .collect()
}

fn split_at_equals(arg: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = arg.iter().position(|byte| *byte == b'=')?;
    Some((&arg[..at], &arg[at + 1..]))
}

/// Returns whether the argument looks like `-5`, `-.5` or `-1.5`.
fn is_negative_number(arg: &[u8]) -> bool {
    let Some(number) = arg.strip_prefix(b"-") else { return false };
    let (whole, fraction) = match number.iter().position(|byte| *byte == b'.') {
        Some(at) => (&number[..at], Some(&number[at + 1..])),
        None => (number, None),
    };
    let all_digits = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    match fraction {
        Some(fraction) => all_digits(whole) && all_digits(fraction) && !fraction.is_empty(),
        None => all_digits(whole) && !whole.is_empty(),
    }
}

struct Parser<'a> {
    argv: &'a [OsString],
    kinds: Vec<Kind>,
    invocation: &'a Invocation<'a>,
    options: &'a mut LitOptions,
    words: &'a mut Words,
    /// First names of the given options.
    seen: Vec<&'static str>,
    /// The name of the last option, as it was written.
    written: &'static str,
    extras: Vec<&'a OsStr>,
}

impl<'a> Parser<'a> {
    /// Processes paths and options alternately, up to the last option; then the remaining paths.
    fn consume(&mut self) -> Result<(), Stop> {
        let mut at = 0;
        while let Some(next_option) = self.next_option(at) {
            if at != next_option {
                let after = self.consume_paths(at);
                if after > at {
                    at = after;
                    continue;
                }
                self.extras.extend(self.argv[at..next_option].iter().map(OsString::as_os_str));
            }
            let flag = self.flag_at(next_option);
            at = self.consume_option(next_option)?;
            self.words.belong(next_option..at, flag);
        }
        let stop = self.consume_paths(at);
        self.extras.extend(self.argv[stop..].iter().map(OsString::as_os_str));
        Ok(())
    }

    fn next_option(&self, from: usize) -> Option<usize> {
        (from..self.kinds.len()).find(|index| matches!(self.kinds[*index], Kind::Option(_)))
    }

    fn flag_at(&self, index: usize) -> Option<&'static Flag> {
        match &self.kinds[index] {
            Kind::Option(Some(found)) => Some(found.flag),
            _ => None,
        }
    }

    /// Processes the single group of paths, and returns the index after it.
    fn consume_paths(&mut self, from: usize) -> usize {
        if !self.options.test_paths.is_empty() {
            return from;
        }
        let is_path = |index: &usize| !matches!(self.kinds[*index], Kind::Option(_));
        let end = (from..self.kinds.len()).find(|index| !is_path(index)).unwrap_or(self.kinds.len());
        if !(from..end).any(|index| matches!(self.kinds[index], Kind::Plain)) {
            return from;
        }
        let paths = (from..end).filter(|index| !matches!(self.kinds[*index], Kind::Separator));
        self.options.test_paths = paths.map(|index| self.argv[index].clone()).collect();
        end
    }

    /// Processes an argument with one or several options, and a value if the last one needs one.
    fn consume_option(&mut self, at: usize) -> Result<usize, Stop> {
        let Kind::Option(Some(Match { mut flag, mut name, explicit })) =
            std::mem::replace(&mut self.kinds[at], Kind::Option(None))
        else {
            self.extras.push(&self.argv[at]);
            return Ok(at + 1);
        };
        let mut explicit = explicit;
        let mut bundle = Vec::new();
        loop {
            self.written = name;
            let takes_value = matches!(flag.action, Action::Value(..));
            match explicit.take() {
                Some(value) if takes_value || matches!(flag.action, Action::Maybe(..)) => {
                    self.act_on_all(&bundle)?;
                    self.act(flag, OsStr::from_bytes(&value))?;
                    return Ok(at + 1);
                }
                Some(rest) => {
                    let ignored = || {
                        refuse(
                            flag,
                            &format!("ignored explicit argument {}", repr(&String::from_utf8_lossy(&rest))),
                        )
                    };
                    if name.as_bytes()[1] == b'-' || rest.is_empty() {
                        return Err(ignored());
                    }
                    let (next, next_name) = table::find(&[b'-', rest[0]]).ok_or_else(ignored)?;
                    bundle.push(flag);
                    (flag, name) = (next, next_name);
                    explicit = Some(rest[1..].to_vec()).filter(|rest| !rest.is_empty());
                }
                None => {
                    // Look for the value before any option of the bundle takes effect.
                    let value = if takes_value { Some(self.value_at(at + 1, flag)?) } else { None };
                    self.act_on_all(&bundle)?;
                    self.act(flag, value.unwrap_or_default())?;
                    return Ok(at + 1 + usize::from(takes_value));
                }
            }
        }
    }

    fn value_at(&self, index: usize, flag: &Flag) -> Result<&'a OsStr, Stop> {
        match self.kinds.get(index) {
            Some(Kind::Plain) => Ok(&self.argv[index]),
            _ => Err(refuse(flag, "expected one argument")),
        }
    }

    fn act_on_all(&mut self, flags: &[&'static Flag]) -> Result<(), Stop> {
        flags.iter().try_for_each(|flag| self.act(flag, OsStr::new("")))
    }

    fn act(&mut self, flag: &'static Flag, value: &OsStr) -> Result<(), Stop> {
        self.seen.push(flag.names[0]);
        match flag.action {
            Action::Help if self.written.starts_with("--") => Err(Stop::Help),
            Action::Help => Err(Stop::ShortHelp),
            Action::Version => Err(Stop::Version),
            Action::Switch(record) => {
                record(self.options);
                Ok(())
            }
            Action::Value(_, record) | Action::Maybe(_, record) => {
                record(self.options, value, self.invocation).map_err(|error| refuse(flag, &error))
            }
        }
    }

    /// Applies environment variables for options that were not given.
    fn apply_defaults(&mut self) -> Result<(), Stop> {
        for flag in table::all() {
            let Some(variable) = flag.env else { continue };
            if self.seen.contains(&flag.names[0]) {
                continue;
            }
            if let Some(value) = (self.invocation.env)(variable) {
                self.act(flag, &value)?;
            }
        }
        Ok(())
    }
}

fn refuse(flag: &Flag, what: &str) -> Stop {
    Stop::Error(format!("argument {}: {what}", flag.title()))
}
