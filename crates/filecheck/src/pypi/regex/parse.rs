//! The grammar: a part of that of Python's `re`. Whatever Python refuses, warns of, or reads in a surprising way is undecided.

use super::Set;
use crate::{Certain, undecided};

/// Repetitions of a group are written out, so more are undecided.
const MOST_TIMES: u32 = 200;
const DEEPEST: usize = 50;

/// A part of a pattern.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Set(Set),
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
    Group(usize, Box<Node>),
    Repeat {
        node: Box<Node>,
        least: u32,
        most: Option<u32>,
        is_lazy: bool,
    },
    /// The text of a group.
    Again(usize),
    LineStart,
    LineEnd,
    Start,
    End,
    Behind(Set),
}

impl Node {
    /// Returns the characters with which it can begin, and whether it can be empty.
    pub fn first(&self) -> (Set, bool) {
        match self {
            Node::Set(set) => (*set, false),
            Node::Sequence(nodes) => {
                let mut all = Set::NONE;
                for node in nodes {
                    let (set, can_be_empty) = node.first();
                    all = all.or(set);
                    if !can_be_empty {
                        return (all, false);
                    }
                }
                (all, true)
            }
            Node::Choice(nodes) => nodes
                .iter()
                .map(Node::first)
                .fold((Set::NONE, false), |(all, any), (set, empty)| (all.or(set), any || empty)),
            Node::Group(_, node) => node.first(),
            Node::Repeat { node, least, .. } => {
                let (set, can_be_empty) = node.first();
                (set, can_be_empty || *least == 0)
            }
            Node::Again(_) => (Set::ALL, true),
            Node::LineStart | Node::LineEnd | Node::Start | Node::End => (Set::NONE, true),
            Node::Behind(_) => (Set::NONE, true),
        }
    }
}

/// A parsed pattern.
pub(super) struct Parsed {
    pub node: Node,
    /// Which groups take part in each match, exactly once.
    pub plain: Vec<bool>,
}

pub(super) fn parse(text: &str) -> Certain<Parsed> {
    let mut parser = Parser { text: text.as_bytes(), at: 0, closed: vec![false], depth: 0 };
    let node = parser.choice()?;
    if parser.at < parser.text.len() {
        return undecided("a bracket without its partner");
    }
    let mut plain = vec![false; parser.closed.len()];
    plain[0] = true;
    let mut again = Vec::new();
    look(&node, true, &mut plain, &mut again);
    if again.iter().any(|group| !plain[*group]) {
        return undecided("a reference to a group that may not take part");
    }
    Ok(Parsed { node, plain })
}

