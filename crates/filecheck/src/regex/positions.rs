//! Sets of positions in a text, as sorted intervals, and how each part of an expression maps one to the next.

use memchr::memmem;

use super::{ByteSet, Element, Group, MANY, Work};
use crate::{Certain, undecided};

/// Positions in a text: intervals with both ends included, in order, neither touching nor overlapping.
///
/// Most sets have one interval, so the first needs no memory of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Positions {
    first: Option<(usize, usize)>,
    /// Empty if there is no first one.
    more: Vec<(usize, usize)>,
}

impl Positions {
    pub fn one(place: usize) -> Self {
        Positions { first: Some((place, place)), more: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the number of intervals.
    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    fn intervals(&self) -> impl DoubleEndedIterator<Item = (usize, usize)> + '_ {
        self.first.iter().chain(&self.more).copied()
    }

    pub fn contains(&self, place: usize) -> bool {
        self.intervals().any(|(low, high)| low <= place && place <= high)
    }

    pub fn last(&self) -> Option<usize> {
        self.intervals().next_back().map(|(_, high)| high)
    }

    /// Iterates from the last to the first.
    pub fn descending(&self) -> impl Iterator<Item = usize> + '_ {
        self.intervals().rev().flat_map(|(low, high)| (low..=high).rev())
    }

    /// Adds an interval that begins no earlier than the last one.
    fn push(&mut self, low: usize, high: usize) {
        let last = match self.more.last_mut() {
            Some(last) => last,
            None => self.first.get_or_insert((low, high)),
        };
        if low <= last.1.saturating_add(1) {
            last.1 = last.1.max(high);
        } else {
            self.more.push((low, high));
        }
    }

    fn union(all: Vec<Positions>) -> Self {
        all.iter().flat_map(Positions::intervals).collect()
    }

    /// Returns the positions for which `is_in` holds.
    fn filter(&self, work: &Work, is_in: impl Fn(usize) -> bool) -> Certain<Self> {
        let mut kept = Positions::default();
        for (low, high) in self.intervals() {
            work.spend(high - low + 1)?;
            (low..=high).filter(|&place| is_in(place)).for_each(|place| kept.push(place, place));
        }
        Ok(kept)
    }
}

impl FromIterator<(usize, usize)> for Positions {
    /// Takes intervals in any order.
    fn from_iter<I: IntoIterator<Item = (usize, usize)>>(intervals: I) -> Self {
        let mut intervals: Vec<_> = intervals.into_iter().collect();
        intervals.sort_unstable();
        let mut all = Positions::default();
        intervals.into_iter().for_each(|(low, high)| all.push(low, high));
        all
    }
}

/// Returns the possible ends of a sequence that begins at any of `from`.
pub(crate) fn sequence(
    elements: &[Element],
    text: &[u8],
    from: Positions,
    work: &Work,
) -> Certain<Positions> {
    let mut at = from;
    for element in elements {
        if at.is_empty() {
            break;
        }
        at = step(element, text, at, work)?;
    }
    Ok(at)
}

/// Returns the possible ends of one part that begins at any of `from`.
pub(crate) fn step(element: &Element, text: &[u8], from: Positions, work: &Work) -> Certain<Positions> {
    work.spend(from.len() + 1)?;
    match element {
        Element::Literal(literal) => literals(literal, text, &from, work),
        Element::Set { set, min, max } => sets(*set, (*min as usize, *max), text, &from, work),
        Element::Bol => from.filter(work, |at| at == 0 || text[at - 1] == b'\n'),
        Element::Eol => from.filter(work, |at| text.get(at).is_none_or(|&byte| byte == b'\n')),
        Element::Group(group) => match &**group {
            Group::Either(all) => {
                let ends = all.iter().map(|one| sequence(one, text, from.clone(), work));
                Ok(Positions::union(ends.collect::<Certain<_>>()?))
            }
            Group::Repeat { body, min, max } => repeat(body, (*min, *max), text, from, work),
        },
        Element::Open(_) | Element::Close(_) => Ok(from),
        Element::Text(_) | Element::Number(_) | Element::Back(_) => undecided("a value that is not known"),
    }
}

