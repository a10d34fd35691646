//! The sources of the acts, embedded in the binary, and the part of them that a sequence needs.

/// Shared declarations, and the code that runs the acts.
pub const HEADER: (&str, &str) = ("act.h", include_str!("../../acts/act.h"));
/// The program's `main`.
pub const MAIN: (&str, &str) = ("main.c", include_str!("../../acts/main.c"));
/// Declarations for the acts before `main`.
pub const BEFORE_HEADER: (&str, &str) = ("before.h", include_str!("../../acts/before.h"));

macro_rules! acts {
    ($($file:literal),* $(,)?) => { [$(($file, include_str!(concat!("../../acts/", $file)))),*] };
}

/// The acts in `main`.
pub const ACTS: [(&str, &str); 22] = acts![
    "files.c",
    "descriptors.c",
    "memory.c",
    "signals.c",
    "limits.c",
    "process.c",
    "number.c",
    "proc.c",
    "stdio.c",
    "libc.c",
    "cpu.c",
    "threads.c",
    "ends.c",
    "usage.c",
    "resident.c",
    "reserved.c",
    "sigsys.c",
    "storm.c",
    "pointers.c",
    "strings.c",
    "interrupts.c",
    "rare.c",
];

/// The acts before `main`, each in its own `#ifdef`.
pub const BEFORE: [(&str, &str); 5] =
    acts!["before_identity.c", "before_files.c", "before_request.c", "before_state.c", "before_parts.c"];

/// The beginning of such a piece.
const PIECE: &str = "#ifdef WITH_";

/// Returns the names of the acts before `main`.
pub fn before_names() -> Vec<&'static str> {
    BEFORE.iter().flat_map(|(_, source)| source.lines()).filter_map(|line| line.strip_prefix(PIECE)).collect()
}

/// Returns one C file with everything that `acts` and `before` need, and without the other acts.
pub fn standalone(acts: &[&str], before: &[&str]) -> String {
    let mut text = String::from(HEADER.1);
    text.push_str(&without_include(MAIN.1));
    if !before.is_empty() {
        text.push_str(&without_include(BEFORE_HEADER.1));
        BEFORE
            .iter()
            .for_each(|(_, source)| text.push_str(&without_include(&without_pieces(source, before))));
    }
    for (_, source) in ACTS {
        let (rest, used) = without_acts(source, acts);
        if used {
            text.push_str(&without_include(&rest));
        }
    }
    text
}

fn without_include(source: &str) -> String {
    source.split_inclusive('\n').filter(|line| !line.starts_with("#include \"")).collect()
}

/// Returns `source` with only the acts in `wanted`, and whether any is left.
fn without_acts(source: &str, wanted: &[&str]) -> (String, bool) {
    let (mut text, mut used, mut skips) = (String::new(), false, false);
    for line in source.split_inclusive('\n') {
        if let Some(name) = act_of(line) {
            skips = !wanted.contains(&name);
        }
        used |= entry_of(line).is_some_and(|name| wanted.contains(&name));
        if !skips {
            text.push_str(line);
        }
        if line == "}\n" {
            skips = false;
        }
    }
    (text, used)
}

/// Returns the act's name if one begins in this line.
fn act_of(line: &str) -> Option<&str> {
    let (head, rest) = line.split_once('(')?;
    let is_act = ["DISTURB", "OBSERVE", "MIXED", "END", "SELDOM"].contains(&head);
    is_act.then(|| rest.split(')').next()).flatten()
}

/// Returns the first argument of a macro at the start of a line: some files define macros that make acts.
fn entry_of(line: &str) -> Option<&str> {
    let (head, rest) = line.split_once('(')?;
    let is_macro = head.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    is_macro.then(|| rest.split([',', ')']).next()).flatten()
}

/// Returns `source` with only the pieces in `wanted`, which are no longer conditional.
fn without_pieces(source: &str, wanted: &[&str]) -> String {
    let (mut text, mut piece) = (String::new(), None);
    for line in source.split_inclusive('\n') {
        if let Some(name) = line.strip_prefix(PIECE) {
            piece = Some(wanted.contains(&name.trim_end()));
        } else if piece.is_some() && line.starts_with("#endif") {
            piece = None;
        } else if piece != Some(false) {
            text.push_str(line);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_acts_that_are_wanted_are_kept() {
        let source = "static int a;\n\nMIXED(one)\n{\n    if (a) {\n    }\n}\n\nEND(two)\n{\n}\nint b;\n";
        let (text, used) = without_acts(source, &["two"]);
        assert_eq!(text, "static int a;\n\n\nEND(two)\n{\n}\nint b;\n");
        assert!(used && !without_acts(source, &[]).1);
        let (text, used) = without_acts("END_BY(by_kill, SIGKILL)\n", &["by_kill"]);
        assert_eq!((text.as_str(), used), ("END_BY(by_kill, SIGKILL)\n", true));
    }

    /// The program of a finding has only its own acts.
    #[test]
    fn no_act_calls_another() {
        for (file, source) in ACTS {
            for name in source.lines().filter_map(act_of) {
                let others: Vec<_> =
                    source.lines().filter_map(act_of).filter(|other| *other != name).collect();
                let (text, _) = without_acts(source, &others);
                assert!(!text.contains(&format!("act_{name}(")), "{file}: {name} is called by another");
            }
        }
    }

    #[test]
    fn only_the_pieces_that_are_wanted_are_kept() {
        let source = "x\n#ifdef WITH_before_a\na\n#endif\n#ifdef WITH_before_b\nb\n#endif\ny\n";
        assert_eq!(without_pieces(source, &["before_b"]), "x\nb\ny\n");
    }

    #[test]
    fn pieces_before_main_have_unique_names() {
        let names: std::collections::BTreeSet<_> = before_names().into_iter().collect();
        assert_eq!(names.len(), before_names().len());
        assert!(names.iter().all(|name| name.starts_with("before_")));
    }
}
