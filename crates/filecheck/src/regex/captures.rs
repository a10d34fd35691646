//! Finds the captures of a pattern's definitions, given the span of the whole match.
//!
//! LLVM's engine goes through the parts of a sequence from left to right. Each part gets the longest piece with which
//! the rest can still match exactly to the end. All definitions are at the top level of a pattern's sequence, and so
//! are the parts of a group without alternatives or repetition, which was flattened. A bounded repetition of a group is
//! several parts in LLVM but one here, so it is undecided.

use std::ops::Range;

use super::positions::{Positions, sequence, step};
use super::{Element, Group, MANY, Work};
use crate::{Certain, undecided};

/// Returns the pieces that the definitions captured, by their number, within a known match.
pub(crate) fn captures(
    elements: &[Element],
    text: &[u8],
    span: Range<usize>,
    work: &Work,
) -> Certain<Vec<(usize, Range<usize>)>> {
    let mut found: Vec<(usize, Range<usize>)> = Vec::new();
    let mut at = span.start;
    for (index, element) in elements.iter().enumerate() {
        match element {
            Element::Open(number) => found.push((*number, at..at)),
            Element::Close(number) => {
                let capture = found.iter_mut().find(|(open, _)| open == number);
                let Some(capture) = capture else { return undecided("a capture that was not begun") };
                capture.1.end = at;
            }
            Element::Literal(literal) => at += literal.len(),
            Element::Set { min, max, .. } if min == max => at += *min as usize,
            Element::Bol | Element::Eol => {}
            element => at = longest(element, &elements[index + 1..], text, at, span.end, work)?,
        }
    }
    if at == span.end { Ok(found) } else { undecided("captures that do not add up") }
}

/// Returns the end of the longest piece for `element` with which the rest matches exactly to `end`.
fn longest(
    element: &Element,
    rest: &[Element],
    text: &[u8],
    at: usize,
    end: usize,
    work: &Work,
) -> Certain<usize> {
    if let Element::Group(group) = element {
        let is_bounded = |min, max| !matches!((min, max), (0, 1) | (0 | 1, MANY));
        if matches!(**group, Group::Repeat { min, max, .. } if is_bounded(min, max)) {
            return undecided("a capture beside a bounded repetition of a group");
        }
    }
    // Most candidates are refused by the literal that follows.
    let next = rest.iter().find(|element| !matches!(element, Element::Open(_) | Element::Close(_)));
    let may_follow = |at: usize| match next {
        Some(Element::Literal(literal)) => text[at..].starts_with(literal),
        _ => true,
    };
    for candidate in step(element, text, Positions::one(at), work)?.descending() {
        work.spend(1)?;
        if candidate <= end
            && may_follow(candidate)
            && sequence(rest, text, Positions::one(candidate), work)?.contains(end)
        {
            return Ok(candidate);
        }
    }
    undecided("captures that do not add up")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regex::parse::parse;
    use crate::regex::search::find;

    /// Returns the captures of a pattern whose pieces at odd indices are captured.
    fn captured(pieces: &[&str], text: &str) -> Vec<String> {
        let mut elements = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            let parsed = parse(piece.as_bytes(), false).unwrap();
            if index % 2 == 1 {
                elements.push(Element::Open(index));
                elements.extend(parsed);
                elements.push(Element::Close(index));
            } else {
                elements.extend(parsed);
            }
        }
        let work = Work::new(100_000);
        let span = find(&elements, text.as_bytes(), &work).unwrap().unwrap();
        let all = captures(&elements, text.as_bytes(), span, &work).unwrap();
        all.into_iter().map(|(_, range)| text[range].to_owned()).collect()
    }

    #[test]
    fn the_first_part_gets_the_longest_piece() {
        assert_eq!(captured(&["x", ".*", "y", ".*"], "xaybyc"), ["ayb", "c"]);
        assert_eq!(captured(&["x", "a*", "(ab)?b?"], "xaab"), ["aa"]);
        assert_eq!(captured(&["x", "a|ab", "(c|bcd)d*"], "xabcd"), ["ab"]);
        assert_eq!(captured(&["x", "[a-z]+", "[a-z]", "[a-z]*"], "xabc"), ["ab", ""]);
        assert_eq!(captured(&["x", "a?", "a*", "a*"], "xaaa"), ["a", ""]);
    }
}
