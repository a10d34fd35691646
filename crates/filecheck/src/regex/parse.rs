//! Reads a regular expression as LLVM does. An expression is undecided if LLVM refuses it, if its versions differ on
//! it, or if its engine is known to deviate:
//!
//! - Back-references, `[. .]`, `[= =]`, `[[:<:]]` and `[[:>:]]`, and bytes that are not ASCII.
//! - A brace that is no bound: the text after it may make it one.
//! - An alternative, other than the last, that can be empty. LLVM's engine forgets that a match has begun if its states
//!   equal those of a fresh start, which such alternatives make possible. It then finds a later match.
//! - Repetitions of `^` and `$`.

use super::{ByteSet, Element, Group, MANY};
use crate::{Certain, undecided};

/// LLVM's limit for bounds.
const MAX_BOUND: u32 = 255;
const MAX_DEPTH: usize = 32;
/// LLVM's engine runs out of memory, or crashes, beyond some millions.
const MAX_STATES: u64 = 100_000;

/// Reads a whole expression.
pub(crate) fn parse(text: &[u8], ignores_case: bool) -> Certain<Vec<Element>> {
    if !text.is_ascii() {
        return undecided("a regular expression with bytes beyond ASCII");
    }
    let mut parser = Parser { text, at: 0, ignores_case, depth: 0 };
    let alternatives = parser.alternatives()?;
    if parser.at < text.len() {
        return undecided("an unbalanced parenthesis");
    }
    if alternatives.iter().map(|one| states(one)).sum::<u64>() > MAX_STATES {
        return undecided("a large regular expression");
    }
    joined(alternatives)
}

/// Returns the number of states in LLVM's engine, which expands bounded repetitions.
fn states(elements: &[Element]) -> u64 {
    let times = |min: u32, max: u32| u64::from(if max == MANY { min.max(1) } else { max });
    let of = |element: &Element| match element {
        Element::Literal(text) => text.len() as u64,
        Element::Set { min, max, .. } => times(*min, *max),
        Element::Group(group) => match &**group {
            Group::Either(all) => all.iter().map(|one| states(one)).sum(),
            Group::Repeat { body, min, max } => states(body).saturating_mul(times(*min, *max)),
        },
        _ => 1,
    };
    elements.iter().map(of).fold(0, u64::saturating_add)
}

/// Adds a byte that matches itself.
pub(crate) fn push_byte(elements: &mut Vec<Element>, byte: u8) {
    match elements.last_mut() {
        Some(Element::Literal(text)) => text.push(byte),
        _ => elements.push(Element::Literal(vec![byte])),
    }
}

/// Returns the sequence for some alternatives.
fn joined(mut alternatives: Vec<Vec<Element>>) -> Certain<Vec<Element>> {
    if alternatives.len() == 1 {
        return Ok(alternatives.remove(0));
    }
    let before_last = &alternatives[..alternatives.len() - 1];
    if before_last.iter().any(|one| one.iter().all(Element::is_nullable)) {
        return undecided("an alternative that can be empty");
    }
    Ok(vec![Element::Group(Box::new(Group::Either(alternatives)))])
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    ignores_case: bool,
    depth: usize,
}

