//! Refuses parsed commands whose name or redirections bash interprets differently.

use super::{Refusal, Scope, is_plain_absolute, names, place};
use crate::ast::{Command, Pipeline, Redirect, RedirectOp, Target, Word};

/// Checks a pipeline.
pub(super) fn accept(pipeline: &Pipeline, scope: &Scope) -> Result<(), Refusal> {
    let count = pipeline.stages.len();
    for (index, stage) in pipeline.stages.iter().enumerate() {
        let place = Place { is_only: count == 1, is_first: index == 0, is_last: index + 1 == count };
        redirects(&stage.redirects, place)?;
        arguments(&stage.words, scope)?;
        words(stage, place, scope)?;
    }
    Ok(())
}

/// A stage's place in its pipeline.
#[derive(Clone, Copy)]
struct Place {
    is_only: bool,
    is_first: bool,
    is_last: bool,
}

fn words(stage: &Command, place: Place, scope: &Scope) -> Result<(), Refusal> {
    let mut rest = &stage.words[..];
    if literal(rest)? == "!" {
        if !place.is_only {
            return Err("`!` before a pipeline");
        }
        rest = &rest[1..];
    }
    let (mut is_prefixed, mut negations, mut steers_loader) = (false, 0, false);
    loop {
        match literal(rest)? {
            "not" => {
                rest = &rest[1..];
                negations += 1;
                if negations > 1 || steers_loader || !scope.has_not || !(scope.pipefail || place.is_last) {
                    return Err("`not` that may not be the program");
                }
                if literal(rest)? == "--crash" {
                    rest = &rest[1..];
                } else if literal(rest)?.starts_with('-') {
                    return Err("an option of `not`");
                }
            }
            "env" => {
                let (after, steers) = assignments(&rest[1..])?;
                (rest, steers_loader) = (after, steers_loader || steers);
            }
            _ => break,
        }
        is_prefixed = true;
    }
    let name = literal(rest)?;
    program_name(name)?;
    if name == "printenv" && rest.len() == 1 {
        return Err("the environment in bash's order");
    }
    match is_prefixed {
        // `env` and `not` start a program of this name, but lit may take it for the internal shell's builtin.
        true if BUILTINS.contains(&name) || OF_LIT.contains(&name) => Err("a builtin after `env` or `not`"),
        true => Ok(()),
        false => command(name, &rest[1..], stage, place),
    }
}

/// Divides an accepted command into the words `!`, `not` and `env` before its name, without what belongs to them, and the rest.
pub(super) fn prefixes(words: &[Word]) -> Result<(Vec<&str>, &[Word]), Refusal> {
    let (mut found, mut rest) = (Vec::new(), words);
    while let word @ ("!" | "not" | "env") = literal(rest)? {
        found.push(word);
        rest = match word {
            "env" => assignments(&rest[1..])?.0,
            "not" if literal(&rest[1..])? == "--crash" => &rest[2..],
            _ => &rest[1..],
        };
    }
    Ok((found, rest))
}

/// Returns the command's name. There must be one, and it must not be a pattern.
fn literal(words: &[Word]) -> Result<&str, Refusal> {
    words.first().ok_or("a command without a name")?.literal().ok_or("a pattern as a command's name")
}

/// Accepts a program's name. bash takes some names without a slash for something else: a job (`%1`), an assignment, a history.
fn program_name(name: &str) -> Result<(), Refusal> {
    if name.contains('/') {
        // Programs see by which path they were started. lit's shell makes each an absolute one without `.`, `..` and `//`.
        return if is_plain_absolute(name) {
            Ok(())
        } else {
            Err("a program by another path than a plain absolute one")
        };
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'+' | b'-');
    let begins_plainly = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    match begins_plainly && name.bytes().all(is_plain) {
        true => Ok(()),
        // Assignments have a reason of their own.
        false if name.contains('=') || BUILTINS.contains(&name) || COMPOUND.contains(&name) => Ok(()),
        false if OF_LIT.contains(&name) => Ok(()),
        false => Err("a program's name with a character that may mean something to bash"),
    }
}

