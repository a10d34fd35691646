//! Reads the pattern for the parser, one token at a time. A token is a character, or a backslash and a character.
//!
//! Positions are counted in characters, because they appear in error messages.

use crate::Exception;

/// A reader of a pattern or of a replacement template.
pub struct Source {
    chars: Vec<char>,
    /// Index after the current token.
    index: usize,
    /// The length of the current token. 0 at the end.
    len: usize,
}

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A character.
    Char(char),
    /// A backslash and a character.
    Escape(char),
}

impl Token {
    /// Returns its text.
    pub fn text(self) -> String {
        match self {
            Token::Char(c) => c.to_string(),
            Token::Escape(c) => format!("\\{c}"),
        }
    }

    /// Returns its length in characters.
    pub fn len(self) -> usize {
        match self {
            Token::Char(_) => 1,
            Token::Escape(_) => 2,
        }
    }
}

impl Source {
    /// Starts to read. Fails if the first token is a lone backslash.
    pub fn new(text: &str) -> Result<Self, Exception> {
        let mut source = Source { chars: text.chars().collect(), index: 0, len: 0 };
        source.advance()?;
        Ok(source)
    }

    /// Returns the current token.
    pub fn peek(&self) -> Option<Token> {
        match self.len {
            0 => None,
            1 => Some(Token::Char(self.chars[self.index - 1])),
            _ => Some(Token::Escape(self.chars[self.index - 1])),
        }
    }

    /// Returns the current token if it is a plain character.
    pub fn peek_char(&self) -> Option<char> {
        match self.peek() {
            Some(Token::Char(c)) => Some(c),
            _ => None,
        }
    }

    /// Takes the current token.
    pub fn get(&mut self) -> Result<Option<Token>, Exception> {
        let token = self.peek();
        self.advance()?;
        Ok(token)
    }

    /// Takes the current token if it is this character.
    pub fn accept(&mut self, c: char) -> Result<bool, Exception> {
        let found = self.peek_char() == Some(c);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Takes up to `most` characters for which `kind` is true.
    pub fn get_while(&mut self, most: usize, kind: impl Fn(char) -> bool) -> Result<String, Exception> {
        let mut taken = String::new();
        for _ in 0..most {
            match self.peek_char() {
                Some(c) if kind(c) => taken.push(c),
                _ => break,
            }
            self.advance()?;
        }
        Ok(taken)
    }

    /// Takes a name up to `terminator`, and the terminator.
    pub fn get_until(&mut self, terminator: char, what: &str) -> Result<String, Exception> {
        let mut taken = String::new();
        loop {
            let token = self.get()?;
            match token {
                None if taken.is_empty() => return Err(self.error(format!("missing {what}"), 0)),
                None => {
                    let message = format!("missing {terminator}, unterminated name");
                    return Err(self.error(message, taken.chars().count()));
                }
                Some(Token::Char(c)) if c == terminator => {
                    if taken.is_empty() {
                        return Err(self.error(format!("missing {what}"), 1));
                    }
                    return Ok(taken);
                }
                Some(token) => taken.push_str(&token.text()),
            }
        }
    }

    /// Returns the position of the current token.
    pub fn tell(&self) -> usize {
        self.index - self.len
    }

    /// Goes back to a position that `tell` returned.
    pub fn seek(&mut self, place: usize) -> Result<(), Exception> {
        self.index = place;
        self.advance()
    }

    /// Returns Python's `re.error` at `offset` characters before the current token.
    pub fn error(&self, message: impl AsRef<str>, offset: usize) -> Exception {
        self.error_at(message, self.tell().saturating_sub(offset))
    }

    /// Returns Python's `re.error` at a position.
    pub fn error_at(&self, message: impl AsRef<str>, position: usize) -> Exception {
        let mut text = format!("{} at position {position}", message.as_ref());
        if self.chars.contains(&'\n') {
            let before = &self.chars[..position.min(self.chars.len())];
            let line = before.iter().filter(|&&c| c == '\n').count() + 1;
            let column = match before.iter().rposition(|&c| c == '\n') {
                Some(newline) => position - newline,
                None => position + 1,
            };
            text.push_str(&format!(" (line {line}, column {column})"));
        }
        Exception::new("re.error", text)
    }

    fn advance(&mut self) -> Result<(), Exception> {
        match self.chars.get(self.index) {
            None => self.len = 0,
            Some('\\') if self.index + 1 == self.chars.len() => {
                return Err(self.error_at("bad escape (end of pattern)", self.chars.len() - 1));
            }
            Some('\\') => self.len = 2,
            Some(_) => self.len = 1,
        }
        self.index += self.len;
        Ok(())
    }
}