/// An item that a repetition may follow.
enum Atom {
    Byte(u8),
    Set(ByteSet),
    Sequence(Vec<Element>),
    Anchor(Element),
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        self.at += 1;
        self.text.get(self.at - 1).copied()
    }

    fn eat(&mut self, text: &[u8]) -> bool {
        let is_next = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(text));
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    fn alternatives(&mut self) -> Certain<Vec<Vec<Element>>> {
        let mut all = Vec::new();
        loop {
            let mut sequence = Vec::new();
            let start = self.at;
            while !matches!(self.peek(), None | Some(b'|' | b')')) {
                self.repeated_atom(&mut sequence)?;
            }
            if self.at == start {
                return undecided("an empty alternative");
            }
            all.push(sequence);
            if !self.eat(b"|") {
                return Ok(all);
            }
        }
    }

    fn repeated_atom(&mut self, out: &mut Vec<Element>) -> Certain<()> {
        let atom = self.atom()?;
        let (min, max) = match self.peek() {
            Some(b'*') => (0, MANY),
            Some(b'+') => (1, MANY),
            Some(b'?') => (0, 1),
            Some(b'{') => self.bounds()?,
            _ => {
                match atom {
                    Atom::Byte(byte) => push_byte(out, byte),
                    Atom::Set(set) => out.push(Element::Set { set, min: 1, max: 1 }),
                    Atom::Sequence(elements) => out.extend(elements),
                    Atom::Anchor(anchor) => out.push(anchor),
                }
                return Ok(());
            }
        };
        self.at += 1;
        if matches!(self.peek(), Some(b'*' | b'+' | b'?' | b'{')) {
            return undecided("a repetition of a repetition");
        }
        out.push(match atom {
            Atom::Byte(byte) => {
                let set = ByteSet::one(byte);
                let set = if self.ignores_case { set.with_cases() } else { set };
                Element::Set { set, min, max }
            }
            Atom::Set(set) => Element::Set { set, min, max },
            Atom::Sequence(body) if !body.is_empty() && !has_anchor(&body) => {
                Element::Group(Box::new(Group::Repeat { body, min, max }))
            }
            Atom::Sequence(_) | Atom::Anchor(_) => return undecided("a repetition of an anchor"),
        });
        Ok(())
    }

    /// Reads `{2}`, `{2,}` or `{2,3}` up to the closing brace.
    fn bounds(&mut self) -> Certain<(u32, u32)> {
        self.at += 1;
        let min = self.number()?;
        let max = match self.peek() {
            Some(b',') => {
                self.at += 1;
                if self.peek() == Some(b'}') { MANY } else { self.number()? }
            }
            _ => min,
        };
        if self.peek() != Some(b'}') || min > max || max == 0 {
            return undecided("a bound");
        }
        Ok((min, max))
    }

    fn number(&mut self) -> Certain<u32> {
        let mut value = None;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            value = Some(value.unwrap_or(0) * 10 + u32::from(digit - b'0'));
            if value > Some(MAX_BOUND) {
                return undecided("a bound");
            }
            self.at += 1;
        }
        value.map_or_else(|| undecided("a brace that is no bound"), Ok)
    }

    fn atom(&mut self) -> Certain<Atom> {
        let Some(byte) = self.next() else { return undecided("an expression that ends early") };
        Ok(match byte {
            b'(' => self.group()?,
            b'^' => Atom::Anchor(Element::Bol),
            b'$' => Atom::Anchor(Element::Eol),
            b'*' | b'+' | b'?' | b'{' => return undecided("a repetition of nothing"),
            b'.' => Atom::Set(ByteSet::any()),
            b'[' => self.bracket()?,
            b'\\' => match self.next() {
                None | Some(b'0'..=b'9' | b'g') => return undecided("an escape"),
                Some(byte) => self.byte(byte),
            },
            byte => self.byte(byte),
        })
    }

    /// Returns a byte that matches itself. If case is ignored, the input is in lower case.
    fn byte(&self, byte: u8) -> Atom {
        Atom::Byte(if self.ignores_case { byte.to_ascii_lowercase() } else { byte })
    }

    fn group(&mut self) -> Certain<Atom> {
        if self.eat(b")") {
            return Ok(Atom::Sequence(Vec::new()));
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return undecided("deep nesting");
        }
        let alternatives = self.alternatives()?;
        self.depth -= 1;
        if !self.eat(b")") {
            return undecided("an unbalanced parenthesis");
        }
        joined(alternatives).map(Atom::Sequence)
    }

    fn bracket(&mut self) -> Certain<Atom> {
        let rest = &self.text[self.at..];
        if rest.starts_with(b"[:<:]]") || rest.starts_with(b"[:>:]]") {
            return undecided("a word boundary");
        }
        let is_inverted = self.eat(b"^");
        let mut set = ByteSet::NONE;
        if self.eat(b"]") {
            set.add(b']');
        } else if self.eat(b"-") {
            set.add(b'-');
        }
        while !matches!(self.peek(), None | Some(b']')) && !self.text[self.at..].starts_with(b"-]") {
            self.term(&mut set)?;
        }
        if self.eat(b"-") {
            set.add(b'-');
        }
        if !self.eat(b"]") {
            return undecided("an unbalanced bracket");
        }
        let set = if self.ignores_case { set.with_cases() } else { set };
        Ok(Atom::Set(if is_inverted { set.inverted() } else { set }))
    }

    /// Reads a class, a byte or a range within brackets.
    fn term(&mut self, set: &mut ByteSet) -> Certain<()> {
        if self.eat(b"[:") {
            return self.class(set);
        }
        let start = self.symbol()?;
        if start == b'-' {
            return undecided("a hyphen within brackets");
        }
        let mut end = start;
        if self.peek() == Some(b'-') && self.text.get(self.at + 1).is_some_and(|&next| next != b']') {
            self.at += 1;
            end = self.symbol()?;
        }
        if start > end {
            return undecided("a range from high to low");
        }
        (start..=end).for_each(|byte| set.add(byte));
        Ok(())
    }

    fn symbol(&mut self) -> Certain<u8> {
        match self.next() {
            Some(b'[') if matches!(self.peek(), Some(b'.' | b'=' | b':')) => undecided("a collating element"),
            Some(byte) => Ok(byte),
            None => undecided("an unbalanced bracket"),
        }
    }

    fn class(&mut self, set: &mut ByteSet) -> Certain<()> {
        let is_in: fn(&u8) -> bool = match self.text[self.at..].split(|&byte| byte == b':').next() {
            Some(b"alnum") => u8::is_ascii_alphanumeric,
            Some(b"alpha") => u8::is_ascii_alphabetic,
            Some(b"blank") => |byte| matches!(byte, b' ' | b'\t'),
            Some(b"digit") => u8::is_ascii_digit,
            Some(b"lower") => u8::is_ascii_lowercase,
            Some(b"punct") => u8::is_ascii_punctuation,
            Some(b"space") => |byte| matches!(byte, b'\t'..=b'\r' | b' '),
            Some(b"upper") => u8::is_ascii_uppercase,
            Some(b"xdigit") => u8::is_ascii_hexdigit,
            _ => return undecided("a character class"),
        };
        while self.peek() != Some(b':') {
            if self.next().is_none() {
                return undecided("a character class");
            }
        }
        if !self.eat(b":]") {
            return undecided("a character class");
        }
        (0..128u8).filter(is_in).for_each(|byte| set.add(byte));
        Ok(())
    }
}

