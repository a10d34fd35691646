//! The pattern of a directive: fixed text, `{{regular expressions}}` and `[[substitution blocks]]`.

use std::borrow::Cow;
use std::ops::Range;

use crate::numeric::{self, Block, Format};
use crate::options::Request;
use crate::regex::parse::parse;
use crate::regex::{ByteSet, Element, MANY, Work, backref, captures, search};
use crate::variables::{Variable, Variables, split_name};
use crate::{Certain, undecided};

/// LLVM numbers back-references with one digit, and counts more groups than this crate does.
const MAX_GROUPS_WITH_REFERENCES: usize = 9;

/// A pattern with more definitions is undecided.
const MAX_DEFINITIONS: usize = 100;

/// The variable that receives a capture.
#[derive(Debug)]
enum Definition {
    Text(Variable),
    Number(Variable, Format),
}

/// A parsed pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    elements: Vec<Element>,
    definitions: Vec<Definition>,
    has_values: bool,
    has_references: bool,
    ignores_case: bool,
    /// An upper bound of LLVM's number of groups.
    groups: usize,
    /// Its line. `None` for `--implicit-check-not`.
    line: Option<usize>,
}

/// The way to read a pattern.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    pub is_literal: bool,
    pub is_full_line: bool,
    pub line: Option<usize>,
}

impl Pattern {
    /// Reads a pattern and registers its variables.
    pub fn parse(text: &[u8], mode: Mode, request: &Request, variables: &mut Variables) -> Certain<Pattern> {
        if text.is_empty() {
            return undecided("an empty pattern");
        }
        let mut builder = Builder {
            pattern: Pattern {
                elements: Vec::new(),
                definitions: Vec::new(),
                has_values: false,
                has_references: false,
                ignores_case: request.ignore_case,
                groups: 0,
                line: mode.line,
            },
            variables,
        };
        if mode.is_literal && mode.is_full_line {
            return undecided("a literal pattern for full lines");
        }
        let blanks = Element::Set { set: ByteSet::one(b' '), min: 0, max: MANY };
        if mode.is_full_line {
            builder.push(Element::Bol);
            if !request.strict_whitespace {
                builder.push(blanks.clone());
            }
        }
        match mode.is_literal {
            true => builder.fixed(text),
            false => builder.pieces(text)?,
        }
        if mode.is_full_line {
            if !request.strict_whitespace {
                builder.push(blanks);
            }
            builder.push(Element::Eol);
        }
        if builder.pattern.definitions.len() > MAX_DEFINITIONS {
            return undecided("many definitions");
        }
        if builder.pattern.has_references && request.ignore_case {
            // Back-references compare bytes even if case is ignored.
            return undecided("a back-reference where case is ignored");
        }
        if builder.pattern.has_references && builder.pattern.groups > MAX_GROUPS_WITH_REFERENCES {
            return undecided("many groups and a back-reference");
        }
        Ok(builder.pattern)
    }

    /// Whether it defines or uses variables.
    pub fn has_variables(&self) -> bool {
        self.has_values || self.has_references || !self.definitions.is_empty()
    }

    /// Returns the first match in the text, if there is one. The definitions take their values from `original`, which
    /// differs from `text` only if case is ignored.
    pub fn find(
        &self,
        text: &[u8],
        original: &[u8],
        variables: &mut Variables,
        work: &Work,
    ) -> Certain<Option<Range<usize>>> {
        let elements = self.with_values(variables)?;
        if self.has_references {
            let Some((span, pieces)) = backref::find(&elements, text, work)? else { return Ok(None) };
            self.define(&pieces, original, variables)?;
            return Ok(Some(span));
        }
        let Some(span) = search::find(&elements, text, work)? else { return Ok(None) };
        if !self.definitions.is_empty() {
            let pieces = captures::captures(&elements, text, span.clone(), work)?;
            self.define(&pieces, original, variables)?;
        }
        Ok(Some(span))
    }

    fn define(
        &self,
        pieces: &[(usize, Range<usize>)],
        original: &[u8],
        variables: &mut Variables,
    ) -> Certain<()> {
        if pieces.len() != self.definitions.len() {
            return undecided("captures that do not add up");
        }
        for (number, range) in pieces {
            match &self.definitions[*number] {
                Definition::Text(variable) => variables.set_text(*variable, &original[range.clone()]),
                Definition::Number(variable, format) => {
                    variables.set_number(*variable, format.read(&original[range.clone()])?);
                }
            }
        }
        Ok(())
    }

    /// Returns the elements with the values of variables filled in.
    fn with_values(&self, variables: &Variables) -> Certain<Cow<'_, [Element]>> {
        if !self.has_values {
            return Ok(Cow::Borrowed(&self.elements));
        }
        let mut filled: Vec<Element> = Vec::with_capacity(self.elements.len());
        for element in &self.elements {
            let value = match element {
                Element::Text(variable) => Cow::Borrowed(variables.text(*variable)?),
                Element::Number(number) => Cow::Owned(number.0.write(number.1.value(variables, self.line)?)?),
                Element::Literal(text) => Cow::Borrowed(text.as_slice()),
                element => {
                    filled.push(element.clone());
                    continue;
                }
            };
            let value = if self.ignores_case { Cow::Owned(value.to_ascii_lowercase()) } else { value };
            match filled.last_mut() {
                Some(Element::Literal(before)) => before.extend_from_slice(&value),
                _ => filled.push(Element::Literal(value.into_owned())),
            }
        }
        if filled.iter().all(|element| matches!(element, Element::Literal(text) if text.is_empty())) {
            // LLVM treats an empty expression as an error, so it matches nothing.
            return undecided("an expression that is empty");
        }
        Ok(Cow::Owned(filled))
    }
}

