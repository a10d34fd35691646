//! Matches patterns that are a literal with conditions on its surroundings, without a regex engine.
//!
//! Nearly all substitution keys are of this form: `%s`, `\bopt\b`, `(?<!(\.|\-|\^|/|\\|<))\bllc\b(?!(\-|\.))`. A suite
//! has about 200 of them, and each is tried on each command, so they make up the cost of substitution. The property
//! tests compare this matcher with Python's on patterns of this form.

use memchr::memmem::Finder;

use super::ast::{At, Flags, Node, Set};
use crate::text;

/// A literal and the conditions around or inside it.
#[derive(Debug)]
pub struct Direct {
    finder: Finder<'static>,
    conditions: Vec<(usize, Condition)>,
}

#[derive(Debug)]
enum Condition {
    Place(At),
    /// Whether it looks back, whether it is negative, and the alternatives.
    Look(bool, bool, Vec<Vec<Members>>),
}

/// A set of characters with a bit for each ASCII one.
#[derive(Clone, Debug)]
struct Members {
    ascii: u128,
    /// The sets that decide for other characters: one of them must match.
    sets: Vec<Set>,
}

impl Members {
    fn new(set: Set) -> Self {
        let ascii =
            (0..128u8).filter(|&b| set.contains(char::from(b), false)).fold(0, |bits, b| bits | 1 << b);
        Members { ascii, sets: vec![set] }
    }

    fn contains(&self, c: char) -> bool {
        match u32::from(c) {
            code @ 0..128 => self.ascii >> code & 1 == 1,
            _ => self.sets.iter().any(|set| set.contains(c, false)),
        }
    }
}

/// The regex engine handles longer lists of alternatives.
const MAX_ALTERNATIVES: usize = 64;

impl Direct {
    /// Returns the matcher, if the pattern is of this form.
    pub fn new(seq: &[Node], flags: Flags) -> Option<Self> {
        let only_dot_all = Flags { dot_all: flags.dot_all, unicode: flags.unicode, ..Flags::default() };
        if flags != only_dot_all {
            return None;
        }
        let mut literal = String::new();
        let mut conditions = Vec::new();
        collect(seq, flags, &mut literal, &mut conditions)?;
        if literal.is_empty() {
            return None;
        }
        Some(Direct { finder: Finder::new(&literal).into_owned(), conditions })
    }

    /// Returns the literal.
    pub fn literal(&self) -> &[u8] {
        self.finder.needle()
    }

    /// Returns the first match that begins at `from` or later.
    pub fn find(&self, text: &str, from: usize) -> Option<(usize, usize)> {
        let mut from = from;
        loop {
            let start = from + self.finder.find(&text.as_bytes()[from..])?;
            if self.conditions.iter().all(|(offset, condition)| condition.holds(text, start + offset)) {
                return Some((start, start + self.finder.needle().len()));
            }
            from = start + 1;
        }
    }
}

fn collect(
    seq: &[Node],
    flags: Flags,
    literal: &mut String,
    conditions: &mut Vec<(usize, Condition)>,
) -> Option<()> {
    for node in seq {
        match node {
            Node::Literal(c) => literal.push(char::from_u32(*c)?),
            Node::At(at) => conditions.push((literal.len(), Condition::Place(*at))),
            Node::Group { index: None, flags: None, child } | Node::Atomic(child) => {
                collect(child, flags, literal, conditions)?;
            }
            Node::Look { behind, negative, child } => {
                // Groups in a positive look-around keep their matches. In a negative one they never match.
                let alternatives = alternatives(child, flags, *negative)?;
                conditions.push((literal.len(), Condition::Look(*behind, *negative, alternatives)));
            }
            _ => return None,
        }
    }
    Some(())
}

/// Returns the content of a look-around as a list of fixed sequences.
fn alternatives(seq: &[Node], flags: Flags, may_capture: bool) -> Option<Vec<Vec<Members>>> {
    let mut all: Vec<Vec<Members>> = vec![Vec::new()];
    for node in seq {
        let next = match node {
            Node::Literal(c) => vec![vec![Members::new(Set::single(*c))]],
            Node::Set(set) => vec![vec![Members::new(set.clone())]],
            Node::Any => {
                let mut any = Set::single(u32::from('\n'));
                any.negated = true;
                if flags.dot_all {
                    any.items.clear();
                }
                vec![vec![Members::new(any)]]
            }
            Node::Group { index, flags: None, child } if may_capture || index.is_none() => {
                alternatives(child, flags, may_capture)?
            }
            Node::Branch(items) => {
                let lists: Option<Vec<_>> =
                    items.iter().map(|i| alternatives(i, flags, may_capture)).collect();
                lists?.into_iter().flatten().collect()
            }
            _ => return None,
        };
        if all.len() * next.len() > MAX_ALTERNATIVES {
            return None;
        }
        let joined = all.iter().flat_map(|head| next.iter().map(move |tail| [&head[..], &tail[..]].concat()));
        all = joined.collect();
    }
    Some(merged(all))
}

/// Merges alternatives of one character each into a set.
fn merged(alternatives: Vec<Vec<Members>>) -> Vec<Vec<Members>> {
    if alternatives.len() < 2 || alternatives.iter().any(|sequence| sequence.len() != 1) {
        return alternatives;
    }
    let mut all = Members { ascii: 0, sets: Vec::new() };
    for members in alternatives.into_iter().flatten() {
        all.ascii |= members.ascii;
        // A single ASCII character does not affect others.
        all.sets.extend(members.sets.into_iter().filter(|set| set.only().is_none_or(|c| c >= 128)));
    }
    vec![vec![all]]
}

impl Condition {
    fn holds(&self, text: &str, at: usize) -> bool {
        match self {
            Condition::Place(place) => place_holds(*place, text, at),
            Condition::Look(behind, negative, alternatives) => {
                let found = alternatives.iter().any(|sequence| match behind {
                    true => matches_before(sequence, &text[..at]),
                    false => matches_after(sequence, &text[at..]),
                });
                found != *negative
            }
        }
    }
}

fn matches_after(sequence: &[Members], text: &str) -> bool {
    let mut chars = text.chars();
    sequence.iter().all(|members| chars.next().is_some_and(|c| members.contains(c)))
}

fn matches_before(sequence: &[Members], text: &str) -> bool {
    let mut chars = text.chars().rev();
    sequence.iter().rev().all(|members| chars.next().is_some_and(|c| members.contains(c)))
}

fn place_holds(place: At, text: &str, at: usize) -> bool {
    let boundary = || {
        let before = text[..at].chars().next_back().is_some_and(text::is_word);
        let after = text[at..].chars().next().is_some_and(text::is_word);
        before != after
    };
    match place {
        At::Beginning | At::TextStart => at == 0,
        At::End => at == text.len() || &text[at..] == "\n",
        At::TextEnd => at == text.len(),
        At::Boundary => boundary(),
        // The text is not empty, because it contains the literal.
        At::NotBoundary => !boundary(),
    }
}