fn has_anchor(elements: &[Element]) -> bool {
    elements.iter().any(|element| match element {
        Element::Bol | Element::Eol => true,
        Element::Group(group) => match &**group {
            Group::Either(all) => all.iter().any(|one| has_anchor(one)),
            Group::Repeat { body, .. } => has_anchor(body),
        },
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused() {
        for text in [
            "",
            "a|",
            "|a",
            "(a",
            "a)",
            "a**",
            "*a",
            "a{",
            "a{1",
            "a{2,1}",
            "((((a{1,255}){1,255}){1,255}){1,255})?",
            "a{256}",
            "a{0}",
            "{1}",
            "[a",
            "[b-a]",
            "\\",
            "\\1",
            "[[:foo:]]",
            "[[.a.]]",
            "[[=a=]]",
            "[[:<:]]",
            "(a?|b)c",
            "^*",
            "(^a)*",
            "()*",
            "[a-b-c]",
            "\u{e9}",
        ] {
            assert!(parse(text.as_bytes(), false).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_accepted() {
        for text in [
            "a",
            "a|b",
            "(a|b)+c",
            "[]a-]",
            "[^]]",
            "[a\\]",
            "[[:alpha:]_.-]+",
            "a{2}",
            "a{2,}b",
            "x{1,3}",
            ".*",
            "^a$",
            "(a|b?)",
            "\\.",
            "()",
            "(a|$)",
        ] {
            assert!(parse(text.as_bytes(), false).is_ok(), "{text}");
        }
    }
}
