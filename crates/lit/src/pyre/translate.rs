//! A parsed Python pattern in the words of fancy-regex.
//!
//! Everything whose meaning differs between the two is spelled out: `\w`, `\b`, `$`, flags, and characters that
//! only one of them takes literally. What cannot be said in that dialect is an error, never an approximation.

use super::ast::{At, Category, Flags, Greed, Item, Node, Seq, Set};
use super::escape::scoped;

/// The pattern, or what it uses that cannot be translated.
pub fn translate(seq: &Seq, flags: Flags) -> Result<String, &'static str> {
    let mut out = String::new();
    sequence(&mut out, seq, flags)?;
    Ok(out)
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
        Node::Conditional { group, yes, no } => {
            out.push_str(&format!("(?({group})"));
            sequence(out, yes, flags)?;
            out.push('|');
            sequence(out, no.as_deref().unwrap_or_default(), flags)?;
            out.push(')');
        }
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
    if super::ast::width(child, &[]).1 == 0 {
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

/// What has no width matches once or not at all; fancy-regex refuses to repeat it.
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

fn literal(out: &mut String, code: u32, flags: Flags) {
    let Some(c) = char::from_u32(code) else { return out.push_str(NOTHING) };
    match (flags.ignore_case && c.is_alphabetic(), flags.ascii) {
        (true, true) if c.is_ascii() => {
            out.extend(['[', c.to_ascii_lowercase(), c.to_ascii_uppercase(), ']']);
        }
        (true, false) => out.push_str(&format!("(?i:\\x{{{code:x}}})")),
        _ => out.push_str(&format!("\\x{{{code:x}}}")),
    }
}

fn set(out: &mut String, set: &Set, flags: Flags) {
    if flags.ignore_case {
        out.push_str("(?i:");
    }
    out.push_str(if set.negated { "[^" } else { "[" });
    // Neither dialect has an empty set; a set of surrogates is empty here.
    let mut empty = true;
    for item in &set.items {
        empty &= !set_item(out, *item, flags);
    }
    if empty {
        out.push_str(NOTHING);
    }
    out.push(']');
    if flags.ignore_case {
        out.push(')');
    }
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
            // Surrogates are no characters in Rust: the range on either side of them is what can match.
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
