//! Matches the directives against the input, in FileCheck's order.
//!
//! Anything that would make FileCheck fail makes the attempt undecided.

use std::ops::Range;

use crate::directives::{Kind, directives};
use crate::numeric;
use crate::options::Request;
use crate::pattern::{Mode, Pattern};
use crate::regex::Work;
use crate::variables::{Variables, split_name};
use crate::{Certain, undecided};

/// Units of work for one decision, each a few nanoseconds. The test's deadline is not checked during it.
const WORK: u64 = 50_000_000;

/// A `CHECK-NOT` or `CHECK-DAG`.
#[derive(Debug)]
enum Before {
    Not(usize),
    Dag(usize),
}

/// A directive that advances in the input, and the directives that come before it.
#[derive(Debug)]
struct Step {
    kind: Kind,
    count: u32,
    /// Its pattern. `None` for `CHECK-EMPTY`, and for the end of the input.
    pattern: Option<usize>,
    is_end: bool,
    before: Vec<Before>,
}

/// A parsed check file.
#[derive(Debug)]
pub(crate) struct Checks {
    patterns: Vec<Pattern>,
    steps: Vec<Step>,
    variables: Variables,
}

impl Checks {
    /// Reads the directives of a check file.
    pub fn parse(request: &Request, text: &[u8]) -> Certain<Checks> {
        let mut variables = Variables::default();
        for definition in &request.defines {
            define(definition, &mut variables)?;
        }
        let mut reader = Reader { request, variables, patterns: Vec::new() };
        let mut implicit = Vec::new();
        for pattern in &request.implicit_check_not {
            let mode = Mode { is_literal: false, is_full_line: false, line: None };
            implicit.push(reader.pattern(pattern.as_bytes(), mode)?);
        }
        let implicit = || implicit.iter().map(|&pattern| Before::Not(pattern)).collect::<Vec<_>>();
        let mut steps: Vec<Step> = Vec::new();
        let mut before = implicit();
        for directive in directives(text, request)? {
            let is_not = directive.kind == Kind::Not;
            let mode = Mode {
                is_literal: directive.is_literal,
                is_full_line: request.match_full_lines && !is_not,
                line: Some(directive.line),
            };
            let pattern = reader.directive(directive.kind, directive.pattern, mode)?;
            if matches!(directive.kind, Kind::Next | Kind::Same | Kind::Empty) && steps.is_empty() {
                return undecided("a directive that continues nothing");
            }
            match (directive.kind, pattern) {
                (Kind::Not, Some(pattern)) => before.push(Before::Not(pattern)),
                (Kind::Dag, Some(pattern)) => before.push(Before::Dag(pattern)),
                (Kind::Not | Kind::Dag, None) => return undecided("a directive without a pattern"),
                (kind @ (Kind::Plain | Kind::Next | Kind::Same | Kind::Label | Kind::Empty), pattern) => {
                    let before = std::mem::replace(&mut before, implicit());
                    steps.push(Step { kind, count: directive.count, pattern, is_end: false, before });
                }
            }
        }
        if !before.is_empty() {
            steps.push(Step { kind: Kind::Plain, count: 1, pattern: None, is_end: true, before });
        }
        Ok(Checks { patterns: reader.patterns, steps, variables: reader.variables })
    }

    /// Returns `Ok` if everything matches.
    pub fn pass(self, request: &Request, input: &[u8]) -> Certain<()> {
        let lower = request.ignore_case.then(|| input.to_ascii_lowercase());
        let Checks { patterns, steps, variables } = self;
        let input = Input { text: lower.as_deref().unwrap_or(input), original: input };
        let allows_overlap = request.allow_dag_overlap;
        let mut run = Run { patterns: &patterns, input, variables, work: Work::new(WORK), allows_overlap };
        let (mut done, mut from) = (0, 0);
        loop {
            let label = steps[done..].iter().position(|step| step.kind == Kind::Label).map(|at| done + at);
            // A label ends its region and is matched again within it. The next label comes after it.
            let until = label.map_or(steps.len(), |at| at + 1);
            let mut region = from..input.text.len();
            if let Some(label) = label {
                region.end = run.label(&steps[label], region.clone())?;
            }
            from = region.end;
            if done != 0 && request.enable_var_scope {
                run.variables.clear_locals();
            }
            for step in &steps[done..until] {
                region.start = run.step(step, region.clone())?;
            }
            done = until;
            if label.is_none() {
                return Ok(());
            }
        }
    }
}

