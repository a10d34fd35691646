//! Patterns that use a variable which they define: `[[X:[a-z]+]] = [[X]]`.
//!
//! LLVM's engine first replaces the back-reference by the expression that it refers to. For the leftmost start, it
//! takes the longest end of that, and tries assignments in order, with greedy repetitions; then shorter ends, then
//! later starts. This module does the same, for sequences of literals and sets only.

use std::ops::Range;

use super::positions::{Positions, sequence};
use super::search::each_start;
use super::{Element, MANY, Work};
use crate::{Certain, undecided};

/// Longer patterns are undecided: each element is a level of recursion.
const MAX_ELEMENTS: usize = 200;

/// LLVM's engine recurses for each repetition, and crashes when the stack is full.
const MAX_SPAN: usize = 10_000;

/// A match with its captures.
pub(crate) type Found = (Range<usize>, Vec<(usize, Range<usize>)>);

/// Returns the match of a pattern with back-references.
pub(crate) fn find(elements: &[Element], text: &[u8], work: &Work) -> Certain<Option<Found>> {
    let is_plain = |element: &Element| match element {
        // LLVM 15 and older handle other optional parts wrongly here.
        Element::Set { min, max, .. } => matches!((*min, *max), (0 | 1, MANY)) || min == max,
        Element::Literal(_) | Element::Eol | Element::Open(_) | Element::Close(_) | Element::Back(_) => true,
        _ => false,
    };
    if elements.len() > MAX_ELEMENTS || !elements.iter().all(is_plain) {
        return undecided("a back-reference in a pattern that is not plain");
    }
    let loose = without_references(elements)?;
    let mut found = None;
    each_start(&loose, text, work, &mut |start| {
        let ends = sequence(&loose, text, Positions::one(start), work)?;
        for end in ends.descending() {
            if end - start > MAX_SPAN {
                return undecided("a back-reference in a long match");
            }
            let mut matcher = Matcher { elements, text, end, work, captures: Vec::new() };
            if matcher.matches(0, start)? {
                found = Some((start..end, matcher.captures));
                return Ok(true);
            }
        }
        Ok(false)
    })?;
    Ok(found)
}

/// Returns the pattern with each reference replaced by its expression.
fn without_references(elements: &[Element]) -> Certain<Vec<Element>> {
    let mut loose: Vec<Element> = Vec::new();
    for element in elements {
        let Element::Back(number) = element else {
            loose.push(element.clone());
            continue;
        };
        let open = loose.iter().position(|e| matches!(e, Element::Open(other) if other == number));
        let close = loose.iter().position(|e| matches!(e, Element::Close(other) if other == number));
        match (open, close) {
            (Some(open), Some(close)) => loose.extend_from_within(open + 1..close),
            _ => return undecided("a back-reference within its own capture"),
        }
    }
    Ok(loose)
}

struct Matcher<'t> {
    elements: &'t [Element],
    text: &'t [u8],
    end: usize,
    work: &'t Work,
    captures: Vec<(usize, Range<usize>)>,
}

impl Matcher<'_> {
    /// Whether the parts from `index` on match exactly from `at` to the end. If so, the captures are set.
    fn matches(&mut self, index: usize, at: usize) -> Certain<bool> {
        self.work.spend(1)?;
        let Some(element) = self.elements.get(index) else { return Ok(at == self.end) };
        match element {
            Element::Literal(literal) => {
                let fits = self.text[at..self.end].starts_with(literal);
                Ok(fits && self.matches(index + 1, at + literal.len())?)
            }
            Element::Set { set, min, max } => {
                let run = self.text[at..self.end].iter().take(*max as usize);
                let run = run.take_while(|&&byte| set.contains(byte)).count();
                for length in (*min as usize..=run).rev() {
                    if self.matches(index + 1, at + length)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Element::Eol => {
                let is_end = self.text.get(at).is_none_or(|&byte| byte == b'\n');
                Ok(is_end && self.matches(index + 1, at)?)
            }
            Element::Open(number) => {
                self.captures.push((*number, at..at));
                let is_match = self.matches(index + 1, at)?;
                if !is_match {
                    self.captures.pop();
                }
                Ok(is_match)
            }
            Element::Close(number) => {
                if let Some(capture) = self.captures.iter_mut().find(|(open, _)| open == number) {
                    capture.1.end = at;
                }
                self.matches(index + 1, at)
            }
            Element::Back(number) => self.reference(*number, index, at),
            _ => undecided("a back-reference in a pattern that is not plain"),
        }
    }

    fn reference(&mut self, number: usize, index: usize, at: usize) -> Certain<bool> {
        let Some((_, range)) = self.captures.iter().find(|(open, _)| *open == number) else {
            return undecided("a back-reference without a capture");
        };
        let (length, value) = (range.len(), &self.text[range.clone()]);
        if length == 0 {
            return undecided("an empty back-reference");
        }
        let fits = self.text[at..self.end].starts_with(value);
        Ok(fits && self.matches(index + 1, at + length)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regex::parse::parse;

    fn found(text: &str) -> Option<Found> {
        let mut elements = vec![Element::Open(0)];
        elements.extend(parse(b"[a-z]+", false).unwrap());
        elements.extend([Element::Close(0), Element::Literal(b"=".to_vec()), Element::Back(0)]);
        find(&elements, text.as_bytes(), &Work::new(10_000)).unwrap()
    }

    #[test]
    fn a_long_match_is_left_to_filecheck() {
        let elements =
            [Element::Open(0), parse(b"a*", false).unwrap().remove(0), Element::Close(0), Element::Back(0)];
        let text = vec![b'a'; 2 * MAX_SPAN];
        assert!(find(&elements, &text, &Work::new(u64::MAX)).is_err());
    }

    #[test]
    fn a_reference_is_the_same_text() {
        assert_eq!(found("ab=ac xy=xyz"), Some((6..11, vec![(0, 6..8)])));
        assert_eq!(found("aab=ab"), Some((1..6, vec![(0, 1..3)])));
        assert_eq!(found("ab=cd"), None);
    }
}