/// Skips the variables that `env` sets and removes. Returns the rest, and whether one of them steers the dynamic loader.
fn assignments(mut words: &[Word]) -> Result<(&[Word], bool), Refusal> {
    let (mut steers_loader, mut may_unset) = (false, true);
    loop {
        let word = literal(words)?;
        may_unset &= word == "-u";
        let (name, after) = match word.split_once('=') {
            _ if word == "-u" && may_unset => {
                (literal(&words[1..])?, words.get(2..).ok_or("`env` without a command")?)
            }
            _ if word.starts_with('-') => return Err("an option of `env`"),
            Some((name, _)) => (name, &words[1..]),
            None => return Ok((words, steers_loader)),
        };
        if !names::is_name(name) || name == "PATH" {
            return Err("a variable that steers shells");
        }
        steers_loader |= names::steers_loader(name);
        words = after;
    }
}

/// Names that lit's shell takes for its own commands, beyond those that bash also has.
const OF_LIT: [&str; 1] = ["@echo"];

/// bash's builtins and reserved words for which no program has the same meaning.
#[rustfmt::skip]
const BUILTINS: [&str; 76] = [
    "!", ".", ":", "[", "[[", "]]", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command",
    "compgen", "complete", "compopt", "continue", "coproc", "declare", "dirs", "disown", "do", "done", "echo", "elif",
    "else", "enable", "esac", "eval", "exec", "exit", "export", "fc", "fg", "fi", "for", "function", "getopts",
    "hash", "help", "history", "if", "in", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf",
    "pushd", "pwd", "read", "readarray", "readonly", "return", "select", "set", "shift", "shopt", "source",
    "suspend", "then", "time", "times", "trap", "type", "typeset", "ulimit", "umask", "unalias", "unset", "until",
];

/// The rest of bash's builtins and reserved words.
const COMPOUND: [&str; 4] = ["wait", "while", "{", "}"];

/// Checks a command that is neither `env` nor `not`.
fn command(name: &str, args: &[Word], stage: &Command, place: Place) -> Result<(), Refusal> {
    let is_bare = place.is_only && stage.redirects.is_empty();
    let ok = match name {
        "echo" => echo(args, stage),
        ":" => is_bare,
        "cd" => {
            is_bare && matches!(args, [Word::Text(dir)] if is_plain_absolute(dir) && !place::is_special(dir))
        }
        "export" => is_bare && matches!(args, [Word::Text(text)] if is_export(text)),
        // In a pipeline bash forks for its builtin, which ends sooner than a program: a writer may then die of SIGPIPE.
        "true" | "false" => place.is_only && args.is_empty(),
        "test" => place.is_only && test(args)?,
        _ if name.contains('=') => return Err("an assignment"),
        _ => !(BUILTINS.contains(&name) || COMPOUND.contains(&name) || OF_LIT.contains(&name)),
    };
    match (ok, name) {
        (true, _) => Ok(()),
        (false, "echo") => Err("`echo` with options, patterns or redirected errors"),
        (false, "cd") => Err("`cd` other than to a plain absolute path"),
        (false, "export") => Err("`export` other than of one variable"),
        (false, _) => Err("a builtin of bash"),
    }
}

/// Accepts `-n` at most, and then nothing that looks like an option.
fn echo(args: &[Word], stage: &Command) -> bool {
    let texts: Option<Vec<&str>> = args.iter().map(Word::literal).collect();
    let only_output = stage
        .redirects
        .iter()
        .all(|redirect| matches!((redirect.op, redirect.fd), (RedirectOp::Out | RedirectOp::Append, None)));
    let Some(texts) = texts else { return false };
    let texts = texts.strip_prefix(&["-n"]).unwrap_or(&texts);
    only_output && !texts.first().is_some_and(|text| text.starts_with('-'))
}

fn is_export(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| names::may_be_exported(name))
}

