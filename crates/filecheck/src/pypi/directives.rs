//! The directives of a check file: what `filecheck`'s parser makes of each line.

use super::Request;
use crate::{Certain, undecided};

/// A kind of directive that is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Count(u32),
    Not,
    Empty,
    Next,
    Same,
    Label,
}

/// A part of a directive's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Literal(String),
    /// An expression, in Python's syntax.
    Expression(String),
    /// A definition of a variable: its name and its expression.
    Capture(String, String),
    /// The value of a variable.
    Value(String),
}

/// A directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directive {
    pub kind: Kind,
    pub parts: Vec<Part>,
}

/// Parses the directives of a check file.
pub(super) fn parse(request: &Request, text: &str) -> Certain<Vec<Directive>> {
    let mut directives = Vec::new();
    for line in text.split('\n') {
        // A line that is none is as one that is empty.
        if !request.prefixes.iter().any(|prefix| line.contains(&**prefix)) || is_comment(request, line) {
            continue;
        }
        let Some((kind, is_literal, mut text)) = directive(request, line)? else { continue };
        if !(request.strict_whitespace && request.match_full_lines) {
            text = text.trim_matches([' ', '\t']);
        }
        if text.is_empty() && kind != Kind::Empty {
            return undecided("an empty directive");
        }
        let parts = if is_literal { vec![Part::Literal(text.to_owned())] } else { parts(text)? };
        directives.push(Directive { kind, parts });
    }
    if directives.is_empty() { undecided("no directives") } else { Ok(directives) }
}

/// Whether a comment's prefix stands before a prefix, anywhere in the line.
fn is_comment(request: &Request, line: &str) -> bool {
    let ends =
        request.comment_prefixes.iter().filter_map(|prefix| Some(line.find(&**prefix)? + prefix.len()));
    let Some(end) = ends.min() else { return false };
    request.prefixes.iter().any(|prefix| line[end..].contains(&**prefix))
}

/// Finds the first directive of a line: its kind, whether it is literal, and its text.
///
/// The expression is `(^|[^a-zA-Z-_])(A|B)(-(DAG|COUNT-\d+|…))?(\{LITERAL})?:([^\n]*)\n?`.
fn directive<'l>(request: &Request, line: &'l str) -> Certain<Option<(Kind, bool, &'l str)>> {
    let is_apart = |byte: u8| !(byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'));
    let after = line.bytes().enumerate().filter(|(_, byte)| is_apart(*byte)).map(|(at, _)| at + 1);
    for start in std::iter::once(0).chain(after) {
        for prefix in &request.prefixes {
            let Some(rest) = line[start..].strip_prefix(&**prefix) else { continue };
            let found = match suffix(rest)? {
                Some((kind, rest)) => text(rest).map(|(is_literal, text)| (kind, is_literal, text)),
                None => None,
            };
            let found =
                found.or_else(|| text(rest).map(|(is_literal, text)| (Kind::Plain, is_literal, text)));
            if found.is_some() {
                return Ok(found);
            }
        }
    }
    Ok(None)
}

/// Reads the colon, with or without `{LITERAL}` before it.
fn text(rest: &str) -> Option<(bool, &str)> {
    match rest.strip_prefix("{LITERAL}").and_then(|rest| rest.strip_prefix(':')) {
        Some(text) => Some((true, text)),
        None => Some((false, rest.strip_prefix(':')?)),
    }
}

/// Reads what tells the kind.
fn suffix(rest: &str) -> Certain<Option<(Kind, &str)>> {
    const KINDS: [(&str, Kind); 5] = [
        ("-NOT", Kind::Not),
        ("-EMPTY", Kind::Empty),
        ("-NEXT", Kind::Next),
        ("-SAME", Kind::Same),
        ("-LABEL", Kind::Label),
    ];
    // The next directive makes it print a line.
    if rest.starts_with("-DAG") {
        return undecided("CHECK-DAG");
    }
    if let Some(rest) = rest.strip_prefix("-COUNT-") {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        return match rest[..digits].parse() {
            Ok(count @ 1..=9999) => Ok(Some((Kind::Count(count), &rest[digits..]))),
            _ => undecided("a count"),
        };
    }
    Ok(KINDS.iter().find_map(|(name, kind)| Some((*kind, rest.strip_prefix(name)?))))
}

/// Splits a text as `re.split(r"(\{\{|\[\[\$?[#a-zA-Z_]|]|})", text)` does.
fn split(text: &str) -> Vec<&str> {
    let (mut pieces, mut begin, mut at) = (Vec::new(), 0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let length = match &bytes[at..] {
            [b'{', b'{', ..] => 2,
            [b'[', b'[', b'$', byte, ..] if begins_name(*byte) => 4,
            [b'[', b'[', byte, ..] if begins_name(*byte) => 3,
            [b']' | b'}', ..] => 1,
            _ => 0,
        };
        if length > 0 {
            pieces.extend([&text[begin..at], &text[at..at + length]]);
            begin = at + length;
        }
        at += length.max(1);
    }
    pieces.push(&text[begin..]);
    pieces
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'#' | b'_')
}

