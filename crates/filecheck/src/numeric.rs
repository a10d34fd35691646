//! Numeric substitution blocks, `[[#%x,NAME:EXPRESSION]]`.
//!
//! Versions of LLVM differ in the width of their integers. Values beyond 62 bits are undecided, so the width has no
//! effect. Literals with octal or binary radix are undecided, too.

use crate::variables::{Variable, Variables, split_name};
use crate::{Certain, undecided};

/// The limits for nested parentheses, and for operands in all.
const MAX_DEPTH: usize = 32;
const MAX_OPERANDS: usize = 100;

/// The notation of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub kind: FormatKind,
    /// The least number of digits; 0 if none was given.
    pub precision: usize,
    /// `0x` before the digits.
    pub has_prefix: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormatKind {
    Unsigned,
    Signed,
    HexUpper,
    HexLower,
}

impl Format {
    pub const UNSIGNED: Format = Format { kind: FormatKind::Unsigned, precision: 0, has_prefix: false };

    /// Returns the regular expression that matches any number in this format.
    pub fn wildcard(self) -> String {
        let (sign, digit, first) = match self.kind {
            FormatKind::Unsigned => ("", "[0-9]", "[1-9]"),
            FormatKind::Signed => ("-?", "[0-9]", "[1-9]"),
            FormatKind::HexUpper => ("", "[0-9A-F]", "[1-9A-F]"),
            FormatKind::HexLower => ("", "[0-9a-f]", "[1-9a-f]"),
        };
        let prefix = if self.has_prefix { "0x" } else { "" };
        match self.precision {
            0 => format!("{sign}{prefix}{digit}+"),
            precision => format!("{sign}{prefix}({first}{digit}*)?{digit}{{{precision}}}"),
        }
    }

    /// Returns the number as FileCheck expects it in the input.
    pub fn write(self, value: i128) -> Certain<Vec<u8>> {
        if value < 0 && self.kind != FormatKind::Signed {
            return undecided("a negative number");
        }
        let digits = match self.kind {
            FormatKind::Unsigned | FormatKind::Signed => format!("{}", value.unsigned_abs()),
            FormatKind::HexUpper => format!("{value:X}"),
            FormatKind::HexLower => format!("{value:x}"),
        };
        let sign = if value < 0 { "-" } else { "" };
        let prefix = if self.has_prefix { "0x" } else { "" };
        let width = self.precision;
        Ok(format!("{sign}{prefix}{digits:0>width$}").into_bytes())
    }

    /// Returns the value of a number that the wildcard has matched.
    pub fn read(self, text: &[u8]) -> Certain<i128> {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        let digits = if self.has_prefix { digits.strip_prefix("0x").unwrap_or_default() } else { digits };
        let radix = match self.kind {
            FormatKind::Unsigned | FormatKind::Signed => 10,
            FormatKind::HexUpper | FormatKind::HexLower => 16,
        };
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match i128::from_str_radix(digits, radix) {
            Ok(value) if is_plain => bounded(if is_negative { -value } else { value }),
            _ => undecided("a number that cannot be read"),
        }
    }
}

/// Rejects values above which versions of LLVM differ.
fn bounded(value: i128) -> Certain<i128> {
    if value.unsigned_abs() < 1 << 62 { Ok(value) } else { undecided("a large number") }
}

/// An expression.
#[derive(Clone, Debug)]
pub(crate) enum Expression {
    Literal(i128),
    Line,
    Use(Variable),
    Binary(Operation, Box<Expression>, Box<Expression>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
}

impl Expression {
    /// Returns its value. `line` is the number of the directive's line.
    pub fn value(&self, variables: &Variables, line: Option<usize>) -> Certain<i128> {
        match self {
            Expression::Literal(value) => Ok(*value),
            Expression::Line => line.map_or_else(|| undecided("no line"), |line| Ok(line as i128)),
            Expression::Use(variable) => variables.number(*variable),
            Expression::Binary(operation, left, right) => {
                let (left, right) = (left.value(variables, line)?, right.value(variables, line)?);
                bounded(match operation {
                    Operation::Add => left + right,
                    Operation::Sub => left - right,
                    Operation::Mul => left * right,
                    Operation::Div if right == 0 => return undecided("division by zero"),
                    Operation::Div => left / right,
                    Operation::Max => left.max(right),
                    Operation::Min => left.min(right),
                })
            }
        }
    }

