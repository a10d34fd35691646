//! Escapes and flags: the parts of Python's pattern syntax that are lists of letters.

use super::ast::{At, Category, Flags, Node, Set};
use super::parse::State;
use super::source::{Source, Token};
use crate::Exception;
use crate::{repr, text};

/// The place of an escape, which decides its meaning.
pub enum Context<'a> {
    /// In a pattern, with the groups known so far.
    Pattern(&'a State),
    /// Between brackets.
    Set,
}

/// Returns the character of a one-letter escape, in patterns and templates alike.
pub fn control(c: char) -> Option<char> {
    Some(match c {
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '\\' => '\\',
        _ => return None,
    })
}

/// Reads the rest of an escape after its backslash and first character `c`.
pub fn read(source: &mut Source, c: char, context: Context<'_>) -> Result<Node, Exception> {
    if let Some(node) = category(c) {
        return Ok(node);
    }
    if let (Some(node), Context::Pattern(_)) = (place(c), &context) {
        return Ok(node);
    }
    if let Some(control) = control(c) {
        return Ok(Node::Literal(u32::from(control)));
    }
    match (c, context) {
        ('x', _) => hex(source, c, 2),
        ('u', _) => hex(source, c, 4),
        ('U', _) => hex(source, c, 8),
        ('N', _) => named(source),
        ('0', Context::Pattern(_)) => {
            let digits = source.get_while(2, is_octal)?;
            Ok(Node::Literal(octal(&format!("0{digits}"))))
        }
        ('0'..='9', Context::Pattern(state)) => number(source, c, state),
        ('0'..='7', Context::Set) => {
            let digits = format!("{c}{}", source.get_while(2, is_octal)?);
            octal_escape(source, &digits)
        }
        (c, _) if c.is_ascii_alphanumeric() => Err(source.error(format!("bad escape \\{c}"), 2)),
        (c, _) => Ok(Node::Literal(u32::from(c))),
    }
}

fn category(c: char) -> Option<Node> {
    let category = match c.to_ascii_lowercase() {
        'd' => Category::Digit,
        's' => Category::Space,
        'w' => Category::Word,
        _ => return None,
    };
    Some(Node::Set(Set::category(category, c.is_ascii_uppercase())))
}

fn place(c: char) -> Option<Node> {
    Some(Node::At(match c {
        'A' => At::TextStart,
        'Z' => At::TextEnd,
        'b' => At::Boundary,
        'B' => At::NotBoundary,
        _ => return None,
    }))
}

fn hex(source: &mut Source, c: char, digits: usize) -> Result<Node, Exception> {
    let found = source.get_while(digits, |c| c.is_ascii_hexdigit())?;
    if found.len() != digits {
        return Err(source.error(format!("incomplete escape \\{c}{found}"), found.len() + 2));
    }
    let code = u32::from_str_radix(&found, 16).expect("hexadecimal digits");
    if code > u32::from(char::MAX) {
        return Err(source.error(format!("bad escape \\{c}{found}"), found.len() + 2));
    }
    Ok(Node::Literal(code))
}

fn named(source: &mut Source) -> Result<Node, Exception> {
    if !source.accept('{')? {
        return Err(source.error("missing {", 0));
    }
    let name = source.get_until('}', "character name")?;
    Err(Exception::unsupported(format!("the character name {} is not known here", repr(&name))))
}

fn number(source: &mut Source, c: char, state: &State) -> Result<Node, Exception> {
    let mut digits = c.to_string();
    if let Some(second) = source.peek_char().filter(char::is_ascii_digit) {
        source.get()?;
        digits.push(second);
        if let (true, true, Some(third)) =
            (is_octal(c), is_octal(second), source.peek_char().filter(|&c| is_octal(c)))
        {
            source.get()?;
            digits.push(third);
            return octal_escape(source, &digits);
        }
    }
    let group: u32 = digits.parse().expect("one or two digits");
    if group >= state.groups() {
        return Err(source.error(format!("invalid group reference {group}"), digits.len()));
    }
    if !state.is_closed(group) {
        return Err(source.error("cannot refer to an open group", digits.len() + 1));
    }
    state.check_look_behind(group, source)?;
    Ok(Node::BackReference(group))
}

fn octal_escape(source: &Source, digits: &str) -> Result<Node, Exception> {
    match octal(digits) {
        code @ 0..=0o377 => Ok(Node::Literal(code)),
        _ => {
            let message = format!("octal escape value \\{digits} outside of range 0-0o377");
            Err(source.error(message, digits.len() + 1))
        }
    }
}