/// Splits a directive's text into parts.
fn parts(text: &str) -> Certain<Vec<Part>> {
    let mut parts = Vec::new();
    let mut pieces = split(text).into_iter();
    while let Some(piece) = pieces.next() {
        let mut block = piece.to_owned();
        if piece.starts_with("[[") {
            let mut brackets = 2;
            while brackets > 0 {
                let Some(more) = pieces.next() else { return undecided("a block without its end") };
                let count = |what: &str| more.matches(what).count() as i64;
                // An escaped `]` counts twice, by its expression.
                brackets += count("[") - count("\\[") - count("]") - count("\\]");
                block.push_str(more);
            }
            parts.push(variable(&block)?);
        } else if piece == "{{" {
            while !block.ends_with("}}") {
                let Some(more) = pieces.next() else { return undecided("an expression without its end") };
                block.push_str(more);
            }
            let inner = block.get(2..block.len() - 2).unwrap_or_default();
            parts.push(Part::Expression(translated(inner)?));
        } else if !piece.is_empty() {
            parts.push(Part::Literal(block));
        }
    }
    Ok(parts)
}

/// Reads `[[NAME:expression]]` or `[[NAME]]`.
fn variable(block: &str) -> Certain<Part> {
    let inner = block.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]"));
    let Some(inner) = inner else { return undecided("a block that is not known") };
    let (name, expression) = inner.split_once(':').map_or((inner, None), |(name, rest)| (name, Some(rest)));
    let bare = name.strip_prefix('$').unwrap_or(name);
    let is_name = bare.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match expression {
        _ if !is_name => undecided("a numeric block"),
        Some(expression) => Ok(Part::Capture(name.to_owned(), translated(expression)?)),
        None => Ok(Part::Value(name.to_owned())),
    }
}

/// Returns an expression as it is handed to Python: negated sets exclude line ends, by `([^\\]|^)\[\^((?!\\n))` → `\1[^\\n\2`.
fn translated(expression: &str) -> Certain<String> {
    if expression.contains("[:") || expression.contains("\\V") {
        return undecided("a class of characters");
    }
    let (mut result, mut at) = (String::new(), 0);
    let begins = |at: usize| expression[at..].starts_with("[^") && !expression[at + 2..].starts_with("\\n");
    while at < expression.len() {
        let is_here = !expression[at..].starts_with('\\') && begins(at + 1);
        let start = if is_here { Some(at + 1) } else { (at == 0 && begins(0)).then_some(0) };
        match start {
            Some(start) => {
                result.push_str(&expression[at..start]);
                result.push_str("[^\\n");
                at = start + 2;
            }
            None => {
                result.push_str(&expression[at..=at]);
                at += 1;
            }
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Certain<Vec<Directive>> {
        parse(&Request::parse(&["t"]).unwrap(), text)
    }

    #[test]
    fn lines_are_directives_or_not() {
        for (line, expected) in [
            ("CHECK: a", Some(Kind::Plain)),
            ("// CHECK-NEXT:a", Some(Kind::Next)),
            ("1CHECK-COUNT-03: a", Some(Kind::Count(3))),
            ("xCHECK: a", None),
            ("-CHECK: a", None),
            ("CHECK : a", None),
            ("CHECK-OTHER: a", None),
            ("COM: CHECK: a", None),
            ("CHECK: COM: CHECK: a", None),
            ("CHECK-x CHECK-SAME: a", Some(Kind::Same)),
        ] {
            let kind = parsed(line).ok().map(|directives| directives[0].kind);
            assert_eq!(kind, expected, "{line}");
        }
    }

    #[test]
    fn negated_sets_exclude_line_ends() {
        for (expression, expected) in [
            ("[^a]", "[^\\na]"),
            ("x[^a][^b]", "x[^\\na][^\\nb]"),
            ("\\[^a]", "\\[^a]"),
            ("[^\\na]", "[^\\na]"),
        ] {
            assert_eq!(translated(expression).unwrap(), expected);
        }
    }
}