    /// Returns the format that its variables imply.
    fn format(&self, variables: &Variables) -> Certain<Option<Format>> {
        match self {
            Expression::Literal(_) => Ok(None),
            Expression::Line => Ok(Some(Format::UNSIGNED)),
            Expression::Use(variable) => Ok(variables.format(*variable)),
            Expression::Binary(_, left, right) => match (left.format(variables)?, right.format(variables)?) {
                (Some(left), Some(right)) if left != right => undecided("formats that differ"),
                (left, right) => Ok(left.or(right)),
            },
        }
    }

    /// Whether it uses this variable.
    pub fn uses(&self, variable: Variable) -> bool {
        match self {
            Expression::Literal(_) | Expression::Line => false,
            Expression::Use(used) => *used == variable,
            Expression::Binary(_, left, right) => left.uses(variable) || right.uses(variable),
        }
    }
}

/// A numeric block.
#[derive(Debug)]
pub(crate) struct Block {
    pub format: Format,
    pub defined: Option<Variable>,
    pub expression: Option<Expression>,
}

/// Reads the text between `[[#` and `]]`.
pub(crate) fn block(text: &[u8], variables: &mut Variables) -> Certain<Block> {
    let mut text = text;
    let mut explicit = None;
    let comma = memchr::memchr(b',', text);
    let call = memchr::memchr(b'(', text);
    if let Some(comma) = comma.filter(|&comma| call.is_none_or(|call| comma < call)) {
        explicit = Some(format(trim(&text[..comma]))?);
        text = &text[comma + 1..];
    }
    let mut name = None;
    if let Some(colon) = memchr::memchr(b':', text) {
        name = Some(trim(&text[..colon]));
        text = &text[colon + 1..];
    }
    text = trim(text);
    let constraint = text.strip_prefix(b"==");
    text = trim(constraint.unwrap_or(text));
    if constraint.is_some() && text.is_empty() {
        return undecided("a constraint without an expression");
    }
    let expression = match text.is_empty() {
        true => None,
        false => Some(whole_expression(text, variables)?),
    };
    let implied = expression.as_ref().map_or(Ok(None), |expression| expression.format(variables))?;
    let format = explicit.or(implied).unwrap_or(Format::UNSIGNED);
    let defined = name.map(|name| definition(name, format, variables)).transpose()?;
    Ok(Block { format, defined, expression })
}

/// Reads an old-style `[[@LINE+1]]`.
pub(crate) fn line_block(text: &[u8], variables: &Variables) -> Certain<Block> {
    let is_plain = text.strip_prefix(b"@LINE").is_some_and(|rest| match rest {
        [] => true,
        [b'+' | b'-', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    });
    if !is_plain {
        return undecided("an expression with @LINE");
    }
    let expression = Some(whole_expression(text, variables)?);
    Ok(Block { format: Format::UNSIGNED, defined: None, expression })
}

fn definition(name: &[u8], format: Format, variables: &mut Variables) -> Certain<Variable> {
    match split_name(name) {
        Some((whole, [])) if whole[0] != b'@' => variables.defined_number(whole, format),
        _ => undecided("the name of a number"),
    }
}

fn trim(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = text.iter().take_while(|byte| is_blank(byte)).count();
    let end = text[start..].iter().rev().take_while(|byte| is_blank(byte)).count();
    &text[start..text.len() - end]
}

fn format(text: &[u8]) -> Certain<Format> {
    let why = "a format";
    let Some(mut rest) = text.strip_prefix(b"%") else { return undecided(why) };
    let has_prefix = rest.starts_with(b"#");
    rest = &rest[usize::from(has_prefix)..];
    let mut precision = 0;
    if let Some(after) = rest.strip_prefix(b".") {
        let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
        precision = match std::str::from_utf8(&after[..digits]).ok().and_then(|digits| digits.parse().ok()) {
            Some(precision @ 1..=64) => precision,
            _ => return undecided(why),
        };
        rest = &after[digits..];
    }
    let kind = match rest {
        b"u" => FormatKind::Unsigned,
        b"d" => FormatKind::Signed,
        b"x" => FormatKind::HexLower,
        b"X" => FormatKind::HexUpper,
        _ => return undecided(why),
    };
    if has_prefix && !matches!(kind, FormatKind::HexLower | FormatKind::HexUpper) {
        return undecided(why);
    }
    Ok(Format { kind, precision, has_prefix })
}

fn whole_expression(text: &[u8], variables: &Variables) -> Certain<Expression> {
    let mut reader = Reader { text, variables, depth: 0, operands: 0 };
    let expression = reader.sum()?;
    if reader.text.is_empty() { Ok(expression) } else { undecided("an expression") }
}

struct Reader<'t, 'v> {
    text: &'t [u8],
    variables: &'v Variables,
    depth: usize,
    operands: usize,
}

impl Reader<'_, '_> {
    fn skip_blanks(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.text {
            self.text = rest;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let is_next = self.text.first() == Some(&byte);
        self.text = &self.text[usize::from(is_next)..];
        is_next
    }

    /// Reads operands joined by `+` and `-`, from left to right.
    fn sum(&mut self) -> Certain<Expression> {
        let mut left = self.operand()?;
        loop {
            let operation = if self.eat(b'+') {
                Operation::Add
            } else if self.eat(b'-') {
                Operation::Sub
            } else {
                return Ok(left);
            };
            left = Expression::Binary(operation, Box::new(left), Box::new(self.operand()?));
        }
    }

    fn operand(&mut self) -> Certain<Expression> {
        self.depth += 1;
        self.operands += 1;
        if self.depth > MAX_DEPTH || self.operands > MAX_OPERANDS {
            return undecided("an expression");
        }
        let operand = if self.eat(b'(') {
            let inner = self.sum()?;
            if self.eat(b')') { Ok(inner) } else { undecided("an expression") }
        } else if let Some((name, rest)) = split_name(self.text) {
            self.text = rest;
            if self.eat(b'(') { self.call(name) } else { self.variable(name) }
        } else {
            self.literal()
        };
        self.depth -= 1;
        operand
    }

    fn variable(&self, name: &[u8]) -> Certain<Expression> {
        match name {
            b"@LINE" => Ok(Expression::Line),
            [b'@', ..] => undecided("an unknown pseudo variable"),
            _ => self.variables.used_number(name).map(|(variable, _)| Expression::Use(variable)),
        }
    }

    fn call(&mut self, name: &[u8]) -> Certain<Expression> {
        let operation = match name {
            b"add" => Operation::Add,
            b"sub" => Operation::Sub,
            b"mul" => Operation::Mul,
            b"div" => Operation::Div,
            b"max" => Operation::Max,
            b"min" => Operation::Min,
            _ => return undecided("an unknown function"),
        };
        let left = self.sum()?;
        if !self.eat(b',') {
            return undecided("the arguments of a function");
        }
        let right = self.sum()?;
        match self.eat(b')') {
            true => Ok(Expression::Binary(operation, Box::new(left), Box::new(right))),
            false => undecided("the arguments of a function"),
        }
    }

    /// Reads a decimal number without leading zeros, or a hexadecimal one.
    fn literal(&mut self) -> Certain<Expression> {
        let (is_negative, text) = match self.text {
            [b'-', rest @ ..] => (true, rest),
            text => (false, text),
        };
        let (radix, text) = match text {
            [b'0', b'x', rest @ ..] => (16, rest),
            text => (10, text),
        };
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let digits = text.iter().take_while(is_digit).count();
        let has_zero = radix == 10 && digits > 1 && text[0] == b'0';
        let is_cut = text.get(digits).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let digits_text = std::str::from_utf8(&text[..digits]).unwrap_or_default();
        self.text = &text[digits..];
        match i128::from_str_radix(digits_text, radix) {
            Ok(value) if !has_zero && !is_cut => {
                bounded(if is_negative { -value } else { value }).map(Expression::Literal)
            }
            _ => undecided("a literal"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Certain<i128> {
        let variables = Variables::default();
        whole_expression(text.as_bytes(), &variables)?.value(&variables, Some(7))
    }

    #[test]
    fn expressions() {
        assert_eq!(value("1 + 2-4"), Ok(-1));
        assert_eq!(value("@LINE+add(0x10, (2-1))"), Ok(24));
        assert_eq!(value("div(-7,2)"), Ok(-3));
        for text in ["1*2", "010", "0b1", "add(1)", "X", "1 2", "div(1,0)", "mul(0x3fffffffffffffff,2)", "(1"]
        {
            assert!(value(text).is_err(), "{text}");
        }
    }

    #[test]
    fn formats() {
        let mut variables = Variables::default();
        let found = block(b"%#.8x, A: 10", &mut variables).unwrap();
        assert_eq!(found.format.write(10).unwrap(), b"0x0000000a");
        assert_eq!(found.format.read(b"0x0000000a"), Ok(10));
        assert!(block(b"%X, A:", &mut variables).is_err(), "another format");
        assert!(block(b"%#u, B:", &mut variables).is_err());
        assert!(block(b"A + 1", &mut variables).unwrap().format.has_prefix);
    }
}
