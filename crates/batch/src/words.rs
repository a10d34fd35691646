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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_names_and_paths() {
        let found: Vec<_> = words("opt -S < /a/b.ll 2>&1 | FileCheck --x=/c '-I/d:e'").map(path).collect();
        assert_eq!(found, ["opt", "-S", "/a/b.ll", "2", "1", "FileCheck", "--x", "/c", "/d", "e"]);
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