/// Accepts the forms of `test` for which builtin and program agree.
fn test(args: &[Word]) -> Result<bool, Refusal> {
    const UNARY: [&str; 11] = ["-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L", "-h", "-z", "-n"];
    const BINARY: [&str; 5] = ["=", "!=", "-nt", "-ot", "-ef"];
    const OF_NUMBERS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
    let texts: Option<Vec<&str>> = args.iter().map(Word::literal).collect();
    let ok = match texts.as_deref() {
        Some([operator, _] | ["!", operator, _]) if UNARY.contains(operator) => true,
        Some([left, operator, right]) if OF_NUMBERS.contains(operator) => is_number(left) && is_number(right),
        Some([left, operator, _]) => BINARY.contains(operator) && !matches!(*left, "!" | "("),
        _ => false,
    };
    match ok && tested_files(args).any(place::is_special) {
        true => Err("`test` of something on /proc or below /dev"),
        false => Ok(ok),
    }
}

/// Whether this is a number to both, and the same: bash has 64 bits, and fails beyond; the program knows no limit.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.len() <= 18
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !matches!(digits.as_bytes().first(), None | Some(b'0')))
}

/// Returns the files that an accepted `test` looks at.
pub(super) fn tested_files(args: &[Word]) -> impl Iterator<Item = &str> {
    let text = |index: usize| args.get(index).and_then(Word::literal);
    let operands = match (text(0), text(1), args.len()) {
        (_, Some("-nt" | "-ot" | "-ef"), 3) => [text(0), text(2)],
        (Some("!"), Some("-z" | "-n"), 3) | (Some("-z" | "-n"), _, 2) => [None, None],
        (Some("!"), _, 3) => [text(2), None],
        (_, _, 2) => [text(1), None],
        _ => [None, None],
    };
    operands.into_iter().flatten()
}

/// Accepts a pattern only in the last component of an absolute path, and only if both shells sort alike.
fn arguments(words: &[Word], scope: &Scope) -> Result<(), Refusal> {
    for word in words {
        let Word::Glob(pattern) = word else { continue };
        let (dir, name) = pattern.rsplit_once('/').unwrap_or_default();
        let is_hidden = name.starts_with('.'); // older versions of bash find `.` and `..` there
        if !scope.sorts_bytes
            || is_hidden
            || !is_plain_absolute(dir)
            || dir.contains(['*', '?'])
            || place::is_special(dir)
        {
            return Err("a pattern for file names");
        }
    }
    Ok(())
}

/// Accepts one redirection per descriptor. `2>&1` must come after any redirection of output.
fn redirects(redirects: &[Redirect], place: Place) -> Result<(), Refusal> {
    let (mut used, mut follows) = ([false; 3], false);
    for redirect in redirects {
        let target = match &redirect.target {
            Target::Word(Word::Text(name)) => name.as_str(),
            _ => return Err("a redirection to a pattern"),
        };
        let is_duplicate = matches!((redirect.op, redirect.fd), (RedirectOp::DupOut, Some(2)));
        let set = match (redirect.op, redirect.fd) {
            (RedirectOp::In, None) if place.is_first => 0..1,
            (RedirectOp::Out | RedirectOp::Append, None) if place.is_last && !follows => 1..2,
            (RedirectOp::Out | RedirectOp::Append, Some(2)) => 2..3,
            (RedirectOp::DupOut, Some(2)) if target == "1" => 2..3,
            (RedirectOp::Both | RedirectOp::DupOut, None) if place.is_last && is_file_name(target) => 1..3,
            _ => return Err("a redirection of another kind"),
        };
        if !is_duplicate && place::is_special(target) {
            return Err("a redirection to something on /proc or below /dev");
        }
        if used[set.clone()].contains(&true) {
            return Err("a descriptor redirected twice");
        }
        used[set].fill(true);
        follows |= is_duplicate;
    }
    Ok(())
}

/// Whether `>& NAME` is a file in both shells, not a descriptor.
fn is_file_name(name: &str) -> bool {
    !name.starts_with('-') && !name.starts_with(|c: char| c.is_ascii_digit())
}
