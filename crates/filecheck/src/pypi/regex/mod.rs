//! Python's `re`, as far as it is certain: patterns and texts of printable ASCII, tabs and line ends, flag MULTILINE.
//!
//! LLVM's engine looks for the longest match, and Python's takes the first one that its order of trials finds. So the matcher of
//! LLVM's dialect cannot be used. This one makes the same trials in the same order. What the grammar (`parse`) does not know is undecided;
//! so is what takes too many steps.

mod parse;
mod program;
mod run;

pub(super) use run::{Budget, Found};

use crate::Certain;

/// A set of ASCII characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set(pub u128);

impl Set {
    pub const NONE: Set = Set(0);
    pub const ALL: Set = Set(u128::MAX);

    pub fn of(byte: u8) -> Set {
        Set(1 << (byte & 127))
    }

    pub fn range(from: u8, to: u8) -> Set {
        (from..=to).fold(Set::NONE, |set, byte| set.or(Set::of(byte)))
    }

    pub fn or(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    pub fn not(self) -> Set {
        Set(!self.0)
    }

    pub fn has(self, byte: u8) -> bool {
        byte < 128 && self.0 >> byte & 1 == 1
    }
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    program: Vec<program::Step>,
    /// Which groups take part in each match, at most once. Group 0 is the match itself.
    plain: Vec<bool>,
    /// The characters with which a match begins. `None` if it can be empty.
    first: Option<Set>,
}

impl Pattern {
    /// Compiles a pattern as `re.compile(text, re.MULTILINE)` does.
    pub fn compile(text: &str) -> Certain<Pattern> {
        let parsed = parse::parse(text)?;
        let (first, can_be_empty) = parsed.node.first();
        Ok(Pattern {
            program: program::compile(&parsed.node)?,
            plain: parsed.plain,
            first: (!can_be_empty).then_some(first),
        })
    }

    /// Whether a group of this number is part of each match, exactly once. What Python says of others is not certain.
    pub fn has_plain_group(&self, group: usize) -> bool {
        self.plain.get(group).is_some_and(|is_plain| *is_plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of the first match, from `start` on.
    fn found<'t>(pattern: &str, text: &'t str, start: usize) -> Option<&'t str> {
        let pattern = Pattern::compile(pattern).unwrap();
        let found = pattern.search(text.as_bytes(), start, text.len(), &mut Budget(10_000)).unwrap();
        found.map(|found| &text[found.start()..found.end()])
    }

    #[test]
    fn the_first_alternative_counts() {
        for (pattern, text, expected) in [
            ("a|ab", "xab", Some("a")),
            ("(a|ab)c", "abc", Some("abc")),
            ("(a|ab)(c|bcd)", "abcd", Some("abcd")),
            ("a.*b", "acbcb\nb", Some("acbcb")),
            ("a.*?b", "acbcb", Some("acb")),
            ("(a+|b)+c", "aabac", Some("aabac")),
            ("(ab){2,3}", "abababab", Some("ababab")),
            ("([a-c]+)-\\1", "abc-bcx", Some("bc-bc")),
            ("[]^-]+", "a]^-b", Some("]^-")),
            ("^b$", "a\nb\nc", Some("b")),
            ("(?:(?<=\\n)|(?=\\A))a(?=\\n|\\Z)", "ba\na", Some("a")),
            ("x", "abc", None),
        ] {
            assert_eq!(found(pattern, text, 0), expected, "{pattern}");
        }
        // What lies before the start is seen, but not matched.
        assert_eq!(found("^a", "ba", 1), None);
    }

    #[test]
    fn what_is_not_certain_is_undecided() {
        for pattern in [
            "a**", "a*+", "(a*)*", "(a|b)*?", "a{", "[[a]", "[a--b]", "[b-a]", "(", ")", "*", "(?=a)",
            "(?P<x>a)", "(?i)a", "\\b", "\\1", "(a)\\12", "(a)?\\1", "(a)|\\1", "(a\\1)", "\\", "[a",
            "a{3,2}", "(a){999}",
        ] {
            assert!(Pattern::compile(pattern).is_err(), "{pattern}");
        }
        let pattern = Pattern::compile("(a+)+b").unwrap();
        assert!(pattern.search(&[b'a'; 60], 0, 60, &mut Budget(10_000)).is_err(), "too much work");
    }
}
