//! Python's regular expression syntax: accepted and rejected patterns, with Python's messages.
//!
//! Substitution keys are written for Python's `re`, in which for example `%{inputs}` is plain text. No Rust engine
//! reads that dialect. Named characters (`\N{...}`) are unknown here and are rejected.

use std::collections::HashMap;

use super::ast::{At, Flags, Greed, Node, Seq, any, width};
use super::escape::{self, Context};
use super::set;
use super::source::{Source, Token};
use crate::Exception;
use crate::number::int;
use crate::repr;
use crate::text::is_identifier;

/// The deepest nesting that is parsed. Python's own limit is near it.
const MAX_DEPTH: usize = 160;

/// A parsed pattern.
#[derive(Debug)]
pub struct Parsed {
    /// The content.
    pub seq: Seq,
    /// Flags that apply to all of it.
    pub flags: Flags,
    /// The number of groups, including group 0.
    pub groups: u32,
    /// Named groups.
    pub names: HashMap<String, u32>,
    /// The least and the greatest number of characters that it matches.
    pub width: (u64, u64),
    /// Whether Python warns about it.
    pub warns: bool,
}

/// The groups and flags seen so far.
#[derive(Default)]
pub struct State {
    pub flags: Flags,
    warns: bool,
    names: HashMap<String, u32>,
    /// Widths by group. `None` while it is open. Group 0 is never closed.
    widths: Vec<Option<(u64, u64)>>,
    look_behind_groups: Option<u32>,
    /// Groups that conditions refer to, with the position.
    conditions: Vec<(u32, usize)>,
}

impl State {
    /// Returns the number of groups, including group 0.
    pub fn groups(&self) -> u32 {
        self.widths.len() as u32
    }

    /// Whether the group exists and is closed.
    pub fn is_closed(&self, group: u32) -> bool {
        self.widths.get(group as usize).is_some_and(Option::is_some)
    }

    /// Rejects references inside a look-behind to groups of that look-behind, as Python does.
    pub fn check_look_behind(&self, group: u32, source: &Source) -> Result<(), Exception> {
        let Some(limit) = self.look_behind_groups else { return Ok(()) };
        if !self.is_closed(group) {
            return Err(source.error("cannot refer to an open group", 0));
        }
        if group >= limit {
            let message = "cannot refer to group defined in the same lookbehind subpattern";
            return Err(source.error(message, 0));
        }
        Ok(())
    }
}

/// Parses a pattern. `flags` are those given separately.
pub fn parse(pattern: &str, flags: Flags) -> Result<Parsed, Exception> {
    let mut parser = Parser { source: Source::new(pattern)?, state: State { flags, ..State::default() } };
    parser.state.widths.push(None);
    let seq = parser.alternatives(flags.verbose, 0)?;
    if parser.state.flags.ascii && parser.state.flags.unicode {
        return Err(Exception::value("ASCII and UNICODE flags are incompatible"));
    }
    if parser.source.peek().is_some() {
        return Err(parser.source.error("unbalanced parenthesis", 0));
    }
    let State { flags, warns, names, widths, conditions, .. } = parser.state;
    let groups = widths.len() as u32;
    if let Some(&(group, place)) = conditions.iter().find(|(group, _)| *group >= groups) {
        return Err(parser.source.error_at(format!("invalid group reference {group}"), place));
    }
    check_look_behind_widths(&seq, &widths)?;
    let width = width(&seq, &widths);
    Ok(Parsed { seq, flags, groups, names, width, warns })
}

struct Parser {
    source: Source,
    state: State,
}

impl Parser {
    fn alternatives(&mut self, mut verbose: bool, depth: usize) -> Result<Seq, Exception> {
        if depth > MAX_DEPTH {
            return Err(Exception::new("RecursionError", "maximum recursion depth exceeded"));
        }
        let mut items = Vec::new();
        loop {
            items.push(self.sequence(verbose, depth, depth == 0 && items.is_empty())?);
            if !self.source.accept('|')? {
                break;
            }
            if depth == 0 {
                verbose = self.state.flags.verbose;
            }
        }
        Ok(if items.len() == 1 { items.remove(0) } else { vec![Node::Branch(items)] })
    }

