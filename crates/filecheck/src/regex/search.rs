//! Finds the leftmost longest match.
//!
//! Every match contains a certain literal, which restricts the starts to try: only lines with it can have a start, as
//! long as nothing before it in the pattern matches a line end.

use std::ops::Range;

use memchr::memmem::{self, Finder};

use super::positions::{Positions, sequence};
use super::{Element, Work};
use crate::Certain;

/// Bytes that a search for a literal skips in one unit of work.
const PER_UNIT: usize = 16;

/// Returns the leftmost longest match. Only for patterns without back-references, with all values filled in.
pub(crate) fn find(elements: &[Element], text: &[u8], work: &Work) -> Certain<Option<Range<usize>>> {
    if let [Element::Literal(literal)] = elements {
        let found = near(text, literal).or_else(|| memmem::find(text, literal));
        let found = found.map(|start| start..start + literal.len());
        work.spend(found.as_ref().map_or(text.len(), |found| found.end) / PER_UNIT + 1)?;
        return Ok(found);
    }
    let mut found = None;
    each_start(elements, text, work, &mut |start| {
        let ends = sequence(elements, text, Positions::one(start), work)?;
        found = ends.last().map(|end| start..end);
        Ok(found.is_some())
    })?;
    Ok(found)
}

/// Looks for the literal at the beginning of the text. Most matches are on the line where the search begins, or on the next one.
/// The preparation of a search through all of the text takes longer than this.
fn near(text: &[u8], literal: &[u8]) -> Option<usize> {
    // Below 64 bytes, memmem prepares nothing.
    memmem::find(&text[..text.len().min(63)], literal)
}

/// Calls `attempt` with all places where a match can start, in order, until it returns true.
pub(crate) fn each_start(
    elements: &[Element],
    text: &[u8],
    work: &Work,
    attempt: &mut dyn FnMut(usize) -> Certain<bool>,
) -> Certain<()> {
    let Some(anchor) = anchor(elements) else {
        starts_within(elements, text, 0..text.len() + 1, work, attempt)?;
        return Ok(());
    };
    let mut finder = None;
    let mut from = 0;
    while from <= text.len() {
        let rest = &text[from..];
        let next =
            near(rest, anchor).or_else(|| finder.get_or_insert_with(|| Finder::new(anchor)).find(rest));
        let Some(next) = next else {
            return work.spend((text.len() - from) / PER_UNIT);
        };
        let place = from + next;
        let line = memchr::memrchr(b'\n', &text[from..place]).map_or(from, |end| from + end + 1);
        let line_end = memchr::memchr(b'\n', &text[place..]).map_or(text.len(), |end| place + end);
        work.spend(next / PER_UNIT + 1)?;
        if starts_within(elements, text, line..line_end + 1, work, attempt)? {
            return Ok(());
        }
        from = line_end + 1;
    }
    Ok(())
}

/// Returns the longest literal before which nothing can match a line end.
fn anchor(elements: &[Element]) -> Option<&[u8]> {
    let before = elements.iter().position(Element::crosses_lines).unwrap_or(elements.len());
    let literals = elements[..before].iter().filter_map(|element| match element {
        Element::Literal(text) if !text.is_empty() => Some(text.as_slice()),
        _ => None,
    });
    literals.max_by_key(|text| text.len())
}

/// Tries the starts within a range that the first part of the pattern allows.
fn starts_within(
    elements: &[Element],
    text: &[u8],
    range: Range<usize>,
    work: &Work,
    attempt: &mut dyn FnMut(usize) -> Certain<bool>,
) -> Certain<bool> {
    let first = elements.iter().find(|element| !matches!(element, Element::Open(_) | Element::Close(_)));
    let mut at = range.start;
    while at < range.end {
        let next = match first {
            Some(Element::Literal(literal)) if !literal.is_empty() => {
                near(&text[at..], literal).or_else(|| memmem::find(&text[at..], literal))
            }
            Some(Element::Set { set, min: 1.., .. }) => {
                text[at..].iter().position(|&byte| set.contains(byte))
            }
            Some(Element::Bol) if at == 0 || text[at - 1] == b'\n' => Some(0),
            Some(Element::Bol) => memchr::memchr(b'\n', &text[at..]).map(|end| end + 1),
            _ => Some(0),
        };
        let Some(next) = next.filter(|next| at + next < range.end) else { return Ok(false) };
        work.spend(next / PER_UNIT + 1)?;
        at += next;
        if attempt(at)? {
            return Ok(true);
        }
        at += 1;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regex::parse::parse;

    fn found(pattern: &str, text: &str) -> Option<Range<usize>> {
        find(&parse(pattern.as_bytes(), false).unwrap(), text.as_bytes(), &Work::new(100_000)).unwrap()
    }

    #[test]
    fn the_leftmost_longest_match_is_found() {
        assert_eq!(found("a*(ab)?", "xaab"), Some(0..0));
        assert_eq!(found("aa*(ab)?", "xaab"), Some(1..4));
        assert_eq!(found("b|abc|bcd", "xabcd"), Some(1..4));
        assert_eq!(found("[0-9]+ foo", "1 bar\n22 foo\n3 foo"), Some(6..12));
        assert_eq!(found("^b$", "ab\nb"), Some(3..4));
        assert_eq!(found("[[:space:]]+b", "a \n b"), Some(1..5));
        assert_eq!(found("$", "ab"), Some(2..2));
        assert_eq!(found("^", "ab"), Some(0..0));
        assert_eq!(found("x.*y", "x\ny"), None);
    }
}
