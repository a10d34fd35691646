//! Boolean expressions over features, as in REQUIRES, UNSUPPORTED, XFAIL and `%if`.
//!
//! `||`, `&&` and `!` with parentheses. An operand is a name, in which `{{...}}` is a Python pattern; it is true if it
//! matches a whole feature. Many tests of a suite repeat few expressions, so results are cached.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::RwLock;

use hotstart_python::re::Pattern;
use hotstart_python::{repr, text};

use crate::exception::Exception;

/// Deepest nesting that is parsed; Python's own limit is near it.
const MAX_DEPTH: usize = 200;

/// The features of a config, and the values of expressions over them.
#[derive(Debug)]
pub struct Features {
    names: HashSet<String>,
    known: RwLock<HashMap<String, Result<bool, Exception>>>,
}

impl Features {
    /// Creates the set of features; `true` is always one.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a String>) -> Self {
        let mut names: HashSet<String> = names.into_iter().cloned().collect();
        names.insert("true".to_owned());
        Features { names, known: RwLock::default() }
    }

    /// Evaluates an expression. Errors: `ValueError` for syntax, `re.error` for a bad pattern.
    pub fn evaluate(&self, expression: &str) -> Result<bool, Exception> {
        let poisoned = "no thread panics while it holds the lock";
        if let Some(known) = self.known.read().expect(poisoned).get(expression) {
            return known.clone();
        }
        let value = self.compute(expression);
        self.known.write().expect(poisoned).insert(expression.to_owned(), value.clone());
        value
    }

    fn compute(&self, expression: &str) -> Result<bool, Exception> {
        let mut parser = Parser { rest: expression, token: Token::End, features: self };
        parser.all().map_err(|mut error| {
            if error.kind == "ValueError" {
                error.message.push_str(&format!("\nin expression: {}", repr(expression)));
            }
            error
        })
    }

    fn matches(&self, operand: &str) -> Result<bool, Exception> {
        if !operand.contains("{{") {
            return Ok(self.names.contains(operand));
        }
        let mut pattern = String::new();
        let mut rest = operand;
        while !rest.is_empty() {
            let (piece, braced) = match braced_len(rest) {
                Some(len) => (len, true),
                None => (name_len(rest), false),
            };
            match braced {
                true => pattern.push_str(&format!("(?:{})", &rest[2..piece - 2])),
                false => rest[..piece].chars().for_each(|c| push_escaped(&mut pattern, c)),
            }
            rest = &rest[piece..];
        }
        let pattern = Pattern::full(&pattern)?;
        let mut found = false;
        for name in &self.names {
            found = found || pattern.is_match(name)?;
        }
        Ok(found)
    }
}

