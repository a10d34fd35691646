//! Finds the directives in a check file: the place of a prefix, the directive's kind, and the pattern after it.
//!
//! Where LLVM's versions differ, or FileCheck would complain, the check is undecided, and FileCheck runs.

use memchr::memmem::Finder;

use crate::options::Request;
use crate::{Certain, undecided};

/// The kinds of directives that have a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Next,
    Same,
    Not,
    Dag,
    Label,
    Empty,
}

/// A directive of a check file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Directive<'t> {
    pub kind: Kind,
    pub count: u32,
    pub is_literal: bool,
    pub pattern: &'t [u8],
    /// Its line, counted from 1.
    pub line: usize,
}

/// The meaning of the text after a prefix.
enum Suffix<'t> {
    /// It is no directive.
    None,
    Comment(&'t [u8]),
    Directive(Kind, u32, bool, &'t [u8]),
}

/// The next occurrences of all prefixes.
struct Prefixes<'p> {
    /// Longest first, with the next known occurrence.
    list: Vec<(usize, Finder<'p>, Option<usize>)>,
}

impl<'p> Prefixes<'p> {
    fn new(all: &[&'p str], text: &[u8]) -> Self {
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(all[index].len()));
        let list = order.into_iter().map(|index| {
            let finder = Finder::new(all[index].as_bytes());
            let first = finder.find(text);
            (index, finder, first)
        });
        Prefixes { list: list.collect() }
    }

    /// Returns the place of the first occurrence from `from` on, and its prefix. The longest prefix wins.
    fn next(&mut self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        let mut best: Option<(usize, usize)> = None;
        for (index, finder, place) in &mut self.list {
            if place.is_some_and(|at| at < from) {
                *place = finder.find(&text[from..]).map(|at| from + at);
            }
            match *place {
                Some(at) if best.is_none_or(|(other, _)| at < other) => best = Some((at, *index)),
                _ => {}
            }
        }
        best
    }
}

/// Returns all directives with the prefixes of the request, in the order of the file.
pub(crate) fn directives<'t>(text: &'t [u8], request: &Request) -> Certain<Vec<Directive<'t>>> {
    let names: Vec<&str> =
        request.prefixes.iter().chain(&request.comment_prefixes).map(String::as_str).collect();
    let mut prefixes = Prefixes::new(&names, text);
    let mut is_used = vec![false; request.prefixes.len()];
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some((place, index)) = prefixes.next(text, at) {
        line += memchr::memchr_iter(b'\n', &text[at..place]).count();
        let is_word_start = place == at || !is_part_of_word(text[place - 1]);
        let after = place + names[index].len();
        let suffix = if is_word_start {
            suffix(&text[after..], index >= request.prefixes.len())?
        } else {
            Suffix::None
        };
        let (rest, directive) = match suffix {
            Suffix::None => {
                let skipped = text[after..].iter().take_while(|&&byte| is_part_of_word(byte)).count();
                at = after + skipped;
                continue;
            }
            Suffix::Comment(rest) => (rest, None),
            Suffix::Directive(kind, count, is_literal, rest) => (rest, Some((kind, count, is_literal))),
        };
        if rest.is_empty() && directive.is_some() {
            // At the very end of the file, FileCheck takes the directive's own name as its pattern.
            return undecided("a directive at the end of the file");
        }
        let pattern = pattern_text(rest, request);
        at = offset(text, pattern) + pattern.len();
        if let Some((kind, count, is_literal)) = directive {
            is_used[index] = true;
            found.push(Directive { kind, count, is_literal, pattern, line });
        }
    }
    check_use(&is_used, request)?;
    Ok(found)
}

/// Returns the offset of `part` in the `text` that contains it. Parts are suffixes cut at their ends.
fn offset(text: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

/// Returns the rest of the line without leading blanks.
fn pattern_text<'t>(rest: &'t [u8], request: &Request) -> &'t [u8] {
    let blanks = match request.strict_whitespace && request.match_full_lines {
        true => 0,
        false => rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count(),
    };
    let rest = &rest[blanks..];
    &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())]
}

/// Rejects prefixes without a directive, as FileCheck does, with its exceptions.
fn check_use(is_used: &[bool], request: &Request) -> Certain<()> {
    let some = is_used.contains(&true);
    let all = !is_used.contains(&false);
    let may_be_unused = !request.implicit_check_not.is_empty() && request.has_default_prefix;
    if may_be_unused || (some && (all || request.allow_unused_prefixes)) {
        return Ok(());
    }
    undecided("a prefix without a directive")
}

