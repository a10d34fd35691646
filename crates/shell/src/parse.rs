//! Parses tokens to an [`Ast`]. Everything is parsed before anything runs.

use std::fmt;

use hotstart_model::Dialect;

use crate::ast::{Ast, Command, Operator, Pipeline, Redirect, RedirectOp, Target, Word};
use crate::lex::{Lexer, Token};

/// A command that is not in the language, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

impl From<String> for ParseError {
    fn from(message: String) -> Self {
        ParseError(message)
    }
}

/// Parses one command of a script.
pub fn parse(text: &str, dialect: Dialect) -> Result<Ast, ParseError> {
    let mut parser = Parser { lexer: Lexer::new(text, dialect), ahead: None };
    let first = parser.pipeline()?;
    let mut rest = Vec::new();
    while let Some(sign) = parser.next()? {
        let operator = match sign {
            Token::Sign(";", _) => Operator::Then,
            Token::Sign("&", _) => Operator::Background,
            Token::Sign("&&", _) => Operator::And,
            Token::Sign("||", _) => Operator::Or,
            other => return Err(ParseError(format!("unexpected {other:?}"))),
        };
        if parser.peek()?.is_none() {
            return Err(ParseError("an operator has nothing after it".to_owned()));
        }
        rest.push((operator, parser.pipeline()?));
    }
    Ok(Ast { first, rest })
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    ahead: Option<Token>,
}

impl Parser<'_> {
    fn next(&mut self) -> Result<Option<Token>, ParseError> {
        match self.ahead.take() {
            Some(token) => Ok(Some(token)),
            None => Ok(self.lexer.next_token()?),
        }
    }

    fn peek(&mut self) -> Result<Option<&Token>, ParseError> {
        if self.ahead.is_none() {
            self.ahead = self.lexer.next_token()?;
        }
        Ok(self.ahead.as_ref())
    }

    fn pipeline(&mut self) -> Result<Pipeline, ParseError> {
        let mut stages = vec![self.command()?];
        while self.peek()? == Some(&Token::Sign("|", None)) {
            self.next()?;
            stages.push(self.command()?);
        }
        Ok(Pipeline { stages })
    }

    fn command(&mut self) -> Result<Command, ParseError> {
        let mut words = match self.next()? {
            Some(Token::Word(word)) if !is_empty(&word) => vec![word],
            Some(Token::Sign(sign, _)) => return Err(ParseError(format!("unexpected '{sign}'"))),
            _ => return Err(ParseError("empty command".to_owned())),
        };
        let mut redirects = Vec::new();
        while let Some(token) = self.peek()? {
            if let Token::Sign(";" | "&" | "&&" | "|" | "||", _) = token {
                break;
            }
            match self.next()? {
                Some(Token::Word(word)) => words.push(word),
                Some(Token::Sign(sign, fd)) => redirects.push(self.redirect(sign, fd)?),
                None => break,
            }
        }
        Ok(Command { words, redirects })
    }

    fn redirect(&mut self, sign: &'static str, fd: Option<u64>) -> Result<Redirect, ParseError> {
        let op = match sign {
            "<" => RedirectOp::In,
            "<&" => RedirectOp::DupIn,
            "<<" => RedirectOp::HereDoc,
            ">" => RedirectOp::Out,
            ">>" => RedirectOp::Append,
            ">&" => RedirectOp::DupOut,
            _ => RedirectOp::Both,
        };
        let target = match self.next()? {
            Some(Token::Word(word)) if !is_empty(&word) => Target::Word(word),
            Some(Token::Sign(sign, fd)) => Target::Sign(sign, fd),
            _ => return Err(ParseError(format!("'{sign}' has no file after it"))),
        };
        Ok(Redirect { op, fd, target })
    }
}

fn is_empty(word: &Word) -> bool {
    word.literal() == Some("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> Ast {
        parse(text, Dialect::V23).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn operators_make_a_flat_list() {
        let ast = ok("a | b && c ; d || e & f");
        assert_eq!(ast.first.stages.len(), 2);
        let operators: Vec<_> = ast.rest.iter().map(|(op, _)| *op).collect();
        assert_eq!(operators, [Operator::And, Operator::Then, Operator::Or, Operator::Background]);
    }

    #[test]
    fn redirections_stand_anywhere_after_the_first_word() {
        let command = &ok("a 2>&1 b > f c").first.stages[0];
        assert_eq!(command.shown(), ["a", "b", "c"]);
        let signs: Vec<_> = command.redirects.iter().map(|r| (r.op, r.fd)).collect();
        assert_eq!(signs, [(RedirectOp::DupOut, Some(2)), (RedirectOp::Out, None)]);
    }

    #[test]
    fn what_is_no_command() {
        for text in ["", "  ", "a ;", "; a", "| a", "a &&  ", "> f a", "'' a", "a > ''", "a || | b", "a >"] {
            assert!(parse(text, Dialect::V23).is_err(), "{text}");
        }
    }

    #[test]
    fn a_sign_is_accepted_as_a_target() {
        assert_eq!(ok("a > > f").first.stages[0].redirects[0].target, Target::Sign(">", None));
    }
}
