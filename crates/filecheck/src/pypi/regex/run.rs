//! Runs a pattern: the trials of Python's engine, in its order.
//!
//! As in Python, a search has a start and an end within its text. What lies behind the end is not there; what lies before the start is
//! seen by `^` and by what looks behind.

use super::program::Step;
use super::{Pattern, Set};
use crate::{Certain, undecided};

/// Trials that are still allowed for a question.
#[derive(Debug)]
pub(in crate::pypi) struct Budget(pub u64);

/// A match: where its groups begin and end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::pypi) struct Found {
    places: Vec<(usize, usize)>,
}

impl Found {
    pub fn start(&self) -> usize {
        self.places[0].0
    }

    pub fn end(&self) -> usize {
        self.places[0].1
    }

    /// Returns the text of a plain group.
    pub fn group<'t>(&self, group: usize, text: &'t [u8]) -> &'t [u8] {
        let (start, end) = self.places[group];
        &text[start..end]
    }
}

/// What to try next if a trial fails.
enum Other {
    At(usize, usize),
    /// A span that may be one character shorter, down to the first place.
    Shorter(usize, usize, usize),
    /// One that may be longer, up to the last place.
    Longer(usize, usize, usize),
    /// A group's place as it was.
    Place(usize, (usize, usize)),
}

struct Machine<'m> {
    steps: &'m [Step],
    text: &'m [u8],
    end: usize,
    places: Vec<(usize, usize)>,
    budget: &'m mut Budget,
}

impl Pattern {
    /// Matches exactly at `start`: `match(text, start, end)`.
    pub fn match_at(
        &self,
        text: &[u8],
        start: usize,
        end: usize,
        budget: &mut Budget,
    ) -> Certain<Option<Found>> {
        let mut machine = self.machine(text, end, budget);
        let Some(end) = machine.run(start)? else { return Ok(None) };
        machine.places[0] = (start, end);
        Ok(Some(Found { places: machine.places }))
    }

    /// Finds the first match: `search(text, start, end)`.
    pub fn search(
        &self,
        text: &[u8],
        start: usize,
        end: usize,
        budget: &mut Budget,
    ) -> Certain<Option<Found>> {
        let mut machine = self.machine(text, end, budget);
        for at in start..=end {
            let next = text[..end].get(at);
            if self.first.is_some_and(|first| !next.is_some_and(|byte| first.has(*byte))) {
                continue;
            }
            if let Some(end) = machine.run(at)? {
                machine.places[0] = (at, end);
                return Ok(Some(Found { places: machine.places }));
            }
        }
        Ok(None)
    }

    fn machine<'m>(&'m self, text: &'m [u8], end: usize, budget: &'m mut Budget) -> Machine<'m> {
        Machine { steps: &self.program, text, end, places: vec![(0, 0); self.plain.len()], budget }
    }
}

impl Machine<'_> {
    /// Runs the steps from a place on. Returns where the match ends.
    fn run(&mut self, start: usize) -> Certain<Option<usize>> {
        let (mut step, mut at) = (0, start);
        let mut others = Vec::new();
        loop {
            if self.budget.0 == 0 {
                return undecided("too much work");
            }
            self.budget.0 -= 1;
            if self.steps[step] == Step::Matched {
                return Ok(Some(at));
            }
            match self.step(step, at, &mut others) {
                Some(next) => (step, at) = next,
                None => match self.back(&mut others) {
                    Some(next) => (step, at) = next,
                    None => return Ok(None),
                },
            }
        }
    }

    /// Makes one step. Returns the next one, if this is possible.
    fn step(&mut self, step: usize, at: usize, others: &mut Vec<Other>) -> Option<(usize, usize)> {
        let here = || self.text[..self.end].get(at).copied();
        let next = step + 1;
        let only_if = |holds: bool| holds.then_some((next, at));
        match self.steps[step] {
            Step::Set(set) => here().is_some_and(|byte| set.has(byte)).then_some((next, at + 1)),
            Step::Span { set, least, most, is_lazy } => {
                self.span(next, at, (set, least, most), is_lazy, others)
            }
            Step::Either(first, other) => {
                others.push(Other::At(other, at));
                Some((first, at))
            }
            Step::Jump(to) => Some((to, at)),
            Step::Begin(group) => {
                others.push(Other::Place(group, self.places[group]));
                self.places[group].0 = at;
                Some((next, at))
            }
            Step::Finish(group) => {
                others.push(Other::Place(group, self.places[group]));
                self.places[group].1 = at;
                Some((next, at))
            }
            Step::Again(group) => {
                let (start, end) = self.places[group];
                let rest = &self.text[at..self.end];
                rest.starts_with(&self.text[start..end]).then_some((next, at + (end - start)))
            }
            Step::LineStart => only_if(at == 0 || self.text[at - 1] == b'\n'),
            Step::LineEnd => only_if(here().is_none_or(|byte| byte == b'\n')),
            Step::Start => only_if(at == 0),
            Step::End => only_if(at == self.end),
            Step::Behind(set) => only_if(at > 0 && set.has(self.text[at - 1])),
            Step::Matched => None,
        }
    }

    fn span(
        &mut self,
        next: usize,
        at: usize,
        (set, least, most): (Set, u32, Option<u32>),
        is_lazy: bool,
        others: &mut Vec<Other>,
    ) -> Option<(usize, usize)> {
        let most = most.map_or(self.end, |most| self.end.min(at.saturating_add(most as usize)));
        let fits = self.text[at..most].iter().take_while(|byte| set.has(**byte)).count();
        self.budget.0 = self.budget.0.saturating_sub(fits as u64 / 8);
        let (low, high) = (at + least as usize, at + fits);
        if high < low {
            return None;
        }
        if low == high {
            return Some((next, low));
        }
        if is_lazy {
            others.push(Other::Longer(next, low + 1, high));
            return Some((next, low));
        }
        others.push(Other::Shorter(next, low, high - 1));
        Some((next, high))
    }

    /// Goes back to the last trial that is left.
    fn back(&mut self, others: &mut Vec<Other>) -> Option<(usize, usize)> {
        loop {
            match others.pop()? {
                Other::At(step, at) => return Some((step, at)),
                Other::Shorter(step, low, high) => {
                    if low < high {
                        others.push(Other::Shorter(step, low, high - 1));
                    }
                    return Some((step, high));
                }
                Other::Longer(step, low, high) => {
                    if low < high {
                        others.push(Other::Longer(step, low + 1, high));
                    }
                    return Some((step, low));
                }
                Other::Place(group, place) => self.places[group] = place,
            }
        }
    }
}
