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

/// What a command may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named<'c> {
    /// The path, or the name of a program or of a file in the working directory.
    pub word: &'c str,
    /// Whether it is a directory that the command enters or makes, and does not look into.
    pub is_entered: bool,
    /// Whether it stands in quotes, so that the shell takes it as it is.
    pub is_quoted: bool,
}

/// Returns all that a command may name: its words; what begins at a slash within a word, as in sed's `r/a/b`; and names with blanks
/// or marks in them, as they stand between blanks or quotes.
pub(crate) fn named(command: &str) -> Vec<Named<'_>> {
    const ENTER: [&str; 4] = ["cd", "pushd", "mkdir", "-p"];
    let (mut found, mut before) = (Vec::new(), "");
    let bare = unquoted(command);
    for word in words(command) {
        let name = path(word);
        let (is_entered, is_quoted) = (ENTER.contains(&before), !bare.contains(word));
        found.push(Named { word: name, is_entered, is_quoted });
        if let Some(at) = name.find('/').filter(|at| *at > 0) {
            found.push(Named { word: &name[at..], is_entered, is_quoted });
        }
        before = word;
    }
    let blank = |c: char| c.is_whitespace() || "'\"|&;<>".contains(c);
    let whole = command.split(blank).chain(command.split(['\'', '"']).skip(1).step_by(2));
    for part in whole.map(str::trim_end).filter(|part| words(part).next() != Some(part)) {
        for at in part.find('/').into_iter().flat_map(|at| [0, at]) {
            found.push(Named { word: &part[at..], is_entered: false, is_quoted: true });
        }
    }
    found
}

/// Returns a command without what stands in its quotes.
fn unquoted(command: &str) -> String {
    let mut quote = None;
    let outside = |c: &char| match quote {
        Some(open) => {
            if *c == open {
                quote = None;
            }
            false
        }
        None => {
            if "'\"".contains(*c) {
                quote = Some(*c);
            }
            true
        }
    };
    command.chars().filter(outside).collect()
}

/// Returns why it is not known which files a command names. `None` if its words tell.
pub(crate) fn hides_names(command: &str) -> Option<&'static str> {
    // Shells know them, and their files are not sent.
    const VARIABLES: [&str; 4] = ["HOME", "PWD", "OLDPWD", "TMPDIR"];
    let is_variable =
        |rest: &str| VARIABLES.iter().any(|name| rest.trim_start_matches('{').starts_with(name));
    if words(command).any(|word| word.starts_with('~')) || command.split('$').skip(1).any(is_variable) {
        return Some("it names something by a home directory or by a variable of the shell");
    }
    if ["\\ ", "\\\t"].iter().any(|blank| command.contains(blank)) {
        return Some("a name in it has blanks");
    }
    let has_sed = starts(command).iter().any(|start| start.rsplit('/').next() == Some("sed"));
    let is_script = |word: &str| {
        word.starts_with("--file") || (word.starts_with('-') && !word.starts_with("--") && word.contains('f'))
    };
    (has_sed && command.split_whitespace().any(is_script))
        .then_some("a script of sed in a file may read others")
}

/// Words that make a failure count as a success, so that a missing file may not be noticed.
const NEGATIONS: [&str; 6] = ["not", "!", "if", "while", "until", "trap"];

/// Returns why a pass of this command may be due to a file that is missing. `None` if each of its parts has to succeed.
pub(crate) fn hides_failures(command: &str) -> Option<&'static str> {
    const MARKS: [&str; 6] = ["||", ";", "`", "$(", "<(", ">("];
    if MARKS.iter().any(|mark| command.contains(mark)) || goes_on(command) {
        return Some("a command in it may fail unseen");
    }
    let is_negation = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        NEGATIONS.contains(&name)
    };
    let blank = |c: char| c.is_whitespace() || "'\"|&()".contains(c);
    command.split(blank).any(is_negation).then_some("it expects a command to fail")
}

/// Returns whether a command may be left in the background: an ampersand that neither joins two commands nor belongs to a redirection.
fn goes_on(command: &str) -> bool {
    let rest = command.replace("&&", "");
    let bytes = rest.as_bytes();
    let is_alone = |at: usize| {
        let before = at.checked_sub(1).map(|at| bytes[at]);
        !matches!(before, Some(b'>' | b'<' | b'|')) && bytes.get(at + 1) != Some(&b'>')
    };
    (0..bytes.len()).any(|at| bytes[at] == b'&' && is_alone(at))
}