struct Builder<'v> {
    pattern: Pattern,
    variables: &'v mut Variables,
}

impl Builder<'_> {
    fn push(&mut self, element: Element) {
        self.pattern.elements.push(element);
    }

    fn fixed(&mut self, text: &[u8]) {
        let elements = &mut self.pattern.elements;
        if !matches!(elements.last(), Some(Element::Literal(_))) && !text.is_empty() {
            elements.push(Element::Literal(Vec::with_capacity(text.len())));
        }
        let Some(Element::Literal(literal)) = elements.last_mut() else { return };
        match self.pattern.ignores_case {
            true => literal.extend(text.iter().map(u8::to_ascii_lowercase)),
            false => literal.extend_from_slice(text),
        }
    }

    /// Reads a regular expression, which LLVM may turn into a group.
    fn expression(&mut self, text: &[u8]) -> Certain<Vec<Element>> {
        self.pattern.groups += 1 + text.iter().filter(|&&byte| byte == b'(').count();
        parse(text, self.pattern.ignores_case)
    }

    fn pieces(&mut self, text: &[u8]) -> Certain<()> {
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix(b"{{") {
                let Some(end) = memchr::memmem::find(after, b"}}") else {
                    return undecided("a regular expression without an end");
                };
                let elements = self.expression(&after[..end])?;
                self.pattern.elements.extend(elements);
                rest = &after[end + 2..];
            } else if rest.starts_with(b"[[") && !rest.starts_with(b"[[[") {
                let end = block_end(&rest[2..])?;
                self.block(&rest[2..2 + end])?;
                rest = &rest[end + 4..];
            } else {
                let next =
                    |mark: &[u8]| memchr::memmem::find(&rest[1..], mark).map_or(rest.len(), |at| at + 1);
                let (fixed, after) = rest.split_at(next(b"{{").min(next(b"[[")));
                self.fixed(fixed);
                rest = after;
            }
        }
        Ok(())
    }

    fn block(&mut self, text: &[u8]) -> Certain<()> {
        if let Some(numeric) = text.strip_prefix(b"#") {
            let block = numeric::block(numeric, self.variables)?;
            return self.number(block);
        }
        let Some((name, rest)) = split_name(text) else { return undecided("a substitution block") };
        match (name[0], rest) {
            (b'@', _) => {
                let block = numeric::line_block(text, self.variables)?;
                self.number(block)
            }
            (_, []) => self.string_use(name),
            (_, [b':', expression @ ..]) => self.string_definition(name, expression),
            _ => undecided("a substitution block"),
        }
    }

    fn string_use(&mut self, name: &[u8]) -> Certain<()> {
        let variable = self.variables.string(name)?;
        let own =
            self.pattern.definitions.iter().position(|d| matches!(d, Definition::Text(v) if *v == variable));
        self.push(own.map_or(Element::Text(variable), Element::Back));
        self.pattern.has_references |= own.is_some();
        self.pattern.has_values |= own.is_none();
        Ok(())
    }

    fn string_definition(&mut self, name: &[u8], expression: &[u8]) -> Certain<()> {
        let variable = self.variables.string(name)?;
        if self.pattern.definitions.iter().any(|d| matches!(d, Definition::Text(v) if *v == variable)) {
            return undecided("a variable defined twice in a pattern");
        }
        let elements = match expression {
            [] => Vec::new(),
            expression => self.expression(expression)?,
        };
        self.capture(Definition::Text(variable), elements);
        Ok(())
    }

    fn capture(&mut self, definition: Definition, elements: Vec<Element>) {
        let number = self.pattern.definitions.len();
        self.pattern.groups += 1;
        self.pattern.definitions.push(definition);
        self.push(Element::Open(number));
        self.pattern.elements.extend(elements);
        self.push(Element::Close(number));
    }

    fn number(&mut self, block: Block) -> Certain<()> {
        if self.pattern.ignores_case {
            return undecided("numbers where case is ignored");
        }
        let Block { format, defined, expression } = block;
        let numbers = || {
            self.pattern.definitions.iter().filter_map(|definition| match definition {
                Definition::Number(variable, _) => Some(*variable),
                Definition::Text(_) => None,
            })
        };
        let is_used = |expression: &numeric::Expression| {
            numbers().chain(defined).any(|variable| expression.uses(variable))
        };
        if expression.as_ref().is_some_and(is_used) || numbers().any(|variable| Some(variable) == defined) {
            return undecided("a number that is defined and used in one pattern");
        }
        let elements = match expression {
            Some(expression) => {
                self.pattern.has_values = true;
                vec![Element::Number(Box::new((format, expression)))]
            }
            None => self.expression(format.wildcard().as_bytes())?,
        };
        match defined {
            Some(variable) => self.capture(Definition::Number(variable, format), elements),
            None => self.pattern.elements.extend(elements),
        }
        Ok(())
    }
}

/// Returns the position of the `]]` that ends a substitution block, skipping brackets within it.
fn block_end(text: &[u8]) -> Certain<usize> {
    let (mut at, mut depth) = (0, 0u32);
    while at < text.len() {
        match text[at] {
            b']' if depth == 0 && text.get(at + 1) == Some(&b']') => return Ok(at),
            b']' if depth == 0 => return undecided("an unbalanced bracket"),
            b']' => depth -= 1,
            b'[' => depth += 1,
            b'\\' => at += 1,
            _ => {}
        }
        at += 1;
    }
    undecided("a substitution block without an end")
}