    fn sequence(&mut self, mut verbose: bool, depth: usize, first: bool) -> Result<Seq, Exception> {
        let mut seq = Seq::new();
        while let Some(token) = self.source.peek() {
            if matches!(token, Token::Char('|' | ')')) {
                break;
            }
            self.source.get()?;
            let c = match token {
                Token::Escape(c) => {
                    seq.push(escape::read(&mut self.source, c, Context::Pattern(&self.state))?);
                    continue;
                }
                Token::Char(c) => c,
            };
            match c {
                ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' if verbose => {}
                '#' if verbose => self.skip_line()?,
                '[' => seq.push(set::read(&mut self.source, &mut self.state.warns)?),
                '*' | '+' | '?' | '{' => self.repeat(c, &mut seq)?,
                '.' => seq.push(Node::Any),
                '(' => {
                    let at_start = first && seq.is_empty();
                    match self.group(verbose, depth, at_start)? {
                        Some(node) => seq.push(node),
                        None => verbose = verbose || self.state.flags.verbose,
                    }
                }
                '^' => seq.push(Node::At(At::Beginning)),
                '$' => seq.push(Node::At(At::End)),
                _ => seq.push(Node::Literal(u32::from(c))),
            }
        }
        Ok(seq)
    }

    fn skip_line(&mut self) -> Result<(), Exception> {
        while !matches!(self.source.get()?, None | Some(Token::Char('\n'))) {}
        Ok(())
    }

    fn repeat(&mut self, operator: char, seq: &mut Seq) -> Result<(), Exception> {
        let here = self.source.tell();
        let Some((min, max)) = self.bounds(operator, here)? else {
            seq.push(Node::Literal(u32::from('{')));
            return Ok(());
        };
        let offset = self.source.tell() - here + 1;
        match seq.last() {
            None | Some(Node::At(_)) => return Err(self.source.error("nothing to repeat", offset)),
            Some(Node::Repeat { .. }) => return Err(self.source.error("multiple repeat", offset)),
            Some(_) => {}
        }
        let item = seq.pop().expect("an item is there");
        let child = match item {
            Node::Group { index: None, flags: None, child } => child,
            other => vec![other],
        };
        let greed = if self.source.accept('?')? {
            Greed::Lazy
        } else if self.source.accept('+')? {
            Greed::Possessive
        } else {
            Greed::Greedy
        };
        seq.push(Node::Repeat { min, max, greed, child });
        Ok(())
    }

    /// Returns the bounds of a repetition. `None` if a brace is a plain character after all.
    fn bounds(&mut self, operator: char, here: usize) -> Result<Option<(u32, Option<u32>)>, Exception> {
        match operator {
            '?' => return Ok(Some((0, Some(1)))),
            '*' => return Ok(Some((0, None))),
            '+' => return Ok(Some((1, None))),
            _ => {}
        }
        if self.source.peek_char() == Some('}') {
            return Ok(None);
        }
        let digit = |c: char| c.is_ascii_digit();
        let lo = self.source.get_while(usize::MAX, digit)?;
        let hi = match self.source.accept(',')? {
            true => self.source.get_while(usize::MAX, digit)?,
            false => lo.clone(),
        };
        if !self.source.accept('}')? {
            self.source.seek(here)?;
            return Ok(None);
        }
        let min = if lo.is_empty() { 0 } else { repeat_count(&lo)? };
        let max = if hi.is_empty() { None } else { Some(repeat_count(&hi)?) };
        if max.is_some_and(|max| max < min) {
            let offset = self.source.tell() - here;
            return Err(self.source.error("min repeat greater than max repeat", offset));
        }
        Ok(Some((min, max)))
    }

