//! LLVM's regular expressions: POSIX, extended, leftmost and longest, on bytes, with `^` and `$` at line ends.
//!
//! [`parse`] accepts expressions that mean the same in all versions of LLVM. [`search`] finds the match by sets of
//! positions: each part of an expression maps the set of its possible starts to the set of its possible ends. That is
//! the definition of a regular language, so the longest end is exact without any rule of priority. [`captures`] finds
//! the text that the parts matched, by LLVM's rule.

pub(crate) mod backref;
pub(crate) mod captures;
pub(crate) mod parse;
pub(crate) mod positions;
pub(crate) mod search;

use std::cell::Cell;

use crate::numeric::Expression;
use crate::variables::Variable;
use crate::{Certain, Undecided};

/// A set of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteSet([u64; 4]);

impl ByteSet {
    pub const NONE: ByteSet = ByteSet([0; 4]);

    pub fn one(byte: u8) -> Self {
        let mut set = ByteSet::NONE;
        set.add(byte);
        set
    }

    /// Returns all bytes except the line end, as `.` matches them.
    pub fn any() -> Self {
        ByteSet::NONE.inverted()
    }

    pub fn add(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    /// Returns the other bytes, always without the line end.
    pub fn inverted(self) -> Self {
        let mut words = self.0.map(|word| !word);
        words[0] &= !(1 << b'\n');
        ByteSet(words)
    }

    /// Adds the other case of each letter.
    pub fn with_cases(mut self) -> Self {
        for lower in b'a'..=b'z' {
            let upper = lower.to_ascii_uppercase();
            if self.contains(lower) || self.contains(upper) {
                self.add(lower);
                self.add(upper);
            }
        }
        self
    }
}

/// No upper bound of a repetition.
pub(crate) const MANY: u32 = u32::MAX;

/// A part of a pattern. A pattern is a sequence of them.
#[derive(Clone, Debug)]
pub(crate) enum Element {
    Literal(Vec<u8>),
    /// Bytes of a set, between `min` and `max` times.
    Set {
        set: ByteSet,
        min: u32,
        max: u32,
    },
    /// The start of a line.
    Bol,
    /// The end of a line.
    Eol,
    Group(Box<Group>),
    /// The start and the end of a definition's capture, by its number in the pattern.
    Open(usize),
    Close(usize),
    /// The value of a string variable.
    Text(Variable),
    /// The value of an expression, in a format.
    Number(Box<(crate::numeric::Format, Expression)>),
    /// The same bytes as this capture.
    Back(usize),
}

/// A part that is not a plain sequence.
#[derive(Clone, Debug)]
pub(crate) enum Group {
    /// One of several sequences.
    Either(Vec<Vec<Element>>),
    /// A sequence, between `min` and `max` times.
    Repeat { body: Vec<Element>, min: u32, max: u32 },
}

impl Element {
    /// Whether it can match nothing regardless of its surroundings.
    pub fn is_nullable(&self) -> bool {
        match self {
            Element::Literal(text) => text.is_empty(),
            Element::Set { min, .. } => *min == 0,
            Element::Bol | Element::Eol => false,
            Element::Group(group) => match &**group {
                Group::Either(all) => all.iter().any(|one| one.iter().all(Element::is_nullable)),
                Group::Repeat { body, min, .. } => *min == 0 || body.iter().all(Element::is_nullable),
            },
            Element::Open(_) | Element::Close(_) => true,
            // Known only once it has a value.
            Element::Text(_) | Element::Number(_) | Element::Back(_) => true,
        }
    }

    /// Whether it can match a line end.
    pub fn crosses_lines(&self) -> bool {
        match self {
            Element::Literal(text) => text.contains(&b'\n'),
            Element::Set { set, .. } => set.contains(b'\n'),
            Element::Bol | Element::Eol | Element::Open(_) | Element::Close(_) => false,
            Element::Group(group) => match &**group {
                Group::Either(all) => all.iter().flatten().any(Element::crosses_lines),
                Group::Repeat { body, .. } => body.iter().any(Element::crosses_lines),
            },
            Element::Text(_) | Element::Number(_) | Element::Back(_) => true,
        }
    }
}

/// A limit of the work for one decision. FileCheck runs if it is exceeded.
#[derive(Debug)]
pub(crate) struct Work(Cell<u64>);

impl Work {
    pub fn new(units: u64) -> Self {
        Work(Cell::new(units))
    }

    pub fn spend(&self, units: usize) -> Certain<()> {
        match self.0.get().checked_sub(units as u64) {
            Some(rest) => {
                self.0.set(rest);
                Ok(())
            }
            None => Err(Undecided("too much work")),
        }
    }
}
