//! `%if CONDITION %{ ... %} %else %{ ... %}`.
//!
//! The syntax is that of lit's parser, oddities included: an `%if` without a condition vanishes together with its
//! opening brace, and `%}` outside of a branch is text.

use hotstart_python::text;

use crate::boolexpr::Features;
use crate::exception::Exception;

/// Deepest nesting; Python's own limit is near it.
const MAX_DEPTH: usize = 400;

/// Replaces all conditionals of a line by the branches that hold.
pub fn expand(line: &str, features: &Features) -> Result<String, Exception> {
    if !line.contains("%if ") {
        return Ok(line.to_owned());
    }
    let mut rest = line;
    text(&mut rest, features, 0)
}

/// Consumes text with conditionals in it, in a branch up to the closing brace.
fn text(rest: &mut &str, features: &Features, depth: usize) -> Result<String, Exception> {
    if depth > MAX_DEPTH {
        return Err(Exception::new("RecursionError", "maximum recursion depth exceeded"));
    }
    let mut out = String::new();
    let at_end = |rest: &str| rest.is_empty() || (depth > 0 && rest.starts_with("%}"));
    while !at_end(rest) {
        match condition(rest)? {
            Some("") => {}
            Some(condition) => {
                let (first, second) = branches(rest, features, depth)?;
                out.push_str(if features.evaluate(condition)? { &first } else { &second });
            }
            None => out.push_str(plain(rest, depth > 0)),
        }
    }
    Ok(out)
}

/// Consumes `%if CONDITION %{`.
fn condition<'a>(rest: &mut &'a str) -> Result<Option<&'a str>, Exception> {
    let Some(after) = rest.strip_prefix("%if ") else { return Ok(None) };
    let Some((condition, after)) = after.split_once("%{") else {
        return Err(Exception::value("'%{' is missing for %if substitution"));
    };
    *rest = after;
    Ok(Some(condition))
}

fn branches(rest: &mut &str, features: &Features, depth: usize) -> Result<(String, String), Exception> {
    let first = text(rest, features, depth + 1)?;
    close(rest, "if")?;
    let Some(after) = text::strip_start(rest).strip_prefix("%else") else {
        return Ok((first, String::new()));
    };
    let Some(after) = text::strip_start(after).strip_prefix("%{") else {
        return Err(Exception::value("'%{' is missing for %else substitution"));
    };
    *rest = after;
    let second = text(rest, features, depth + 1)?;
    close(rest, "else")?;
    Ok((first, second))
}

fn close(rest: &mut &str, what: &str) -> Result<(), Exception> {
    match rest.strip_prefix("%}") {
        Some(after) => {
            *rest = after;
            Ok(())
        }
        None => Err(Exception::value(format!("'%}}' is missing for %{what} substitution"))),
    }
}

/// Consumes plain text up to the next `%if` or, in a branch, up to its end.
fn plain<'a>(rest: &mut &'a str, in_branch: bool) -> &'a str {
    // An `%if` without a blank after it makes lit loop forever; here it is text.
    let skip = if rest.starts_with("%if") { 3 } else { 0 };
    let next = rest[skip..].find("%if");
    let end = if in_branch { rest[skip..].find("%}") } else { None };
    let stop = match (next, end) {
        (Some(next), Some(end)) => skip + next.min(end),
        (Some(stop), None) | (None, Some(stop)) => skip + stop,
        (None, None) => rest.len(),
    };
    let (taken, after) = rest.split_at(stop);
    *rest = after;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(line: &str) -> String {
        expand(line, &Features::new(&["yes".to_owned()])).unwrap_or_else(|error| error.message)
    }

    #[test]
    fn branches_follow_the_condition() {
        assert_eq!(expanded("a %if yes %{b%} %else %{c%} d"), "a b d");
        assert_eq!(expanded("a %if no %{b%} %else %{c%} d"), "a c d");
        assert_eq!(expanded("a %if no %{b%} d"), "a  d");
        assert_eq!(expanded("%if yes %{%if no %{x%} %else %{y%}%}%}"), "y%}");
    }

    #[test]
    fn oddities_are_kept() {
        assert_eq!(expanded("a%ifb %if yes %{c%}"), "a%ifb c");
        assert_eq!(expanded("%if %{a%}b"), "a%}b");
        assert_eq!(expanded("%if yes"), "'%{' is missing for %if substitution");
        assert_eq!(expanded("%if yes %{a"), "'%}' is missing for %if substitution");
        assert_eq!(expanded("%if yes %{a%} %elsewhere"), "'%{' is missing for %else substitution");
        assert_eq!(expanded("%if yes %{a%} %else %{b"), "'%}' is missing for %else substitution");
    }
}
