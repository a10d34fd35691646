//! Translates a parsed Python pattern for fancy-regex.
//!
//! Constructs whose meaning differs between the two are spelled out: `\w`, `\b`, `$`, flags, and characters that only
//! one of them takes literally. A construct that fancy-regex cannot express is an error, never an approximation.

use super::ast::{At, Category, Flags, Greed, Item, Node, Seq, Set, any, width};
use super::escape::scoped;

/// Returns the pattern, or the construct in it that cannot be translated.
pub fn translate(seq: &Seq, flags: Flags) -> Result<String, &'static str> {
    let refers = |node: &Node| matches!(node, Node::BackReference(_));
    if any(seq, &refers) && groups_differ(seq) {
        return Err("a reference in a pattern with groups in a repetition that may match nothing");
    }
    let mut out = String::new();
    sequence(&mut out, seq, flags)?;
    Ok(out)
}

/// Whether groups may differ from Python's: the two engines end a repetition differently after a round that matched
/// nothing.
pub fn groups_differ(seq: &Seq) -> bool {
    has_empty_rounds(seq, &|node| matches!(node, Node::Group { index: Some(_), .. }))
}

/// Whether matches may end elsewhere than in Python: a repetition ends there with a round that prefers to match
/// nothing.
pub fn ends_differ(seq: &Seq) -> bool {
    has_empty_rounds(seq, &|node| match node {
        Node::Repeat { min: 0, greed: Greed::Lazy, .. } => true,
        Node::Branch(items) => items[..items.len() - 1].iter().any(|item| width(item, &[]).0 == 0),
        _ => false,
    })
}

/// Whether a round of a repetition may match nothing and contains such a node.
fn has_empty_rounds(seq: &Seq, holds: &dyn Fn(&Node) -> bool) -> bool {
    any(seq, &|node| match node {
        Node::Repeat { child, .. } => width(child, &[]).0 == 0 && any(child, holds),
        _ => false,
    })
}

fn sequence(out: &mut String, seq: &[Node], flags: Flags) -> Result<(), &'static str> {
    seq.iter().try_for_each(|node| element(out, node, flags))
}

fn element(out: &mut String, node: &Node, flags: Flags) -> Result<(), &'static str> {
    match node {
        Node::Literal(c) => literal(out, *c, flags),
        Node::Any => out.push_str(if flags.dot_all { "(?s:.)" } else { r"[^\n]" }),
        Node::Set(items) => set(out, items, flags),
        Node::At(at) => place(out, *at, flags),
        Node::Repeat { min, max, greed, child } => repeat(out, (*min, *max), *greed, child, flags)?,
        Node::Group { index, flags: change, child } => {
            let inner = change.map_or(flags, |(on, off)| scoped(flags, on, off));
            wrapped(out, if index.is_some() { "(" } else { "(?:" }, child, inner)?;
        }
        Node::Atomic(child) => wrapped(out, "(?>", child, flags)?,
        Node::Look { behind, negative, child } => {
            let open = match (behind, negative) {
                (false, false) => "(?=",
                (false, true) => "(?!",
                (true, false) => "(?<=",
                (true, true) => "(?<!",
            };
            wrapped(out, open, child, flags)?;
        }
        Node::BackReference(_) if flags.ignore_case => return Err("a back-reference that ignores case"),
        Node::BackReference(group) => out.push_str(&format!(r"(?:\{group})")),
        // fancy-regex takes other branches than Python.
        Node::Conditional { .. } => return Err("a condition on a group"),
        Node::Branch(items) => {
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "(?:" } else { "|" });
                sequence(out, item, flags)?;
            }
            out.push(')');
        }
    }
    Ok(())
}

fn wrapped(out: &mut String, open: &str, child: &Seq, flags: Flags) -> Result<(), &'static str> {
    out.push_str(open);
    sequence(out, child, flags)?;
    out.push(')');
    Ok(())
}

fn repeat(
    out: &mut String,
    (min, max): (u32, Option<u32>),
    greed: Greed,
    child: &Seq,
    flags: Flags,
) -> Result<(), &'static str> {
    if width(child, &[]).1 == 0 {
        return repeat_empty(out, min, greed, child, flags);
    }
    if greed == Greed::Possessive {
        out.push_str("(?>");
    }
    wrapped(out, "(?:", child, flags)?;
    match max {
        None => out.push_str(&format!("{{{min},}}")),
        Some(max) => out.push_str(&format!("{{{min},{max}}}")),
    }
    match greed {
        Greed::Greedy => {}
        Greed::Lazy => out.push('?'),
        Greed::Possessive => out.push(')'),
    }
    Ok(())
}

/// An item without width matches at most once. fancy-regex refuses to repeat it.
fn repeat_empty(
    out: &mut String,
    min: u32,
    greed: Greed,
    child: &Seq,
    flags: Flags,
) -> Result<(), &'static str> {
    match (min, greed) {
        (1.., _) => wrapped(out, "(?:", child, flags),
        (0, Greed::Lazy) => {
            out.push_str("(?:|");
            sequence(out, child, flags)?;
            out.push(')');
            Ok(())
        }
        (0, _) => {
            out.push_str(if greed == Greed::Possessive { "(?>" } else { "(?:" });
            sequence(out, child, flags)?;
            out.push_str("|)");
            Ok(())
        }
    }
}