/// Returns why a pass of this command says little: nothing has to be printed, or files are compared by their times. `None` otherwise.
pub(crate) fn proves_little(command: &str) -> Option<&'static str> {
    let words: Vec<&str> =
        command.split([' ', '\t', '\'', '"', '|', '(', ')']).filter(|word| !word.is_empty()).collect();
    let name = |word: &&str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let counts_nothing = words.windows(2).any(|pair| name(&pair[0]) == "count" && pair[1] == "0");
    if counts_nothing || words.iter().any(|word| word.trim_start_matches('-').starts_with("allow-empty")) {
        return Some("it may expect that nothing is printed");
    }
    let updates = |word: &&str| {
        let is_short = word.starts_with('-') && !word.starts_with("--") && word.contains('u');
        is_short || word.starts_with("--update")
    };
    let copies = words.iter().any(|word| ["cp", "mv"].contains(&name(word).as_str()));
    if copies && words.iter().any(updates) {
        return Some("it may compare the times of files");
    }
    words.iter().filter_map(|word| word.split_once('=')).find_map(|(name, value)| of_the_place(name, value))
}

/// Returns why a variable asks for files of the system that are not sent.
pub(crate) fn of_the_place(name: &str, value: &str) -> Option<&'static str> {
    let is_locale = ["LANG", "LANGUAGE", "LOCPATH"].contains(&name) || name.starts_with("LC_");
    if is_locale && !["", "C", "POSIX", "C.UTF-8", "C.utf8"].contains(&value) {
        return Some("its locale is not sent");
    }
    let is_zone = name == "TZ" && !["", "UTC", "UTC0", "GMT", "GMT0"].contains(&value);
    is_zone.then_some("its time zone is not sent")
}

/// Returns the directory in which a pattern of the shell looks for names; `None` if the word is none.
pub(crate) fn searched(word: &str) -> Option<&str> {
    let at = word.find(['*', '?'])?;
    Some(word[..at].rfind('/').map_or(".", |slash| &word[..slash.max(1)]))
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
    fn what_a_command_may_name() {
        let names = |command| named(command).into_iter().map(|named| named.word).collect::<Vec<_>>();
        assert!(names("sed 'r/a/b' x").contains(&"/a/b"));
        assert!(names("sed 'r /a/b c/d' x").contains(&"/a/b c/d"));
        assert!(names("tool --x=/a=1,b").contains(&"/a=1,b"));
        let of =
            |word| named("cd /a && cat /b '*.c' *.d").into_iter().find(|named| named.word == word).unwrap();
        assert_eq!(["/a", "/b"].map(|word| of(word).is_entered), [true, false]);
        assert_eq!(["*.c", "*.d"].map(|word| of(word).is_quoted), [true, false]);
    }

    #[test]
    fn names_that_are_not_seen() {
        for command in [
            "cat ~/x",
            "cat --x=~",
            "cat $HOME/x",
            "cat ${PWD}/x",
            "cat /a\\ b",
            "sed -nf x y",
            "a | sed --file=x y",
        ] {
            assert!(hides_names(command).is_some(), "{command}");
        }
        for command in ["cat a~ $1", "sed -n 's/f/g/p' x", "opt -f x"] {
            assert_eq!(hides_names(command), None, "{command}");
        }
    }

    #[test]
    fn where_commands_begin() {
        let found = starts("opt '-passes=a(b)|c' x 2>&1 | env A=1 -u B FileCheck x && 'cat' y > z; env");
        assert_eq!(found, ["opt", "FileCheck", "cat"]);
    }

    #[test]
    fn what_may_fail_unseen() {
        for command in [
            "not opt x",
            "/bin/not --crash opt",
            "a || b",
            "a; b",
            "opt | ! grep x",
            "echo $(a)",
            "a & b",
            "a x&",
            "diff <(a) <(b)",
            "a > >(b)",
        ] {
            assert!(hides_failures(command).is_some(), "{command}");
        }
        for command in ["opt --not -S knot && FileCheck %s", "a 2>&1 |& b &> c && d >&2"] {
            assert_eq!(hides_failures(command), None, "{command}");
        }
    }

    #[test]
    fn what_proves_little() {
        for command in [
            "opt x | FileCheck --allow-empty y",
            "opt | /bin/count 0",
            "cp -pu a b",
            "mv --update a b",
            "env TZ=Europe/Paris opt",
            "LC_ALL=de_DE sort x",
            "'-allow-empty'",
        ] {
            assert!(proves_little(command).is_some(), "{command}");
        }
        for command in ["opt | count 10", "cp -r a b", "env TZ=UTC LANG=C.UTF-8 opt -u", "opt -x=allow-empty"]
        {
            assert_eq!(proves_little(command), None, "{command}");
        }
    }

    #[test]
    fn where_patterns_look() {
        for (word, directory) in [("/a/b/*.ll", "/a/b"), ("/*", "/"), ("x?", "."), ("a/b*/c", "a")] {
            assert_eq!(searched(word), Some(directory), "{word}");
        }
        assert_eq!(searched("/a/b"), None);
    }
}
