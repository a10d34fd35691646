//! Refuses characters of a command to which only one of the two shells gives a meaning.
//!
//! The scan follows words and quotes as far as that needs. In an accepted command, quotes, blanks and operators divide
//! the text alike for both shells.

use super::Refusal;

const EXPANSION: Refusal = "a variable or a command substitution";

/// Checks a whole command.
pub(super) fn accept(text: &str) -> Result<(), Refusal> {
    if text.chars().any(|c| c != '\t' && (c.is_control() || c.is_whitespace() && c != ' ')) {
        return Err("a control character, or a blank that is none to bash");
    }
    if text.contains("PPID") {
        // For a signal or a limit: of bash, not of this process.
        return Err("the parent's number");
    }
    if text.contains("%{readfile:") {
        return Err("a file's content as a word");
    }
    let mut scan = Scan { rest: text, previous: ' ', word: Word::default() };
    while let Some(c) = scan.eat() {
        scan.unquoted(c)?;
    }
    scan.word.end()
}

/// The properties of the current word.
#[derive(Default)]
struct Word {
    has_begun: bool,
    has_glob: bool,
    has_quotes: bool,
    /// Whether it has a `!`, and anything else.
    has_mark: bool,
    is_other: bool,
}

impl Word {
    /// Refuses a star in a word with quotes: for lit's shell, whether it is a pattern depends on the rest of the word.
    fn end(&mut self) -> Result<(), Refusal> {
        let ended = std::mem::take(self);
        if ended.has_mark && !ended.is_other && ended.has_quotes {
            return Err("a quoted `!`");
        }
        if ended.has_glob && ended.has_quotes { Err("quotes in a pattern for file names") } else { Ok(()) }
    }

    /// Notes a character.
    fn has(&mut self, c: char) {
        self.has_mark |= c == '!';
        self.is_other |= c != '!';
    }
}

struct Scan<'t> {
    rest: &'t str,
    /// The character before the current one.
    previous: char,
    word: Word,
}

impl Scan<'_> {
    fn eat(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn next_is(&self, c: char) -> bool {
        self.rest.starts_with(c)
    }

    fn unquoted(&mut self, c: char) -> Result<(), Refusal> {
        let is_start = !self.word.has_begun;
        match c {
            ' ' | '\t' | ';' => self.word.end()?,
            '|' if self.next_is('&') => return Err("`|&`"),
            '|' | '&' => self.operator(c)?,
            '<' | '>' => self.redirection(c)?,
            '\'' | '"' => {
                self.word.has_begun = true;
                self.word.has_quotes = true;
                self.quoted(c)?;
            }
            '$' | '`' => return Err(EXPANSION),
            '(' | ')' => return Err("parentheses"),
            '{' | '}' => return Err("braces"),
            '[' | ']' => return Err("brackets"),
            '#' if is_start => return Err("a comment"),
            '~' if is_start || matches!(self.previous, '=' | ':') => return Err("a tilde"),
            '\\' if is_start => return Err("a backslash at the begin of a word"),
            '\\' => {
                self.word.has_quotes = true;
                let c = self.eat().ok_or("a backslash at the end")?;
                self.word.has(c);
            }
            _ => {
                self.word.has_begun = true;
                self.word.has(c);
                self.word.has_glob |= matches!(c, '*' | '?');
            }
        }
        self.previous = c;
        Ok(())
    }

    /// Reads `&&`, `||`, `|`, and the `&` of `&>` and `>&`.
    fn operator(&mut self, c: char) -> Result<(), Refusal> {
        self.word.end()?;
        let is_redirection = c == '&' && (self.next_is('>') || self.previous == '>');
        if self.next_is(c) {
            self.eat();
            return if self.next_is(c) { Err("not in bash's language") } else { Ok(()) };
        }
        if c == '&' && !is_redirection { Err("a command in the background") } else { Ok(()) }
    }

    fn redirection(&mut self, c: char) -> Result<(), Refusal> {
        if matches!(self.previous, '\'' | '"' | '\\') || self.word.has_quotes {
            return Err("quotes right before a redirection");
        }
        self.word.end()?;
        match c {
            '<' if self.rest.starts_with(['<', '>', '&']) => Err("a here-document or a descriptor"),
            '>' if self.next_is('|') => Err("`>|`"),
            _ => Ok(()),
        }
    }

    /// Reads up to the closing quote.
    fn quoted(&mut self, quote: char) -> Result<(), Refusal> {
        loop {
            let c = self.eat().ok_or("quotes that do not end")?;
            match c {
                _ if c == quote => return Ok(()),
                _ if quote == '\'' => self.word.has(c),
                '$' | '`' => return Err(EXPANSION),
                '\\' if self.rest.starts_with(['$', '`']) => return Err("an escaped `$`"),
                '\\' => {
                    let c = self.eat().ok_or("quotes that do not end")?;
                    self.word.has(c);
                }
                _ => self.word.has(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_shells_read_alike() {
        for text in [
            "opt -S < a.ll | FileCheck a.ll",
            "a 2>&1 | b && c || d ; e",
            r#"a 'x $y `z` (' "b \"q\" \\ \n" c"d"'e'"#,
            "a > b 2> c",
            "a&>b",
            "a>&b",
            "a -x=y a#b x~ a^b %t @f +x !",
            r"a x\ y b\*c",
            "ls /a/*.c /b?",
        ] {
            assert_eq!(accept(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_they_do_not() {
        for (text, reason) in [
            ("a $x", EXPANSION),
            ("a \"x$y\"", EXPANSION),
            ("a `b`", EXPANSION),
            ("a \"\\$x\"", "an escaped `$`"),
            ("(a)", "parentheses"),
            ("{ a; }", "braces"),
            ("a x{1,2}", "braces"),
            ("a [bc]*", "brackets"),
            ("a # b", "a comment"),
            ("a ~/b", "a tilde"),
            ("a x=~", "a tilde"),
            (r"a \b", "a backslash at the begin of a word"),
            (r"a >\b", "a backslash at the begin of a word"),
            ("a & b", "a command in the background"),
            ("a &", "a command in the background"),
            ("a |& b", "`|&`"),
            ("a <<E", "a here-document or a descriptor"),
            ("a <&3", "a here-document or a descriptor"),
            ("a '2'>b", "quotes right before a redirection"),
            ("a x'2'>b", "quotes right before a redirection"),
            ("a >| b", "`>|`"),
            ("a *'b'", "quotes in a pattern for file names"),
            ("a 'b", "quotes that do not end"),
            ("sh -c 'kill $PPID'", "the parent's number"),
            ("'!' a", "a quoted `!`"),
            ("!'' a", "a quoted `!`"),
            ("\"!\"\"\" a", "a quoted `!`"),
            ("a \u{a0}b", "a control character, or a blank that is none to bash"),
            ("a\rb", "a control character, or a blank that is none to bash"),
            ("a |||| b", "not in bash's language"),
        ] {
            assert_eq!(accept(text), Err(reason), "{text}");
        }
    }
}