    /// Reads the text after an opening parenthesis. Returns `None` for comments and flags.
    fn group(&mut self, verbose: bool, depth: usize, at_start: bool) -> Result<Option<Node>, Exception> {
        let start = self.source.tell() - 1;
        if !self.source.accept('?')? {
            return self.capture(None, verbose, depth, start).map(Some);
        }
        let Some(token) = self.source.get()? else {
            return Err(self.source.error("unexpected end of pattern", 0));
        };
        match token {
            Token::Char('P') => self.python_group(verbose, depth, start).map(Some),
            Token::Char(':') => {
                let child = self.close(verbose, depth, start)?;
                Ok(Some(Node::Group { index: None, flags: None, child }))
            }
            Token::Char('>') => Ok(Some(Node::Atomic(self.close(verbose, depth, start)?))),
            Token::Char('#') => self.comment(start).map(|()| None),
            Token::Char(c @ ('=' | '!')) => self.look(false, c == '!', verbose, depth, start).map(Some),
            Token::Char('<') => self.look_behind(verbose, depth, start).map(Some),
            Token::Char('(') => self.conditional(verbose, depth, start).map(Some),
            Token::Char(c) if c == '-' || escape::is_flag(c) => {
                self.flags(c, verbose, depth, start, at_start)
            }
            other => {
                let message = format!("unknown extension ?{}", other.text());
                Err(self.source.error(message, other.len() + 1))
            }
        }
    }

    fn capture(
        &mut self,
        name: Option<String>,
        verbose: bool,
        depth: usize,
        start: usize,
    ) -> Result<Node, Exception> {
        let index = self.state.groups();
        self.state.widths.push(None);
        if let Some(name) = name {
            if let Some(old) = self.state.names.get(&name) {
                let quoted = repr(&name);
                let message =
                    format!("redefinition of group name {quoted} as group {index}; was group {old}");
                return Err(self.source.error(message, name.chars().count() + 1));
            }
            self.state.names.insert(name, index);
        }
        let child = self.close(verbose, depth, start)?;
        self.state.widths[index as usize] = Some(width(&child, &self.state.widths));
        Ok(Node::Group { index: Some(index), flags: None, child })
    }

    /// Reads the content of a group and its closing parenthesis.
    fn close(&mut self, verbose: bool, depth: usize, start: usize) -> Result<Seq, Exception> {
        let child = self.alternatives(verbose, depth + 1)?;
        self.expect_close(start)?;
        Ok(child)
    }

    fn expect_close(&mut self, start: usize) -> Result<(), Exception> {
        if self.source.accept(')')? {
            return Ok(());
        }
        let offset = self.source.tell() - start;
        Err(self.source.error("missing ), unterminated subpattern", offset))
    }

    fn python_group(&mut self, verbose: bool, depth: usize, start: usize) -> Result<Node, Exception> {
        if self.source.accept('<')? {
            let name = self.source.get_until('>', "group name")?;
            self.check_name(&name)?;
            return self.capture(Some(name), verbose, depth, start);
        }
        if self.source.accept('=')? {
            let name = self.source.get_until(')', "group name")?;
            self.check_name(&name)?;
            let offset = name.chars().count() + 1;
            let Some(&group) = self.state.names.get(&name) else {
                let message = format!("unknown group name {}", repr(&name));
                return Err(self.source.error(message, offset));
            };
            if !self.state.is_closed(group) {
                return Err(self.source.error("cannot refer to an open group", offset));
            }
            self.state.check_look_behind(group, &self.source)?;
            return Ok(Node::BackReference(group));
        }
        match self.source.get()? {
            None => Err(self.source.error("unexpected end of pattern", 0)),
            Some(token) => {
                let message = format!("unknown extension ?P{}", token.text());
                Err(self.source.error(message, token.len() + 2))
            }
        }
    }

    fn check_name(&self, name: &str) -> Result<(), Exception> {
        if is_identifier(name) {
            return Ok(());
        }
        let message = format!("bad character in group name {}", repr(name));
        Err(self.source.error(message, name.chars().count() + 1))
    }

    fn comment(&mut self, start: usize) -> Result<(), Exception> {
        loop {
            if self.source.peek().is_none() {
                let offset = self.source.tell() - start;
                return Err(self.source.error("missing ), unterminated comment", offset));
            }
            if self.source.get()? == Some(Token::Char(')')) {
                return Ok(());
            }
        }
    }