/// Returns the value of up to three octal digits.
pub fn octal(digits: &str) -> u32 {
    u32::from_str_radix(digits, 8).expect("octal digits")
}

/// Whether `c` is an octal digit.
pub fn is_octal(c: char) -> bool {
    ('0'..='7').contains(&c)
}

/// Whether `c` names a flag.
pub fn is_flag(c: char) -> bool {
    matches!(c, 'i' | 'L' | 'm' | 's' | 'x' | 'a' | 'u')
}

/// Reads flags after their first character. Returns `None` if they apply to the whole pattern.
pub fn read_flags(
    source: &mut Source,
    first: char,
    global: &mut Flags,
) -> Result<Option<(Flags, Flags)>, Exception> {
    let mut on = Flags::default();
    let mut end = first;
    if first != '-' {
        end = turn_on(source, first, &mut on)?;
    }
    if end == ')' {
        *global = merge(*global, on);
        return Ok(None);
    }
    let mut off = Flags::default();
    if end == '-' {
        turn_off(source, &mut off)?;
    }
    let both = |get: fn(&Flags) -> bool| get(&on) && get(&off);
    if both(|f| f.ignore_case) || both(|f| f.multi_line) || both(|f| f.dot_all) || both(|f| f.verbose) {
        return Err(source.error("bad inline flags: flag turned on and off", 1));
    }
    Ok(Some((on, off)))
}

fn turn_on(source: &mut Source, first: char, on: &mut Flags) -> Result<char, Exception> {
    let mut c = first;
    loop {
        if c == 'L' {
            return Err(source.error("bad inline flags: cannot use 'L' flag with a str pattern", 0));
        }
        set(on, c);
        if on.ascii && on.unicode {
            return Err(source.error("bad inline flags: flags 'a', 'u' and 'L' are incompatible", 0));
        }
        c = match next_flag(source, "missing -, : or )")? {
            Some(c @ (')' | '-' | ':')) => return Ok(c),
            Some(c) if is_flag(c) => c,
            Some(c) => return Err(unknown_flag(source, c, "missing -, : or )")),
            None => return Err(source.error("missing -, : or )", 2)),
        };
    }
}

fn turn_off(source: &mut Source, off: &mut Flags) -> Result<(), Exception> {
    let mut missing = "missing flag";
    loop {
        let c = match next_flag(source, missing)? {
            Some(':') if missing == "missing :" => return Ok(()),
            Some(c) if is_flag(c) => c,
            Some(c) => return Err(unknown_flag(source, c, missing)),
            None => return Err(source.error(missing, 2)),
        };
        if matches!(c, 'a' | 'u' | 'L') {
            return Err(source.error("bad inline flags: cannot turn off flags 'a', 'u' and 'L'", 0));
        }
        set(off, c);
        missing = "missing :";
    }
}

/// Returns the next character of a list of flags. `None` for an escape.
fn next_flag(source: &mut Source, missing: &str) -> Result<Option<char>, Exception> {
    match source.get()? {
        None => Err(source.error(missing, 0)),
        Some(Token::Char(c)) => Ok(Some(c)),
        Some(Token::Escape(_)) => Ok(None),
    }
}

fn unknown_flag(source: &Source, c: char, missing: &str) -> Exception {
    source.error(if text::is_alpha(c) { "unknown flag" } else { missing }, 1)
}

fn set(flags: &mut Flags, c: char) {
    match c {
        'i' => flags.ignore_case = true,
        'm' => flags.multi_line = true,
        's' => flags.dot_all = true,
        'x' => flags.verbose = true,
        'a' => flags.ascii = true,
        _ => flags.unicode = true,
    }
}

fn merge(a: Flags, b: Flags) -> Flags {
    Flags {
        ignore_case: a.ignore_case || b.ignore_case,
        multi_line: a.multi_line || b.multi_line,
        dot_all: a.dot_all || b.dot_all,
        verbose: a.verbose || b.verbose,
        ascii: a.ascii || b.ascii,
        unicode: a.unicode || b.unicode,
    }
}

/// Returns the flags inside a group that sets some and clears others.
pub fn scoped(outer: Flags, on: Flags, off: Flags) -> Flags {
    let mut inner = merge(outer, on);
    inner.ignore_case &= !off.ignore_case;
    inner.multi_line &= !off.multi_line;
    inner.dot_all &= !off.dot_all;
    inner.verbose &= !off.verbose;
    // Only one kind of text applies: naming one replaces the other.
    inner.ascii &= !on.unicode;
    inner
}
