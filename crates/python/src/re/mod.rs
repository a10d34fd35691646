//! `re`: its dialect, its errors, its `sub`.
//!
//! Patterns are parsed by Python's rules. The common simple ones are then matched directly (`direct`), all others by
//! fancy-regex after translation (`translate`). Text is UTF-8, so a pattern can never match a lone surrogate.

pub mod ast;
mod direct;
mod escape;
mod parse;
mod set;
mod source;
mod template;
mod translate;

use std::collections::HashMap;

use fancy_regex::{Regex, RegexBuilder};

pub use self::ast::Flags;
use self::ast::Node;
use self::direct::Direct;
pub use self::template::{Part, Replacement};
use crate::Exception;

/// The limit of steps for one match. Python has no limit; this takes minutes.
const BACKTRACK_LIMIT: usize = if cfg!(feature = "fuzzing") { 20_000 } else { 200_000_000 };

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern {
    groups: usize,
    names: HashMap<String, u32>,
    literal: String,
    warns: bool,
    /// Whether matches, or only their groups, may differ from Python's.
    ends_differ: bool,
    groups_differ: bool,
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    Direct(Box<Direct>),
    Regex {
        search: Box<Regex>,
        /// Finds only matches that do not end where the search began. For patterns that can match nothing.
        advance: Option<Box<Regex>>,
    },
}

/// A match: start and end of each group. `None` is a group that took no part.
type Groups = Vec<Option<(usize, usize)>>;

impl Pattern {
    /// Compiles a pattern. Errors are Python's.
    pub fn new(pattern: &str) -> Result<Self, Exception> {
        Self::with_flags(pattern, Flags::default())
    }

    /// Compiles a pattern with flags given separately.
    pub fn with_flags(pattern: &str, flags: Flags) -> Result<Self, Exception> {
        Self::build(pattern, flags, true, "", "")
    }

    /// Compiles a pattern that must match all of a text, as with `re.fullmatch`.
    pub fn full(pattern: &str) -> Result<Self, Exception> {
        Self::build(pattern, Flags::default(), false, r"\A", r"\z")
    }

    /// Compiles a pattern that must match from the start of a text, as with `re.match`.
    pub fn at_start(pattern: &str) -> Result<Self, Exception> {
        Self::build(pattern, Flags::default(), false, r"\A", "")
    }

    /// Compiles without the direct matcher, to compare the two matchers.
    pub fn without_shortcut(pattern: &str) -> Result<Self, Exception> {
        Self::build(pattern, Flags::default(), false, "", "")
    }

    fn build(pattern: &str, flags: Flags, direct: bool, head: &str, tail: &str) -> Result<Self, Exception> {
        let parsed = parse::parse(pattern, flags)?;
        let shortcut = if direct { Direct::new(&parsed.seq, parsed.flags) } else { None };
        let engine = match shortcut {
            Some(direct) => Engine::Direct(Box::new(direct)),
            None => {
                let translated = translate::translate(&parsed.seq, parsed.flags)
                    .map_err(|what| unsupported(pattern, what))?;
                let search = regex(pattern, &format!("{head}(?:{translated}){tail}"))?;
                let advance = match parsed.width.0 {
                    0 => Some(regex(pattern, &format!(r"(?:{translated})(?!\G)"))?),
                    _ => None,
                };
                Engine::Regex { search, advance }
            }
        };
        let literal = match &engine {
            Engine::Direct(direct) => String::from_utf8_lossy(direct.literal()).into_owned(),
            Engine::Regex { .. } if parsed.flags.ignore_case => String::new(),
            Engine::Regex { .. } => required_literal(&parsed.seq),
        };
        Ok(Pattern {
            groups: parsed.groups as usize,
            names: parsed.names,
            literal,
            warns: parsed.warns,
            ends_differ: translate::ends_differ(&parsed.seq),
            groups_differ: translate::groups_differ(&parsed.seq),
            engine,
        })
    }

    /// Returns the number of groups, including the whole match.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Returns a text that every match contains. Empty if none is known.
    pub fn literal(&self) -> &str {
        &self.literal
    }

    /// Returns the number of the group of this name.
    pub fn group_named(&self, name: &str) -> Option<usize> {
        self.names.get(name).map(|&group| group as usize)
    }

    /// Whether Python warns about the pattern on standard error.
    pub fn warns(&self) -> bool {
        self.warns
    }

    /// Whether it matches anywhere, as with `re.search`, or where `full` or `at_start` require.
    pub fn is_match(&self, text: &str) -> Result<bool, Exception> {
        match &self.engine {
            Engine::Direct(direct) => Ok(direct.find(text, 0).is_some()),
            Engine::Regex { search, .. } => search.is_match(text).map_err(|e| gave_up(&e)),
        }
    }

