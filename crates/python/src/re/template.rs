//! Replacement templates of `re.sub`: text with `\1`, `\g<name>` and escapes.

use super::Pattern;
use super::escape::{control, is_octal, octal};
use super::source::{Source, Token};
use crate::Exception;
use crate::number::int;
use crate::repr;
use crate::text::is_identifier;

/// The replacement for a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// A fixed text.
    Literal(String),
    /// Several parts.
    Template(Vec<Part>),
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A fixed text.
    Text(String),
    /// The text of a group. Empty if the group did not match.
    Group(usize),
}

impl Replacement {
    /// Whether it contains a part of the match.
    pub(super) fn names_groups(&self) -> bool {
        match self {
            Replacement::Literal(_) => false,
            Replacement::Template(parts) => parts.iter().any(|part| matches!(part, Part::Group(1..))),
        }
    }

    /// Parses a template for a pattern.
    pub fn template(template: &str, pattern: &Pattern) -> Result<Self, Exception> {
        if !template.contains('\\') {
            return Ok(Replacement::Literal(template.to_owned()));
        }
        let mut source = Source::new(template)?;
        let mut parts = Vec::new();
        let mut text = String::new();
        while let Some(token) = source.get()? {
            let piece = match token {
                Token::Char(c) => Part::Text(c.to_string()),
                Token::Escape(c) => escape(&mut source, c, pattern)?,
            };
            match piece {
                Part::Text(more) => text.push_str(&more),
                group => {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                    parts.push(group);
                }
            }
        }
        if parts.is_empty() {
            return Ok(Replacement::Literal(text));
        }
        parts.push(Part::Text(text));
        Ok(Replacement::Template(parts))
    }
}

fn escape(source: &mut Source, c: char, pattern: &Pattern) -> Result<Part, Exception> {
    match c {
        'g' => {
            if !source.accept('<')? {
                return Err(source.error("missing <", 0));
            }
            let name = source.get_until('>', "group name")?;
            group(source, pattern, named_group(source, &name, pattern)?, name.chars().count() + 1)
        }
        '0' => {
            let digits = source.get_while(2, is_octal)?;
            let code = octal(&format!("0{digits}")) & 0xff;
            Ok(Part::Text(char::from(code as u8).to_string()))
        }
        '1'..='9' => number(source, c, pattern),
        _ => match control(c) {
            Some(control) => Ok(Part::Text(control.to_string())),
            None if c.is_ascii_alphabetic() => Err(source.error(format!("bad escape \\{c}"), 2)),
            None => Ok(Part::Text(format!("\\{c}"))),
        },
    }
}

fn number(source: &mut Source, first: char, pattern: &Pattern) -> Result<Part, Exception> {
    let mut digits = first.to_string();
    if let Some(second) = source.peek_char().filter(char::is_ascii_digit) {
        source.get()?;
        digits.push(second);
        let third = source.peek_char().filter(|&c| is_octal(c) && is_octal(first) && is_octal(second));
        if let Some(third) = third {
            source.get()?;
            digits.push(third);
            let code = octal(&digits);
            if code > 0o377 {
                let message = format!("octal escape value \\{digits} outside of range 0-0o377");
                return Err(source.error(message, 4));
            }
            return Ok(Part::Text(char::from(code as u8).to_string()));
        }
    }
    let index = digits.parse().expect("one or two digits");
    group(source, pattern, index, digits.len())
}

fn named_group(source: &Source, name: &str, pattern: &Pattern) -> Result<usize, Exception> {
    if is_identifier(name) {
        let unknown = || Exception::new("IndexError", format!("unknown group name {}", repr(name)));
        return pattern.group_named(name).ok_or_else(unknown);
    }
    let offset = name.chars().count() + 1;
    match int(name, 10) {
        Some(index @ 0..) if index < 1 << 30 => Ok(index as usize),
        Some(index @ 0..) => Err(source.error(format!("invalid group reference {index}"), offset)),
        _ => {
            let message = format!("bad character in group name {}", repr(name));
            Err(source.error(message, offset))
        }
    }
}

fn group(source: &Source, pattern: &Pattern, index: usize, offset: usize) -> Result<Part, Exception> {
    if index >= pattern.groups() {
        return Err(source.error(format!("invalid group reference {index}"), offset));
    }
    Ok(Part::Group(index))
}
