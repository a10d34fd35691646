//! The command line word by word, so that another lit or another hotstart can run it once more.
//!
//! The words are classified during parsing, since only the parser knows which word is an option's value.

use std::ffi::OsString;
use std::ops::Range;

use super::flag::Flag;
use super::table;

/// The class of a word, by the programs that understand it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// An option of lit with its value, or a path.
    Lit,
    /// An option that only hotstart has, with its value.
    Hotstart,
    /// An option that names a file for results, with its value.
    Report,
    /// An option that names a file for a report that only hotstart writes, with its value.
    Page,
    /// An option that names tests to rerun, with its value.
    Replay,
    /// An option of the comparison with another lit.
    Comparison,
}

/// All words, with argument files and LIT_OPTS expanded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words(Vec<(OsString, Owner)>);

impl Words {
    pub(super) fn new(argv: &[OsString]) -> Words {
        Words(argv.iter().map(|word| (word.clone(), Owner::Lit)).collect())
    }

    /// Records the option to which these words belong.
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

    /// Inserts words of lit before the others.
    pub(super) fn put_first(&mut self, words: Vec<OsString>) {
        self.0.splice(0..0, words.into_iter().map(|word| (word, Owner::Lit)));
    }

    /// Returns the words that any lit understands.
    pub fn for_lit(&self) -> Vec<OsString> {
        self.select(|owner| matches!(owner, Owner::Lit | Owner::Report))
    }

    /// Returns hotstart's words without those of the comparison.
    pub fn for_hotstart(&self) -> Vec<OsString> {
        self.select(|owner| owner != Owner::Comparison)
    }

    /// Returns hotstart's words without those that compare, write reports or name tests to rerun.
    pub fn for_replay(&self) -> Vec<OsString> {
        self.select(|owner| matches!(owner, Owner::Lit | Owner::Hotstart))
    }

    fn select(&self, wanted: impl Fn(Owner) -> bool) -> Vec<OsString> {
        self.0.iter().filter(|(_, owner)| wanted(*owner)).map(|(word, _)| word.clone()).collect()
    }
}
