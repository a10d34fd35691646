//! Character sets: `[...]`.

use super::ast::{Item, Node, Set};
use super::escape::{self, Context};
use super::source::{Source, Token};
use crate::Exception;

/// Reads a set after its opening bracket. Sets `warns` if Python warns that the meaning may change in a later version.
pub fn read(source: &mut Source, warns: &mut bool) -> Result<Node, Exception> {
    let here = source.tell() - 1;
    *warns |= source.peek_char() == Some('[');
    let negated = source.accept('^')?;
    let mut items: Vec<Item> = Vec::new();
    loop {
        let this = next(source, here)?;
        if this == Token::Char(']') && !items.is_empty() {
            break;
        }
        let is_doubled = source.peek() == Some(this) && matches!(this, Token::Char('-' | '&' | '~' | '|'));
        *warns |= is_doubled && !items.is_empty();
        let low = member(source, this)?;
        if !source.accept('-')? {
            items.push(low);
            continue;
        }
        let that = next(source, here)?;
        if that == Token::Char(']') {
            items.extend([low, Item::Range(u32::from('-'), u32::from('-'))]);
            break;
        }
        *warns |= that == Token::Char('-');
        let high = member(source, that)?;
        match (low, high) {
            (Item::Range(lo, _), Item::Range(hi, _)) if lo <= hi => items.push(Item::Range(lo, hi)),
            _ => {
                let message = format!("bad character range {}-{}", this.text(), that.text());
                return Err(source.error(message, this.len() + 1 + that.len()));
            }
        }
    }
    let set = Set { negated, items };
    Ok(match set.only() {
        Some(c) => Node::Literal(c),
        None => Node::Set(set),
    })
}

fn next(source: &mut Source, here: usize) -> Result<Token, Exception> {
    match source.get()? {
        Some(token) => Ok(token),
        None => Err(source.error("unterminated character set", source.tell() - here)),
    }
}

fn member(source: &mut Source, token: Token) -> Result<Item, Exception> {
    let node = match token {
        Token::Char(c) => Node::Literal(u32::from(c)),
        Token::Escape(c) => escape::read(source, c, Context::Set)?,
    };
    Ok(match node {
        Node::Literal(c) => Item::Range(c, c),
        Node::Set(set) => set.items[0],
        other => unreachable!("an escape in a set is a character or a category, not {other:?}"),
    })
}
