//! The syntax tree of a Python regular expression.
//!
//! Code points are `u32`: Python patterns can contain lone surrogates, which match nothing here.

use crate::text;

/// A sequence of nodes.
pub type Seq = Vec<Node>;

/// Flags that change what a node means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `i`
    pub ignore_case: bool,
    /// `m`
    pub multi_line: bool,
    /// `s`
    pub dot_all: bool,
    /// `x`
    pub verbose: bool,
    /// `a`
    pub ascii: bool,
    /// `u`, which is the default and matters only for conflicts.
    pub unicode: bool,
}

/// One element of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// `a`
    Literal(u32),
    /// `.`
    Any,
    /// `[...]`, `\w`
    Set(Set),
    /// `^`, `\b`
    At(At),
    /// `x*`, `x{2,3}?`
    Repeat {
        /// The least number of times.
        min: u32,
        /// The greatest number of times. `None` is unlimited.
        max: Option<u32>,
        /// The preferred length, and whether it backtracks.
        greed: Greed,
        /// The repeated content.
        child: Seq,
    },
    /// `(...)`, `(?:...)`, `(?i:...)`
    Group {
        /// The number, if it captures.
        index: Option<u32>,
        /// The flags set and the flags cleared inside.
        flags: Option<(Flags, Flags)>,
        /// The content.
        child: Seq,
    },
    /// `(?>...)`
    Atomic(Seq),
    /// `(?=...)`, `(?<!...)`
    Look {
        /// Whether it looks back.
        behind: bool,
        /// Whether the content must not match.
        negative: bool,
        /// The content.
        child: Seq,
    },
    /// `\1`, `(?P=name)`
    BackReference(u32),
    /// `(?(1)yes|no)`
    Conditional {
        /// The group that must have matched.
        group: u32,
        /// If it has matched.
        yes: Seq,
        /// If it has not.
        no: Option<Seq>,
    },
    /// `a|b`
    Branch(Vec<Seq>),
}

/// The preferred length of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greed {
    /// As much as possible, with backtracking.
    Greedy,
    /// As little as possible.
    Lazy,
    /// As much as possible, without backtracking.
    Possessive,
}

/// A place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// `^`
    Beginning,
    /// `$`
    End,
    /// `\A`
    TextStart,
    /// `\Z`
    TextEnd,
    /// `\b`
    Boundary,
    /// `\B`
    NotBoundary,
}

/// A set of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// `[^...]`
    pub negated: bool,
    /// The members.
    pub items: Vec<Item>,
}

/// An element of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// From the first to the second, inclusive.
    Range(u32, u32),
    /// `\d`, `\D`
    Category(Category, bool),
}

/// A class of characters that Python knows by a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// `\d`
    Digit,
    /// `\s`
    Space,
    /// `\w`
    Word,
}

impl Category {
    /// Whether `c` belongs to it.
    pub fn contains(self, c: char, ascii: bool) -> bool {
        if ascii && !c.is_ascii() {
            return false;
        }
        match self {
            Category::Digit => text::is_digit(c),
            // ASCII mode includes only the six characters of C's isspace.
            Category::Space if ascii => matches!(c, ' ' | '\t'..='\r'),
            Category::Space => text::is_space(c),
            Category::Word => text::is_word(c),
        }
    }
}

impl Set {
    /// Returns the set of one character.
    pub fn single(c: u32) -> Self {
        Set { negated: false, items: vec![Item::Range(c, c)] }
    }

    /// Returns the set of a category, or of its complement.
    pub fn category(category: Category, negated: bool) -> Self {
        Set { negated: false, items: vec![Item::Category(category, negated)] }
    }

    /// Whether it contains `c`. Case matters.
    pub fn contains(&self, c: char, ascii: bool) -> bool {
        let code = u32::from(c);
        let inside = self.items.iter().any(|item| match *item {
            Item::Range(lo, hi) => (lo..=hi).contains(&code),
            Item::Category(category, negated) => category.contains(c, ascii) != negated,
        });
        inside != self.negated
    }

    /// Returns its only character, if it has just one.
    pub fn only(&self) -> Option<u32> {
        match self.items[..] {
            [Item::Range(lo, hi)] if lo == hi && !self.negated => Some(lo),
            _ => None,
        }
    }
}

/// Python's value for the greatest width.
pub const MAX_WIDTH: u64 = u32::MAX as u64;

/// Returns the least and the greatest number of characters that a sequence matches. `groups` has the widths of closed
/// groups.
pub fn width(seq: &[Node], groups: &[Option<(u64, u64)>]) -> (u64, u64) {
    let (mut lo, mut hi) = (0u64, 0u64);
    for node in seq {
        let (l, h) = node_width(node, groups);
        lo = lo.saturating_add(l);
        hi = hi.saturating_add(h);
    }
    (lo.min(MAX_WIDTH - 1), hi.min(MAX_WIDTH))
}

fn node_width(node: &Node, groups: &[Option<(u64, u64)>]) -> (u64, u64) {
    match node {
        Node::Literal(_) | Node::Any | Node::Set(_) => (1, 1),
        Node::At(_) | Node::Look { .. } => (0, 0),
        Node::Group { child, .. } | Node::Atomic(child) => width(child, groups),
        Node::Repeat { min, max, child, .. } => {
            let (l, h) = width(child, groups);
            let max = max.map_or(MAX_WIDTH, u64::from);
            (l.saturating_mul(u64::from(*min)), h.saturating_mul(max))
        }
        Node::BackReference(group) => {
            groups.get(*group as usize).copied().flatten().unwrap_or((0, MAX_WIDTH))
        }
        Node::Conditional { yes, no, .. } => {
            let (l, h) = width(yes, groups);
            let (l2, h2) = no.as_ref().map_or((0, 0), |no| width(no, groups));
            (l.min(l2), h.max(h2))
        }
        Node::Branch(items) => {
            let widths = items.iter().map(|item| width(item, groups));
            widths.fold((MAX_WIDTH - 1, 0), |(lo, hi), (l, h)| (lo.min(l), hi.max(h)))
        }
    }
}

impl Node {
    /// Returns the sequences in it.
    fn children(&self) -> Vec<&Seq> {
        match self {
            Node::Repeat { child, .. } | Node::Group { child, .. } | Node::Look { child, .. } => vec![child],
            Node::Atomic(child) => vec![child],
            Node::Conditional { yes, no, .. } => std::iter::once(yes).chain(no).collect(),
            Node::Branch(items) => items.iter().collect(),
            _ => Vec::new(),
        }
    }
}

/// Whether `holds` is true for a node, at any depth.
pub fn any(seq: &[Node], holds: &dyn Fn(&Node) -> bool) -> bool {
    seq.iter().any(|node| holds(node) || node.children().into_iter().any(|child| any(child, holds)))
}