/// Collects the names and patterns that an expression mentions, for `--show-used-features`.
pub fn operands(expression: &str, into: &mut BTreeSet<String>) -> Result<(), Exception> {
    let mut rest = expression;
    loop {
        match next_token(&mut rest)? {
            Token::End => return Ok(()),
            Token::Operand(name) => {
                into.insert(name.to_owned());
            }
            Token::Operator(_) => {}
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Operator(&'a str),
    Operand(&'a str),
    End,
}

impl Token<'_> {
    fn shown(self) -> String {
        match self {
            Token::Operator(text) | Token::Operand(text) => repr(text),
            Token::End => "<end of expression>".to_owned(),
        }
    }
}

/// Consumes a token and the blanks around it.
fn next_token<'a>(rest: &mut &'a str) -> Result<Token<'a>, Exception> {
    let text = text::strip_start(rest);
    let len = token_len(text);
    let after = text::strip_start(&text[len..]);
    // lit's pattern requires everything after a token on one line.
    if len == 0 || after.contains('\n') {
        return match *rest {
            "" => Ok(Token::End),
            _ => Err(Exception::value(format!("couldn't parse text: {}", repr(rest)))),
        };
    }
    let token = &text[..len];
    *rest = after;
    Ok(match token {
        "(" | ")" | "&&" | "||" | "!" => Token::Operator(token),
        _ => Token::Operand(token),
    })
}

fn token_len(text: &str) -> usize {
    for operator in ["(", ")", "&&", "||", "!"] {
        if text.starts_with(operator) {
            return operator.len();
        }
    }
    let mut len = 0;
    loop {
        let rest = &text[len..];
        match name_len(rest) {
            0 => match braced_len(rest) {
                Some(more) => len += more,
                None => return len,
            },
            more => len += more,
        }
    }
}

fn name_len(text: &str) -> usize {
    let in_name = |b: u8| b.is_ascii_alphanumeric() || b"-+=._".contains(&b);
    text.bytes().position(|b| !in_name(b)).unwrap_or(text.len())
}

/// Returns the length of a pattern in double braces: the shortest one that is not empty.
fn braced_len(text: &str) -> Option<usize> {
    let content = text.strip_prefix("{{")?;
    let first = content.chars().next()?.len_utf8();
    let end = first + content[first..].find("}}")?;
    (!content[..end].contains('\n')).then_some(end + 4)
}

/// `re.escape`.
fn push_escaped(out: &mut String, c: char) {
    if "()[]{}?*+-|^$\\.&~# \t\n\r\x0b\x0c".contains(c) {
        out.push('\\');
    }
    out.push(c);
}

struct Parser<'a, 'f> {
    rest: &'a str,
    token: Token<'a>,
    features: &'f Features,
}

impl<'a> Parser<'a, '_> {
    fn advance(&mut self) -> Result<(), Exception> {
        self.token = next_token(&mut self.rest)?;
        Ok(())
    }

    fn accept(&mut self, operator: &str) -> Result<bool, Exception> {
        let found = self.token == Token::Operator(operator);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expected(&self, what: &str) -> Exception {
        Exception::value(format!("expected: {what}\nhave: {}", self.token.shown()))
    }

    fn all(&mut self) -> Result<bool, Exception> {
        self.advance()?;
        let value = self.or(0)?;
        match self.token {
            Token::End => Ok(value),
            _ => Err(self.expected("<end of expression>")),
        }
    }

    fn or(&mut self, depth: usize) -> Result<bool, Exception> {
        let mut value = self.and(depth)?;
        while self.accept("||")? {
            value |= self.and(depth)?;
        }
        Ok(value)
    }

    fn and(&mut self, depth: usize) -> Result<bool, Exception> {
        let mut value = self.not(depth)?;
        while self.accept("&&")? {
            value &= self.not(depth)?;
        }
        Ok(value)
    }

    fn not(&mut self, depth: usize) -> Result<bool, Exception> {
        if depth > MAX_DEPTH {
            return Err(Exception::new("RecursionError", "maximum recursion depth exceeded"));
        }
        if self.accept("!")? {
            return Ok(!self.not(depth + 1)?);
        }
        if self.accept("(")? {
            let value = self.or(depth + 1)?;
            if !self.accept(")")? {
                return Err(self.expected("')'"));
            }
            return Ok(value);
        }
        let Token::Operand(name) = self.token else {
            return Err(self.expected("'!', '(', '{{', or identifier"));
        };
        let value = self.features.matches(name)?;
        self.advance()?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(names: &[&str]) -> Features {
        let names: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
        Features::new(&names)
    }

    fn error(expression: &str) -> String {
        features(&[]).evaluate(expression).expect_err("a syntax error").message
    }

    #[test]
    fn operators_bind_as_in_c() {
        let all = features(&["a", "b-1", "e=q"]);
        let value = |expression| all.evaluate(expression).unwrap();
        assert!(value("a && no || true") && value("!no && !!a") && !value("a && (no || !true)"));
        assert!(value(" b-1 ") && value("e=q") && !value("b"));
    }

    #[test]
    fn braces_hold_patterns_that_match_whole_features() {
        let all = features(&["target=x86_64-linux", "system-10.12"]);
        let value = |expression| all.evaluate(expression).unwrap();
        assert!(value("target={{x86.*|arm.*}}") && !value("target={{x86}}"));
        assert!(value("{{s}}ystem-10.{{1[0-2]}}") && !value("system.10{{.*}}") && value("{{.*}}-{{.*}}"));
    }

    #[test]
    fn errors_are_worded_like_lits() {
        assert_eq!(error("ba#d"), "couldn't parse text: '#d'\nin expression: 'ba#d'");
        assert_eq!(error("a b"), "expected: <end of expression>\nhave: 'b'\nin expression: 'a b'");
        let operand = "expected: '!', '(', '{{', or identifier\nhave: <end of expression>";
        assert_eq!(error("a &&"), format!("{operand}\nin expression: 'a &&'"));
        assert_eq!(error("(a"), "expected: ')'\nhave: <end of expression>\nin expression: '(a'");
        assert_eq!(error("{{}}"), "couldn't parse text: '{{}}'\nin expression: '{{}}'");
        let bad = features(&[]).evaluate("{{*}}").unwrap_err();
        assert_eq!(bad.to_string(), "re.error: nothing to repeat at position 3");
    }

    #[test]
    fn operands_are_listed() {
        let mut found = BTreeSet::new();
        operands("!a && (b-{{c|d}} || a)", &mut found).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a", "b-{{c|d}}"]);
    }
}
