//! Splits text into tokens, with lit's oddities: no comments, no expansions, and a lone backslash at a word's start is itself.
//!
//! lit's lexer raises Python exceptions in places, such as for an operator at the very end. These are errors here.

use hotstart_model::Dialect;
use hotstart_python::text::is_space;

use crate::ast::Word;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(Word),
    /// An operator or redirection sign, with the descriptor written before it.
    Sign(&'static str, Option<u64>),
}

/// Reads one token after the other.
pub(crate) struct Lexer<'t> {
    text: &'t str,
    pos: usize,
    dialect: Dialect,
}

type Lexed<T> = Result<T, String>;

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str, dialect: Dialect) -> Self {
        Lexer { text, pos: 0, dialect }
    }

    /// The next token, or nothing at the end.
    pub fn next_token(&mut self) -> Lexed<Option<Token>> {
        let rest = &self.text[self.pos..];
        let trimmed = rest.trim_start_matches(is_space);
        self.pos += rest.len() - trimmed.len();
        if trimmed.is_empty() { Ok(None) } else { self.token().map(Some) }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.pos..].chars().next()
    }

    fn eat(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        Some(c)
    }

    /// Returns the character that may continue an operator. There must be one.
    fn after_sign(&self, sign: char) -> Lexed<char> {
        self.peek().ok_or_else(|| format!("nothing follows '{sign}' at the end of the command"))
    }

    fn token(&mut self) -> Lexed<Token> {
        let start = self.pos;
        let Some(c) = self.eat() else { return Err("unexpected end".to_owned()) };
        let longer: &[(char, &'static str)] = match c {
            ';' => return Ok(Token::Sign(";", None)),
            '|' => &[('|', "||")],
            '&' => &[('&', "&&"), ('>', "&>")],
            '>' => &[('&', ">&"), ('>', ">>")],
            '<' => &[('&', "<&"), ('>', "<<")],
            _ => return self.word(start, c),
        };
        let next = self.after_sign(c)?;
        if let Some(&(second, sign)) = longer.iter().find(|(second, _)| *second == next) {
            self.pos += second.len_utf8();
            return Ok(Token::Sign(sign, None));
        }
        let sign = match c {
            '|' => "|",
            '&' => "&",
            '>' => ">",
            _ => "<",
        };
        Ok(Token::Sign(sign, None))
    }

    fn word(&mut self, start: usize, first: char) -> Lexed<Token> {
        let rest = &self.text[start..];
        let chunk = &rest[..rest.find(is_space).unwrap_or(rest.len())];
        if chunk.contains(['|', '&', '<', '>', '\'', '"', ';', '\\']) {
            return self.word_by_chars(first);
        }
        self.pos = start + chunk.len();
        let glob = chunk.contains(['*', '?']);
        Ok(Token::Word(if glob { Word::Glob(chunk.to_owned()) } else { Word::Text(chunk.to_owned()) }))
    }

    fn word_by_chars(&mut self, first: char) -> Lexed<Token> {
        let mut text = String::new();
        if matches!(first, '\'' | '"') {
            self.quoted(first, &mut text)?;
        } else {
            text.push(first);
        }
        let (mut bare_glob, mut quoted_glob) = (false, false);
        while let Some(c) = self.peek() {
            match c {
                '|' | '&' | ';' => break,
                c if is_space(c) => break,
                '<' | '>' if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) => break,
                '<' | '>' => {
                    let fd = text.parse().unwrap_or(u64::MAX);
                    let Token::Sign(sign, _) = self.token()? else { return Err("not a sign".to_owned()) };
                    return Ok(Token::Sign(sign, Some(fd)));
                }
                '\'' | '"' => {
                    self.eat();
                    let before = text.len();
                    self.quoted(c, &mut text)?;
                    quoted_glob |= text[before..].contains(['*', '?']);
                }
                '\\' => {
                    self.eat();
                    text.push(self.eat().ok_or("a backslash ends the command")?);
                }
                c => {
                    bare_glob |= matches!(c, '*' | '?');
                    text.push(c);
                    self.eat();
                }
            }
        }
        if bare_glob && quoted_glob {
            return Err(format!("quoted and unquoted glob characters in one word: {text}"));
        }
        Ok(Token::Word(if bare_glob { Word::Glob(text) } else { Word::Text(text) }))
    }

    /// Reads up to the closing quote, after the opening one.
    fn quoted(&mut self, delimiter: char, text: &mut String) -> Lexed<()> {
        let missing = || format!("missing closing {delimiter}");
        loop {
            let c = self.eat().ok_or_else(missing)?;
            if c == delimiter {
                return Ok(());
            }
            if c != '\\' || delimiter != '"' {
                text.push(c);
                continue;
            }
            match self.eat().ok_or_else(missing)? {
                '$' if self.dialect == Dialect::V23 => text.push('$'),
                c @ ('"' | '\\') => text.push(c),
                c => text.extend(['\\', c]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex_as(text: &str, dialect: Dialect) -> Result<Vec<Token>, String> {
        let mut lexer = Lexer::new(text, dialect);
        let mut tokens = Vec::new();
        while let Some(token) = lexer.next_token()? {
            tokens.push(token);
        }
        Ok(tokens)
    }

    fn words(text: &str) -> Vec<String> {
        let tokens = lex_as(text, Dialect::V23).unwrap();
        tokens
            .into_iter()
            .map(|t| match t {
                Token::Word(Word::Text(w)) => w,
                Token::Word(Word::Glob(w)) => format!("glob:{w}"),
                Token::Sign(sign, fd) => format!("{sign}{fd:?}"),
            })
            .collect()
    }

    #[test]
    fn words_and_quotes() {
        assert_eq!(words(r#"a 'b c' "d\"e\q" f\ g "#), ["a", "b c", "d\"e\\q", "f g"]);
        assert_eq!(words("#x $y `z` ~ {a} x=1"), ["#x", "$y", "`z`", "~", "{a}", "x=1"]);
        assert_eq!(words(r"\a x\a"), [r"\a", "xa"]);
    }

    #[test]
    fn dollar_in_double_quotes_differs_by_dialect() {
        let one = |d| lex_as(r#""\$x""#, d).unwrap();
        assert_eq!(one(Dialect::V23), [Token::Word(Word::Text("$x".into()))]);
        assert_eq!(one(Dialect::V19), [Token::Word(Word::Text("\\$x".into()))]);
    }

    #[test]
    fn digits_before_a_sign_are_a_descriptor_even_if_quoted() {
        assert_eq!(
            words("2>f \"2\">f a2>f 02>>f"),
            [">Some(2)", "f", ">Some(2)", "f", "a2", ">None", "f", ">>Some(2)", "f"]
        );
    }

    #[test]
    fn globs_are_words_with_bare_stars() {
        assert_eq!(words("*.c '*' [a] a'b'* '*'*"), ["glob:*.c", "*", "[a]", "glob:ab*", "glob:**"]);
        assert!(lex_as("a'*'*", Dialect::V23).is_err());
        // A star at the very start of a word with quotes does not count, as in lit.
        assert_eq!(words("*'x'"), ["*x"]);
    }

    #[test]
    fn an_operator_cannot_be_the_last_character() {
        for text in ["a |", "a &", "a >", "a <", "a x\\", "'a", "\"a\\"] {
            assert!(lex_as(text, Dialect::V23).is_err(), "{text}");
        }
        assert_eq!(words("a ;"), ["a", ";None"]);
    }
}
