//! Compares patterns: matches, replacements and errors.

use hotstart_python::Exception;
use hotstart_python::re::{Pattern, Replacement};
use serde_json::{Value, json};

use crate::driver::{Driver, Random, count, told};
use crate::patterns::Grammar;

const LETTERS: &[&str] =
    &["a", "b", "o", "é", "%", " ", "-", "_", "1", "A", "s", "k", "i", "ſ", "ı", "K", "İ", "keep"];
const TEXT: &[&str] = &[
    "a", "b", "o", "é", "%", " ", "-", "_", "1", "A", "s", "k", "i", "I", "S", "ſ", "ı", "K", "İ", "keep",
    "ab", "\n", "É", "[", "]", "{x}", "²", "\u{85}", "\x1c", ".", "&",
];

fn strings<const N: usize>(case: &Value) -> [&str; N] {
    std::array::from_fn(|index| case[index].as_str().expect("a string"))
}

/// Returns whether the pattern matches at the start, all of the text and anywhere, and whether Python warns about it.
fn matched(case: &Value) -> Result<Value, Exception> {
    let [pattern, text] = strings(case);
    let kinds = [Pattern::at_start(pattern)?, Pattern::full(pattern)?, Pattern::new(pattern)?];
    let [start, full, any] = kinds.each_ref().map(|kind| kind.is_match(text));
    Ok(json!([start?, full?, any?, kinds[0].warns()]))
}

/// `re.sub`, with the shortcut for simple patterns and without.
fn substituted(case: &Value) -> Result<Value, Exception> {
    let [pattern, template, text] = strings(case);
    let by = |pattern: Pattern| -> Result<String, Exception> {
        let replacement = Replacement::template(template, &pattern)?;
        Ok(pattern.sub(&replacement, text)?.unwrap_or_else(|| text.to_owned()))
    };
    let direct = by(Pattern::new(pattern)?);
    let general = Pattern::without_shortcut(pattern).and_then(by);
    if !general.as_ref().is_err_and(Exception::is_unsupported) {
        assert_eq!(direct, general, "with and without the shortcut: {case}");
    }
    direct.map(Value::from)
}

#[test]
fn patterns_from_a_grammar_match_what_python_matches() {
    let (mut random, mut texts) = (Random::new(1), Random::new(2));
    let mut below = |limit: usize| random.below(limit);
    let mut grammar = Grammar::new(LETTERS, &mut below);
    let total = count(3_000);
    let draw = || json!([grammar.pattern(), texts.join(TEXT, 6)]);
    let refused = Driver::start().compare("match", total, draw, |case| told(matched(case)));
    assert!(refused * 8 < total, "{refused} of {total} patterns are not supported");
}

#[test]
fn patterns_from_a_grammar_replace_what_python_replaces() {
    let (mut random, mut texts) = (Random::new(3), Random::new(4));
    let mut below = |limit: usize| random.below(limit);
    let mut grammar = Grammar::new(LETTERS, &mut below);
    let total = count(2_000);
    let draw =
        || json!([grammar.pattern(), texts.pick(&["<>", r"[\g<0>]", r"\1", "-"]), texts.join(TEXT, 8)]);
    let refused = Driver::start().compare("sub", total, draw, |case| told(substituted(case)));
    assert!(refused * 8 < total, "{refused} of {total} patterns are not supported");
}

/// Pieces of patterns, with more weight on those of keys and on likely errors.
const PIECES: &[&str] = &[
    "a",
    "b",
    "é",
    "%",
    "%s",
    "-",
    r"\.",
    "llc",
    r"\b",
    r"\B",
    "^",
    "$",
    r"\A",
    r"\Z",
    ".",
    "[ab]",
    "[^a-c]",
    r"[\w.]",
    r"\w",
    r"\W",
    r"\s",
    r"\d",
    "(a|b)",
    "(a)?",
    "(?:ab|a)",
    "(?P<n>a)",
    r"\1",
    "(?P=n)",
    "a*",
    "b+?",
    "a{2}",
    "{",
    "}",
    "{a}",
    "a{,2}",
    "a{1,}",
    "(?=a)",
    "(?!b)",
    "(?<=a)",
    r"(?<!(\-|\.))",
    r"(?!(\-|\.))",
    "(?<![ab]b)",
    "(?i:A)",
    "|",
    "(",
    ")",
    "[",
    "]",
    "*",
    "+",
    "?",
    r"\<",
    r"\-",
    r"\141",
    r"\x61",
    r"\n",
    r"\q",
    "(?>a*)",
    "a*+",
    "(?(1)a|b)",
    "(?#x)",
    " ",
    "(?s:.)",
    "(?m:^a$)",
    "(?x: a b )",
    r"(?a:\w)",
    "(?i)",
    "\n",
    "[]a]",
    "[a-]",
    "[-a]",
    r"[^\s]",
    "(?:)",
    "()",
];
const TEMPLATES: &[&str] = &[
    "", "x", r"\1", r"[\g<0>]", r"\g<n>", r"\\", r"\n", r"\q", r"\.", r"\0", r"\101", r"\9", "a%", r"\g<",
    r"\g<1>b",
];
const PLAIN: &[&str] =
    &["a", "b", "c", "é", "%", "s", "-", ".", " ", "ab", "llc", "\n", "_", "1", "A", "%%", "{", "}", "²"];

#[test]
fn patterns_of_random_pieces_replace_what_python_replaces() {
    let mut random = Random::new(5);
    let total = count(4_000);
    let draw = || json!([random.join(PIECES, 6), random.join(TEMPLATES, 2), random.join(PLAIN, 9)]);
    let refused = Driver::start().compare("sub", total, draw, |case| told(substituted(case)));
    assert!(refused * 20 < total, "{refused} of {total} patterns are not supported");
}

#[test]
fn patterns_like_keys_of_tools_replace_what_python_replaces() {
    const BEFORE: &[&str] =
        &["", r"(?<!(\.|\-|\^|/|\\|<))", "(?<![.-])", r"(?<!-x\s)", "(?<=a)", "(?<=[ab]b)"];
    const AFTER: &[&str] = &["", r"(?!(\-|\.))", r"(?!(\.))", "(?=a)", "(?![ab])", "$", r"\Z"];
    const NAMES: &[&str] = &["llc", "%llc", r"l\+\+", "é", "l-c", "a b", "%{x:y}", r"\| \bnot", "a"];
    const AROUND: &[&str] = &[
        "llc", "%llc", "l++", "é", "l-c", "a b", "%{x:y}", "| not", "a", " ", "-", ".", "/", "-x ", "b", "\n",
    ];
    let mut random = Random::new(6);
    let draw = || {
        let edge = |random: &mut Random| random.pick(&["", r"\b", r"\b", r"\B"]).to_owned();
        let (before, first) = (random.pick(BEFORE), edge(&mut random));
        let (name, last, after) = (random.pick(NAMES), edge(&mut random), random.pick(AFTER));
        json!([format!("{before}{first}{name}{last}{after}"), "<>", random.join(AROUND, 7)])
    };
    let refused = Driver::start().compare("sub", count(3_000), draw, |case| told(substituted(case)));
    assert_eq!(refused, 0, "all patterns of this form are supported");
}
