//! The checks, in the order and with the positions of `filecheck`'s matcher.

use std::collections::VecDeque;

use super::Request;
use super::compile::{Compiled, Variables, compile};
use super::directives::{Directive, Kind};
use super::regex::{Budget, Found};
use crate::{Certain, undecided};

/// Trials for one question.
const BUDGET: u64 = 4_000_000;
const NO_MATCH: &str = "no match";

/// The part of the input in which a directive may match. Without labels it has no end.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: usize,
    end: usize,
}

struct Matcher<'m> {
    request: &'m Request,
    input: &'m [u8],
    range: Range,
    /// Those behind the labels.
    ranges: VecDeque<Range>,
    variables: Variables,
    /// The CHECK-NOTs that wait for the next match, and where they begin.
    nots: Option<(usize, Vec<&'m Directive>)>,
    budget: Budget,
}

/// Returns `Ok` if all checks pass, and nothing is printed.
pub(super) fn pass(request: &Request, directives: &[Directive], input: &str) -> Certain<()> {
    if input.is_empty() || (input == "\n" && !request.allow_empty) {
        return undecided("empty input");
    }
    let mut matcher = Matcher {
        request,
        input: input.as_bytes(),
        range: Range { start: 0, end: usize::MAX },
        ranges: VecDeque::new(),
        variables: request.defines.iter().cloned().collect(),
        nots: None,
        budget: Budget(BUDGET),
    };
    matcher.find_labels(directives)?;
    for directive in directives {
        matcher.directive(directive)?;
    }
    // The last character is not looked at.
    matcher.range.start = input.len() - 1;
    matcher.complete(Kind::Plain)
}

impl<'m> Matcher<'m> {
    fn directive(&mut self, directive: &'m Directive) -> Certain<()> {
        match directive.kind {
            Kind::Next => {
                self.skip_to_line_end()?;
                self.check(directive, Where::Here)?;
            }
            Kind::Plain => self.check(directive, Where::Anywhere)?,
            Kind::Same => self.check(directive, Where::InLine)?,
            Kind::Count(count) => {
                for _ in 0..count {
                    self.check(directive, Where::Anywhere)?;
                }
            }
            Kind::Not => self.nots.get_or_insert((self.range.start, Vec::new())).1.push(directive),
            Kind::Empty => self.empty()?,
            Kind::Label => {
                self.check_nots(self.range.end)?;
                match self.ranges.pop_front() {
                    Some(range) => self.range = range,
                    None => return undecided("a label too many"),
                }
            }
        }
        self.complete(directive.kind)
    }

    /// Divides the input at the labels.
    fn find_labels(&mut self, directives: &[Directive]) -> Certain<()> {
        let mut last = self.range;
        let mut is_first = true;
        for directive in directives.iter().filter(|directive| directive.kind == Kind::Label) {
            let compiled = compile(self.request, directive, &Variables::new())?;
            let found = self.search(&compiled, last)?;
            let next = Range { start: found.end(), end: last.end };
            last.end = found.start();
            match is_first {
                true => self.range = last,
                false => self.ranges.push_back(last),
            }
            (last, is_first) = (next, false);
        }
        if !is_first {
            self.ranges.push_back(last);
        }
        Ok(())
    }

    /// Returns the first match in a range. Without one, filecheck fails.
    fn search(&mut self, compiled: &Compiled, range: Range) -> Certain<Found> {
        match self.look(compiled, range)? {
            Some(found) => Ok(found),
            None => undecided(NO_MATCH),
        }
    }

    fn look(&mut self, compiled: &Compiled, range: Range) -> Certain<Option<Found>> {
        let Range { start, end } = self.clipped(range)?;
        compiled.pattern.search(self.input, start, end, &mut self.budget)
    }

    /// Returns a range as `re` takes it.
    fn clipped(&self, range: Range) -> Certain<Range> {
        let length = self.input.len();
        let (start, end) = (range.start.min(length), range.end.min(length));
        if start > end { undecided("a range that is none") } else { Ok(Range { start, end }) }
    }

    /// Matches a directive, goes behind the match, and takes the variables from it.
    fn check(&mut self, directive: &Directive, place: Where) -> Certain<()> {
        let compiled = compile(self.request, directive, &self.variables)?;
        let found = match place {
            Where::Anywhere => self.search(&compiled, self.range)?,
            Where::InLine => {
                let Range { start, end } = self.clipped(self.range)?;
                let line = memchr::memchr(b'\n', &self.input[start..end]);
                // In a last line without an end, this is the end of the range.
                self.search(&compiled, Range { start, end: line.map_or(self.range.end, |at| start + at) })?
            }
            Where::Here => {
                let Range { start, end } = self.clipped(self.range)?;
                match compiled.pattern.match_at(self.input, start, end, &mut self.budget)? {
                    Some(found) => found,
                    None => return undecided(NO_MATCH),
                }
            }
        };
        self.move_to(found.end())?;
        for (name, group) in compiled.captures {
            let value = std::str::from_utf8(found.group(group, self.input)).or(undecided("a value"))?;
            // It prints a warning.
            if value.is_empty() {
                return undecided("a capture of nothing");
            }
            self.variables.insert(name, value.to_owned());
        }
        Ok(())
    }

    fn move_to(&mut self, place: usize) -> Certain<()> {
        if place < self.range.start || place > self.range.end {
            return undecided("a place outside of the range");
        }
        self.range.start = place;
        Ok(())
    }

    /// At the very start, there is no line to be left.
    fn skip_to_line_end(&mut self) -> Certain<()> {
        if self.range.start == 0 {
            return Ok(());
        }
        let rest = self.input.get(self.range.start..).unwrap_or_default();
        match memchr::memchr(b'\n', rest) {
            Some(at) => self.move_to(self.range.start + at),
            None => undecided("a line without its end"),
        }
    }

    fn empty(&mut self) -> Certain<()> {
        if !self.request.match_full_lines {
            self.skip_to_line_end()?;
        }
        let rest = self.input.get(self.range.start..).unwrap_or_default();
        if !rest.starts_with(b"\n\n") && !rest.iter().all(|byte| *byte == b'\n') {
            return undecided(NO_MATCH);
        }
        self.move_to(self.range.start + 1)
    }

    /// What follows each directive.
    fn complete(&mut self, kind: Kind) -> Certain<()> {
        if kind != Kind::Not {
            // The text that has just matched is looked at, too.
            self.check_nots(self.range.start)?;
        }
        let start = self.range.start;
        let is_line_end = self.input.get(start) == Some(&b'\n') || start + 1 >= self.input.len();
        if self.request.match_full_lines && !is_line_end {
            return undecided("not at the end of a line");
        }
        Ok(())
    }

    /// Requires that none of the waiting CHECK-NOTs matches before `end`.
    fn check_nots(&mut self, end: usize) -> Certain<()> {
        let Some((start, nots)) = self.nots.take() else { return Ok(()) };
        for directive in nots {
            let compiled = compile(self.request, directive, &self.variables)?;
            if self.look(&compiled, Range { start, end })?.is_some() {
                return undecided(NO_MATCH);
            }
        }
        Ok(())
    }
}

/// Where a directive has to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Here,
    InLine,
    Anywhere,
}
