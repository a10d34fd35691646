//! The command line word by word, so that it can be run once more: by another lit, or by another hotstart.
//!
//! Told apart while it is parsed, as only the parser knows which word is an option's value.

use std::ffi::OsString;
use std::ops::Range;

use super::flag::Flag;
use super::table;

/// Whose a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// An option of lit's with its value, or a path.
    Lit,
    /// An option that only hotstart has, with its value.
    Hotstart,
    /// An option that names a file for results, with its value.
    Report,
    /// An option that names a file for a report that only hotstart writes, with its value.
    Page,
    /// An option that names tests to be run again, with its value.
    Replay,
    /// An option of the comparison.
    Comparison,
}

/// All words, argument files and LIT_OPTS expanded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words(Vec<(OsString, Owner)>);

impl Words {
    pub(super) fn new(argv: &[OsString]) -> Words {
        Words(argv.iter().map(|word| (word.clone(), Owner::Lit)).collect())
    }

    /// Says whose these words are.
    pub(super) fn belong(&mut self, words: Range<usize>, flag: Option<&Flag>) {
        let owner = match flag {
            Some(flag) if table::is_of_ab(flag) => Owner::Comparison,
            Some(flag) if table::is_report(flag) => Owner::Report,
            Some(flag) if flag.names == ["--replay"] => Owner::Replay,
            Some(flag) if [["--html"], ["--junit"], ["--record"]].iter().any(|names| flag.names == names) => {
                Owner::Page
            }
            Some(flag) if !table::is_of_lit(flag) => Owner::Hotstart,
            _ => Owner::Lit,
        };
        self.0[words].iter_mut().for_each(|word| word.1 = owner);
    }

    /// Puts words of lit's before the others.
    pub(super) fn put_first(&mut self, words: Vec<OsString>) {
        self.0.splice(0..0, words.into_iter().map(|word| (word, Owner::Lit)));
    }

    /// What any lit understands.
    pub fn for_lit(&self) -> Vec<OsString> {
        self.select(|owner| matches!(owner, Owner::Lit | Owner::Report))
    }

    /// What hotstart understands, but nothing of the comparison.
    pub fn for_hotstart(&self) -> Vec<OsString> {
        self.select(|owner| owner != Owner::Comparison)
    }

    /// What hotstart understands, but nothing that writes reports or names tests to be run again.
    pub fn for_replay(&self) -> Vec<OsString> {
        self.select(|owner| matches!(owner, Owner::Lit | Owner::Hotstart))
    }

    fn select(&self, wanted: impl Fn(Owner) -> bool) -> Vec<OsString> {
        self.0.iter().filter(|(_, owner)| wanted(*owner)).map(|(word, _)| word.clone()).collect()
    }
}