const NOTHING: &str = r"[^\s\S]";

/// Python treats these as one letter if case is ignored; Unicode's case folding has three.
const LETTERS_I: [char; 4] = ['i', 'I', '\u{130}', '\u{131}'];

fn literal(out: &mut String, code: u32, flags: Flags) {
    let Some(c) = char::from_u32(code) else { return out.push_str(NOTHING) };
    match (flags.ignore_case && c.is_alphabetic(), flags.ascii) {
        (true, true) if c.is_ascii() => {
            out.extend(['[', c.to_ascii_lowercase(), c.to_ascii_uppercase(), ']']);
        }
        (true, false) if LETTERS_I.contains(&c) => {
            out.push('[');
            out.extend(LETTERS_I);
            out.push(']');
        }
        (true, false) => out.push_str(&format!("(?i:\\x{{{code:x}}})")),
        _ => out.push_str(&format!("\\x{{{code:x}}}")),
    }
}

fn set(out: &mut String, set: &Set, flags: Flags) {
    let (mut ranges, categories): (Vec<Item>, Vec<Item>) =
        set.items.iter().partition(|item| matches!(item, Item::Range(..)));
    if !flags.ignore_case || ranges.is_empty() {
        return class(out, set.negated, &set.items, flags);
    }
    ranges.extend(other_cases(&ranges, flags));
    if flags.ascii {
        return class(out, set.negated, &[ranges, categories].concat(), flags);
    }
    // Only single characters ignore case: Python does not fold categories.
    out.push_str(if set.negated { "(?:(?!(?i:" } else { "(?:(?i:" });
    class(out, false, &ranges, flags);
    out.push(')');
    if !categories.is_empty() {
        out.push('|');
        class(out, false, &categories, flags);
    }
    out.push_str(if set.negated { ")(?s:.))" } else { ")" });
}

/// Returns the other cases that the regex engine's folding does not add, or all of them if that folding is not used.
fn other_cases(ranges: &[Item], flags: Flags) -> Vec<Item> {
    let contains = |c: char| {
        let set = Set { negated: false, items: ranges.to_vec() };
        set.contains(c, flags.ascii)
    };
    let single = |c: char| Item::Range(u32::from(c), u32::from(c));
    if flags.ascii {
        let letters = ('A'..='Z').chain('a'..='z').filter(|&c| contains(c));
        return letters.map(|c| single(char::from(c as u8 ^ 0x20))).collect();
    }
    if LETTERS_I.into_iter().any(contains) { LETTERS_I.map(single).to_vec() } else { Vec::new() }
}

fn class(out: &mut String, negated: bool, items: &[Item], flags: Flags) {
    out.push_str(if negated { "[^" } else { "[" });
    // Neither dialect has an empty set, but a set of surrogates is empty here.
    let mut empty = true;
    for item in items {
        empty &= !set_item(out, *item, flags);
    }
    if empty {
        out.push_str(NOTHING);
    }
    out.push(']');
}

fn set_item(out: &mut String, item: Item, flags: Flags) -> bool {
    match item {
        Item::Category(category, negated) => {
            out.push_str(if negated { "[^" } else { "[" });
            out.push_str(members(category, flags.ascii));
            out.push(']');
            true
        }
        Item::Range(lo, hi) => {
            // Rust's characters exclude surrogates, so only the ranges on both sides of them can match.
            let below = (lo, hi.min(0xd7ff));
            let above = (lo.max(0xe000), hi.min(0x10_ffff));
            let mut some = false;
            for (lo, hi) in [below, above] {
                if lo <= hi {
                    out.push_str(&format!("\\x{{{lo:x}}}-\\x{{{hi:x}}}"));
                    some = true;
                }
            }
            some
        }
    }
}

fn members(category: Category, ascii: bool) -> &'static str {
    match (category, ascii) {
        (Category::Digit, true) => "0-9",
        (Category::Digit, false) => r"\p{Nd}",
        (Category::Space, true) => r"\x09-\x0d\x20",
        (Category::Space, false) => r"\s\x1c-\x1f",
        (Category::Word, true) => "0-9A-Za-z_",
        (Category::Word, false) => r"\p{L}\p{N}_",
    }
}

fn place(out: &mut String, at: At, flags: Flags) {
    let word = members(Category::Word, flags.ascii);
    match at {
        At::Beginning if flags.multi_line => out.push_str("(?m:^)"),
        At::Beginning | At::TextStart => out.push_str(r"\A"),
        At::End if flags.multi_line => out.push_str("(?m:$)"),
        At::End => out.push_str(r"(?=\n?\z)"),
        At::TextEnd => out.push_str(r"\z"),
        At::Boundary => out.push_str(&format!("(?:(?<=[{word}])(?![{word}])|(?<![{word}])(?=[{word}]))")),
        // Before Python 3.14, \B does not match in an empty text.
        At::NotBoundary => {
            let (both, none) = (format!("(?<=[{word}])(?=[{word}])"), format!("(?<![{word}])(?![{word}])"));
            out.push_str(&format!(r"(?:{both}|{none}(?!\A\z))"));
        }
    }
}
