//! Words of a command that may name a file: paths and names of programs.
//!
//! This does not parse the command. A word that names nothing does no harm, and one that is overlooked makes its test run here.

/// Returns the words of a command. A word ends at blanks, quotes and what shells, lists and options put between names.
pub(crate) fn words(command: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || "'\"`;|&<>(){}[],=:\\$".contains(c);
    command.split(ends).filter(|word| !word.is_empty())
}

/// Returns the path in a word: what begins at its first slash, if an option or a mark stands before it, otherwise all of it.
pub(crate) fn path(word: &str) -> &str {
    match word.find('/') {
        Some(at) if word.starts_with(['-', '@', '+']) => &word[at..],
        _ => word,
    }
}

/// Words that make a failure count as a success, so that a missing file may not be noticed.
const NEGATIONS: [&str; 6] = ["not", "!", "if", "while", "until", "trap"];

/// Returns why a pass of this command may be due to a file that is missing. `None` if each of its parts has to succeed.
pub(crate) fn hides_failures(command: &str) -> Option<&'static str> {
    if command.contains("||") || command.contains(';') || command.contains('`') || command.contains("$(") {
        return Some("a command in it may fail unseen");
    }
    let is_negation = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        NEGATIONS.contains(&name)
    };
    let blank = |c: char| c.is_whitespace() || "'\"|&()".contains(c);
    command.split(blank).any(is_negation).then_some("it expects a command to fail")
}

/// Returns the words that stand where a command begins: at the start and after each mark that joins commands.
pub(crate) fn starts(command: &str) -> Vec<String> {
    let mut quote = None;
    let mark = |c: char| {
        match quote {
            Some(open) if c == open => quote = None,
            // Nothing begins within quotes.
            Some(_) if "|&(){}\n".contains(c) => return '_',
            None if c == '\'' || c == '"' => quote = Some(c),
            _ => {}
        }
        c
    };
    let text: String = command.chars().map(mark).collect();
    let parts = text.split(['|', '&', '(', ')', '{', '}', '\n']);
    parts.filter_map(start).map(str::to_owned).collect()
}

/// Returns the first word that is neither `env` nor one of its options or variables. `None` if there is no command, as after `2>`.
fn start(part: &str) -> Option<&str> {
    let mut words = part.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
    let first = words.next()?;
    if first.rsplit('/').next() != Some("env") {
        // What follows the mark of a redirection (`2>&1`) is its descriptor.
        return (!first.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '>')).then_some(first);
    }
    while let Some(word) = words.next() {
        match word {
            "-u" => drop(words.next()),
            _ if word.starts_with('-') || word.contains('=') => {}
            _ => return Some(word),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_names_and_paths() {
        let found: Vec<_> = words("opt -S < /a/b.ll 2>&1 | FileCheck --x=/c '-I/d:e'").map(path).collect();
        assert_eq!(found, ["opt", "-S", "/a/b.ll", "2", "1", "FileCheck", "--x", "/c", "/d", "e"]);
    }

    #[test]
    fn where_commands_begin() {
        let found = starts("opt '-passes=a(b)|c' x 2>&1 | env A=1 -u B FileCheck x && 'cat' y > z; env");
        assert_eq!(found, ["opt", "FileCheck", "cat"]);
    }

    #[test]
    fn what_may_fail_unseen() {
        for command in ["not opt x", "/bin/not --crash opt", "a || b", "a; b", "opt | ! grep x", "echo $(a)"]
        {
            assert!(hides_failures(command).is_some(), "{command}");
        }
        assert_eq!(hides_failures("opt --not -S knot && FileCheck %s"), None);
    }
}
