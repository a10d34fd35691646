//! The words before a stage's program: `env`, `not`, `!`. The shell itself implements them.

use hotstart_model::Dialect;

use crate::ast::Word;
use crate::halt::{Halt, Halting};
use crate::state::{Shell, Vars};

/// A stage without its prefix words.
#[derive(Debug)]
pub(crate) struct Prefixed {
    /// The copy of the shell's state that `env` made for this stage.
    pub own: Option<Shell>,
    pub words: Vec<Word>,
    pub negation: Negation,
    /// `not --crash`: the prefix words to run as programs.
    pub crash_words: Option<Vec<Word>>,
}

/// The effect of prefix words on a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Negation {
    pub count: u32,
    /// A death by signal counts as a failure even under `not`.
    pub crash_fails: bool,
    /// The statuses with which shells report a program that cannot be run also count as failures, as for the program
    /// `not`.
    pub unrunnable_fails: bool,
}

impl Negation {
    /// Returns the status after negation.
    pub fn apply(self, status: i32) -> i32 {
        match self.count {
            count if count % 2 == 1 && self.unrunnable_fails && matches!(status, 126 | 127) => 1,
            count if count % 2 == 1 && self.crash_fails => i32::from(status <= 0),
            count if count % 2 == 1 => i32::from(status == 0),
            0 => status,
            _ => i32::from(status != 0),
        }
    }
}

/// The effect of a stage's leading words.
pub(crate) enum Prefix {
    Command(Prefixed),
    /// `env` without a command, with the text that it prints.
    PrintEnv(String),
}

/// Removes the prefix words from a command.
pub(crate) fn strip(
    shell: &Shell,
    mut words: Vec<Word>,
    dialect: Dialect,
    is_native: bool,
) -> Halting<Prefix> {
    let mut own: Option<Shell> = None;
    let mut negating: Vec<Word> = Vec::new();
    let (mut count, mut crash) = (0, false);
    loop {
        match words[0].literal() {
            Some("env") => {
                let own = own.get_or_insert_with(|| shell.for_one_command());
                let taken = update_env(&mut own.vars, &words, dialect)?;
                words.drain(..taken);
                if words.is_empty() && dialect == Dialect::V23 {
                    return Ok(Prefix::PrintEnv(own.vars.sorted_lines()));
                }
                need_command(&words, "env")?;
            }
            Some(name @ ("not" | "!")) => {
                let name = name.to_owned();
                count += 1;
                negating.push(words.remove(0));
                if name == "not" && words.first().and_then(Word::literal) == Some("--crash") {
                    crash = true;
                    negating.push(words.remove(0));
                }
                need_command(&words, &name)?;
            }
            _ => break,
        }
    }
    let single_not =
        (dialect == Dialect::V23 || is_native) && negating.len() == 1 && negating[0].text() == "not";
    let negation = Negation {
        count: if crash { 0 } else { count },
        crash_fails: single_not && !crash,
        unrunnable_fails: single_not && !crash && is_native,
    };
    let crash_words = crash.then_some(negating);
    Ok(Prefix::Command(Prefixed { own, words, negation, crash_words }))
}

fn need_command(words: &[Word], name: &str) -> Halting<()> {
    if words.is_empty() { Err(Halt::shell(format!("Error: '{name}' requires a subcommand"))) } else { Ok(()) }
}

/// Applies the assignments after `env` or `export`. Returns the number of words used, including the first.
pub(crate) fn update_env(vars: &mut Vars, words: &[Word], dialect: Dialect) -> Halting<usize> {
    let mut unset_next = false;
    for (index, word) in words.iter().enumerate().skip(1) {
        let Word::Text(text) = word else {
            return Err(if unset_next {
                Halt::exception("TypeError", "unhashable type: 'GlobItem'")
            } else {
                Halt::exception("AttributeError", "'GlobItem' object has no attribute 'partition'")
            });
        };
        if text == "-u" {
            unset_next = true;
        } else if text == "-i" && dialect == Dialect::V23 {
            vars.clear();
        } else if unset_next {
            unset_next = false;
            vars.unset(text);
        } else if let Some((key, value)) = text.split_once('=') {
            vars.set(key, value);
        } else {
            return Ok(index);
        }
    }
    Ok(words.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;

    fn words(text: &str) -> Vec<Word> {
        text.split(' ').map(|w| Word::Text(w.to_owned())).collect()
    }

    fn strip_v23(shell: &Shell, text: &str) -> Prefixed {
        match strip(shell, words(text), Dialect::V23, false) {
            Ok(Prefix::Command(prefixed)) => prefixed,
            _ => panic!("{text}"),
        }
    }

    #[test]
    fn prefixes_mix() {
        let shell = Shell::new(Arc::default(), Path::new("/"));
        let stage = strip_v23(&shell, "not env -u B A=1 ! env A=2 tool A=3");
        assert_eq!(stage.words, words("tool A=3"));
        assert_eq!(stage.negation, Negation { count: 2, ..Negation::default() });
        assert_eq!(stage.own.unwrap().vars.get("A").unwrap(), "2");
        assert_eq!(shell.vars.get("A"), None);
        let crash = strip_v23(&shell, "not not --crash tool");
        assert_eq!(crash.crash_words, Some(words("not not --crash")));
    }

    #[test]
    fn negation_of_crashes() {
        let one = Negation { count: 1, crash_fails: true, ..Negation::default() };
        assert_eq!([1, 0, -11].map(|s| one.apply(s)), [0, 1, 1]);
        let program = Negation { unrunnable_fails: true, ..one };
        assert_eq!([1, 0, -11, 126, 127].map(|s| program.apply(s)), [0, 1, 1, 1, 1]);
        let bang = Negation { count: 1, ..Negation::default() };
        assert_eq!([1, 0, -11].map(|s| bang.apply(s)), [0, 1, 0]);
        let two = Negation { count: 2, ..Negation::default() };
        assert_eq!([3, 0, -11].map(|s| two.apply(s)), [1, 0, 1]);
    }

    #[test]
    fn nothing_after_env_prints_or_fails() {
        let shell = Shell::new(Arc::default(), Path::new("/"));
        let printed = strip(&shell, words("env A=1"), Dialect::V23, false);
        assert!(matches!(printed, Ok(Prefix::PrintEnv(text)) if text == "A=1"));
        assert!(strip(&shell, words("env A=1"), Dialect::V19, false).is_err());
        assert!(strip(&shell, words("not"), Dialect::V23, false).is_err());
    }
}