fn literals(literal: &[u8], text: &[u8], from: &Positions, work: &Work) -> Certain<Positions> {
    let mut ends = Positions::default();
    for (low, high) in from.intervals() {
        if low == high {
            work.spend(1)?;
            if text[low..].starts_with(literal) {
                ends.push(low + literal.len(), low + literal.len());
            }
            continue;
        }
        let mut at = low;
        let stop = (high + literal.len()).min(text.len());
        while at <= high {
            let Some(next) = memmem::find(&text[at..stop], literal) else { break };
            work.spend(next + 1)?;
            at += next;
            ends.push(at + literal.len(), at + literal.len());
            at += 1;
        }
        work.spend(stop.saturating_sub(at))?;
    }
    Ok(ends)
}

fn sets(
    set: ByteSet,
    (min, max): (usize, u32),
    text: &[u8],
    from: &Positions,
    work: &Work,
) -> Certain<Positions> {
    let mut ends = Positions::default();
    for (low, high) in from.intervals() {
        let mut start = low;
        while start <= high {
            // All starts within one run of the set's bytes are treated together: their ends form one interval.
            let bound = if max == MANY { usize::MAX } else { (high - start).saturating_add(max as usize) };
            let run = run(set, &text[start..], bound);
            work.spend(run + 1)?;
            let run_end = start + run;
            if run >= min {
                let last_start = high.min(run_end - min);
                let last_end = if max == MANY { run_end } else { run_end.min(last_start + max as usize) };
                // Starts ascend, and so do their first ends.
                ends.push(start + min, last_end);
            }
            start = run_end + 1;
        }
    }
    Ok(ends)
}

/// Returns how many bytes at the start of the text are in the set, at most `bound`.
fn run(set: ByteSet, text: &[u8], bound: usize) -> usize {
    let text = &text[..bound.min(text.len())];
    if set == ByteSet::any() {
        return memchr::memchr(b'\n', text).unwrap_or(text.len());
    }
    text.iter().position(|&byte| !set.contains(byte)).unwrap_or(text.len())
}

/// Adds one round after another until a round finds nothing new.
fn repeat(
    body: &[Element],
    (min, max): (u32, u32),
    text: &[u8],
    from: Positions,
    work: &Work,
) -> Certain<Positions> {
    let mut at = from;
    for _ in 0..min {
        at = sequence(body, text, at, work)?;
    }
    let mut all = at.clone();
    let mut rounds = min;
    while rounds < max && !at.is_empty() {
        at = sequence(body, text, at, work)?;
        work.spend(all.len() + at.len())?;
        let union = Positions::union(vec![all.clone(), at.clone()]);
        if union == all {
            break;
        }
        all = union;
        rounds += 1;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regex::parse::parse;

    fn ends(pattern: &str, text: &str, from: usize) -> Vec<usize> {
        let elements = parse(pattern.as_bytes(), false).unwrap();
        let work = Work::new(100_000);
        let ends = sequence(&elements, text.as_bytes(), Positions::one(from), &work).unwrap();
        let mut ends: Vec<usize> = ends.descending().collect();
        ends.reverse();
        ends
    }

    #[test]
    fn all_ends_are_found() {
        assert_eq!(ends("a*", "aaab", 0), [0, 1, 2, 3]);
        assert_eq!(ends("a*a", "aaab", 0), [1, 2, 3]);
        assert_eq!(ends(".*b", "abab\nb", 0), [2, 4]);
        assert_eq!(ends("(ab|a)(c|bcd)", "abcd", 0), [3, 4]);
        assert_eq!(ends("(ab)+", "ababa", 0), [2, 4]);
        assert_eq!(ends("(a|b){2,3}", "abab", 0), [2, 3]);
        assert_eq!(ends(".*x{2,3}", "axxxx", 0), [3, 4, 5]);
        assert_eq!(ends("a$", "a\n", 0), [1]);
        assert!(ends("b", "ab", 0).is_empty());
    }

    #[test]
    fn bounded_sets_from_an_interval() {
        let set = ByteSet::one(b'a');
        let work = Work::new(1000);
        let from = Positions::from_iter([(0, 2)]);
        let found = sets(set, (1, 2), b"aaaaaa", &from, &work).unwrap();
        assert_eq!(found, Positions::from_iter([(1, 4)]));
        let found = sets(set, (2, 2), b"aabaaa", &Positions::from_iter([(0, 5)]), &work).unwrap();
        assert_eq!(found, Positions::from_iter([(5, 6), (2, 2)]));
    }
}