    /// `re.sub`. Returns `None` if nothing matches.
    pub fn sub(&self, replacement: &Replacement, text: &str) -> Result<Option<String>, Exception> {
        match (&self.engine, replacement) {
            (Engine::Direct(direct), Replacement::Literal(value)) => Ok(replace_direct(direct, value, text)),
            _ => self.sub_general(replacement, text),
        }
    }

    fn sub_general(&self, replacement: &Replacement, text: &str) -> Result<Option<String>, Exception> {
        if self.ends_differ || self.groups_differ && replacement.names_groups() {
            // Whether it matches is the same in both engines.
            return match self.is_match(text)? {
                false => Ok(None),
                true => {
                    Err(Exception::unsupported("repetitions of what may match nothing are not replaced here"))
                }
            };
        }
        let mut out = String::new();
        let mut copied = 0;
        let mut from = 0;
        let mut must_advance = false;
        let mut any = false;
        while let Some(groups) = self.find(text, from, must_advance)? {
            let (start, end) = groups[0].expect("a match has a span");
            any = true;
            out.push_str(&text[copied..start]);
            match replacement {
                Replacement::Literal(value) => out.push_str(value),
                Replacement::Template(parts) => expand(&mut out, parts, &groups, text),
            }
            copied = end;
            from = end;
            // After an empty match, Python looks for a non-empty one at the same place.
            must_advance = start == end;
        }
        if !any {
            return Ok(None);
        }
        out.push_str(&text[copied..]);
        Ok(Some(out))
    }

    fn find(&self, text: &str, from: usize, must_advance: bool) -> Result<Option<Groups>, Exception> {
        match &self.engine {
            Engine::Direct(direct) => Ok(direct.find(text, from).map(|span| {
                let mut groups = vec![None; self.groups];
                groups[0] = Some(span);
                groups
            })),
            Engine::Regex { search, advance } => {
                let regex = advance.as_ref().filter(|_| must_advance).unwrap_or(search);
                let captures = regex.captures_from_pos(text, from).map_err(|e| gave_up(&e))?;
                let span = |group: fancy_regex::Match<'_>| (group.start(), group.end());
                Ok(captures.map(|c| (0..self.groups).map(|i| c.get(i).map(span)).collect()))
            }
        }
    }
}

fn replace_direct(direct: &Direct, value: &str, text: &str) -> Option<String> {
    let (mut start, mut end) = direct.find(text, 0)?;
    let mut out = String::with_capacity(text.len() + value.len());
    let mut copied = 0;
    loop {
        out.push_str(&text[copied..start]);
        out.push_str(value);
        copied = end;
        match direct.find(text, end) {
            Some(next) => (start, end) = next,
            None => break,
        }
    }
    out.push_str(&text[copied..]);
    Some(out)
}

fn expand(out: &mut String, parts: &[Part], groups: &Groups, text: &str) {
    for part in parts {
        match part {
            Part::Text(value) => out.push_str(value),
            Part::Group(index) => {
                if let Some((start, end)) = groups[*index] {
                    out.push_str(&text[start..end]);
                }
            }
        }
    }
}

fn regex(pattern: &str, translated: &str) -> Result<Box<Regex>, Exception> {
    let built = RegexBuilder::new(translated).backtrack_limit(BACKTRACK_LIMIT).build();
    built.map(Box::new).map_err(|e| unsupported(pattern, &e.to_string()))
}

fn unsupported(pattern: &str, what: &str) -> Exception {
    let pattern = crate::repr(pattern);
    Exception::unsupported(format!("the regular expression {pattern} is not supported: {what}"))
}

fn gave_up(error: &fancy_regex::Error) -> Exception {
    Exception::unsupported(format!("a regular expression was given up: {error}"))
}

/// Returns the longest text that every match must contain.
fn required_literal(seq: &[Node]) -> String {
    let mut best = String::new();
    let mut run = String::new();
    gather(seq, &mut run, &mut best);
    keep_longer(&mut run, &mut best);
    best
}

fn gather(seq: &[Node], run: &mut String, best: &mut String) {
    for node in seq {
        match node {
            Node::Literal(c) => match char::from_u32(*c) {
                Some(c) => run.push(c),
                None => keep_longer(run, best),
            },
            // These consume no text, so the text on both sides is adjacent.
            Node::At(_) | Node::Look { .. } => {}
            Node::Group { flags: None, child, .. } => gather(child, run, best),
            Node::Atomic(child) => gather(child, run, best),
            Node::Repeat { min: 1.., child, .. } => {
                keep_longer(run, best);
                gather(child, run, best);
                keep_longer(run, best);
            }
            _ => keep_longer(run, best),
        }
    }
}

