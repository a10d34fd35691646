//! Writes a pipeline of lit's shell in the words of a POSIX shell, for people who want to run it by hand.
//!
//! Words are quoted anew, so each stays one word, whatever it contains. lit's shell implements `not` and `!` before a
//! stage itself; they become the shell's `!` if there is no program `not`.

use hotstart_python::shlex::quote;

use crate::ast::{Command, Pipeline, Redirect, RedirectOp, Target, Word};

/// Returns the pipeline as text. `has_not` says whether there is a program `not`.
pub(crate) fn pipeline(pipeline: &Pipeline, has_not: bool) -> String {
    let is_only = pipeline.stages.len() == 1;
    let stages: Vec<_> = pipeline.stages.iter().map(|stage| command(stage, has_not, is_only)).collect();
    stages.join(" | ")
}

fn command(command: &Command, has_not: bool, is_only: bool) -> String {
    let mut text = negated(&command.words, has_not, is_only);
    for redirect in &command.redirects {
        text.push(' ');
        text.push_str(&redirection(redirect));
    }
    text
}

/// Writes the words. A negation without a program becomes the shell's `!`, in a group if the pipeline has more stages.
fn negated(words: &[Word], has_not: bool, is_only: bool) -> String {
    let negates = match words {
        [first, second, ..] => match first.literal() {
            Some("!") => true,
            Some("not") => !has_not && second.literal() != Some("--crash"),
            _ => false,
        },
        _ => false,
    };
    if !negates {
        return words.iter().map(word).collect::<Vec<_>>().join(" ");
    }
    let rest = negated(&words[1..], has_not, false);
    if is_only { format!("! {rest}") } else { format!("{{ ! {rest}; }}") }
}

fn word(word: &Word) -> String {
    match word {
        Word::Text(text) => file_contents(text),
        Word::Glob(pattern) => glob(pattern),
    }
}

/// Replaces `%{readfile:NAME}` with a `cat` that reads the file when the command runs, as lit does.
fn file_contents(text: &str) -> String {
    const OPEN: &str = "%{readfile:";
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, name, after)) = rest
        .split_once(OPEN)
        .and_then(|(before, after)| after.split_once('}').map(|(name, after)| (before, name, after)))
    {
        if !before.is_empty() {
            out.push_str(&quote(before));
        }
        out.push_str(&format!("\"$(cat {})\"", quote(name)));
        rest = after;
    }
    if !rest.is_empty() || out.is_empty() {
        out.push_str(&quote(rest));
    }
    out
}

/// Quotes everything but the characters that make it a pattern.
fn glob(pattern: &str) -> String {
    let is_magic = |c: char| matches!(c, '*' | '?' | '[' | ']');
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find(is_magic) {
        if at > 0 {
            out.push_str(&quote(&rest[..at]));
        }
        out.push_str(&rest[at..at + 1]);
        rest = &rest[at + 1..];
    }
    if !rest.is_empty() {
        out.push_str(&quote(rest));
    }
    out
}

fn redirection(redirect: &Redirect) -> String {
    let fd = redirect.fd.map_or(String::new(), |fd| fd.to_string());
    let target = match &redirect.target {
        Target::Word(target) => word(target),
        Target::Sign(sign, _) => (*sign).to_owned(),
    };
    match redirect.op {
        // Other shells read these as a background command or a descriptor.
        RedirectOp::Both => format!("> {target} 2>&1"),
        RedirectOp::DupOut if redirect.fd.is_none() => format!("> {target} 2>&1"),
        RedirectOp::DupOut | RedirectOp::DupIn => format!("{fd}{}{target}", redirect.op.sign()),
        op => format!("{fd}{} {target}", op.sign()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use hotstart_model::Dialect;

    fn pasted(text: &str, has_not: bool) -> String {
        pipeline(&parse(text, Dialect::V23).unwrap().first, has_not)
    }

    #[test]
    fn words_are_quoted_anew() {
        assert_eq!(pasted(r#"a "b c" 'd"' e\ f $x `y` #z"#, true), r#"a 'b c' 'd"' 'e f' '$x' '`y`' '#z'"#);
        assert_eq!(pasted("a 'it''s' ''", true), "a its ''");
        assert_eq!(pasted(r#"a "it's""#, true), "a 'it'\"'\"'s'");
    }

    #[test]
    fn patterns_stay_patterns() {
        assert_eq!(pasted("ls /a/b*.c /x$y/?z 'q*'", true), "ls /a/b*.c '/x$y/'?z 'q*'");
    }

    #[test]
    fn redirections_and_stages() {
        assert_eq!(
            pasted("a <in 2>&1 | b >out 2>>'er r' | c &> both", true),
            "a < in 2>&1 | b > out 2>> 'er r' | c > both 2>&1"
        );
    }

    #[test]
    fn negation_is_the_shells_where_there_is_no_program() {
        assert_eq!(pasted("not a | not b", true), "not a | not b");
        assert_eq!(pasted("not a b > c", false), "! a b > c");
        assert_eq!(pasted("! a | not --crash b", false), "{ ! a; } | not --crash b");
        assert_eq!(pasted("env A=1 not a", false), "env A=1 not a");
    }

    #[test]
    fn files_are_read_when_it_runs() {
        assert_eq!(pasted("a -x=%{readfile:f}y", true), "a -x=\"$(cat f)\"y");
    }
}