struct Reader<'r> {
    request: &'r Request,
    variables: Variables,
    patterns: Vec<Pattern>,
}

impl Reader<'_> {
    /// Whether blanks at the ends of lines count.
    fn is_exact(&self) -> bool {
        self.request.strict_whitespace && self.request.match_full_lines
    }

    fn pattern(&mut self, text: &[u8], mode: Mode) -> Certain<usize> {
        let blanks = text.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let text = if self.is_exact() { text } else { &text[..text.len() - blanks] };
        self.patterns.push(Pattern::parse(text, mode, self.request, &mut self.variables)?);
        Ok(self.patterns.len() - 1)
    }

    /// Reads the pattern of a directive. `CHECK-EMPTY` must have none.
    fn directive(&mut self, kind: Kind, text: &[u8], mode: Mode) -> Certain<Option<usize>> {
        if kind == Kind::Empty {
            let is_empty = text.iter().all(|byte| matches!(byte, b' ' | b'\t'));
            let is_empty = is_empty && (text.is_empty() || !self.is_exact());
            return if is_empty { Ok(None) } else { undecided("text after an empty directive") };
        }
        let pattern = self.pattern(text, mode)?;
        if kind == Kind::Label && self.patterns[pattern].has_variables() {
            return undecided("a label with variables");
        }
        Ok(Some(pattern))
    }
}

/// Records a definition of the command line.
fn define(definition: &str, variables: &mut Variables) -> Certain<()> {
    let why = "a definition that is not plain";
    let Some((name, value)) = definition.split_once('=') else { return undecided(why) };
    if let Some(name) = name.strip_prefix('#') {
        let block = numeric::block(format!("{name}:{value}").as_bytes(), variables)?;
        let (Some(variable), Some(expression)) = (block.defined, block.expression) else {
            return undecided(why);
        };
        if variables.number(variable).is_ok() {
            return undecided("a variable defined twice");
        }
        let value = expression.value(variables, None)?;
        variables.set_number(variable, value);
        return Ok(());
    }
    match split_name(name.as_bytes()) {
        Some((whole, [])) if whole[0] != b'@' => {
            let variable = variables.string(whole)?;
            if variables.text(variable).is_ok() {
                return undecided("a variable defined twice");
            }
            variables.set_text(variable, value.as_bytes());
            Ok(())
        }
        _ => undecided(why),
    }
}

/// The input in the form that is compared, and the original.
#[derive(Clone, Copy)]
struct Input<'i> {
    text: &'i [u8],
    original: &'i [u8],
}

/// One pass over the input.
struct Run<'c> {
    patterns: &'c [Pattern],
    input: Input<'c>,
    variables: Variables,
    work: Work,
    allows_overlap: bool,
}