/// Finds the groups that take part in each match, and those that are referred to.
fn look(node: &Node, takes_part: bool, plain: &mut [bool], again: &mut Vec<usize>) {
    match node {
        Node::Group(number, node) => {
            plain[*number] = takes_part;
            look(node, takes_part, plain, again);
        }
        Node::Sequence(nodes) => nodes.iter().for_each(|node| look(node, takes_part, plain, again)),
        Node::Choice(nodes) => nodes.iter().for_each(|node| look(node, false, plain, again)),
        Node::Repeat { node, .. } => look(node, false, plain, again),
        Node::Again(group) => again.push(*group),
        Node::Set(_) | Node::Behind(_) => {}
        Node::LineStart | Node::LineEnd | Node::Start | Node::End => {}
    }
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    /// Whether each group has ended.
    closed: Vec<bool>,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Certain<u8> {
        match self.peek() {
            Some(byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => undecided("an expression without its end"),
        }
    }

    fn takes(&mut self, text: &[u8]) -> bool {
        let is_there = self.text[self.at..].starts_with(text);
        self.at += if is_there { text.len() } else { 0 };
        is_there
    }

    fn choice(&mut self) -> Certain<Node> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return undecided("a deep expression");
        }
        let mut branches = vec![self.sequence()?];
        while self.takes(b"|") {
            branches.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(if branches.len() == 1 { branches.remove(0) } else { Node::Choice(branches) })
    }

    fn sequence(&mut self) -> Certain<Node> {
        let mut nodes = Vec::new();
        while let Some(byte) = self.peek() {
            if matches!(byte, b'|' | b')') {
                break;
            }
            self.at += 1;
            let node = self.item(byte)?;
            nodes.push(self.repeated(node)?);
        }
        Ok(Node::Sequence(nodes))
    }

    fn item(&mut self, byte: u8) -> Certain<Node> {
        Ok(match byte {
            b'.' => Node::Set(Set::of(b'\n').not()),
            b'^' => Node::LineStart,
            b'$' => Node::LineEnd,
            b'[' => Node::Set(self.class()?),
            b'(' => self.group()?,
            b'\\' => self.escape()?,
            b'*' | b'+' | b'?' => return undecided("nothing to repeat"),
            b'{' => return undecided("a brace that is no bound"),
            other => Node::Set(Set::of(other)),
        })
    }

    fn group(&mut self) -> Certain<Node> {
        if self.takes(b"?<=\\n)") {
            return Ok(Node::Behind(Set::of(b'\n')));
        }
        // Those two with which the program looks for whole lines, and no others.
        if self.takes(b"?=\\A)") {
            return Ok(Node::Start);
        }
        if self.takes(b"?=\\n|\\Z)") {
            return Ok(Node::LineEnd);
        }
        let is_bare = self.takes(b"?:");
        if !is_bare && self.peek() == Some(b'?') {
            return undecided("an extension of Python's expressions");
        }
        let number = self.closed.len();
        if !is_bare {
            self.closed.push(false);
        }
        let node = self.choice()?;
        if !self.takes(b")") {
            return undecided("a bracket without its partner");
        }
        if is_bare {
            return Ok(node);
        }
        self.closed[number] = true;
        Ok(Node::Group(number, Box::new(node)))
    }

    fn escape(&mut self) -> Certain<Node> {
        let byte = self.next()?;
        Ok(match byte {
            b'A' => Node::Start,
            b'Z' => Node::End,
            b'1'..=b'9' => {
                let group = usize::from(byte - b'0');
                let is_longer = self.peek().is_some_and(|next| next.is_ascii_digit());
                if is_longer || !self.closed.get(group).is_some_and(|is_closed| *is_closed) {
                    return undecided("a reference to a group that is not certain");
                }
                Node::Again(group)
            }
            other => Node::Set(escaped(other)?),
        })
    }

    fn class(&mut self) -> Certain<Set> {
        let is_negated = self.takes(b"^");
        let start = self.at;
        let mut set = Set::NONE;
        loop {
            let byte = self.next()?;
            if byte == b']' && self.at - 1 > start {
                break;
            }
            // Python may warn of these, since they may become operators.
            let is_doubled = matches!(byte, b'-' | b'&' | b'~' | b'|') && self.peek() == Some(byte);
            if byte == b'[' || is_doubled {
                return undecided("a set that Python may warn of");
            }
            let (from, single) = self.member(byte)?;
            let is_range =
                self.peek() == Some(b'-') && self.text.get(self.at + 1).is_some_and(|next| *next != b']');
            if !is_range {
                set = set.or(from);
                continue;
            }
            self.at += 1;
            let byte = self.next()?;
            if matches!(byte, b'[' | b'-') {
                return undecided("a set that Python may warn of");
            }
            match (single, self.member(byte)?.1) {
                (Some(low), Some(high)) if low <= high => set = set.or(Set::range(low, high)),
                _ => return undecided("a range that is none"),
            }
        }
        Ok(if is_negated { set.not() } else { set })
    }

    /// Returns a member of a class, and its character if it is one.
    fn member(&mut self, byte: u8) -> Certain<(Set, Option<u8>)> {
        let set = if byte == b'\\' { escaped(self.next()?)? } else { Set::of(byte) };
        let single = (set.0.count_ones() == 1).then(|| set.0.trailing_zeros() as u8);
        Ok((set, single))
    }

    fn repeated(&mut self, node: Node) -> Certain<Node> {
        let (least, most) = match self.peek() {
            Some(b'*') => (0, None),
            Some(b'+') => (1, None),
            Some(b'?') => (0, Some(1)),
            Some(b'{') => match self.bound() {
                Some(bound) => bound,
                None => return undecided("a brace that is no bound"),
            },
            _ => return Ok(node),
        };
        if self.text[self.at] != b'{' {
            self.at += 1;
        } else {
            self.at += self.text[self.at..].iter().position(|byte| *byte == b'}').unwrap_or(0) + 1;
        }
        let is_lazy = self.takes(b"?");
        if matches!(self.peek(), Some(b'*' | b'+' | b'?' | b'{')) {
            return undecided("a repetition of a repetition");
        }
        let is_single = matches!(node, Node::Set(_));
        let may_repeat = is_single || matches!(node, Node::Group(..) | Node::Sequence(_) | Node::Choice(_));
        // What Python does with an empty piece depends on its version, and its lazy repetitions of groups are intricate.
        if !may_repeat || node.first().1 || (is_lazy && !is_single) {
            return undecided("a repetition of what can be empty, or a lazy one of a group");
        }
        if least.max(most.unwrap_or(0)) > MOST_TIMES || most.is_some_and(|most| most < least) {
            return undecided("a bound of a repetition");
        }
        Ok(Node::Repeat { node: Box::new(node), least, most, is_lazy })
    }

    /// Reads `{2}`, `{2,}`, `{,3}` or `{2,3}`, and stays before it.
    fn bound(&self) -> Option<(u32, Option<u32>)> {
        let rest = &self.text[self.at + 1..];
        let inner = std::str::from_utf8(&rest[..rest.iter().position(|byte| *byte == b'}')?]).ok()?;
        let number = |text: &str| {
            let is_number =
                !text.is_empty() && text.len() < 5 && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().ok()).flatten()
        };
        match inner.split_once(',') {
            None => number(inner).map(|times| (times, Some(times))),
            Some((least, "")) => Some((number(least)?, None)),
            Some(("", most)) => Some((0, Some(number(most)?))),
            Some((least, most)) => Some((number(least)?, Some(number(most)?))),
        }
    }
}

/// Returns what an escape that is the same within and outside of a class stands for. The texts are ASCII.
fn escaped(byte: u8) -> Certain<Set> {
    let space = [b' ', b'\t', b'\n', b'\r', 0x0b, 0x0c, 0x1c, 0x1d, 0x1e, 0x1f];
    let spaces = || space.iter().fold(Set::NONE, |set, byte| set.or(Set::of(*byte)));
    let digits = Set::range(b'0', b'9');
    let word = Set::range(b'a', b'z').or(Set::range(b'A', b'Z')).or(digits).or(Set::of(b'_'));
    Ok(match byte {
        b'd' => digits,
        b'D' => digits.not(),
        b's' => spaces(),
        b'S' => spaces().not(),
        b'w' => word,
        b'W' => word.not(),
        b'n' => Set::of(b'\n'),
        b't' => Set::of(b'\t'),
        b'r' => Set::of(b'\r'),
        b'f' => Set::of(0x0c),
        b'v' => Set::of(0x0b),
        b'a' => Set::of(0x07),
        other if other.is_ascii_alphanumeric() => return undecided("an escape"),
        other => Set::of(other),
    })
}