    fn look(
        &mut self,
        behind: bool,
        negative: bool,
        verbose: bool,
        depth: usize,
        start: usize,
    ) -> Result<Node, Exception> {
        let child = self.close(verbose, depth, start)?;
        Ok(Node::Look { behind, negative, child })
    }

    fn look_behind(&mut self, verbose: bool, depth: usize, start: usize) -> Result<Node, Exception> {
        let negative = match self.source.get()? {
            Some(Token::Char('=')) => false,
            Some(Token::Char('!')) => true,
            None => return Err(self.source.error("unexpected end of pattern", 0)),
            Some(token) => {
                let message = format!("unknown extension ?<{}", token.text());
                return Err(self.source.error(message, token.len() + 2));
            }
        };
        let outer = self.state.look_behind_groups;
        if outer.is_none() {
            self.state.look_behind_groups = Some(self.state.groups());
        }
        let child = self.alternatives(verbose, depth + 1)?;
        if outer.is_none() {
            self.state.look_behind_groups = None;
        }
        self.expect_close(start)?;
        Ok(Node::Look { behind: true, negative, child })
    }

    fn conditional(&mut self, verbose: bool, depth: usize, start: usize) -> Result<Node, Exception> {
        let name = self.source.get_until(')', "group name")?;
        let group = self.condition_group(&name)?;
        self.state.check_look_behind(group, &self.source)?;
        let yes = self.sequence(verbose, depth + 1, false)?;
        let mut no = None;
        if self.source.accept('|')? {
            no = Some(self.sequence(verbose, depth + 1, false)?);
            if self.source.peek_char() == Some('|') {
                return Err(self.source.error("conditional backref with more than two branches", 0));
            }
        }
        self.expect_close(start)?;
        Ok(Node::Conditional { group, yes, no })
    }

    fn condition_group(&mut self, name: &str) -> Result<u32, Exception> {
        let offset = name.chars().count() + 1;
        if is_identifier(name) {
            return self
                .state
                .names
                .get(name)
                .copied()
                .ok_or_else(|| self.source.error(format!("unknown group name {}", repr(name)), offset));
        }
        let Some(number) = int(name, 10).filter(|&n| n >= 0) else {
            let message = format!("bad character in group name {}", repr(name));
            return Err(self.source.error(message, offset));
        };
        self.state.warns |= !name.bytes().all(|byte| byte.is_ascii_digit());
        if number == 0 {
            return Err(self.source.error("bad group number", offset));
        }
        let Some(group) = u32::try_from(number).ok().filter(|&n| n < 1 << 30) else {
            return Err(self.source.error(format!("invalid group reference {number}"), offset));
        };
        if self.state.conditions.iter().all(|&(known, _)| known != group) {
            self.state.conditions.push((group, self.source.tell() - offset));
        }
        Ok(group)
    }

    fn flags(
        &mut self,
        first: char,
        verbose: bool,
        depth: usize,
        start: usize,
        at_start: bool,
    ) -> Result<Option<Node>, Exception> {
        let Some((on, off)) = escape::read_flags(&mut self.source, first, &mut self.state.flags)? else {
            if !at_start {
                let offset = self.source.tell() - start;
                return Err(self.source.error("global flags not at the start of the expression", offset));
            }
            return Ok(None);
        };
        let child = self.close((verbose || on.verbose) && !off.verbose, depth, start)?;
        Ok(Some(Node::Group { index: None, flags: Some((on, off)), child }))
    }
}

fn repeat_count(digits: &str) -> Result<u32, Exception> {
    match digits.parse::<u32>() {
        Ok(count) if count < u32::MAX => Ok(count),
        _ => Err(Exception::new("OverflowError", "the repetition number is too large")),
    }
}

/// Rejects look-behinds of varying width, as Python does after parsing.
fn check_look_behind_widths(seq: &[Node], groups: &[Option<(u64, u64)>]) -> Result<(), Exception> {
    let varies = |node: &Node| match node {
        Node::Look { behind: true, child, .. } => {
            let (least, most) = width(child, groups);
            least != most
        }
        _ => false,
    };
    match any(seq, &varies) {
        true => Err(Exception::new("re.error", "look-behind requires fixed-width pattern")),
        false => Ok(()),
    }
}