fn is_part_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Reads the text after a prefix. It is undecided if FileCheck would complain.
fn suffix(rest: &[u8], is_comment: bool) -> Certain<Suffix<'_>> {
    if let Some(rest) = rest.strip_prefix(b":") {
        return Ok(match is_comment {
            true => Suffix::Comment(rest),
            false => Suffix::Directive(Kind::Plain, 1, false, rest),
        });
    }
    if is_comment || rest.is_empty() {
        return Ok(Suffix::None);
    }
    if rest[0] == b'{' {
        return modifiers(rest, Kind::Plain, 1);
    }
    if let Some(rest) = rest.strip_prefix(b"_") {
        // Newer versions refuse `CHECK_NEXT:`, older ones ignore it.
        return match named(rest)? {
            Suffix::None => Ok(Suffix::None),
            _ => undecided("a directive with an underscore"),
        };
    }
    rest.strip_prefix(b"-").map_or(Ok(Suffix::None), named)
}

/// Reads a directive's name and the text after it.
fn named(rest: &[u8]) -> Certain<Suffix<'_>> {
    if let Some(rest) = rest.strip_prefix(b"COUNT-") {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let count = std::str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok());
        return match (count, rest.get(digits)) {
            (Some(count @ 1..=100_000), Some(b':' | b'{')) => modifiers(&rest[digits..], Kind::Plain, count),
            _ => undecided("a count that is not plain"),
        };
    }
    const PAIRS: [&[u8]; 8] = [
        b"DAG-NOT:",
        b"NOT-DAG:",
        b"NEXT-NOT:",
        b"NOT-NEXT:",
        b"SAME-NOT:",
        b"NOT-SAME:",
        b"EMPTY-NOT:",
        b"NOT-EMPTY:",
    ];
    if PAIRS.iter().any(|pair| rest.starts_with(pair)) {
        return undecided("two directives in one");
    }
    const NAMES: [(&[u8], Kind); 6] = [
        (b"NEXT", Kind::Next),
        (b"SAME", Kind::Same),
        (b"NOT", Kind::Not),
        (b"DAG", Kind::Dag),
        (b"LABEL", Kind::Label),
        (b"EMPTY", Kind::Empty),
    ];
    for (name, kind) in NAMES {
        if let Some(rest) = rest.strip_prefix(name) {
            return modifiers(rest, kind, 1);
        }
    }
    Ok(Suffix::None)
}

/// Reads `:` or `{LITERAL}:`. Anything else in braces is undecided.
fn modifiers(rest: &[u8], kind: Kind, count: u32) -> Certain<Suffix<'_>> {
    if let Some(rest) = rest.strip_prefix(b":") {
        return Ok(Suffix::Directive(kind, count, false, rest));
    }
    if let Some(rest) = rest.strip_prefix(b"{LITERAL}:") {
        return Ok(Suffix::Directive(kind, count, true, rest));
    }
    if rest.starts_with(b"{") { undecided("modifiers") } else { Ok(Suffix::None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, args: &[&str]) -> Certain<Vec<(Kind, String, usize)>> {
        let request = Request::parse(args, None).unwrap();
        let all = directives(text.as_bytes(), &request)?;
        let shown = |d: &Directive<'_>| (d.kind, String::from_utf8_lossy(d.pattern).into_owned(), d.line);
        Ok(all.iter().map(shown).collect())
    }

    #[test]
    fn prefixes_stand_at_the_start_of_words() {
        let text = "; RUN: CHECK: no\n; xCHECK: no\n; CHECK: a\n;CHECK-NEXT:  b \n; CHECK-FOO: no\n; COM: CHECK: no\n";
        let expected = [(Kind::Plain, "a".to_owned(), 3), (Kind::Next, "b ".to_owned(), 4)];
        assert_eq!(found(text, &["t"]).unwrap(), expected);
    }

    #[test]
    fn the_longest_prefix_counts() {
        let text = "FOO-NOT: a\nFOO-NOT-NOT: b\nFOO: c";
        let expected = [
            (Kind::Plain, "a".to_owned(), 1),
            (Kind::Not, "b".to_owned(), 2),
            (Kind::Plain, "c".to_owned(), 3),
        ];
        assert_eq!(found(text, &["t", "--check-prefixes=FOO,FOO-NOT"]).unwrap(), expected);
    }

    #[test]
    fn complaints_are_undecided() {
        for text in ["CHECK-NOT-NEXT: a", "CHECK-COUNT-0: a", "CHECK_NEXT: a", "CHECK{BAD}: a", "nothing"] {
            assert!(found(text, &["t"]).is_err(), "{text}");
        }
        assert!(found("A: x", &["t", "--check-prefixes=A,B"]).is_err());
        assert!(found("A: x", &["t", "--check-prefixes=A,B", "--allow-unused-prefixes"]).is_ok());
    }
}
