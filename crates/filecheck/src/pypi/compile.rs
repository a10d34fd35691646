//! The expression of a directive: the text that `filecheck` hands to `re.compile`.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::Request;
use super::directives::{Directive, Kind, Part};
use super::regex::Pattern;
use crate::{Certain, undecided};

/// The values of variables.
pub(super) type Variables = HashMap<String, String>;

/// A directive's expression, and the groups that variables are taken from.
#[derive(Debug)]
pub(super) struct Compiled {
    pub pattern: Pattern,
    pub captures: Vec<(String, usize)>,
}

/// Compiles a directive with the variables' values.
pub(super) fn compile(request: &Request, directive: &Directive, variables: &Variables) -> Certain<Compiled> {
    let mut text = String::new();
    let mut captures: Vec<(String, usize)> = Vec::new();
    let mut groups = 0;
    for part in &directive.parts {
        match part {
            Part::Literal(literal) => {
                let escaped = escaped(literal);
                text += &if request.strict_whitespace { escaped } else { blanks(&escaped) };
            }
            Part::Expression(expression) => {
                groups += brackets(expression);
                if expression.contains('|') {
                    let _ = write!(text, "({expression})");
                    groups += 1;
                } else {
                    text += expression;
                }
            }
            Part::Capture(name, expression) => {
                captures.retain(|(known, _)| known != name);
                captures.push((name.clone(), groups + 1));
                let _ = write!(text, "({expression})");
                groups += brackets(expression) + 1;
            }
            Part::Value(name) => match captures.iter().find(|(known, _)| known == name) {
                Some((_, group)) => _ = write!(text, "\\{group}"),
                None => match variables.get(name) {
                    Some(value) => text += &escaped(value),
                    None => return undecided("a variable without a value"),
                },
            },
        }
    }
    if request.match_full_lines {
        let blanks = if request.strict_whitespace { "" } else { "[ \\t\\v]*" };
        text = format!("(?:(?<=\\n)|(?=\\A)){blanks}{text}{blanks}(?=\\n|\\Z)");
    }
    if directive.kind == Kind::Next {
        text.insert_str(0, "\\n?[^\\n]*");
    }
    let pattern = Pattern::compile(&text)?;
    // The program counts groups by opening brackets, and so may take another one.
    if !captures.iter().all(|(_, group)| pattern.has_plain_group(*group)) {
        return undecided("a capture of a group that may not take part");
    }
    Ok(Compiled { pattern, captures })
}

/// `re.escape`.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if "()[]{}?*+-|^$\\.&~# \t\n\r\u{b}\u{c}".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// `re.sub(r"(\\ )+", " ", escaped).replace(" ", r"[ \t\v]+")`.
fn blanks(escaped: &str) -> String {
    let (mut text, mut rest) = (String::new(), escaped);
    while let Some(at) = rest.find("\\ ") {
        text += &rest[..at].replace(' ', "[ \\t\\v]+");
        text += "[ \\t\\v]+";
        rest = &rest[at..];
        while let Some(after) = rest.strip_prefix("\\ ") {
            rest = after;
        }
    }
    text + &rest.replace(' ', "[ \\t\\v]+")
}

/// The number of matches of `^\(|[^\\]\(`: the program's count of groups.
fn brackets(expression: &str) -> usize {
    let bytes = expression.as_bytes();
    let (mut count, mut at) = (0, 0);
    while at < bytes.len() {
        if at == 0 && bytes[0] == b'(' {
            (count, at) = (count + 1, at + 1);
        } else if bytes[at] != b'\\' && bytes.get(at + 1) == Some(&b'(') {
            (count, at) = (count + 1, at + 2);
        } else {
            at += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_counted_as_by_the_program() {
        for (expression, count) in
            [("(a)", 1), ("((a)b)", 1), ("x((a))", 1), ("\\(", 0), ("a(b)(c)", 2), ("", 0)]
        {
            assert_eq!(brackets(expression), count, "{expression}");
        }
        assert_eq!(blanks(&escaped("a  b\\ c")), "a[ \\t\\v]+b\\\\[ \\t\\v]+c");
    }
}