impl Run<'_> {
    /// Returns the first match of a pattern within a region. The pattern sees nothing outside.
    fn find(&mut self, pattern: usize, region: Range<usize>) -> Certain<Option<Range<usize>>> {
        let (text, original) = (&self.input.text[region.clone()], &self.input.original[region.clone()]);
        let found = self.patterns[pattern].find(text, original, &mut self.variables, &self.work)?;
        Ok(found.map(|found| region.start + found.start..region.start + found.end))
    }

    fn expect(&mut self, pattern: usize, region: Range<usize>) -> Certain<Range<usize>> {
        self.find(pattern, region)?.map_or_else(|| undecided("no match"), Ok)
    }

    /// Finds a label before the directives that precede it. Returns the match's end.
    fn label(&mut self, step: &Step, region: Range<usize>) -> Certain<usize> {
        self.matches(step, region).map(|found| found.end)
    }

    /// Matches a directive as often as it requires. Returns the range from the first start to the last end.
    fn matches(&mut self, step: &Step, region: Range<usize>) -> Certain<Range<usize>> {
        if step.is_end {
            return Ok(region.end..region.end);
        }
        let Some(pattern) = step.pattern else { return self.empty_line(region) };
        let mut all = self.expect(pattern, region.clone())?;
        for _ in 1..step.count {
            all.end = self.expect(pattern, all.end..region.end)?.end;
        }
        Ok(all)
    }

    /// Returns the start of the first empty line after a line end.
    fn empty_line(&self, region: Range<usize>) -> Certain<Range<usize>> {
        let text = &self.input.text[region.clone()];
        let mut ends = memchr::memchr_iter(b'\n', text);
        let found = ends.find(|&end| text.get(end + 1).is_none_or(|&byte| byte == b'\n'));
        match found {
            Some(end) => Ok(region.start + end + 1..region.start + end + 1),
            None => undecided("no match"),
        }
    }

    /// Matches one directive and those before it. Returns the start of the region for the next.
    fn step(&mut self, step: &Step, region: Range<usize>) -> Certain<usize> {
        let (start, nots) = self.before(&step.before, region.clone())?;
        let found = self.matches(step, start..region.end)?;
        let skipped = start..found.start;
        let is_counted = matches!(step.kind, Kind::Next | Kind::Empty | Kind::Same);
        let text = &self.input.text[if is_counted { skipped.clone() } else { 0..0 }];
        let lines = memchr::memchr_iter(b'\n', text).count();
        match step.kind {
            Kind::Next | Kind::Empty if lines != 1 => return undecided("not on the next line"),
            Kind::Same if lines != 0 => return undecided("not on the same line"),
            Kind::Next | Kind::Empty | Kind::Same | Kind::Plain | Kind::Label => {}
            Kind::Not | Kind::Dag => return undecided("a directive that is no step"),
        }
        self.absent(&nots, skipped)?;
        Ok(found.end)
    }

    /// Matches the `CHECK-DAG`s and `CHECK-NOT`s before a directive. Returns the start of the region for that
    /// directive, and the patterns that must not match before it.
    fn before(&mut self, before: &[Before], region: Range<usize>) -> Certain<(usize, Vec<usize>)> {
        let mut start = region.start;
        let mut nots: Vec<usize> = Vec::new();
        // The matches of the current group of DAGs, in order.
        let mut taken: Vec<Range<usize>> = Vec::new();
        for (index, one) in before.iter().enumerate() {
            let pattern = match one {
                Before::Not(pattern) => {
                    nots.push(*pattern);
                    continue;
                }
                Before::Dag(pattern) => *pattern,
            };
            self.dag(pattern, start..region.end, &mut taken)?;
            if !matches!(before.get(index + 1), Some(Before::Dag(_))) {
                let skipped = start..taken[0].start.max(start);
                self.absent(&nots, skipped)?;
                nots.clear();
                start = taken[taken.len() - 1].end;
                taken.clear();
            }
        }
        Ok((start, nots))
    }

    /// Finds a match that overlaps no other of its group, and adds it to them.
    fn dag(&mut self, pattern: usize, region: Range<usize>, taken: &mut Vec<Range<usize>>) -> Certain<()> {
        let mut from = region.start;
        let mut at = 0;
        loop {
            let found = self.expect(pattern, from..region.end)?;
            if self.allows_overlap {
                match taken.first_mut() {
                    Some(all) => *all = all.start.min(found.start)..all.end.max(found.end),
                    None => taken.push(found),
                }
                return Ok(());
            }
            while taken.get(at).is_some_and(|other| found.start >= other.end) {
                at += 1;
            }
            match taken.get(at) {
                Some(other) if other.start < found.end => from = other.end,
                _ => {
                    taken.insert(at, found);
                    return Ok(());
                }
            }
            at += 1;
        }
    }

    fn absent(&mut self, nots: &[usize], region: Range<usize>) -> Certain<()> {
        for &pattern in nots {
            if self.find(pattern, region.clone())?.is_some() {
                return undecided("an excluded match");
            }
        }
        Ok(())
    }
}