fn keep_longer(run: &mut String, best: &mut String) {
    if run.len() > best.len() {
        std::mem::swap(run, best);
    }
    run.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sub(pattern: &str, template: &str, text: &str) -> String {
        let pattern = Pattern::new(pattern).expect("a valid pattern");
        let replacement = Replacement::template(template, &pattern).expect("a valid template");
        let out = pattern.sub(&replacement, text).expect("a match or none");
        out.unwrap_or_else(|| text.to_owned())
    }

    fn error(pattern: &str) -> String {
        Pattern::new(pattern).expect_err("an invalid pattern").to_string()
    }

    #[test]
    fn braces_are_plain_unless_they_repeat() {
        assert_eq!(sub("%{fs-sep}", "/", "a%{fs-sep}b"), "a/b");
        assert_eq!(sub("x{,2}y", "-", "xxxy"), "x-");
        assert_eq!(sub(r"\<a\>", "-", "<a>"), "-");
    }

    #[test]
    fn empty_matches_follow_python() {
        assert_eq!(sub("x*", "-", "abxd"), "-a-b--d-");
        assert_eq!(sub("|a", "-", "aa"), "-----");
        assert_eq!(sub("", "-", "é"), "-é-");
    }

    #[test]
    fn what_may_end_elsewhere_is_refused_where_it_matches() {
        let pattern = Pattern::new("=(?:a??)+").unwrap();
        let replacement = Replacement::Literal("-".to_owned());
        assert_eq!(pattern.sub(&replacement, "aa"), Ok(None));
        assert!(pattern.sub(&replacement, "=aa").is_err_and(|error| error.is_unsupported()));
    }

    #[test]
    fn tool_names_are_guarded() {
        let key = r"(?<!(\.|\-|\^|/|\\|<))\bllc\b(?!(\-|\.))";
        assert!(matches!(Pattern::new(key).unwrap().engine, Engine::Direct(_)));
        assert_eq!(sub(key, "L", "llc /llc llc-x xllc llc"), "L /llc llc-x xllc L");
        assert_eq!(
            sub(r"\b(?<![\.\-])(?<!-flavor\s)ld\.lld\b", "L", "ld.lld -flavor ld.lld"),
            "L -flavor ld.lld"
        );
    }

    #[test]
    fn templates_name_groups() {
        assert_eq!(sub(r"%{global:(?P<n>\w+)}\((.*)\)", r"@(\g<2>)\1\g<n>", "%{global:p}(x)"), "@(x)pp");
        assert_eq!(sub("(a)|b", r"[\1]", "ab"), "[a][]");
        assert_eq!(sub("a", r"\n\\\/\101\0", "a"), "\n\\\\/A\0");
        let pattern = Pattern::new("a").unwrap();
        let bad = |template| Replacement::template(template, &pattern).unwrap_err().to_string();
        assert_eq!(bad(r"x\q"), r"re.error: bad escape \q at position 1");
        assert_eq!(bad(r"\1"), "re.error: invalid group reference 1 at position 1");
        assert_eq!(bad(r"\g<no>"), "IndexError: unknown group name 'no'");
    }

    #[test]
    fn errors_are_pythons() {
        assert_eq!(error("a("), "re.error: missing ), unterminated subpattern at position 1");
        assert_eq!(error("*"), "re.error: nothing to repeat at position 0");
        assert_eq!(error("a**"), "re.error: multiple repeat at position 2");
        assert_eq!(error("\n["), "re.error: unterminated character set at position 1 (line 2, column 1)");
        assert_eq!(error("(?<=a*)b"), "re.error: look-behind requires fixed-width pattern");
        assert_eq!(error(r"\q"), r"re.error: bad escape \q at position 0");
        assert_eq!(error("a)"), "re.error: unbalanced parenthesis at position 1");
    }

    #[test]
    fn literals_that_every_match_contains_are_found() {
        assert_eq!(required_literal(&parse::parse(r"a\b(?=x)bc*(de)+f|", Flags::default()).unwrap().seq), "");
        assert_eq!(
            required_literal(&parse::parse(r"a\b(?=x)bc*(def)+", Flags::default()).unwrap().seq),
            "def"
        );
        assert_eq!(required_literal(&parse::parse(r"a\b(?=x)bc*", Flags::default()).unwrap().seq), "ab");
    }

    #[test]
    fn full_patterns_match_all_of_a_text() {
        let pattern = Pattern::full("a|ab").unwrap();
        assert!(pattern.is_match("ab").unwrap() && !pattern.is_match("abc").unwrap());
    }
}
